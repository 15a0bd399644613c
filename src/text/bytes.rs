//! Bytes and characters: the byte alphabet of byte-level vocabularies, the `<0xNN>` spelling of byte-fallback ones, and
//! putting bytes back together into text that arrives in pieces. Knows no vocabulary.

/// The character that a byte-level vocabulary writes for `byte`: itself where it is printable, else one from U+0100 on,
/// in the order of the bytes.
pub(crate) fn byte_to_char(byte: u8) -> char {
    let code = match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u32::from(byte),
        0x00..=0x20 => 0x100 + u32::from(byte),
        0x7f..=0xa0 => 0x121 + u32::from(byte) - 0x7f,
        0xad => 0x143,
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte that `character` stands for in a byte-level vocabulary; `None` outside its alphabet of 256.
pub(crate) fn char_to_byte(character: char) -> Option<u8> {
    let code = u32::from(character);
    let byte = match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7f,
        0x143 => 0xad,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// `text` in the byte alphabet.
pub(crate) fn to_byte_alphabet(text: &str) -> String {
    text.bytes().map(byte_to_char).collect()
}

/// The byte that a byte-fallback token such as `<0x0A>` stands for.
pub(crate) fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// How many replacement characters a broken sequence becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// One for each maximal broken sequence, as `String::from_utf8_lossy` does: byte-level vocabularies.
    PerSequence,
    /// One for each byte: byte-fallback vocabularies, where each was a token of its own.
    PerByte,
}

/// Turns bytes that arrive in pieces into text, holding back at most three bytes of an unfinished character.
#[derive(Debug, Clone)]
pub(crate) struct Assembler {
    broken: Broken,
    held: Vec<u8>,
}

impl Assembler {
    pub(crate) fn new(broken: Broken) -> Self {
        Self { broken, held: Vec::new() }
    }

    /// Takes `bytes` and appends to `out` the text that no later byte can change.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) {
        self.held.extend_from_slice(bytes);
        let mut rest = self.held.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    out.push_str(text);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at_checked(error.valid_up_to()).unwrap_or((&[], rest));
                    out.push_str(std::str::from_utf8(good).unwrap_or_default());
                    rest = bad;
                    let Some(n) = error.error_len() else { break };
                    replace(self.broken, n, out);
                    rest = rest.get(n..).unwrap_or_default();
                }
            }
        }
        let n_used = self.held.len() - rest.len();
        self.held.drain(..n_used);
    }

    /// Appends what an end of the text makes of the bytes still held.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !self.held.is_empty() {
            replace(self.broken, self.held.len(), out);
            self.held.clear();
        }
    }
}

fn replace(broken: Broken, n_bytes: usize, out: &mut String) {
    let n = if broken == Broken::PerByte { n_bytes } else { 1 };
    out.extend(std::iter::repeat_n(char::REPLACEMENT_CHARACTER, n));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_a_bijection_with_known_members() {
        for byte in 0..=255u8 {
            assert_eq!(char_to_byte(byte_to_char(byte)), Some(byte));
        }
        assert_eq!(to_byte_alphabet(" é\n"), "ĠÃ©Ċ");
        assert_eq!(byte_to_char(0xad), 'Ń');
        assert_eq!(byte_to_char(0x7f), 'ġ');
        assert_eq!(byte_to_char(0xa0), 'ł');
        assert_eq!(char_to_byte('日'), None);
        assert_eq!(char_to_byte('\u{144}'), None);
    }

    #[test]
    fn only_two_hexadecimal_digits_make_a_byte_token() {
        assert_eq!(fallback_byte("<0x0A>"), Some(10));
        assert_eq!(fallback_byte("<0xff>"), Some(255));
        for token in ["<0xA>", "<0x+1>", "<0x0AB>", "0x0A", "<0x0A", "<0xé>", ""] {
            assert_eq!(fallback_byte(token), None, "{token}");
        }
    }

    #[test]
    fn joined_pieces_equal_the_lossy_reading_of_all_bytes() {
        let samples: [&[u8]; 6] =
            [b"a\xf0\x9fb", "é🙂x".as_bytes(), b"\xff\xfe", b"\xe2\x82", b"\xed\xa0\x80z", b"\xf0\x9f\x99\x82\xf0"];
        for bytes in samples {
            for n in 1..=bytes.len() {
                let mut assembler = Assembler::new(Broken::PerSequence);
                let mut out = String::new();
                for piece in bytes.chunks(n) {
                    assembler.push(piece, &mut out);
                }
                assembler.finish(&mut out);
                assert_eq!(out, String::from_utf8_lossy(bytes), "{bytes:x?} in pieces of {n}");
            }
        }
    }

    #[test]
    fn broken_bytes_of_a_fallback_vocabulary_are_replaced_one_by_one() {
        let mut assembler = Assembler::new(Broken::PerByte);
        let mut out = String::new();
        assembler.push(b"\xf0", &mut out);
        assembler.push(b"\x9f", &mut out);
        assert_eq!(out, "");
        assembler.push(b" Hi", &mut out);
        assert_eq!(out, "\u{fffd}\u{fffd} Hi");
    }
}
