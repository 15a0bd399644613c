//! Chat templates: a conversation to the text that the model was trained on, as Hugging Face renders it.
//!
//! Pure: the clock is passed in, work and depth are bounded, and a template that refuses a conversation is an error in
//! its own words. What users typed is told apart from what the template printed: see `guard`. Knows no vocabulary beyond
//! the control tokens that it is given.

mod clock;
mod content;
mod guard;
mod json;
mod methods;
mod rendered;
mod source;

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value, context, escape_formatter};
use serde_json::Map;

use crate::error::{Error, Result};
use crate::text::control::ControlTokens;

pub use clock::Clock;
use content::Shapes;
use guard::Guard;
pub use rendered::{Rendered, Segment};

/// The template's name inside the engine; one without an ending turns escaping off.
const NAME: &str = "chat";
/// How deep macros and loops may nest.
const MOST_DEPTH: usize = 96;
/// Work for a template whatever it is given: about as many instructions, or 64 bytes of new text each.
const BASE_FUEL: u64 = 1 << 20;
/// More work for each byte of the conversation.
const FUEL_PER_BYTE: u64 = 16;

/// A compiled chat template.
pub struct ChatTemplate {
    engine: Environment<'static>,
    source: String,
    shapes: Shapes,
}

/// What a rendering is given besides the messages.
#[derive(Default, Clone, Copy)]
pub struct RenderOptions<'o> {
    /// The tools that the model may call, a JSON list.
    pub tools: Option<&'o serde_json::Value>,
    /// Whether the prompt ends with the beginning of an answer.
    pub add_generation_prompt: bool,
    /// The spelling of the token that begins a text; empty when the model has none.
    pub bos_token: &'o str,
    /// The spelling of the token that ends a text.
    pub eos_token: &'o str,
    /// Further variables of this template, such as `enable_thinking`.
    pub kwargs: Option<&'o Map<String, serde_json::Value>>,
    /// The time, for templates that print the date.
    pub now: Option<Clock>,
    /// The control tokens that messages, tools and kwargs must not forge; `None` trusts them all.
    pub controls: Option<&'o ControlTokens>,
}

/// What a template said when it refused a conversation.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl ChatTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// `Template` with the line and the fault.
    pub fn new(source: &str) -> Result<Self> {
        let mut engine = engine();
        engine.add_template_owned(NAME, source::rewrite(source)?).map_err(|error| fault(&error))?;
        let all = Shapes { parts: true, text: true, null: true, argument_object: true };
        let mut template = Self { engine, source: source.to_string(), shapes: all };
        template.shapes = Shapes::probe(|messages| {
            let now = Some(Clock { unix_seconds: 0, utc_offset_minutes: 0 });
            let options = RenderOptions { bos_token: "", eos_token: "", now, ..RenderOptions::default() };
            template.run(&template.engine, messages, None, &Map::new(), &options).ok()
        });
        Ok(template)
    }

    /// The template's source.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text of a conversation. Messages are objects with a role and content that is a string, null or a list of text
    /// parts; the shapes that the template does not take are converted.
    ///
    /// # Errors
    /// `InvalidArgument` for a message of another shape or a part that is not text; `Template` when the template fails,
    /// takes too much work, or refuses the conversation: then the message is the template's own.
    pub fn render(&self, messages: &[serde_json::Value], options: &RenderOptions<'_>) -> Result<Rendered> {
        let mut messages = messages
            .iter()
            .enumerate()
            .map(|(index, message)| self.shapes.adapt(message, index))
            .collect::<Result<Vec<_>>>()?;
        let mut tools = options.tools.cloned();
        let mut kwargs = options.kwargs.cloned().unwrap_or_default();
        let mut guard = options.controls.filter(|controls| !controls.is_empty()).map(Guard::new);
        if let Some(guard) = &mut guard {
            guard.avoid(&self.source);
            messages.iter().chain(&tools).chain(kwargs.values()).for_each(|value| guard.avoid_value(value));
            for value in messages.iter_mut().chain(&mut tools).chain(kwargs.values_mut()) {
                *value = guard.protect_value(value)?;
            }
        }
        let mut engine = self.engine.clone();
        engine.set_fuel(Some(fuel_for(&messages, tools.as_ref())));
        let text = self.run(&engine, &messages, tools.as_ref(), &kwargs, options)?;
        match guard {
            Some(guard) => Ok(guard.restore(&text)),
            None => {
                let mut rendered = Rendered::default();
                rendered.push(&text, true);
                Ok(rendered)
            }
        }
    }

    fn run(
        &self,
        engine: &Environment<'_>,
        messages: &[serde_json::Value],
        tools: Option<&serde_json::Value>,
        kwargs: &Map<String, serde_json::Value>,
        options: &RenderOptions<'_>,
    ) -> Result<String> {
        let now = options.now;
        let strftime_now = Value::from_function(move |format: String| match now {
            Some(clock) => Ok(clock::strftime(clock, &format)),
            None => Err(minijinja::Error::new(
                ErrorKind::InvalidOperation,
                "the template asks for the date, and none was given",
            )),
        });
        let variables = context! {
            messages => Value::from(Serde(messages)),
            tools => tools.map(|tools| Value::from(Serde(tools))),
            documents => Value::from(()),
            add_generation_prompt => options.add_generation_prompt,
            bos_token => options.bos_token,
            eos_token => options.eos_token,
            strftime_now,
        };
        // Of two equal names ours counts.
        let variables = context! { ..variables, ..Value::from(Serde(kwargs)) };
        let template = engine.get_template(NAME).map_err(|error| fault(&error))?;
        template.render(variables).map_err(|error| fault(&error))
    }
}

