//! Calls in every notation, cut into pieces at every place and cut off at every place.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::{Value, json};

use super::parser::{Part, ToolParser};
use super::*;

/// Text and calls of an answer given in pieces of `length` characters.
fn read_in_pieces(format: &'static ToolFormat, answer: &str, length: usize) -> (String, Vec<ToolCall>, bool) {
    let names = vec!["get_weather".to_owned(), "now".to_owned()];
    let mut parser = ToolParser::new(format, names, 7);
    let mut parts = Vec::new();
    let characters: Vec<char> = answer.chars().collect();
    for piece in characters.chunks(length) {
        parser.push(&piece.iter().collect::<String>(), &mut parts);
    }
    parser.finish(&mut parts);
    let (mut text, mut calls) = (String::new(), Vec::<ToolCall>::new());
    for part in parts {
        match part {
            Part::Text(more) => text.push_str(&more),
            Part::Call(ToolCallDelta { index, id, name, arguments_delta }) => {
                if let (Some(id), Some(name)) = (id, name) {
                    assert_eq!(index, calls.len());
                    calls.push(ToolCall { id, name, arguments: String::new() });
                }
                calls[index].arguments.push_str(&arguments_delta);
            }
        }
    }
    assert_eq!(calls, parser.calls(), "deltas join to the calls");
    (text, calls, parser.is_complete())
}

/// As above, the same for pieces of every length.
fn read(format: &'static ToolFormat, answer: &str) -> (String, Vec<(String, String)>, bool) {
    let whole = read_in_pieces(format, answer, answer.len().max(1));
    for length in 1..answer.chars().count() {
        assert_eq!(read_in_pieces(format, answer, length), whole, "{} {answer:?} in pieces of {length}", format.name);
    }
    let (text, calls, is_complete) = whole;
    (text, calls.into_iter().map(|call| (call.name, call.arguments)).collect(), is_complete)
}

fn format(name: &str) -> &'static ToolFormat {
    TOOL_FORMATS.iter().find(|format| format.name == name).unwrap()
}

/// An answer with one or two calls in every notation, and the text beside them.
fn samples() -> Vec<(&'static str, &'static str, &'static str, usize)> {
    vec![
        (
            "hermes",
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"K\u{f6}ln }\\\"{\"}}\n</tool_call>",
            "",
            1,
        ),
        (
            "hermes",
            "I will look.\n\n<tool_call>\n{\"arguments\": {\"city\": \"Rom\"}, \"name\": \"get_weather\"}\n</tool_call>\n<tool_call>{\"name\": \"now\"}</tool_call>\n",
            "I will look.",
            2,
        ),
        (
            "hermes",
            "<tool_call>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rom\"}}, {\"name\": \"now\", \"arguments\": {}}]</tool_call>",
            "",
            2,
        ),
        (
            "hermes",
            "<tool_call>{\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"Rom\\\"}\"}</tool_call>",
            "",
            1,
        ),
        (
            "generic",
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rom\"}}\n</tool_call>",
            "",
            1,
        ),
        ("llama-3", "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Rom\"}}", "", 1),
        (
            "llama-3",
            "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Rom\"}}; {\"name\": \"now\", \"parameters\": {}}",
            "",
            2,
        ),
        (
            "mistral",
            "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rom\"}, \"id\": \"abcdefghi\"}, {\"name\": \"now\", \"arguments\": {}}]",
            "",
            2,
        ),
        (
            "mistral-args",
            "Yes. [TOOL_CALLS]get_weather[ARGS]{\"city\": \"Rom\"}[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}",
            "Yes.",
            2,
        ),
        ("mistral-args", "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rom\"}}]", "", 1),
    ]
    .into_iter()
    .chain(tagged_samples())
    .collect()
}

/// The same for notations with tags around lists of calls.
fn tagged_samples() -> Vec<(&'static str, &'static str, &'static str, usize)> {
    vec![
        ("functools", "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rom\"}}]", "", 1),
        (
            "phi-4-mini",
            "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rom\"}}]<|/tool_call|>",
            "",
            1,
        ),
        (
            "deepseek",
            "Let me see.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Rom\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "Let me see.",
            2,
        ),
        (
            "deepseek",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Rom\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "",
            1,
        ),
    ]
}

#[test]
fn calls_are_read_in_every_notation_wherever_pieces_end() {
    for (name, answer, text, n_calls) in samples() {
        let (found, calls, is_complete) = read(format(name), answer);
        assert_eq!((found.as_str(), calls.len(), is_complete), (text, n_calls, true), "{name}: {answer}");
        let city = calls.iter().find(|(name, _)| name == "get_weather").unwrap();
        assert!(serde_json::from_str::<Value>(&city.1).unwrap()["city"].is_string(), "{name}: {calls:?}");
        if let Some(now) = calls.iter().find(|(name, _)| name == "now") {
            assert_eq!(now.1, "{}");
        }
    }
}

#[test]
fn an_answer_cut_anywhere_gives_the_beginning_of_the_same_calls() {
    for (name, answer, _, _) in samples() {
        let (_, whole, _) = read_in_pieces(format(name), answer, 1);
        for (end, _) in answer.char_indices() {
            let (_, cut, is_complete) = read_in_pieces(format(name), &answer[..end], 3);
            assert!(cut.len() <= whole.len());
            for (cut, whole) in cut.iter().zip(&whole) {
                let begins =
                    whole.arguments.starts_with(&cut.arguments) && (&cut.id, &cut.name) == (&whole.id, &whole.name);
                assert!(begins, "{name} cut at {end}: {cut:?} of {whole:?}");
            }
            if is_complete {
                assert!(
                    cut.iter().all(|call| serde_json::from_str::<Value>(&call.arguments).is_ok()),
                    "{name} at {end}"
                );
            }
        }
    }
}

