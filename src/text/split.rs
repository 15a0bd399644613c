//! Cutting text into words before merging: the table of the known pre-tokenizers, and an engine for their patterns that
//! takes linear time.
//!
//! The published patterns end in `\s+(?!\S)|\s+`: a run of spaces leaves its last one to the word that follows. That
//! look-ahead would force a backtracking engine, which gives up on a megabyte of spaces. Here the tail becomes `\s+`,
//! and a match of it is shortened by hand; the same code runs in the browser and natively. Knows no vocabulary.

use std::sync::Arc;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::tokenizer::pattern::Pattern;
use tokenizers::{Offsets, PreTokenizedString, PreTokenizer, SplitDelimiterBehavior};

use crate::error::{Error, Result};

/// How one family of byte-level vocabularies cuts its text.
pub(crate) struct PreTokenizerRow {
    /// The names that model files use for it.
    pub(crate) names: &'static [&'static str],
    /// The patterns, each applied inside the pieces that the ones before it left.
    pub(crate) patterns: &'static [&'static str],
    /// A whole word that is in the vocabulary is taken without merging.
    pub(crate) ignore_merges: bool,
    /// Whether text begins with the begin-of-text token when the file does not say.
    pub(crate) add_bos: bool,
}

const LOOK_AHEAD_TAIL: &str = r"|\s+(?!\S)|\s+";
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KIMI: &str = r"\p{Han}+|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const BAILING: &str =
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";
const SEED_CODER: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3_WORDS: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const CASED_LETTERS: &str = r"\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}-\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}-\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}-\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+";
const HAN_AND_HANGUL: &str = "[一-龥ࠀ-一가-\u{d7ff}]+";
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";

/// Every known pre-tokenizer of byte-level vocabularies: to add one, add its row.
#[rustfmt::skip]
pub(crate) static PRE_TOKENIZERS: &[PreTokenizerRow] = &[
    row(&["default"], &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
    row(&["gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4", "jina-es", "jina-de",
        "jina-v1-en", "jina-v2-es", "jina-v2-de", "roberta-bpe", "gigachat", "modern-bert"], &[GPT2]),
    row(&["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum", "jina-v2-code"],
        &[r"\p{N}", GPT2]),
    llama3(&["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"]),
    row(&["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"], &[LLAMA3]),
    row(&["qwen2", "stablelm2", "deepseek-r1-qwen", "hunyuan", "megrez", "grok-2", "solar-open", "a.x-4.0"], &[QWEN2]),
    row(&["qwen35"], &[QWEN35]),
    PreTokenizerRow { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, add_bos: true },
    row(&["gpt-4o", "llama4", "kanana2", "minimax-m2"], &[GPT4O]),
    row(&["kimi-k2"], &[KIMI]),
    row(&["deepseek-llm"], &[r"[\r\n]", CASED_LETTERS, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", HAN_AND_HANGUL, r"\p{N}+"]),
    row(&["deepseek-coder"], &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN_AND_HANGUL, r"\p{N}"]),
    row(&["deepseek-v3", "hunyuan-dense", "joyai-llm"], &[r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3_WORDS]),
    row(&["falcon"], &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
    row(&["bloom", "poro-chat", "gpt3-finnish"], &[BLOOM]),
    row(&["viking"], &[BLOOM, r"\p{N}"]),
    row(&["bailingmoe", "bailingmoe2", "llada-moe"], &[BAILING]),
    row(&["seed-coder"], &[SEED_CODER]),
];

const fn row(names: &'static [&'static str], patterns: &'static [&'static str]) -> PreTokenizerRow {
    PreTokenizerRow { names, patterns, ignore_merges: false, add_bos: false }
}

const fn llama3(names: &'static [&'static str]) -> PreTokenizerRow {
    PreTokenizerRow { names, patterns: &[LLAMA3], ignore_merges: true, add_bos: true }
}

