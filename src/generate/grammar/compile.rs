//! The grammar engine: `llguidance` over a vocabulary. Here its limits are set, so that no grammar takes unbounded time
//! or memory. Knows no file, no sampler and no border to JavaScript.

use std::sync::Arc;

use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::{Logger, Matcher, ParserFactory};
use toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};

use super::stack::with_room;
use super::{Grammar, MOST_REGEX_BYTES, MOST_SCHEMA_BYTES, TokenVocabulary, prepare_schema};
use crate::error::{Error, Result};
use crate::generate::constraint::{Permission, TokenConstraint, TokenMask};

/// The end of a vocabulary that has none: an id that no token has.
const NO_END: u32 = u32::MAX;

/// The most bytes of a grammar in Lark's notation.
const MOST_LARK_BYTES: usize = 32 << 10;
/// The most symbols of a compiled grammar.
const MOST_SYMBOLS: usize = 100_000;
/// The most states of its lexer, about 2 kB each.
const MOST_LEXER_STATES: usize = 30_000;

/// Turns grammars into constraints over one vocabulary.
pub struct GrammarCompiler {
    factory: ParserFactory,
}

impl GrammarCompiler {
    /// A compiler for a vocabulary; building it takes tens of milliseconds.
    ///
    /// # Errors
    /// `unsupported-model` for a vocabulary without tokens.
    pub fn new(vocabulary: &TokenVocabulary) -> Result<Self> {
        let n = u32::try_from(vocabulary.tokens.len()).unwrap_or(u32::MAX);
        if n == 0 {
            return Err(Error::unsupported("a model without a tokenizer cannot follow a grammar"));
        }
        let end_ids: Vec<u32> = vocabulary.end_ids.iter().copied().filter(|&id| id < n).collect();
        let info = TokRxInfo::new(n, end_ids.first().copied().unwrap_or(NO_END));
        // 0xff begins no text; the library takes it for the mark of a special token.
        let is_text = |token: &Vec<u8>| token.first() != Some(&TokTrie::SPECIAL_TOKEN_MARKER) && token.len() < 256;
        let words: Vec<Vec<u8>> =
            vocabulary.tokens.iter().map(|token| if is_text(token) { token.clone() } else { Vec::new() }).collect();
        let mut trie = TokTrie::from(&info, &words);
        if !end_ids.is_empty() {
            trie = trie.with_eos_tokens(&end_ids);
        }
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let factory = ParserFactory::new_simple(&env);
        let mut factory = factory.map_err(|error| Error::internal(format!("the vocabulary has no lexer: {error}")))?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            max_lexer_states: MOST_LEXER_STATES,
            max_grammar_size: MOST_SYMBOLS,
            precompute_large_lexemes: false,
            verbose_errors: false,
            ..ParserLimits::default()
        };
        Ok(Self { factory })
    }

    /// The constraint of a grammar, at its beginning.
    ///
    /// # Errors
    /// `invalid-argument` for a grammar that is wrong, unsupported or too large; the message says which part.
    pub fn compile(&self, grammar: &Grammar) -> Result<Box<dyn TokenConstraint>> {
        let top = match grammar {
            Grammar::JsonSchema(schema) => TopLevelGrammar::from_json_schema(prepare_schema(schema)?),
            Grammar::Regex(regex) => TopLevelGrammar::from_regex(checked_size(regex, MOST_REGEX_BYTES)?),
            Grammar::Lark(lark) => TopLevelGrammar::from_lark(checked_size(lark, MOST_LARK_BYTES)?.to_owned()),
            Grammar::Calls(lark) => TopLevelGrammar::from_lark(checked_size(lark, 8 * MOST_SCHEMA_BYTES)?.to_owned()),
        };
        with_room(|| self.begin(top)).map(|constraint| Box::new(constraint) as Box<dyn TokenConstraint>)
    }

    fn begin(&self, top: TopLevelGrammar) -> Result<Constraint> {
        let parser = self.factory.create_parser_from_init_ext(
            GrammarInit::Serialized(top),
            Logger::new(0, 0),
            InferenceCapabilities::default(),
            self.factory.limits().clone(),
        );
        let parser = parser.map_err(|error| Error::invalid_argument(one_message(&error.to_string())))?;
        let mut constraint = Constraint { matcher: Matcher::new(Ok(parser)), end_ids: self.end_ids(), next: None };
        // A grammar without any text is found out here, not in the middle of an answer.
        constraint.next = Some(constraint.compute().map_err(|error| {
            Error::invalid_argument(format!("nothing can be written that follows it: {}", error.message()))
        })?);
        Ok(constraint)
    }

    fn end_ids(&self) -> Vec<u32> {
        self.factory.tok_env().tok_trie().eos_tokens().to_vec()
    }
}

