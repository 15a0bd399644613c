//! Tests of the step machine's answers: held to a constraint, with thoughts and with calls, on a stub model.

#![allow(clippy::unwrap_used, clippy::panic)]

use futures::executor::block_on;

use super::options::GenerateOptions;
use super::stub::Stub;
use super::tests::{EOS, PROMPT, context, greedy};
use super::*;
use crate::error::Result;
use crate::text::{AnswerReader, TOOL_FORMATS, Tool};

/// Allows the tokens of a script one after another, then the end.
struct Scripted {
    script: Vec<u32>,
    at: usize,
    ends: bool,
}

impl TokenConstraint for Scripted {
    fn permission(&mut self) -> Result<Permission> {
        let Some(&token) = self.script.get(self.at) else {
            return Ok(if self.ends { Permission::End } else { Permission::Tokens(only(EOS)) });
        };
        Ok(Permission::Tokens(only(token)))
    }

    fn accept(&mut self, token: u32) -> Result<()> {
        assert_eq!(Some(&token), self.script.get(self.at), "only what is allowed is drawn");
        self.at += 1;
        Ok(())
    }
}

fn only(token: u32) -> TokenMask {
    TokenMask::from_bits(vec![1 << token])
}

/// The events of an answer, and its result.
fn run(
    generation: &mut Generation,
    stub: &mut Stub,
    mut answer: impl FnMut(&[u32]) -> TokenMask,
) -> (Vec<Event>, GenerateResult) {
    let (mut cache, mut events) = (TokenCache::new(), Vec::new());
    loop {
        match block_on(generation.next(stub, &mut cache)).unwrap().unwrap() {
            Event::Mask { accepted } => generation.supply_mask(answer(&accepted)).unwrap(),
            Event::Done(result) => return (events, *result),
            Event::Prompt { .. } => {}
            event => events.push(event),
        }
    }
}

fn generation(
    options: &GenerateOptions,
    pieces: &[&'static str],
    change: impl FnOnce(&mut GenerationContext),
) -> Generation {
    let mut context = context(pieces, 64);
    change(&mut context);
    Generation::new(PROMPT.to_vec(), options, context).unwrap()
}

fn stub(script: &[u32]) -> Stub {
    Stub { samples: true, ..Stub::saying(script, PROMPT.len()) }
}

#[test]
fn a_constraint_is_followed_against_the_model_and_on_the_host() {
    for (ends, max_tokens, reason) in [
        (true, None, FinishReason::Stop),
        (false, None, FinishReason::Stop),
        (true, Some(3), FinishReason::Stop),
        (false, Some(3), FinishReason::Length),
        (true, Some(2), FinishReason::Length),
    ] {
        let options = GenerateOptions { max_tokens, ..greedy() };
        let mut generation = generation(&options, &["a", "b", "c", "d"], |context| {
            context.constraint = Some(Box::new(Scripted { script: vec![3, 1, 2], at: 0, ends }));
        });
        let mut stub = stub(&[0, 0, 0, 0, 0]);
        let (_, result) = run(&mut generation, &mut stub, |_| panic!("asked"));
        let expected = if max_tokens == Some(2) { "db" } else { "dbc" };
        assert_eq!((result.text.as_str(), result.finish_reason), (expected, reason), "{ends} {max_tokens:?}");
        assert!(stub.calls.iter().all(|call| call.starts_with("forward")), "{:?}", stub.calls);
    }
}

#[test]
fn a_constraint_computed_elsewhere_is_asked_once_a_token_with_what_came() {
    let mut generation =
        generation(&greedy(), &["a", "b"], |context| context.constraint = Some(Box::<RemoteConstraint>::default()));
    let mut asked = Vec::new();
    let (_, result) = run(&mut generation, &mut stub(&[0, 0, 0]), |accepted| {
        asked.push(accepted.to_vec());
        if asked.len() < 3 { only(1) } else { TokenMask::default() }
    });
    assert_eq!((result.text.as_str(), result.finish_reason), ("bb", FinishReason::Stop));
    assert_eq!(asked, [vec![], vec![1], vec![1]]);
    assert_eq!(generation.supply_mask(only(1)).err().map(|error| error.code()), None);
}

#[test]
fn thoughts_come_before_the_answer_and_are_free_of_its_constraint() {
    let pieces = ["<think>", "hm", "</think>", "yes", "no"];
    for constrained in [false, true] {
        let mut generation = generation(&greedy(), &pieces, |context| {
            context.reader = AnswerReader::with_thoughts("<think>", "assistant <think>");
            if constrained {
                context.constraint = Some(Box::new(Scripted { script: vec![4], at: 0, ends: true }));
            }
        });
        let (events, result) = run(&mut generation, &mut stub(&[1, 2, 3, EOS]), |_| panic!("asked"));
        assert_eq!(result.reasoning.as_deref(), Some("hm"));
        assert_eq!(result.text, if constrained { "no" } else { "yes" });
        assert_eq!(events, [Event::Thought("hm".into()), Event::Piece(result.text.clone())]);
    }
}

#[test]
fn stop_strings_look_at_the_answer_only() {
    let options = GenerateOptions { stop: vec!["hm".into()], ..greedy() };
    let mut generation = generation(&options, &["<think>", "hm", "</think>", "yes"], |context| {
        context.reader = AnswerReader::with_thoughts("<think>", "");
    });
    let (_, result) = run(&mut generation, &mut stub(&[0, 1, 2, 3, 1, 3]), |_| panic!("asked"));
    assert_eq!((result.text.as_str(), result.reasoning.as_deref()), ("yes", Some("hm")));
    assert_eq!(result.finish_reason, FinishReason::Stop);
}

#[test]
fn calls_end_an_answer_with_their_reason_only_when_they_are_whole() {
    let pieces = ["Well.", "<tool_call>", "{\"name\": \"now\", ", "\"arguments\": {\"a", "\": 1}}", "</tool_call>"];
    let tools = Tool::list(&serde_json::json!([{"function": {"name": "now"}}])).unwrap();
    let format = TOOL_FORMATS.iter().find(|format| format.name == "hermes").unwrap();
    for (max_tokens, reason, arguments) in [
        (None, FinishReason::ToolCalls, "{\"a\": 1}"),
        (Some(4), FinishReason::Length, "{\"a"),
        (Some(5), FinishReason::Length, "{\"a\": 1}"),
    ] {
        let options = GenerateOptions { max_tokens, ..greedy() };
        let mut generation = generation(&options, &pieces, |context| {
            context.reader = AnswerReader::default().with_tools(format, &tools, 3);
        });
        let (events, result) = run(&mut generation, &mut stub(&[0, 1, 2, 3, 4, 5, EOS]), |_| panic!("asked"));
        let calls = result.tool_calls.unwrap();
        assert_eq!((result.text.as_str(), result.finish_reason), ("Well.", reason));
        assert_eq!((calls.len(), calls[0].arguments.as_str()), (1, arguments));
        assert!(matches!(&events[1], Event::ToolCall(delta) if delta.name.as_deref() == Some("now")));
    }
}