/// The row of a pre-tokenizer's name.
///
/// # Errors
/// `UnsupportedModel` naming it and the known ones.
pub(crate) fn pre_tokenizer_row(name: &str) -> Result<&'static PreTokenizerRow> {
    PRE_TOKENIZERS.iter().find(|row| row.names.contains(&name)).ok_or_else(|| {
        let known: Vec<&str> = PRE_TOKENIZERS.iter().flat_map(|row| row.names.iter().copied()).collect();
        Error::unsupported(format!("the pre-tokenizer {name:?} is not known; known are {}", known.join(", ")))
    })
}

/// One splitting pattern, matched in linear time.
#[derive(Debug, Clone)]
pub(crate) struct Splitter {
    regex: Regex,
    /// The pattern ended in the look-ahead tail, which is group 1 of `regex`.
    shortens_spaces: bool,
}

impl Splitter {
    /// Compiles a published pattern; `None` when it needs more than this engine has (other look-around, possessive
    /// quantifiers, back references) or is no pattern at all.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        // In these two fragments nothing after the quantifier can match what it took: possessive or not is the same.
        let pattern = pattern
            .replace(r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"[^\r\n\p{L}\p{N}]?\p{L}+")
            .replace(r"[^\s\p{L}\p{N}]++[\r\n]", r"[^\s\p{L}\p{N}]+[\r\n]");
        let (head, shortens_spaces) = match pattern.strip_suffix(LOOK_AHEAD_TAIL) {
            Some(head) => (head, true),
            None => (pattern.as_str(), false),
        };
        if needs_backtracking(head) {
            return None;
        }
        let source = if shortens_spaces { format!(r"(?:{head})|(\s+)") } else { head.to_string() };
        // A head with a group of its own would shift the tail's number.
        let regex = Regex::new(&source).ok()?;
        (!shortens_spaces || regex.captures_len() == 2).then_some(Self { regex, shortens_spaces })
    }

    /// Where the match that begins the search at `from` lies.
    fn next(&self, text: &str, from: usize) -> Option<Offsets> {
        let found = self.regex.find_at(text, from)?;
        let (start, end) = (found.start(), found.end());
        let spaces = found.as_str();
        if self.shortens_spaces && end < text.len() && spaces.chars().all(char::is_whitespace) {
            let from_tail = self.regex.captures_at(text, start).is_some_and(|groups| groups.get(1).is_some());
            let last = spaces.char_indices().next_back().map_or(0, |(index, _)| index);
            if from_tail && last > 0 {
                return Some((start, start + last));
            }
        }
        Some((start, end))
    }
}

/// Whether a pattern has look-around, an atomic group or a possessive quantifier.
fn needs_backtracking(pattern: &str) -> bool {
    let mut depth = 0_usize;
    let mut quantified = false;
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        let was_quantified = std::mem::take(&mut quantified);
        match character {
            '\\' => {
                rest.next();
            }
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            '+' if was_quantified => return true,
            '?' | '*' | '+' | '}' => quantified = true,
            '(' if ["?=", "?!", "?<", "?>", "?P"].iter().any(|mark| rest.as_str().starts_with(mark)) => return true,
            _ => {}
        }
        // The brace of `\p{L}` closes a name, not a count.
        if character == '\\' && rest.as_str().starts_with('{') {
            rest.by_ref().find(|&c| c == '}');
        }
    }
    false
}

impl Pattern for &Splitter {
    fn find_matches(&self, inside: &str) -> tokenizers::Result<Vec<(Offsets, bool)>> {
        let mut pieces = Vec::new();
        let mut done = 0;
        while let Some((start, end)) = self.next(inside, done) {
            if end == start {
                break;
            }
            if start > done {
                pieces.push(((done, start), false));
            }
            pieces.push(((start, end), true));
            done = end;
        }
        if done < inside.len() || inside.is_empty() {
            pieces.push(((done, inside.len()), false));
        }
        Ok(pieces)
    }
}

/// One stage of cutting: ours where the pattern allows it, else the library's.
#[derive(Debug, Clone)]
enum Stage {
    Linear(Splitter),
    Library(PreTokenizerWrapper),
}

