//! Reads an answer as it streams: text, and calls in one family's notation. Whatever the model writes, what is given out
//! only ever grows, and what turns out to be no call is given out as text. Where pieces end does not matter.

use serde_json::{Map, Value};

use super::scan::{CallProgress, CallScan};
use super::{ToolCall, ToolCallDelta, ToolFormat};
use crate::text::marker::{Search, search};

/// Text that stands before a call's arguments is no longer than this.
const MOST_HEADING_BYTES: usize = 512;

/// A stretch of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text.
    Text(String),
    /// More of a call.
    Call(ToolCallDelta),
}

enum Place {
    Text,
    /// In a block of calls, after some text that is no call yet.
    Block(String),
    /// In a call, and whether it was given out.
    Call(CallScan, bool),
}

/// A call so far.
struct Begun {
    call: ToolCall,
    is_complete: bool,
}

/// Reads one answer.
pub(crate) struct ToolParser {
    format: &'static ToolFormat,
    names: Vec<String>,
    seed: u64,
    place: Place,
    /// Text not looked at yet.
    held: String,
    /// White space that belongs to text only if text follows or no call does.
    space: String,
    /// The block since its opening or its last call.
    block: String,
    /// Nothing but white space so far.
    at_start: bool,
    calls: Vec<Begun>,
}

impl ToolParser {
    /// For calls of the functions `names`; `seed` makes the ids of the calls.
    pub(crate) fn new(format: &'static ToolFormat, names: Vec<String>, seed: u64) -> Self {
        let (held, space, block) = (String::new(), String::new(), String::new());
        Self { format, names, seed, place: Place::Text, held, space, block, at_start: true, calls: Vec::new() }
    }

    /// The calls so far, also one that was cut.
    pub(crate) fn calls(&self) -> Vec<ToolCall> {
        self.calls.iter().map(|begun| begun.call.clone()).collect()
    }

    /// Whether there are calls and all are whole.
    pub(crate) fn is_complete(&self) -> bool {
        !self.calls.is_empty() && self.calls.iter().all(|begun| begun.is_complete)
    }

    /// Takes the next piece; gives what is certain.
    pub(crate) fn push(&mut self, piece: &str, out: &mut Vec<Part>) {
        self.held.push_str(piece);
        while self.step(out) {}
    }

