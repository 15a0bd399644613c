//! From a conversation with its tools to a prompt, and to what the answer must be and means. Knows no device.

use serde_json::{Map, Value, json};

use super::model::Clock;
use super::text::Text;
use crate::error::{Error, Result};
use crate::generate::{GenerateOptions, Grammar};
use crate::text::{
    AnswerReader, ChatTemplate, RenderOptions, Rendered, Tokenizer, Tool, ToolChoice, ToolFormat, instruct,
    rewrite_history,
};

/// Options of a chat.
#[derive(Debug, Clone, Default)]
pub struct ChatOptions {
    /// Sampling, limits, stop strings, the form of the answer.
    pub generate: GenerateOptions,
    /// Further variables of the template.
    pub template_kwargs: Map<String, Value>,
    /// Functions that the model may call: a list of `{ type: 'function', function: { name, description, parameters } }`.
    pub tools: Option<Value>,
    /// `'auto'`, `'none'`, `'required'` or `{ type: 'function', function: { name } }`; `'auto'` when `None`.
    pub tool_choice: Option<Value>,
    /// The beginning of the answer, which the model continues.
    pub prefill: Option<String>,
}

/// A conversation made ready.
pub struct Prepared {
    /// The prompt.
    pub prompt: Vec<u32>,
    /// What the answer has to follow.
    pub grammar: Option<Grammar>,
    /// What the answer means.
    pub reader: AnswerReader,
    /// Control tokens that belong to the answer's text.
    pub spelled: Vec<u32>,
}

/// The tools of one conversation.
struct Tools {
    list: Vec<Tool>,
    choice: ToolChoice,
    format: &'static ToolFormat,
}

/// Makes a conversation ready; `seed` makes the ids of calls.
///
/// # Errors
/// The template is missing or refuses the conversation, an option is wrong, or two options contradict each other.
pub fn prepare(text: &Text, messages: &[Value], options: &ChatOptions, clock: Clock, seed: u64) -> Result<Prepared> {
    let (tokenizer, template) = (text.tokenizer()?, text.template()?);
    check_history(messages)?;
    let tools = tools_of(options, template)?;
    let rendered = render(tokenizer, template, messages, (options, tools.as_ref()), clock)?;
    let prompt_text = rendered.text();
    let mut reader = AnswerReader::with_thoughts(template.source(), &prompt_text);
    if let Some(tools) = &tools {
        reader = reader.with_tools(tools.format, &tools.list, seed);
    }
    Ok(Prepared {
        prompt: tokenizer.encode_rendered(&rendered)?,
        grammar: grammar_of(options, tools.as_ref())?,
        reader,
        spelled: spelled(tokenizer, template, tools.is_some()),
    })
}

/// Control tokens that are markers of the template's way to write thoughts and, where wanted, calls.
pub fn spelled(tokenizer: &Tokenizer, template: &ChatTemplate, with_calls: bool) -> Vec<u32> {
    let format = ToolFormat::of_template(template.source());
    let texts: Vec<&str> = format.markers().filter(|_| with_calls).chain(["<think>", "</think>"]).collect();
    let ends = tokenizer.end_of_turn_ids();
    let is_spelled = |id: &u32| {
        let spelling = tokenizer.token(*id).unwrap_or_default();
        !ends.contains(id) && !spelling.is_empty() && texts.iter().any(|text| text.contains(spelling))
    };
    tokenizer.controls().ids().iter().copied().filter(is_spelled).collect()
}

fn tools_of(options: &ChatOptions, template: &ChatTemplate) -> Result<Option<Tools>> {
    let list = options.tools.as_ref().filter(|tools| !tools.is_null()).map(Tool::list).transpose()?.unwrap_or_default();
    let choice = options.tool_choice.as_ref().filter(|choice| !choice.is_null());
    let choice = choice.map(|choice| ToolChoice::read(choice, &list)).transpose()?.unwrap_or_default();
    if list.is_empty() || choice == ToolChoice::None {
        return Ok(None);
    }
    if options.generate.response_format.is_some() && choice != ToolChoice::Auto {
        let message = "expected none beside a toolChoice that makes the model call a function";
        return Err(Error::invalid_argument(message).at("responseFormat"));
    }
    Ok(Some(Tools { list, choice, format: ToolFormat::of_template(template.source()) }))
}