/// A chain of stages, each working inside the pieces of the one before.
#[derive(Debug, Clone)]
pub(crate) struct Stages(Arc<[Stage]>);

impl Stages {
    /// The stages of a row of the table.
    ///
    /// # Errors
    /// `Internal` when a pattern of the table does not compile (a test rules it out).
    pub(crate) fn of_row(row: &PreTokenizerRow) -> Result<Self> {
        let stages = row.patterns.iter().map(|pattern| {
            Splitter::new(pattern)
                .map(Stage::Linear)
                .ok_or_else(|| Error::internal(format!("the pattern {pattern:?} does not compile")))
        });
        Ok(Self(stages.collect::<Result<_>>()?))
    }

    fn add(stages: &mut Vec<Stage>, wrapper: PreTokenizerWrapper) {
        match wrapper {
            PreTokenizerWrapper::Sequence(sequence) => {
                for inner in sequence {
                    Self::add(stages, inner);
                }
            }
            PreTokenizerWrapper::ByteLevel(level) if level.use_regex && !level.add_prefix_space => {
                stages.extend(Splitter::new(GPT2).map(Stage::Linear));
                let alphabet = ByteLevel::new(false, level.trim_offsets, false);
                stages.push(Stage::Library(PreTokenizerWrapper::ByteLevel(alphabet)));
            }
            PreTokenizerWrapper::Split(split) => {
                let ours = match &split.pattern {
                    SplitPattern::Regex(pattern)
                        if !split.invert && split.behavior == SplitDelimiterBehavior::Isolated =>
                    {
                        Splitter::new(pattern)
                    }
                    _ => None,
                };
                stages.push(ours.map_or(Stage::Library(PreTokenizerWrapper::Split(split)), Stage::Linear));
            }
            other => stages.push(Stage::Library(other)),
        }
    }
}

impl<'de> Deserialize<'de> for Stages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let mut stages = Vec::new();
        Self::add(&mut stages, PreTokenizerWrapper::deserialize(deserializer)?);
        Ok(Self(stages.into()))
    }
}