    /// Gives what was held back, when no more text comes.
    pub(crate) fn finish(&mut self, out: &mut Vec<Part>) {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.place, Place::Text) {
            Place::Text => self.text(&held, out),
            Place::Block(_) => {
                self.block.push_str(&held);
                self.give_up(out);
            }
            Place::Call(scan, false) => {
                self.block.push_str(&scan.raw);
                self.give_up(out);
            }
            Place::Call(_, true) => {}
        }
        if self.calls.is_empty() {
            let space = std::mem::take(&mut self.space);
            give_text(&space, out);
        }
    }

    /// One step; false when it needs more text.
    fn step(&mut self, out: &mut Vec<Part>) -> bool {
        match std::mem::replace(&mut self.place, Place::Text) {
            Place::Text => self.step_in_text(out),
            Place::Block(heading) => self.step_in_block(heading, out),
            Place::Call(scan, is_given) => self.step_in_call(scan, is_given, out),
        }
    }

    fn step_in_text(&mut self, out: &mut Vec<Part>) -> bool {
        if self.format.bare && self.at_start {
            let begin = self.held.trim_start();
            if begin.is_empty() {
                return false;
            }
            if begin.starts_with('{') {
                let space = self.held.len() - begin.len();
                self.space.extend(self.held.drain(..space));
                self.at_start = false;
                self.place = Place::Block(String::new());
                return true;
            }
        }
        match search(&self.held, self.format.open) {
            Search::Found { start, end } => {
                let before: String = self.held.drain(..start).collect();
                self.text(&before, out);
                self.block = self.held.drain(..end - start).collect();
                self.place = Place::Block(String::new());
                true
            }
            Search::Open { from } => {
                let before: String = self.held.drain(..from).collect();
                self.text(&before, out);
                false
            }
        }
    }

    fn step_in_block(&mut self, mut heading: String, out: &mut Vec<Part>) -> bool {
        for (markers, closes) in [(self.format.close, true), (self.format.open, false)] {
            if let Some(marker) = markers.iter().find(|marker| self.held.starts_with(**marker)) {
                self.held.drain(..marker.len());
                self.block.push_str(marker);
                self.place = if closes { Place::Text } else { Place::Block(String::new()) };
                if closes {
                    self.block.clear();
                }
                return true;
            }
        }
        let mut markers = self.format.close.iter().chain(self.format.open);
        if markers.any(|marker| marker.starts_with(self.held.as_str())) {
            // Nothing, or what may become a marker.
            self.place = Place::Block(heading);
            return false;
        }
        if self.held.starts_with('{')
            && let Some(scan) = self.scan_after(&heading)
        {
            self.place = Place::Call(scan, false);
            return true;
        }
        let Some(c) = self.held.chars().next() else { return false };
        self.held.drain(..c.len_utf8());
        heading.push(c);
        self.block.push(c);
        let is_heading = self.format.heading.is_some() || is_separator(c);
        if c == '{' || !is_heading || heading.len() > MOST_HEADING_BYTES {
            self.give_up(out);
            return true;
        }
        self.place = Place::Block(heading);
        true
    }

    /// What reads the arguments that begin after `heading`; `None` when that names no function.
    fn scan_after(&self, heading: &str) -> Option<CallScan> {
        let heading = heading.trim_matches(is_separator);
        if heading.is_empty() {
            return Some(CallScan::object());
        }
        self.format.heading.and_then(|name_of| name_of(heading)).map(CallScan::arguments_of)
    }

    fn step_in_call(&mut self, mut scan: CallScan, mut is_given: bool, out: &mut Vec<Part>) -> bool {
        let mut characters = self.held.chars();
        let mut progress = CallProgress::More;
        while progress == CallProgress::More && (is_given || scan.name.is_none()) {
            let Some(c) = characters.next() else { break };
            progress = scan.push(c);
        }
        self.held = characters.as_str().to_owned();
        if let Some(name) = scan.name.clone().filter(|name| !is_given && self.is_known(name)) {
            self.begin(name, out);
            is_given = true;
        }
        if !is_given && (progress != CallProgress::More || scan.name.is_some()) {
            self.block.push_str(&scan.raw);
            self.give_up(out);
            return true;
        }
        if is_given {
            self.more_arguments(&scan.arguments, out);
        }
        match progress {
            CallProgress::More => {
                self.place = Place::Call(scan, is_given);
                return !self.held.is_empty();
            }
            CallProgress::Done => {
                if let Some(begun) = self.calls.last_mut() {
                    begun.is_complete = serde_json::from_str::<Map<String, Value>>(&begun.call.arguments).is_ok();
                }
                self.place = Place::Block(String::new());
            }
            CallProgress::Broken => self.place = Place::Text,
        }
        true
    }

    /// An object that is the whole answer is a call only if it names a function.
    fn is_known(&self, name: &str) -> bool {
        !self.format.bare || self.names.iter().any(|known| known == name)
    }

    fn begin(&mut self, name: String, out: &mut Vec<Part>) {
        self.block.clear();
        self.space.clear();
        let index = self.calls.len();
        let id = call_id(self.seed, index as u64);
        let call = ToolCall { id: id.clone(), name: name.clone(), arguments: String::new() };
        self.calls.push(Begun { call, is_complete: false });
        let delta = ToolCallDelta { index, id: Some(id), name: Some(name), arguments_delta: String::new() };
        out.push(Part::Call(delta));
    }

    /// Gives out what `arguments` has more than was given out before.
    fn more_arguments(&mut self, arguments: &str, out: &mut Vec<Part>) {
        let index = self.calls.len().saturating_sub(1);
        let Some(begun) = self.calls.last_mut() else { return };
        let text = arguments.get(begun.call.arguments.len()..).unwrap_or_default();
        if text.is_empty() {
            return;
        }
        begun.call.arguments.push_str(text);
        match out.last_mut() {
            Some(Part::Call(delta)) if delta.index == index => delta.arguments_delta.push_str(text),
            _ => {
                let delta = ToolCallDelta { index, arguments_delta: text.to_owned(), ..ToolCallDelta::default() };
                out.push(Part::Call(delta));
            }
        }
    }

    /// Gives the block since its last call out as text: it holds no further one.
    fn give_up(&mut self, out: &mut Vec<Part>) {
        let block = std::mem::take(&mut self.block);
        self.place = Place::Text;
        if self.calls.is_empty() || !block.trim_matches(is_separator).is_empty() {
            self.text(&block, out);
        }
    }

    /// Gives text out, but for white space at its end.
    fn text(&mut self, text: &str, out: &mut Vec<Part>) {
        let solid = text.trim_end();
        if !solid.is_empty() {
            self.at_start = false;
            let space = std::mem::take(&mut self.space);
            give_text(&space, out);
            give_text(solid, out);
        }
        self.space.push_str(text.get(solid.len()..).unwrap_or_default());
    }
}

fn give_text(text: &str, out: &mut Vec<Part>) {
    match out.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(before)) => before.push_str(text),
        _ => out.push(Part::Text(text.to_owned())),
    }
}

/// What may stand around the objects of a list of calls.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || matches!(c, '[' | ']' | ',' | ';')
}

/// Nine letters and digits: what every known template takes.
fn call_id(seed: u64, index: u64) -> String {
    let mut mixed = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let letter = |place: u32| {
        let digit = (mixed / 62u64.pow(place)) % 62;
        letters.get(digit as usize).copied().map_or('0', char::from)
    };
    (0..9).map(letter).collect()
}