/// What the answer has to follow: the form that was asked for, else calls where they have to come. A model that was
/// not trained for calls is held to whole ones whenever it begins one.
fn grammar_of(options: &ChatOptions, tools: Option<&Tools>) -> Result<Option<Grammar>> {
    let asked = &options.generate.response_format;
    let Some(tools) = tools.filter(|_| asked.is_none()) else { return Ok(asked.clone()) };
    let writing = &tools.format.writing;
    match &tools.choice {
        ToolChoice::Named(name) => {
            let one: Vec<Tool> = tools.list.iter().filter(|tool| tool.name == *name).cloned().collect();
            Grammar::of_calls(&one, writing, false).map(Some)
        }
        ToolChoice::Required => Grammar::of_calls(&tools.list, writing, false).map(Some),
        ToolChoice::Auto if tools.format.is_generic() => Grammar::of_calls(&tools.list, writing, true).map(Some),
        ToolChoice::Auto | ToolChoice::None => Ok(None),
    }
}

fn render(
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    messages: &[Value],
    (options, tools): (&ChatOptions, Option<&Tools>),
    clock: Clock,
) -> Result<Rendered> {
    let spelling = |id: Option<u32>| id.and_then(|id| tokenizer.token(id)).unwrap_or_default();
    let format = ToolFormat::of_template(template.source());
    let listed = tools.map(|tools| tools.list.iter().map(Tool::to_json).collect::<Value>());
    let messages = match tools {
        _ if format.is_generic() => {
            let messages = rewrite_history(messages);
            tools.map_or(messages.clone(), |tools| instruct(&messages, &tools.list, &tools.choice))
        }
        Some(tools) if format.in_system => with_system_tools(messages, &tools.list),
        _ => messages.to_vec(),
    };
    let render = RenderOptions {
        tools: listed.as_ref().filter(|_| !format.is_generic()),
        add_generation_prompt: true,
        bos_token: spelling(tokenizer.bos()),
        eos_token: spelling(tokenizer.eos()),
        kwargs: Some(&options.template_kwargs),
        now: Some(clock.local()),
        controls: Some(tokenizer.controls()),
    };
    let mut rendered = template.render(&messages, &render)?;
    rendered.push(options.prefill.as_deref().unwrap_or_default(), false);
    Ok(rendered)
}

/// The tools as text in the first message, the system's.
fn with_system_tools(messages: &[Value], tools: &[Tool]) -> Vec<Value> {
    let functions: Value =
        tools.iter().map(|tool| tool.to_json().get("function").cloned()).collect::<Option<Value>>().unwrap_or_default();
    let mut messages = messages.to_vec();
    if messages.first().and_then(|message| message.get("role")) != Some(&json!("system")) {
        messages.insert(0, json!({ "role": "system", "content": "" }));
    }
    if let Some(Value::Object(system)) = messages.first_mut() {
        system.insert("tools".to_owned(), json!(functions.to_string()));
    }
    messages
}

/// Calls of earlier turns are lists of objects with a function's name; templates say little when they are not.
fn check_history(messages: &[Value]) -> Result<()> {
    for (index, message) in messages.iter().enumerate() {
        let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) else { continue };
        let place = format!("messages[{index}].tool_calls");
        let is_call = |call: &Value| call.pointer("/function/name").is_some_and(Value::is_string);
        if !calls.as_array().is_some_and(|calls| calls.iter().all(is_call)) {
            let expected = "a list of { id, type: 'function', function: { name, arguments } }";
            return Err(Error::invalid_argument(format!("expected {expected}")).at(place));
        }
    }
    Ok(())
}