fn checked_size(text: &str, most: usize) -> Result<&str> {
    if text.len() > most {
        return Err(Error::invalid_argument(format!("expected at most {most} bytes, found {}", text.len())));
    }
    Ok(text)
}

/// The library's message without its state and stack, in a bounded length.
fn one_message(message: &str) -> String {
    let end = ["<state>", "<non-verbose/>", "<backtrace>"].iter().filter_map(|mark| message.find(mark)).min();
    let message = message.get(..end.unwrap_or(message.len())).unwrap_or(message).trim();
    message.chars().take(400).collect::<String>().replace('\n', " ")
}

/// A grammar that the tokens so far have followed.
struct Constraint {
    matcher: Matcher,
    end_ids: Vec<u32>,
    /// Computed once a token.
    next: Option<Permission>,
}

impl Constraint {
    fn compute(&mut self) -> Result<Permission> {
        if self.matcher.is_stopped() && self.matcher.stop_reason().is_ok() {
            return Ok(Permission::End);
        }
        let mask = self.matcher.compute_mask().map_err(|error| too_complex(&error.to_string()))?;
        let words = mask.len().div_ceil(32);
        let mask = TokenMask::from_bits(mask.as_slice().get(..words).unwrap_or_default().to_vec());
        Ok(Permission::Tokens(mask))
    }
}

impl TokenConstraint for Constraint {
    fn permission(&mut self) -> Result<Permission> {
        match &self.next {
            Some(next) => Ok(next.clone()),
            None => {
                let next = self.compute()?;
                Ok(self.next.insert(next).clone())
            }
        }
    }

    fn accept(&mut self, token: u32) -> Result<()> {
        self.next = None;
        if self.end_ids.contains(&token) {
            return Ok(());
        }
        self.matcher.consume_token(token).map_err(|error| too_complex(&error.to_string()))
    }
}