#[test]
fn what_is_no_call_stays_text() {
    let cases = [
        ("hermes", "A < b, <tool_c and {\"name\": \"now\"}."),
        ("hermes", "<tool_call>get_weather(Rom)</tool_call>"),
        ("hermes", "<tool_call>{\"nam\": 3}"),
        ("hermes", "  two spaces  "),
        ("llama-3", "{\"city\": \"Rom\"}"),
        ("llama-3", "{\"name\": \"unknown\", \"parameters\": {}}"),
        ("llama-3", "Here: {\"name\": \"now\", \"parameters\": {}}"),
        ("mistral", "[TOOL_CALLS] none"),
        ("functools", "functools are [nice]"),
    ];
    for (name, answer) in cases {
        assert_eq!(read(format(name), answer), (answer.to_owned(), Vec::new(), false), "{name}");
    }
}

#[test]
fn broken_arguments_are_given_as_they_are_and_are_not_complete() {
    let (_, calls, is_complete) =
        read(format("hermes"), "<tool_call>{\"name\": \"now\", \"arguments\": {a: 'b'}}</tool_call>");
    assert_eq!((calls, is_complete), (vec![("now".to_owned(), "{a: 'b'}".to_owned())], false));
    let (_, calls, is_complete) = read(format("hermes"), "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"b");
    assert_eq!((calls, is_complete), (vec![("now".to_owned(), "{\"a\": \"b".to_owned())], false));
}

#[test]
fn ids_are_nine_letters_and_digits_and_differ() {
    let (_, calls, _) = read_in_pieces(format("hermes"), samples()[1].1, 5);
    assert!(calls.iter().all(|call| call.id.len() == 9 && call.id.chars().all(|c| c.is_ascii_alphanumeric())));
    assert_ne!(calls[0].id, calls[1].id);
}

#[test]
fn the_family_is_told_by_the_template() {
    let of = |source: &str| ToolFormat::of_template(source).name;
    assert_eq!(of("{% if tools %}<tool_call>{% endif %}"), "hermes");
    assert_eq!(of("{% if tools %}<tool_call><function=x>{% endif %}"), "generic");
    assert_eq!(of("{% if tools %}<|python_tag|>{% endif %}"), "llama-3");
    assert_eq!(of("{% if tools %}[TOOL_CALLS]{% endif %}"), "mistral");
    assert_eq!(of("{% if tools %}[TOOL_CALLS][ARGS]{% endif %}"), "mistral-args");
    assert_eq!(of("{{ tools }}<｜tool▁calls▁begin｜>"), "deepseek");
    assert_eq!(of("{{ message['tools'] }}<|tool_call|>"), "phi-4-mini");
    assert_eq!(of("{{ tools }} functools["), "functools");
    assert_eq!(of("<tool_call>{{ my_tools }}"), "generic");
    assert_eq!(of("{{ messages }}"), "generic");
}

#[test]
fn tools_and_choices_are_read_or_refused_with_their_place() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "description": "d"}});
    let tools = Tool::list(&json!([tool("a"), tool("b.c-d_2")])).unwrap();
    assert_eq!(tools[0].parameters, json!({"type": "object", "properties": {}}));
    let refused = [
        (json!({}), "tools"),
        (json!([3]), "tools[0]"),
        (json!([tool("a b")]), "tools[0].function.name"),
        (json!([tool("a"), tool("a")]), "tools[1].function.name"),
        (json!([{"function": {"name": "a", "parameters": "{}"}}]), "tools[0].function.parameters"),
    ];
    for (value, place) in refused {
        let error = Tool::list(&value).unwrap_err();
        assert_eq!((error.code(), error.path().as_deref()), ("invalid-argument", Some(place)), "{error}");
    }
    let choice = |value: Value| ToolChoice::read(&value, &tools).map_err(|error| error.path());
    assert_eq!(choice(json!("required")), Ok(ToolChoice::Required));
    assert_eq!(choice(json!({"type": "function", "function": {"name": "a"}})), Ok(ToolChoice::Named("a".into())));
    for wrong in [json!("maybe"), json!({"type": "function", "function": {"name": "z"}}), json!(3)] {
        assert_eq!(choice(wrong), Err(Some("toolChoice".to_owned())));
    }
    assert!(ToolChoice::read(&json!("required"), &[]).is_err());
}

#[test]
fn a_template_without_tools_gets_them_as_text() {
    let tools = Tool::list(&json!([{"function": {"name": "now", "description": "The time"}}])).unwrap();
    let user = json!({"role": "user", "content": "What time is it?"});
    let messages = instruct(std::slice::from_ref(&user), &tools, &ToolChoice::Auto);
    let text = messages[0]["content"].as_str().unwrap();
    assert!(messages[0]["role"] == "system" && text.contains("\"The time\"") && text.contains("<tool_call>"), "{text}");
    let system = json!({"role": "system", "content": "Be brief."});
    let messages = instruct(&[system, user.clone()], &tools, &ToolChoice::Required);
    assert!(messages.len() == 2 && messages[0]["content"].as_str().unwrap().starts_with("Be brief.\n\nYou can call"));
    let call = json!({"id": "x", "type": "function", "function": {"name": "now", "arguments": "{\"a\": 1}"}});
    let history = rewrite_history(&[
        user.clone(),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "x", "content": "noon"}),
    ]);
    assert_eq!(history[0], user);
    assert_eq!(history[1]["content"], "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": 1}}\n</tool_call>");
    assert_eq!(history[2], json!({"role": "user", "content": "<tool_response>\nnoon\n</tool_response>"}));
}
