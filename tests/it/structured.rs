//! Answers held to a form, and calls of functions, through the Rust SDK with the real default model.

use futures::StreamExt;
use futures::executor::block_on;
use hanzo_edge::generate::Event;
use hanzo_edge::{
    Backend, ChatOptions, Edge, EdgeConfig, FinishReason, GenerateOptions, GenerateResult, Grammar, Message, Model,
};
use serde_json::{Value, json};

use crate::support::real_model;

fn load(backend: Backend) -> Edge {
    let config = EdgeConfig {
        model: Model::File(real_model::path()),
        backend,
        max_context_tokens: 1024,
        ..EdgeConfig::default()
    };
    Edge::new(config).unwrap()
}

fn written(edge: &Edge, grammar: Option<Grammar>, max_tokens: u32) -> GenerateResult {
    let options = GenerateOptions {
        response_format: grammar,
        max_tokens: Some(max_tokens),
        temperature: Some(0.0),
        ..GenerateOptions::default()
    };
    let mut stream = edge.complete("Here:", options).unwrap();
    let mut text = String::new();
    while let Some(piece) = block_on(stream.next()) {
        text.push_str(&piece.unwrap());
    }
    let result = stream.result().unwrap().clone();
    assert_eq!(result.text, text);
    result
}

fn object(edge: &Edge) {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
        "required": ["name", "age"]
    });
    let result = written(edge, Some(Grammar::JsonSchema(schema)), 80);
    let value: Value = serde_json::from_str(&result.text).unwrap();
    assert_eq!(result.finish_reason, FinishReason::Stop);
    assert!(value["name"].is_string() && value["age"].as_u64().is_some_and(|age| age <= 150), "{value}");
    let result = written(edge, Some(Grammar::Regex("[xyz]{4}".into())), 20);
    assert!(result.text.len() == 4 && result.text.chars().all(|c| "xyz".contains(c)), "{}", result.text);
}

#[test]
fn answers_keep_to_their_form_on_the_cpu() {
    let edge = load(Backend::Cpu);
    object(&edge);
    let error = written_error(&edge, Grammar::JsonSchema(json!({"properties": {"a": {"type": "x"}}})));
    assert!(error.starts_with("responseFormat: properties.a.type: expected one of"), "{error}");
    // What a mask costs beside a forward pass.
    let (free, held) = (written(&edge, None, 64), written(&edge, Some(Grammar::Regex("(?s:.*)".into())), 64));
    let per_token = |result: &GenerateResult| result.stats.decode_ms / (result.tokens.len() - 1) as f64;
    println!("free: {:.2} ms a token; held to a grammar: {:.2} ms", per_token(&free), per_token(&held));
    assert_eq!(held.text, free.text, "a grammar of everything changes nothing");
}

fn written_error(edge: &Edge, grammar: Grammar) -> String {
    let options = GenerateOptions { response_format: Some(grammar), ..GenerateOptions::default() };
    edge.complete("Here:", options).err().expect("refused").to_string()
}

#[test]
fn answers_keep_to_their_form_on_the_gpu() {
    object(&load(Backend::Wgpu));
}

#[test]
fn calls_come_as_events_and_in_the_result_and_go_into_the_history() {
    let edge = load(Backend::Cpu);
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]});
    let options = ChatOptions {
        generate: GenerateOptions { max_tokens: Some(80), temperature: Some(0.0), ..GenerateOptions::default() },
        tools: Some(json!([{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}])),
        tool_choice: Some(json!("required")),
        ..ChatOptions::default()
    };
    let mut messages = vec![Message::user("Is it warm in Rome?")];
    let mut stream = edge.chat_with(messages.clone(), options.clone()).unwrap();
    let mut arguments = String::new();
    while let Some(event) = stream.next_event().unwrap() {
        if let Event::ToolCall(delta) = event {
            arguments.push_str(&delta.arguments_delta);
        }
    }
    let result = stream.result().unwrap();
    let calls = result.tool_calls.clone().unwrap();
    assert_eq!((result.finish_reason, calls.len(), result.text.as_str()), (FinishReason::ToolCalls, 1, ""));
    assert_eq!((calls[0].name.as_str(), &calls[0].arguments), ("get_weather", &arguments));
    assert!(serde_json::from_str::<Value>(&arguments).unwrap()["city"].is_string(), "{arguments}");
    messages.push(Message { tool_calls: calls.clone(), ..Message::assistant("") });
    messages.push(Message::tool(&calls[0].id, "Sunny, 31 C"));
    let options = ChatOptions { tool_choice: Some(json!("none")), ..options };
    let mut stream = edge.chat_with(messages, options).unwrap();
    while stream.next_event().unwrap().is_some() {}
    assert!(!stream.result().unwrap().text.is_empty());
}
