// The description of the WASM module that the package compiles against is true of the module's own glue.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Described {
  classes: Map<string, string[]>;
  functions: string[];
}

/** Names of the exported classes with their methods, and of the exported functions. */
function describe(source: string): Described {
  const text = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  const classes = new Map<string, string[]>();
  for (const [, name, body] of text.matchAll(/export class (\w+) \{([\s\S]*?)\n\}/g)) {
    const methods = [...(body ?? '').matchAll(/^ {2,4}(\w+)\(/gm)].map((match) => match[1] ?? '').filter((method) => method !== 'constructor');
    classes.set(name ?? '', methods);
  }
  return { classes, functions: [...text.matchAll(/export function (\w+)\(/g)].map((match) => match[1] ?? '') };
}

test('every_described_export_is_there', async () => {
  const { classes, functions } = describe(readFileSync('js/hanzo-edge.d.ts', 'utf8'));
  const real = describe(readFileSync('dist/hanzo-edge.d.ts', 'utf8'));
  assert.ok(classes.size >= 4 && functions.length >= 2);
  for (const [name, methods] of classes) {
    const found = real.classes.get(name) ?? [];
    assert.deepEqual(methods.filter((method) => !found.includes(method)), [], `methods of ${name}`);
  }
  assert.deepEqual(functions.filter((name) => !real.functions.includes(name)), []);
});
