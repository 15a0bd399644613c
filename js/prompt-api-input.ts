// Reads what callers of `LanguageModel` pass: messages, constraints, tools. Its errors are those of the API.

import type { LanguageModelCoreOptions, LanguageModelMessage, LanguageModelPrompt, LanguageModelPromptOptions, LanguageModelTool } from './prompt-api-types.js';
import type { ChatMessage, ChatOptions, Tool } from './types.js';

/** Turns of the engine, and the beginning of the answer where the last message is one. */
export function readPrompt(input: LanguageModelPrompt, { responseConstraint, omitResponseConstraintInput = false }: LanguageModelPromptOptions = {}): { turns: ChatMessage[]; prefill: string | null } {
  const messages: readonly LanguageModelMessage[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  if (!Array.isArray(messages)) throw new TypeError('expected a string or a list of messages');
  const turns = messages.map(({ role, content }, index): ChatMessage => {
    if (role === 'system' && index > 0) throw new TypeError(`messages[${index}]: a system message can only be the first one`);
    return { role, content: textOf(content, index) };
  });
  const last = messages.at(-1);
  const prefixAt = messages.findIndex(({ prefix }) => prefix === true);
  if (prefixAt >= 0 && (prefixAt !== messages.length - 1 || last?.role !== 'assistant')) throw new DOMException('only a last message of the assistant can be a prefix', 'SyntaxError');
  const prefill = prefixAt < 0 ? null : String(turns.pop()?.content ?? '');
  if (responseConstraint && !omitResponseConstraintInput) explain(turns, responseConstraint);
  return { turns, prefill };
}

function textOf(content: LanguageModelMessage['content'], index: number): string {
  if (typeof content === 'string') return content;
  return content.map(({ type, value }) => {
    if (type !== 'text') throw notSupported(`a part of type ${type} in messages[${index}]`);
    return String(value);
  }).join('');
}

/** Tells the model of the constraint, in the last message. */
function explain(turns: ChatMessage[], responseConstraint: object): void {
  const last = turns.at(-1);
  if (!last) return;
  const form = responseConstraint instanceof RegExp ? `text that matches the regular expression ${responseConstraint.source}` : `JSON that fits this JSON schema: ${JSON.stringify(responseConstraint)}`;
  turns[turns.length - 1] = { ...last, content: `${String(last.content)}\n\nAnswer with ${form}` };
}

/** The form of an answer. */
export function constraint(responseConstraint: object | undefined): ChatOptions {
  if (!responseConstraint) return {};
  if (responseConstraint instanceof RegExp) return { responseFormat: { type: 'regex', regex: responseConstraint } };
  return { responseFormat: { type: 'json_schema', json_schema: { name: 'response', schema: responseConstraint as Record<string, unknown> } } };
}

/** What of these options there is no model for; null when all is well. */
export function unsupported({ expectedInputs = [], expectedOutputs = [] }: LanguageModelCoreOptions): string | null {
  const isKnown = ({ type }: { type: string }) => type === 'text' || type === 'tool-call' || type === 'tool-response';
  const other = [...expectedInputs, ...expectedOutputs].find((expected) => !isKnown(expected));
  return other ? `the type ${other.type}` : null;
}

/** Tools as the engine takes them. */
export function toolOptions(tools: readonly LanguageModelTool[]): ChatOptions {
  if (tools.length === 0) return {};
  return { tools: tools.map(({ name, description, inputSchema }): Tool => ({ type: 'function', function: { name, description, parameters: inputSchema as Record<string, unknown> } })) };
}

/** The error for what cannot be done here. */
export function notSupported(what: string): DOMException {
  return new DOMException(`${what}: not supported`, 'NotSupportedError');
}
