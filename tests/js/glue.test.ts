// The descriptions of the WASM modules that the package compiles against are true of the modules' own glue.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MODULE_NAMES } from '#dist/modules.js';

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

/** A description with what it takes over from others. */
function described(stem: string): Described {
  const text = readFileSync(`js/${stem}.d.ts`, 'utf8');
  const own = describe(text);
  for (const [, from] of text.matchAll(/^export \* from '\.\/([\w-]+)\.js'/gm)) {
    const { classes, functions } = described(from ?? '');
    own.functions.push(...functions);
    for (const [name, methods] of classes) own.classes.set(name, methods);
  }
  return own;
}

/** At least so many classes and functions are described. */
const LEAST = { engine: [4, 2], threads: [4, 5], grammar: [2, 2] } as const;

for (const stem of [...MODULE_NAMES, 'hanzo-edge-grammar']) {
  test(`every_described_export_of_${stem}_is_there`, () => {
    const { classes, functions } = described(stem);
    const real = describe(readFileSync(`dist/${stem}.d.ts`, 'utf8'));
    const [leastClasses, leastFunctions] = LEAST[stem.endsWith('-grammar') ? 'grammar' : stem.endsWith('-threads') ? 'threads' : 'engine'];
    assert.ok(classes.size >= leastClasses && functions.length >= leastFunctions);
    for (const [name, methods] of classes) {
      const found = real.classes.get(name) ?? [];
      assert.deepEqual(methods.filter((method) => !found.includes(method)), [], `methods of ${name}`);
    }
    assert.deepEqual(functions.filter((name) => !real.functions.includes(name)), []);
  });
}