fn too_complex(message: &str) -> Error {
    Error::limits(format!("the grammar cannot be followed further: {}", one_message(message)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::*;
    use crate::text::Writing;

    const END: u32 = 260;

    /// A token for every byte, a few longer ones, one without bytes, and an end.
    fn compiler() -> GrammarCompiler {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        tokens.extend([b"{\"a".to_vec(), b"true".to_vec(), b": ".to_vec(), Vec::new(), b"<end>".to_vec()]);
        GrammarCompiler::new(&TokenVocabulary { tokens, end_ids: vec![END] }).unwrap()
    }

    /// Whether a grammar derives exactly this text, followed byte by byte.
    fn derives(grammar: &Grammar, text: &str) -> bool {
        let mut constraint = compiler().compile(grammar).unwrap();
        for byte in text.bytes() {
            match constraint.permission().unwrap() {
                Permission::Tokens(mask) if mask.allows(u32::from(byte)) => constraint.accept(u32::from(byte)).unwrap(),
                _ => return false,
            }
        }
        match constraint.permission().unwrap() {
            Permission::Tokens(mask) => mask.allows(END),
            permission => permission == Permission::End,
        }
    }

    #[test]
    fn every_kind_of_grammar_derives_its_texts_and_no_others() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", null]}}, "required": ["a"]});
        let schema = Grammar::JsonSchema(schema);
        assert!(derives(&schema, r#"{"a": 12, "b": null}"#) && derives(&schema, r#"{"a": -1}"#));
        assert!(!derives(&schema, r#"{"a": 12, "c": 1}"#) && !derives(&schema, r#"{"b": "x"}"#));
        assert!(!derives(&schema, "{\n\"a\": 12}"));
        let regex = Grammar::Regex(r"(\d{2}|[äö]+)x?".to_owned());
        assert!(derives(&regex, "12x") && derives(&regex, "äö") && !derives(&regex, "1") && !derives(&regex, "ä12"));
        let lark = Grammar::Lark("start: \"<\" (start | WORD) \">\"\nWORD: /[a-z]+/".to_owned());
        assert!(derives(&lark, "<<ab>>") && !derives(&lark, "<<ab>"));
        assert!(derives(&Grammar::JsonSchema(json!(true)), "[1, {\"x\": \"y\"}]"));
        assert!(derives(&Grammar::JsonSchema(json!({"type": "object"})), "{}"));
    }

    #[test]
    fn longer_tokens_are_allowed_where_they_fit_and_the_end_only_at_the_end() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]});
        let mut constraint = compiler().compile(&Grammar::JsonSchema(schema)).unwrap();
        let mut allowed = |token: Option<u32>, wanted: &[u32], not: &[u32]| {
            if let Some(token) = token {
                constraint.accept(token).unwrap();
            }
            let Permission::Tokens(mask) = constraint.permission().unwrap() else { panic!("no tokens") };
            assert!(wanted.iter().all(|&id| mask.allows(id)) && not.iter().all(|&id| !mask.allows(id)));
        };
        allowed(None, &[256, 123], &[257, END, 259]);
        allowed(Some(256), &[34], &[END, 256]);
        allowed(Some(34), &[258, 58], &[32]);
        allowed(Some(258), &[257, 116], &[END]);
        allowed(Some(257), &[125], &[END]);
        constraint.accept(125).unwrap();
        assert_eq!(constraint.permission().unwrap(), Permission::End);
    }

    #[test]
    fn required_calls_follow_their_tools() {
        use crate::text::{TOOL_FORMATS, Tool};
        let city = json!({"type": "object", "properties": {"city": {"$ref": "#/$defs/name"}}, "required": ["city"], "$defs": {"name": {"type": "string"}}});
        let tools = Tool::list(
            &json!([{"function": {"name": "get_weather", "parameters": city}}, {"function": {"name": "now"}}]),
        )
        .unwrap();
        for format in TOOL_FORMATS {
            let Writing { begin, before_name, before_arguments, after_arguments, between, end } = format.writing;
            let call = |name: &str, arguments: &str| {
                format!("{before_name}{name}{before_arguments}{arguments}{after_arguments}")
            };
            let (weather, now) = (call("get_weather", "{\"city\": \"Köln\"}"), call("now", "{}"));
            let grammar = Grammar::of_calls(&tools, &format.writing, false).unwrap();
            assert!(derives(&grammar, &format!("{begin}{weather}{end}")), "{}", format.name);
            let two = format!("{begin}{weather}{}{now}{end}", between.unwrap_or(", "));
            assert_eq!(derives(&grammar, &two), between.is_some(), "{}", format.name);
            assert!(!derives(&grammar, "Hello") && !derives(&grammar, &format!("{begin}{}{end}", call("other", "{}"))));
            let or_text = Grammar::of_calls(&tools, &format.writing, true).unwrap();
            assert!(
                derives(&or_text, "Hello <you>") && derives(&or_text, &format!("{begin}{now}{end}")),
                "{}",
                format.name
            );
        }
    }

    #[test]
    fn wrong_grammars_are_one_clear_error() {
        let compiler = compiler();
        for grammar in [
            Grammar::Regex("(a".to_owned()),
            Grammar::Regex("x".repeat(MOST_REGEX_BYTES + 1)),
            Grammar::Lark("start: missing".to_owned()),
            Grammar::Lark(String::new()),
            Grammar::JsonSchema(json!({"type": "what"})),
            Grammar::JsonSchema(json!(false)),
            Grammar::JsonSchema(json!({"pattern": "[", "type": "string"})),
            Grammar::JsonSchema(json!({"format": "unheard-of", "type": "string"})),
            Grammar::JsonSchema(json!({"type": "integer", "minimum": 3, "maximum": 2})),
            Grammar::JsonSchema(json!({"$ref": "#"})),
        ] {
            let error = compiler.compile(&grammar).err().unwrap_or_else(|| panic!("{grammar:?} was taken"));
            assert_eq!(error.code(), "invalid-argument", "{error}");
            assert!((5..500).contains(&error.message().len()) && !error.message().contains('\n'), "{error}");
        }
    }

    /// Schemas and grammars that are large, deep, recursive or ambiguous on purpose.
    fn hostile() -> Vec<Grammar> {
        let many: Vec<Value> = (0..5000).map(|index| json!(format!("value number {index}"))).collect();
        let wide: serde_json::Map<String, Value> =
            (0..2000).map(|index| (format!("p{index}"), json!({"type": "string"}))).collect();
        let mut nested = json!({"type": "string"});
        for _ in 0..25 {
            nested =
                json!({"anyOf": [{"type": "array", "items": nested}, {"type": "object", "properties": {"a": nested}}]});
            if nested.to_string().len() > 400_000 {
                break;
            }
        }
        let chain: serde_json::Map<String, Value> = (0..6000)
            .map(|link| (format!("d{link}"), json!({"$ref": format!("#/$defs/d{}", (link + 1) % 6000)})))
            .collect();
        let recursive = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}}});
        let crossing = json!({"allOf": [{"anyOf": [{"minLength": 1}, {"maxLength": 9}]}, {"anyOf": [{"pattern": "a"}, {"pattern": "b"}]}], "type": "string"});
        vec![
            Grammar::JsonSchema(json!({"enum": many})),
            Grammar::JsonSchema(json!({"type": "object", "properties": wide})),
            Grammar::JsonSchema(nested),
            Grammar::JsonSchema(recursive),
            Grammar::JsonSchema(crossing),
            Grammar::JsonSchema(json!({"type": "string", "minLength": 20_000, "maxLength": 20_000})),
            Grammar::JsonSchema(
                json!({"type": "array", "minItems": 20_000, "items": {"type": "string", "maxLength": 20_000}}),
            ),
            Grammar::JsonSchema(json!({"type": "string", "pattern": "^((a{1,1000}){1,1000}){1,1000}$"})),
            Grammar::JsonSchema(
                json!({"type": "number", "multipleOf": 0.000_000_1, "minimum": -1e300, "maximum": 1e300}),
            ),
            Grammar::Regex("(a|b|ab)*".repeat(450)),
            Grammar::Regex("(.*a){30}.{40}".to_owned()),
            Grammar::Lark(format!("start: {}\nX: \"a\"", "(".repeat(30_000))),
            Grammar::Lark(
                (0..1700).map(|rule| format!("r{rule}: r{}\n", rule + 1)).collect::<String>()
                    + "start: r0\nr1700: \"a\"",
            ),
            Grammar::JsonSchema(json!({"$ref": "#/$defs/d0", "$defs": chain})),
            Grammar::Lark("start: \"a\" start".to_owned()),
            Grammar::Lark("start: start start | \"a\"".to_owned()),
        ]
    }

    #[test]
    fn hostile_grammars_are_followed_or_refused_in_bounded_time() {
        let compiler = compiler();
        for (index, grammar) in hostile().iter().enumerate() {
            let begun = Instant::now();
            let outcome = compiler.compile(grammar).and_then(|mut constraint| {
                for _ in 0..20 {
                    let Permission::Tokens(mask) = constraint.permission()? else { break };
                    let next = (0..260).rev().find(|&id| mask.allows(id));
                    constraint.accept(next.unwrap_or(END))?;
                }
                Ok(())
            });
            if let Err(error) = outcome {
                assert!(["invalid-argument", "limits"].contains(&error.code()), "{index}: {error}");
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{index} took {:?}", begun.elapsed());
        }
    }
}