impl PreTokenizer for Stages {
    fn pre_tokenize(&self, text: &mut PreTokenizedString) -> tokenizers::Result<()> {
        for stage in self.0.iter() {
            match stage {
                Stage::Linear(splitter) => {
                    text.split(|_, piece| piece.split(splitter, SplitDelimiterBehavior::Isolated))?;
                }
                Stage::Library(wrapper) => wrapper.pre_tokenize(text)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn cut<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        let stages = Stages::of_row(pre_tokenizer_row(name).unwrap()).unwrap();
        let mut pieces = vec![text];
        for stage in stages.0.iter() {
            let Stage::Linear(splitter) = stage else { continue };
            pieces = pieces
                .into_iter()
                .flat_map(|piece| {
                    splitter.find_matches(piece).unwrap().into_iter().map(move |((a, b), _)| &piece[a..b])
                })
                .collect();
        }
        pieces
    }

    #[test]
    fn every_pattern_of_the_table_compiles_and_every_name_is_there_once() {
        let mut names: Vec<&str> = Vec::new();
        for row in PRE_TOKENIZERS {
            assert_eq!(Stages::of_row(row).unwrap().0.len(), row.patterns.len());
            names.extend(row.names);
        }
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = pre_tokenizer_row("moon").err().unwrap();
        assert_eq!(error.code(), "unsupported-model");
        assert!(error.message().contains("\"moon\"") && error.message().contains("qwen2"));
    }

    #[test]
    fn a_run_of_spaces_leaves_the_last_to_the_word() {
        assert_eq!(cut("gpt-2", "a   b  "), ["a", "  ", " b", "  "]);
        assert_eq!(cut("gpt-2", "a\n\nb"), ["a", "\n", "\n", "b"]);
        assert_eq!(cut("gpt-2", "\tx"), ["\t", "x"]);
        assert_eq!(cut("gpt-2", "don't I'M"), ["don", "'t", " I", "'", "M"]);
        assert_eq!(cut("llama-bpe", "a  \n\n  b"), ["a", "  \n\n", " ", " b"]);
        assert_eq!(cut("llama-bpe", "I'M 12345!\n x"), ["I", "'M", " ", "123", "45", "!\n", " x"]);
        assert_eq!(cut("qwen2", "123"), ["1", "2", "3"]);
        assert_eq!(cut("smollm", "v12 "), ["v", "1", "2", " "]);
        assert_eq!(cut("tekken", "HelloWorld"), ["Hello", "World"]);
        assert_eq!(cut("deepseek-coder", "x1\n日本"), ["x", "1", "\n", "日本"]);
        assert_eq!(cut("bailingmoe", "a \n\n b"), ["a", " \n\n", " b"]);
    }

    #[test]
    fn letters_that_fold_to_s_count_as_contractions_and_dotless_i_does_not_fold() {
        assert_eq!(cut("llama-bpe", "it'ſ"), ["it", "'ſ"]);
        assert_eq!(cut("llama-bpe", "I'Lıx"), ["I", "'Lıx"]);
    }

    #[test]
    fn a_megabyte_of_spaces_is_cut_as_a_short_run_is() {
        let mut text = " ".repeat(1 << 20);
        text.push('x');
        for name in ["gpt-2", "llama-bpe", "qwen2", "gpt-4o"] {
            let pieces = cut(name, &text);
            assert_eq!(pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>(), [(1 << 20) - 1, 2], "{name}");
        }
    }

    #[test]
    fn patterns_beyond_the_linear_engine_are_left_to_the_library() {
        assert!(Splitter::new(r"\d{1,3}(?=(?:\d{3})*\b)").is_none());
        assert!(Splitter::new(r"(a)b|\s+(?!\S)|\s+").is_none());
        assert!(Splitter::new("[").is_none());
        assert!(Splitter::new(r"[^\r\n\p{L}\p{N}]?+\p{L}+| ?[^\s\p{L}\p{N}]++[\r\n]*|\s+(?!\S)|\s+").is_some());
    }

    /// The lengths in bytes of the pieces that another engine cuts random strings into: `splits.py` beside them.
    const RECORDED: &str = include_str!("../../tests/fixtures/oracle/splits.json");

    #[test]
    fn random_strings_are_cut_as_another_engine_cuts_them() {
        let recorded: serde_json::Value = serde_json::from_str(RECORDED).unwrap();
        let texts = recorded["texts"].as_array().unwrap();
        let rows = recorded["lengths"].as_object().unwrap();
        assert!(texts.len() >= 200 && rows.len() >= 16);
        for (name, lengths) in rows {
            for (text, expected) in texts.iter().zip(lengths.as_array().unwrap()) {
                let found: Vec<usize> = cut(name, text.as_str().unwrap()).iter().map(|piece| piece.len()).collect();
                assert_eq!(serde_json::json!(found), *expected, "{name} on {text}");
            }
        }
    }

    #[test]
    fn the_linear_engine_cuts_as_the_library_does() {
        let texts = [
            "  a \n\n b\t\tc  ",
            "x'S y'll 1234567 🙂🙂 naïve\r\n\r\n  end",
            "\u{a0}\u{3000} q",
            "日本 語..!!\n\n",
            " ",
            "\n",
        ];
        for pattern in [GPT2, LLAMA3, QWEN2, QWEN35, TEKKEN, GPT4O, BAILING, SEED_CODER, DEEPSEEK3_WORDS] {
            let ours = Splitter::new(pattern).unwrap();
            let theirs = tokenizers::utils::SysRegex::new(pattern).unwrap();
            for text in texts {
                assert_eq!(
                    (&ours).find_matches(text).unwrap(),
                    (&theirs).find_matches(text).unwrap(),
                    "{pattern} on {text:?}"
                );
            }
        }
    }
}
