// Reads a call of the Vercel AI SDK into this package's messages and options, with warnings for what is not supported.

import type {
  LanguageModelV4CallOptions, LanguageModelV4FunctionTool, LanguageModelV4Message, LanguageModelV4ToolResultPart, SharedV4Warning,
} from '@ai-sdk/provider';
import { EdgeError } from './errors.js';
import type { ChatMessage, ChatOptions, ToolCall } from './types.js';

/** A call as the engine takes it. */
export interface EngineCall {
  messages: ChatMessage[];
  options: ChatOptions;
  warnings: SharedV4Warning[];
}

/** Reads a call. Throws an `EdgeError` with the code 'invalid-argument' for content that the engine cannot take. */
export function readCall(call: LanguageModelV4CallOptions): EngineCall {
  const warnings: SharedV4Warning[] = [];
  const own = (call.providerOptions?.['hanzoEdge'] ?? {}) as ChatOptions;
  const options: ChatOptions = {
    ...given({
      maxTokens: call.maxOutputTokens, temperature: call.temperature, topP: call.topP, topK: call.topK, stop: call.stopSequences,
      frequencyPenalty: call.frequencyPenalty, presencePenalty: call.presencePenalty, seed: call.seed, signal: call.abortSignal,
      responseFormat: responseFormat(call.responseFormat),
    }),
    ...tools(call, warnings),
    ...own,
    ...reasoning(call.reasoning, own, warnings),
  };
  return { messages: call.prompt.flatMap(readMessage), options, warnings };
}

/** The entries that are given. */
function given<T extends object>(entries: T): { [Name in keyof T]?: NonNullable<T[Name]> } {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined && value !== null)) as { [Name in keyof T]?: NonNullable<T[Name]> };
}

function responseFormat(format: LanguageModelV4CallOptions['responseFormat']): ChatOptions['responseFormat'] {
  if (format?.type !== 'json') return undefined;
  const { schema, name, description } = format;
  if (!schema) return { type: 'json_object' };
  return { type: 'json_schema', json_schema: { name: name ?? 'response', ...given({ description }), schema: schema as Record<string, unknown> } };
}

function tools({ tools: asked = [], toolChoice }: LanguageModelV4CallOptions, warnings: SharedV4Warning[]): ChatOptions {
  const functions: LanguageModelV4FunctionTool[] = [];
  for (const tool of asked) {
    if (tool.type === 'function') functions.push(tool);
    else warnings.push({ type: 'unsupported', feature: `the provider tool ${tool.id}` });
  }
  if (functions.length === 0) return {};
  return {
    tools: functions.map(({ name, description, inputSchema }) => ({ type: 'function', function: { name, ...given({ description }), parameters: inputSchema as Record<string, unknown> } })),
    ...(toolChoice ? { toolChoice: toolChoice.type === 'tool' ? { type: 'function', function: { name: toolChoice.toolName } } : toolChoice.type } : {}),
  };
}

/** Chat templates know thinking as on or off; there are no levels. */
function reasoning(level: LanguageModelV4CallOptions['reasoning'], own: ChatOptions, warnings: SharedV4Warning[]): ChatOptions {
  if (level === undefined || level === 'provider-default') return {};
  if (level !== 'none') warnings.push({ type: 'compatibility', feature: 'reasoning', details: 'thinking is on or off; its level is not distinguished' });
  return { chatTemplateKwargs: { enable_thinking: level !== 'none', ...own.chatTemplateKwargs } };
}

function readMessage(message: LanguageModelV4Message): ChatMessage[] {
  switch (message.role) {
    case 'system': return [{ role: 'system', content: message.content }];
    case 'user': return [{ role: 'user', content: message.content.map((part) => (part.type === 'text' ? part.text : unsupported('user', part.type))).join('') }];
    case 'assistant': return [readAnswer(message)];
    case 'tool': return message.content.flatMap((part) => (part.type === 'tool-result' ? [readToolResult(part)] : []));
  }
}

/** An earlier answer. Its reasoning is left out, as chat templates do. */
function readAnswer({ content }: Extract<LanguageModelV4Message, { role: 'assistant' }>): ChatMessage {
  let text = '';
  const calls: ToolCall[] = [];
  for (const part of content) {
    if (part.type === 'text') text += part.text;
    else if (part.type === 'tool-call') calls.push({ id: part.toolCallId, type: 'function', function: { name: part.toolName, arguments: JSON.stringify(part.input) } });
    else if (part.type !== 'reasoning') unsupported('assistant', part.type);
  }
  return { role: 'assistant', content: text, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
}

function readToolResult({ toolCallId, toolName, output }: LanguageModelV4ToolResultPart): ChatMessage {
  return { role: 'tool', content: toolText(output), name: toolName, tool_call_id: toolCallId };
}

function toolText(output: LanguageModelV4ToolResultPart['output']): string {
  switch (output.type) {
    case 'text': case 'error-text': return output.value;
    case 'json': case 'error-json': return JSON.stringify(output.value);
    case 'execution-denied': return output.reason ?? 'The tool was not allowed to run.';
    case 'content': return output.value.map((part) => (part.type === 'text' ? part.text : unsupported('tool', part.type))).join('');
  }
}

function unsupported(role: string, part: string): never {
  throw new EdgeError('invalid-argument', `prompt: expected text, found a part of type ${part} in a message with the role ${role}`, { path: 'prompt' });
}
