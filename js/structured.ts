// Response formats, tools and calls as callers give them, made plain: what crosses to a worker is JSON. Schema objects of
// validation libraries are known by their method alone. What the plain forms mean is the engine's to check.

import { EdgeError } from './errors.js';
import type { ResponseFormat, Tool, ToolChoice } from './types.js';

type Plain = Record<string, unknown>;

/** A response format as plain JSON. A schema object in its place is a JSON schema. */
export function plainResponseFormat(format: ResponseFormat): Plain {
  const path = 'responseFormat';
  if (typeof format !== 'object' || format === null) throw wrong(path, "an object such as { type: 'json_schema', schema }", format);
  const schema = schemaOf(format);
  if (schema !== undefined) return { type: 'json_schema', schema: plainJson(schema, path) };
  const { type, regex, ...rest } = format as Plain;
  return plainJson({ type, ...rest, ...(regex === undefined ? {} : { regex: sourceOf(regex) }) }, path) as Plain;
}

/** Tools as plain JSON. */
export function plainTools(tools: readonly Tool[]): unknown[] {
  if (!Array.isArray(tools)) throw wrong('tools', 'a list of tools', tools);
  return tools.map((tool: unknown, index) => plainJson(tool, `tools[${index}]`));
}

/** A tool choice as plain JSON. */
export function plainToolChoice(choice: ToolChoice): unknown {
  return plainJson(choice, 'toolChoice');
}

/** A value as JSON carries it, with schema objects replaced by their JSON schemas. */
export function plainJson(value: unknown, path: string): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, (_key, inner: unknown) => schemaOf(inner) ?? inner);
  } catch (error) {
    throw new EdgeError('invalid-argument', `${path}: expected what JSON can hold: ${error instanceof Error ? error.message : String(error)}`, { path });
  }
  if (text === undefined) throw wrong(path, 'what JSON can hold', value);
  return JSON.parse(text);
}

/** The JSON schema of a schema object; undefined for anything else. */
function schemaOf(value: unknown): unknown {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return undefined;
  const { toJSONSchema, toJsonSchema } = value as { toJSONSchema?: unknown; toJsonSchema?: unknown };
  const method = toJSONSchema ?? toJsonSchema;
  return typeof method === 'function' ? (method as () => unknown).call(value) : undefined;
}

/** The pattern of a regular expression; its flags change what it means, so there can be none but `u`, `v` and `s`. */
function sourceOf(regex: unknown): unknown {
  if (!(regex instanceof RegExp)) return regex;
  if (/[^uvsg]/.test(regex.flags)) throw wrong('responseFormat.regex', 'a regular expression without flags', String(regex));
  return regex.flags.includes('s') ? `(?s:${regex.source})` : regex.source;
}

function wrong(path: string, expected: string, found: unknown): EdgeError {
  const shown = typeof found === 'string' ? JSON.stringify(found.slice(0, 40)) : typeof found === 'object' && found !== null ? 'an object' : String(found);
  return new EdgeError('invalid-argument', `${path}: expected ${expected}, found ${shown}`, { path });
}
