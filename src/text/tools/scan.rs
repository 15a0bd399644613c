//! One call's JSON as it streams: where values end, the name as soon as it is whole, the arguments letter by letter.
//! Takes what a model writes, so that nothing here trusts it to be JSON. Knows no markers.

/// How far a value is after a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    More,
    /// The character ends it.
    End,
    /// It ended before the character.
    EndBefore,
}

/// Finds the end of one JSON value.
#[derive(Debug, Clone, Copy, Default)]
struct ValueScan {
    depth: u32,
    has_begun: bool,
    in_string: bool,
    escaped: bool,
}

impl ValueScan {
    fn push(&mut self, c: char) -> Progress {
        if self.in_string {
            match c {
                _ if self.escaped => self.escaped = false,
                '\\' => self.escaped = true,
                '"' => {
                    self.in_string = false;
                    return self.end_at(0);
                }
                _ => {}
            }
            return Progress::More;
        }
        match c {
            '}' | ']' | ',' if self.depth == 0 => return Progress::EndBefore,
            c if c.is_whitespace() && self.depth == 0 => {
                return if self.has_begun { Progress::EndBefore } else { Progress::More };
            }
            '}' | ']' => {
                self.depth -= 1;
                return self.end_at(0);
            }
            '{' | '[' => self.depth += 1,
            '"' => self.in_string = true,
            _ => {}
        }
        self.has_begun = true;
        Progress::More
    }

    fn end_at(&self, depth: u32) -> Progress {
        if self.depth == depth { Progress::End } else { Progress::More }
    }
}

/// How far a call is after a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallProgress {
    /// Not at its end.
    More,
    /// At its end.
    Done,
    /// It is no call, or not one that goes on.
    Broken,
}

#[derive(Debug, Clone)]
enum Place {
    /// Before `{`.
    Open,
    /// Before a key or the closing brace.
    Key,
    InKey(String, ValueScan),
    Colon(String),
    Value(String, String, ValueScan),
}

/// Reads one call.
#[derive(Debug, Clone)]
pub(super) struct CallScan {
    place: Place,
    /// Everything read so far, in case it is no call.
    pub(super) raw: String,
    /// Once it is known.
    pub(super) name: Option<String>,
    /// So far.
    pub(super) arguments: String,
    /// Whether only the arguments are read: the name came before.
    is_bare: bool,
}

impl CallScan {
    /// Reads an object with `name` and `arguments` (or `parameters`).
    pub(super) fn object() -> Self {
        Self { place: Place::Open, raw: String::new(), name: None, arguments: String::new(), is_bare: false }
    }

    /// Reads the arguments of the function `name`.
    pub(super) fn arguments_of(name: &str) -> Self {
        let place = Place::Value("arguments".to_owned(), String::new(), ValueScan::default());
        Self { place, name: Some(name.to_owned()), is_bare: true, ..Self::object() }
    }

    /// Takes the next character.
    pub(super) fn push(&mut self, c: char) -> CallProgress {
        self.raw.push(c);
        let place = std::mem::replace(&mut self.place, Place::Key);
        match place {
            Place::Open if c == '{' => CallProgress::More,
            Place::Key if c == '}' => self.done(),
            Place::Key if c == '"' => {
                self.place = Place::InKey(
                    "\"".to_owned(),
                    ValueScan { in_string: true, has_begun: true, ..ValueScan::default() },
                );
                CallProgress::More
            }
            Place::Key if c == ',' || c.is_whitespace() => CallProgress::More,
            Place::InKey(mut text, mut scan) => {
                text.push(c);
                self.place = match scan.push(c) {
                    Progress::More => Place::InKey(text, scan),
                    _ => Place::Colon(serde_json::from_str(&text).unwrap_or_default()),
                };
                CallProgress::More
            }
            Place::Colon(key) if c == ':' => {
                self.place = Place::Value(key, String::new(), ValueScan::default());
                CallProgress::More
            }
            Place::Colon(key) if c.is_whitespace() => {
                self.place = Place::Colon(key);
                CallProgress::More
            }
            Place::Value(key, text, scan) => self.value(key, text, scan, c),
            _ => CallProgress::Broken,
        }
    }

    fn value(&mut self, key: String, mut text: String, mut scan: ValueScan, c: char) -> CallProgress {
        let progress = scan.push(c);
        if progress != Progress::EndBefore && (scan.has_begun || progress == Progress::End) {
            text.push(c);
            // An object's text is the arguments' text; anything else is looked at when it is whole.
            if is_arguments(&key) && text.starts_with('{') {
                self.arguments.push(c);
            }
        }
        if progress == Progress::More {
            self.place = Place::Value(key, text, scan);
            return CallProgress::More;
        }
        self.take_value(&key, &text);
        if self.is_bare {
            return self.done();
        }
        match (progress, c) {
            (Progress::EndBefore, '}') => self.done(),
            (Progress::EndBefore, ']') => CallProgress::Broken,
            _ => CallProgress::More,
        }
    }

    fn take_value(&mut self, key: &str, text: &str) {
        if key == "name" && self.name.is_none() {
            self.name = serde_json::from_str(text).ok().filter(|name: &String| !name.is_empty());
        } else if is_arguments(key) && !text.starts_with('{') && self.arguments.is_empty() {
            // Some models write the arguments as a string that holds JSON.
            let inner: Option<String> = serde_json::from_str(text).ok();
            self.arguments = inner.unwrap_or_else(|| if text == "null" { String::new() } else { text.to_owned() });
        }
    }

    fn done(&mut self) -> CallProgress {
        if self.name.is_none() {
            return CallProgress::Broken;
        }
        if self.arguments.trim().is_empty() {
            self.arguments = "{}".to_owned();
        }
        CallProgress::Done
    }
}

fn is_arguments(key: &str) -> bool {
    key == "arguments" || key == "parameters"
}
