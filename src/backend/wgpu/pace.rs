//! How much of a prompt's work a device is given at once. A submit cannot be cut short, and while it runs a page is not drawn
//! and a driver may lose patience, so each takes about a tenth of a second at most, or as long as one dispatch does. How much
//! work that is, earlier prompts show. Work is counted in bytes of weights times tokens.

/// What a submit should take at most.
const SUBMIT_MS: f64 = 100.0;
/// How many times the speed may grow by one measurement: clocks have coarse ticks and may be set.
const GROWTH: f64 = 4.0;
/// Work of a submit before the device's speed is known: short on a slow GPU, and many submits do not tell on a fast one.
const FIRST_WORK: u64 = 1 << 30;
/// The least work whose time tells the speed, and the least that a submit is cut down to.
const LEAST_WORK: u64 = 64 << 20;

/// The speed that a device shows.
#[derive(Debug, Default)]
pub struct Pace {
    /// Work a millisecond.
    speed: Option<f64>,
}

impl Pace {
    /// Work of one submit at most.
    pub fn submit_work(&self) -> u64 {
        let fitting = self.speed.map_or(FIRST_WORK, |speed| (speed * SUBMIT_MS) as u64);
        fitting.max(LEAST_WORK)
    }

    /// Learns from `work` that took `ms`. Slower work counts half: other work of the device, or a late look at the end, may
    /// be the cause, but a long context or a hot device slows for good.
    pub fn measured(&mut self, work: u64, ms: f64) {
        if work < LEAST_WORK || ms <= 0.0 {
            return;
        }
        let found = work as f64 / ms;
        self.speed = Some(match self.speed {
            Some(known) if found < known => (known + found) / 2.0,
            Some(known) => found.min(GROWTH * known),
            None => found,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submit_takes_a_tenth_of_a_second_on_any_device() {
        for speed in [(1u64 << 20) as f64, (1u64 << 30) as f64, (300u64 << 30) as f64] {
            let mut pace = Pace::default();
            assert_eq!(pace.submit_work(), FIRST_WORK);
            pace.measured(FIRST_WORK, FIRST_WORK as f64 / speed);
            let ms = pace.submit_work() as f64 / speed;
            assert!((ms - SUBMIT_MS).abs() < 1.0, "{ms} ms");
        }
    }

    #[test]
    fn one_slow_step_halves_the_work_at_most_and_what_is_too_small_to_tell_changes_nothing() {
        let mut pace = Pace::default();
        pace.measured(8 << 30, 50.0);
        let work = pace.submit_work();
        pace.measured(1 << 20, 0.001);
        pace.measured(8 << 30, 0.0);
        assert_eq!(pace.submit_work(), work);
        pace.measured(8 << 30, 1e9);
        assert!(pace.submit_work().abs_diff(work / 2) < work / 1000);
        pace.measured(8 << 30, 50.0);
        assert_eq!(pace.submit_work(), work);
        pace.measured(8 << 30, 0.001);
        assert_eq!(pace.submit_work(), 4 * work);
    }

    #[test]
    fn the_slowest_device_still_gets_some_work() {
        let mut pace = Pace::default();
        pace.measured(1 << 30, 1e9);
        assert_eq!(pace.submit_work(), LEAST_WORK);
    }
}