fn fuel_for(messages: &[serde_json::Value], tools: Option<&serde_json::Value>) -> u64 {
    let n_bytes: u64 = messages.iter().chain(tools).map(size).sum();
    BASE_FUEL.saturating_add(n_bytes.saturating_mul(FUEL_PER_BYTE))
}

/// About how many bytes a value has.
fn size(value: &serde_json::Value) -> u64 {
    16 + match value {
        serde_json::Value::String(text) => text.len() as u64,
        serde_json::Value::Array(items) => items.iter().map(size).sum(),
        serde_json::Value::Object(entries) => entries.iter().map(|(key, item)| key.len() as u64 + size(item)).sum(),
        _ => 0,
    }
}

/// An engine with the settings, functions and methods of Hugging Face's.
fn engine() -> Environment<'static> {
    let mut engine = Environment::new();
    engine.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().unwrap_or_default());
    engine.set_undefined_behavior(UndefinedBehavior::Lenient);
    engine.set_recursion_limit(MOST_DEPTH);
    engine.set_fuel(Some(BASE_FUEL));
    engine.set_unknown_method_callback(methods::unknown_method);
    // Content that is null is no word in a prompt.
    engine
        .set_formatter(|out, state, value| if value.is_none() { Ok(()) } else { escape_formatter(out, state, value) });
    engine.add_filter("tojson", |value: &Value, indent: Option<Value>, kwargs: Kwargs| {
        json::tojson(value, indent, kwargs)
    });
    engine.add_filter("format", methods::format_filter);
    engine.add_filter(source::PERCENT_FILTER, |text: &str, argument: &Value| methods::percent(text, argument));
    engine.add_test("callable", |value: &Value| methods::is_callable(value));
    engine.add_function("raise_exception", |message: String| -> std::result::Result<Value, minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, "refused").with_source(Refusal(message)))
    });
    engine.add_function("joiner", minijinja_contrib::globals::joiner);
    engine.add_function("cycler", minijinja_contrib::globals::cycler);
    engine
}

/// Our error of the engine's: a refusal in the template's own words, else the line and what went wrong.
fn fault(error: &minijinja::Error) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(refusal) = current.downcast_ref::<Refusal>() {
            return Error::template(refusal.0.clone());
        }
        cause = current.source();
    }
    let place = error.line().map_or(String::new(), |line| format!(" in line {line}"));
    let what = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "it takes too much work".to_string(),
        (ErrorKind::UndefinedError, None) => "it uses something that the conversation does not have".to_string(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    };
    Error::template(format!("the chat template fails{place}: {what}"))
}

#[cfg(test)]
mod tests;
