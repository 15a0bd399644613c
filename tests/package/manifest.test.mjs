// What the packed package promises: the checks of publint and arethetypeswrong, no install scripts, source maps, and files
// that bundlers can follow.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { publint } from 'publint';
import { run } from '../../scripts/lib/shell.mjs';
import { INSTALLED, TOOLS, manifest, tarball } from './lib/install.mjs';

const DIST = join(INSTALLED, 'dist');
const scripts = readdirSync(DIST).filter((name) => name.endsWith('.js'));
const read = (name) => readFileSync(join(DIST, name), 'utf8');
/** Code without comments, which may say anything. */
const codeOf = (name) => read(name).replace(/^\s*(\/\/|\/?\*).*$/gm, '');

test('publint_has_nothing_to_say', async () => {
  const { messages } = await publint({ pkgDir: INSTALLED, strict: true, pack: false });
  assert.deepEqual(messages, []);
});

test('the_types_resolve_wherever_an_es_module_does', async () => {
  const files = Object.keys(manifest().exports).filter((path) => /\.(wasm|json)$/.test(path)).map((path) => path.slice(2));
  const attw = join(TOOLS, '@arethetypeswrong', 'cli', 'dist', 'index.js');
  const { code, output } = await run(process.execPath, [attw, tarball(), '--profile', 'esm-only', '--no-color', '--no-emoji', '--exclude-entrypoints', ...files], { quiet: true, timeoutMs: 120_000 });
  assert.equal(code, 0, output);
});

test('the_manifest_is_ready_for_publishing_with_provenance', () => {
  const { name, type, sideEffects, license, repository, publishConfig, dependencies, scripts: commands = {}, bin, gypfile } = manifest();
  assert.deepEqual([name, type, sideEffects, license], ['@hanzo/edge', 'module', false, 'MIT OR Apache-2.0']);
  assert.match(repository.url, /^git\+https:\/\/github\.com\/.+\.git$/);
  assert.deepEqual(publishConfig, { access: 'public', provenance: true });
  assert.deepEqual([dependencies, bin, gypfile], [undefined, undefined, undefined]);
  const hooks = Object.keys(commands).filter((command) => /^(pre|post)?(install|prepare)$|^prepublish/.test(command));
  assert.deepEqual(hooks, [], 'nothing runs when the package is installed');
  for (const file of ['README.md', 'LICENSE-MIT', 'LICENSE-APACHE']) assert.ok(existsSync(join(INSTALLED, file)), file);
  for (const target of Object.values(manifest().exports)) {
    if (typeof target === 'object') assert.equal(Object.keys(target)[0], 'types', 'types come first');
  }
});

test('every_compiled_file_has_a_source_map_with_its_source', () => {
  const compiled = scripts.filter((name) => !name.startsWith('hanzo-edge'));
  assert.ok(compiled.length > 20);
  for (const name of compiled) {
    assert.ok(read(name).includes(`//# sourceMappingURL=${name}.map`), name);
    const { sources, sourcesContent } = JSON.parse(read(`${name}.map`));
    assert.deepEqual([sources.length, sourcesContent.length], [1, 1], name);
    assert.ok(sourcesContent[0].length > 50, name);
  }
});

test('every_file_that_a_url_names_is_there_and_spelled_out', () => {
  let count = 0;
  for (const name of scripts) {
    for (const [, file] of codeOf(name).matchAll(/new URL\('\.\/([^']+)', import\.meta\.url\)/g)) {
      assert.ok(existsSync(join(DIST, file)), `${name} names ${file}`);
      count += 1;
    }
  }
  assert.ok(count >= 10, `${count} URLs`);
});

test('workers_and_threads_have_static_imports_only', () => {
  const entries = Object.keys(manifest().exports).filter((path) => /^\.\/(worker|thread)/.test(path)).map((path) => `${path.slice(2)}.js`);
  assert.ok(entries.length >= 6);
  for (const entry of entries) {
    for (const name of graphOf(entry)) assert.doesNotMatch(codeOf(name), /\bimport\(/, `${entry} reaches ${name}, which imports later`);
  }
});

test('no_code_of_a_page_needs_node_an_eval_or_a_blob', () => {
  for (const name of scripts) {
    // The glue of modules with threads has a blob for platforms without Atomics.waitAsync, where threads are not used.
    const forbidden = /\bfrom ['"]node:.*|\brequire\(.*|\beval\(.*|new Function\(.*|createObjectURL.*/g;
    const found = [...codeOf(name).matchAll(forbidden)].map(([text]) => text);
    assert.deepEqual(found.filter((text) => !(name.endsWith('-threads.js') && text.startsWith('createObjectURL'))), [], name);
  }
});

/** The files that a file reaches by static imports, itself included. */
function graphOf(entry, seen = new Set()) {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  for (const [, file] of read(entry).matchAll(/^(?:import|export)\b[^'"]*['"]\.\/([^'"]+)['"]/gm)) graphOf(file, seen);
  return seen;
}
