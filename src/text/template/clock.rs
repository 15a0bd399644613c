//! The date that a template may ask for. The clock is passed in: nothing here reads one.

/// A moment and the place's offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Seconds since 1970-01-01 00:00 UTC.
    pub unix_seconds: i64,
    /// What the local time is ahead of UTC, in minutes.
    pub utc_offset_minutes: i32,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A local time in parts.
struct Parts {
    year: i64,
    /// 1 to 12.
    month: i64,
    /// 1 to 31.
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// 0 is Sunday.
    weekday: i64,
    /// 1 is January 1st.
    day_of_year: i64,
    offset_minutes: i64,
    unix_seconds: i64,
}

impl Parts {
    fn new(clock: Clock) -> Self {
        let offset_minutes = i64::from(clock.utc_offset_minutes);
        // Years outside ±9999 are of no use in a prompt and would overflow the arithmetic.
        let local = (clock.unix_seconds.clamp(-62_135_596_800, 253_402_300_799)).saturating_add(offset_minutes * 60);
        let (days, second_of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let january_first = days_of(year, 1, 1);
        Self {
            year,
            month,
            day,
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
            weekday: (days + 4).rem_euclid(7),
            day_of_year: days - january_first + 1,
            offset_minutes,
            unix_seconds: clock.unix_seconds,
        }
    }
}

/// Days since 1970-01-01 of a date of the Gregorian calendar. Years run from March so that leap days come last.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date (year, month, day) that is `days` after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

fn name<'n>(names: &[&'n str], index: i64) -> &'n str {
    usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or("?")
}

/// `clock` in the format of Python's `strftime`, in English. `%-d` and its like leave padding out; an unknown directive
/// stays as it is.
pub(crate) fn strftime(clock: Clock, format: &str) -> String {
    let parts = Parts::new(clock);
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let mut directive = rest.next();
        let unpadded = directive == Some('-');
        if unpadded {
            directive = rest.next();
        }
        let Some(directive) = directive else {
            out.push('%');
            break;
        };
        match expand(&parts, directive) {
            Some(text) if unpadded => {
                let short = text.trim_start_matches(['0', ' ']);
                out.push_str(if short.is_empty() { "0" } else { short });
            }
            Some(text) => out.push_str(&text),
            None => {
                out.push('%');
                out.push(directive);
            }
        }
    }
    out
}

fn expand(parts: &Parts, directive: char) -> Option<String> {
    let two = |number: i64| format!("{number:02}");
    let hour_12 = if parts.hour % 12 == 0 { 12 } else { parts.hour % 12 };
    let short = |name: &str| name.chars().take(3).collect::<String>();
    let all = |directives: &[char], separator: &str| {
        directives.iter().filter_map(|directive| expand(parts, *directive)).collect::<Vec<_>>().join(separator)
    };
    let offset = parts.offset_minutes;
    let offset_text = format!("{}{:02}{:02}", if offset < 0 { '-' } else { '+' }, offset.abs() / 60, offset.abs() % 60);
    Some(match directive {
        'Y' => parts.year.to_string(),
        'y' => two(parts.year.rem_euclid(100)),
        'C' => two(parts.year.div_euclid(100)),
        'm' => two(parts.month),
        'd' => two(parts.day),
        'e' => format!("{:2}", parts.day),
        'B' => name(&MONTHS, parts.month - 1).to_string(),
        'b' | 'h' => short(name(&MONTHS, parts.month - 1)),
        'A' => name(&DAYS, parts.weekday).to_string(),
        'a' => short(name(&DAYS, parts.weekday)),
        'w' => parts.weekday.to_string(),
        'u' => if parts.weekday == 0 { 7 } else { parts.weekday }.to_string(),
        'j' => format!("{:03}", parts.day_of_year),
        'U' => two((parts.day_of_year + 6 - parts.weekday) / 7),
        'W' => two((parts.day_of_year + 6 - (parts.weekday + 6) % 7) / 7),
        'H' => two(parts.hour),
        'I' => two(hour_12),
        'M' => two(parts.minute),
        'S' => two(parts.second),
        'f' => "000000".to_string(),
        'p' => if parts.hour < 12 { "AM" } else { "PM" }.to_string(),
        'z' => offset_text,
        'Z' if offset == 0 => "UTC".to_string(),
        'Z' => format!("UTC{offset_text}"),
        's' => parts.unix_seconds.to_string(),
        'F' => all(&['Y', 'm', 'd'], "-"),
        'T' | 'X' => all(&['H', 'M', 'S'], ":"),
        'R' => all(&['H', 'M'], ":"),
        'D' | 'x' => all(&['m', 'd', 'y'], "/"),
        'c' => all(&['a', 'b', 'e', 'T', 'Y'], " "),
        'n' => "\n".to_string(),
        't' => "\t".to_string(),
        '%' => "%".to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix_seconds: i64, format: &str) -> String {
        strftime(Clock { unix_seconds, utc_offset_minutes: 0 }, format)
    }

    #[test]
    fn dates_are_written_as_python_writes_them() {
        // Saturday, 29 February 2020, 09:05:07 UTC.
        let leap_day = 1_582_967_107;
        assert_eq!(at(leap_day, "%d %b %Y"), "29 Feb 2020");
        assert_eq!(at(leap_day, "%Y-%m-%d %H:%M:%S %A %j %-I%p %e %y"), "2020-02-29 09:05:07 Saturday 060 9AM 29 20");
        assert_eq!(
            at(leap_day, "%F %T %D %R %U %W %u %w %c"),
            "2020-02-29 09:05:07 02/29/20 09:05 08 08 6 6 Sat Feb 29 09:05:07 2020"
        );
        assert_eq!(at(0, "%B %-d, %Y %% %q %"), "January 1, 1970 % %q %");
        assert_eq!(at(-1, "%F %T"), "1969-12-31 23:59:59");
        assert_eq!(at(951_782_400, "%F %a"), "2000-02-29 Tue");
        assert_eq!(at(4_107_542_399, "%F"), "2100-02-28");
        assert_eq!(at(4_107_542_400, "%F"), "2100-03-01");
    }

    #[test]
    fn the_offset_moves_the_day_and_extreme_moments_do_no_harm() {
        let clock = Clock { unix_seconds: 1_582_967_107, utc_offset_minutes: 15 * 60 };
        assert_eq!(strftime(clock, "%d %H:%M %z"), "01 00:05 +1500");
        for unix_seconds in [i64::MIN, i64::MAX] {
            for utc_offset_minutes in [i32::MIN, i32::MAX] {
                assert!(!strftime(Clock { unix_seconds, utc_offset_minutes }, "%c %s").is_empty());
            }
        }
    }
}
