// Short names for what a module imports: the module still works with its glue, and no longer with another's.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortenImports, trimmed } from '../../scripts/lib/glue.mjs';
import { Stop } from '../../scripts/lib/shell.mjs';

const string = (text) => [text.length, ...Buffer.from(text)];
const section = (id, bytes) => [id, bytes.length, ...bytes];
const MODULE = string('./tiny_bg.js');

/** Imports a function () -> i32, a table, a memory with a maximum and a global, and exports `run`, which calls the function. */
const WASM = Uint8Array.from([
  0, 97, 115, 109, 1, 0, 0, 0,
  ...section(1, [1, 96, 0, 1, 127]),
  ...section(2, [4, ...MODULE, ...string('__wbg_seven_0123456789abcdef'), 0, 0, ...MODULE, ...string('table'), 1, 0x70, 0, 1, ...MODULE, ...string('memory'), 2, 1, 1, 2, ...MODULE, ...string('global'), 3, 127, 0]),
  ...section(3, [1, 0]),
  ...section(7, [1, ...string('run'), 0, 1]),
  ...section(10, [1, 4, 0, 0x10, 0, 0x0b]),
]);
const GLUE = `
    const import0 = {
        __proto__: null,
        __wbg_seven_0123456789abcdef: function() {
            return 7;
        },
    };
    return {
        __proto__: null,
        "./tiny_bg.js": import0,
    };
`;

test('a module with short names works with its glue', async () => {
  const { wasm, glue } = shortenImports(WASM, GLUE);
  assert.ok(wasm.length < WASM.length && !glue.includes('0123456789abcdef') && !glue.includes('tiny_bg'));
  const imports = new Function(glue)();
  const [own] = Object.values(imports);
  Object.assign(own, { table: new WebAssembly.Table({ element: 'anyfunc', initial: 1 }), memory: new WebAssembly.Memory({ initial: 1, maximum: 2 }), global: 5 });
  const { instance } = await WebAssembly.instantiate(wasm, imports);
  assert.equal(instance.exports.run(), 7);
});

test('the module of another build is refused', async () => {
  const other = (text) => text.replace('seven', 'eight');
  const theirs = shortenImports(Uint8Array.from(Buffer.from(other(Buffer.from(WASM).toString('latin1')), 'latin1')), other(GLUE));
  const imports = new Function(shortenImports(WASM, GLUE).glue)();
  await assert.rejects(WebAssembly.instantiate(theirs.wasm, imports), TypeError);
});

test('a glue without an import stops the build', () => {
  assert.throws(() => shortenImports(WASM, GLUE.replace('__wbg_seven', '__wbg_six')), (error) => error instanceof Stop && /lacks __wbg_seven_0123456789abcdef/.test(error.message));
});

test('what a glue never uses goes, and nothing else', () => {
  const load = "async function __wbg_load(module, imports) {\n    if (module instanceof Response) {\n        return 1;\n    }\n}\n";
  const formats = 'const __wbindgen_enum_GpuTextureFormat = ["r8unorm", "r8snorm"];\n';
  const kept = 'const __wbindgen_enum_GpuQueryType = ["occlusion"];\nfunction other() {\n    return 2;\n}\n';
  const samplers = 'const __wbindgen_enum_GpuSamplerBindingType = ["filtering"];\n';
  const registry = "const Registry = (typeof FinalizationRegistry === 'undefined')\n    ? { register: () => {} }\n    : new FinalizationRegistry(free);\n";
  const disposal = 'if (Symbol.dispose) Engine.prototype[Symbol.dispose] = Engine.prototype.free;\n';
  const encoder = "if (!('encodeInto' in cachedTextEncoder)) {\n    cachedTextEncoder.encodeInto = 1;\n}\n";
  const init = "function initSync(module) {\n    if (module !== undefined) {\n        if (Object.getPrototypeOf(module) === Object.prototype) {\n            ({module} = module)\n        } else {\n            console.warn('deprecated')\n        }\n    }\n}\n";
  const text = trimmed(load + kept + formats + samplers + registry + disposal + encoder + init);
  for (const gone of ['filtering', 'undefined\'', 'Symbol.dispose', 'encodeInto', 'console.warn', 'getPrototypeOf']) assert.ok(!text.includes(gone), gone);
  assert.ok(text.includes('const Registry = new FinalizationRegistry(free);') && /if \(module !== undefined\) \{\n +\(\{module\} = module\)\n +\}\n\}/.test(text), text);
  assert.ok(!text.includes('Response') && !text.includes('r8unorm') && text.includes(kept));
  assert.match(text, /WebAssembly\.instantiate\(module, imports\)/);
});
