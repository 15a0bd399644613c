// README and docs/: every JS and TS snippet compiles against the built package, links lead somewhere, and the list of error
// codes is whole.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';
import { EDGE_ERROR_CODES } from '@hanzo/edge';

const ROOT = process.cwd();
const DOCUMENTS = ['README.md', ...readdirSync('docs').filter((name) => name.endsWith('.md')).map((name) => join('docs', name))];

/** Packages of which snippets show the use, and which are not installed here: their types are unknown. */
const FOREIGN = ['@mlc-ai/web-llm', '@huggingface/transformers', '@wllama/wllama', 'openai', 'ai', 'react', 'zod'].filter((name) => !existsSync(join('node_modules', name)));

/** What snippets may take for granted. */
const PRELUDE = `
import type { ChatMessage, EdgeSession, HanzoEdge } from '@hanzo/edge';
declare global {
  const edge: HanzoEdge;
  const session: EdgeSession;
  const messages: ChatMessage[];
  const output: HTMLElement;
  const stopButton: HTMLButtonElement;
  const fileInput: HTMLInputElement;
  const signal: AbortSignal;
  function show(value: unknown): void;
}
`;

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts', 'lib.dom.asynciterable.d.ts'],
  types: ['node', '@webgpu/types'],
  strict: true,
  // Snippets in JavaScript name no types.
  noImplicitAny: false,
  noEmit: true,
  skipLibCheck: true,
};

/** The snippets as modules of their own, each at the line of its document that it has there. */
function snippets(): Map<string, string> {
  const found = new Map<string, string>();
  for (const path of DOCUMENTS) {
    const text = readFileSync(path, 'utf8');
    for (const match of text.matchAll(/^```(?:js|ts)\n([\s\S]*?)^```$/gm)) {
      const line = text.slice(0, match.index).split('\n').length;
      found.set(join(ROOT, 'target-js', 'docs', `${path}.${line}.ts`), `${'\n'.repeat(line)}${match[1]}export {};\n`);
    }
  }
  return found;
}

test('every_snippet_of_the_documents_compiles', () => {
  const files = snippets();
  assert.ok(files.size >= 10, `only ${files.size} snippets were found`);
  const documentOf = (file: string) => relative(join(ROOT, 'target-js', 'docs'), file).replace(/\.\d+\.ts$/, '');
  const modules = FOREIGN.flatMap((name) => [`declare module '${name}';`, `declare module '${name}/*';`]).join('\n');
  files.set(join(ROOT, 'target-js', 'docs', 'foreign.d.ts'), modules);
  files.set(join(ROOT, 'target-js', 'docs', 'prelude.ts'), PRELUDE);
  const host = ts.createCompilerHost(OPTIONS);
  const { readFile, fileExists, getSourceFile } = host;
  host.readFile = (file) => files.get(file) ?? readFile(file);
  host.fileExists = (file) => files.has(file) || fileExists(file);
  host.getSourceFile = (file, ...rest) => {
    const text = files.get(file);
    return text === undefined ? getSourceFile(file, ...rest) : ts.createSourceFile(file, text, ts.ScriptTarget.ES2022);
  };
  const program = ts.createProgram([...files.keys()], OPTIONS, host);
  const faults = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const place = file && start !== undefined ? `${documentOf(file.fileName)}:${file.getLineAndCharacterOfPosition(start).line + 1}: ` : '';
    return place + ts.flattenDiagnosticMessageText(messageText, '\n');
  });
  assert.deepEqual(faults, []);
});

test('links_between_the_documents_lead_to_files', () => {
  const broken = DOCUMENTS.flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)]
    .map((match) => match[1] ?? '')
    .filter((target) => !existsSync(resolve(dirname(path), target)))
    .map((target) => `${path}: ${target}`));
  assert.deepEqual(broken, []);
});

test('the_list_of_errors_has_every_code_once', () => {
  const listed = [...readFileSync(join('docs', 'errors.md'), 'utf8').matchAll(/^\| `([a-z-]+)` \|/gm)].map((match) => match[1]);
  assert.deepEqual(listed, [...EDGE_ERROR_CODES]);
});
