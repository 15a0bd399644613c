// Gives what a WASM module imports from its JS glue short names, in both. wasm-bindgen's names end in hashes, which hardly
// compress and are a third of what a page loads as glue. The name of the imported module becomes a hash of all of them, so
// that a glue still refuses the module of another build. What a glue has for uses that this package never makes goes.

import { createHash } from 'node:crypto';
import { Stop } from './shell.mjs';

const IMPORT_SECTION = 2;
const FUNCTION = 0;

/** Parts of the glue that are never come to, and what takes their place. */
const UNUSED = [
  // Fetching the module: js/wasm.ts does, and gives it compiled.
  [/^async function __wbg_load\([\s\S]*?^\}\n/m, 'async function __wbg_load(module, imports) {\n    return { instance: await WebAssembly.instantiate(module, imports), module };\n}\n'],
  // How values of JS are described in messages of Rust.
  [/^function debugString\([\s\S]*?^\}\n/m, 'function debugString(val) {\n    return String(val);\n}\n'],
  // Kernels use buffers only.
  [/^(const __wbindgen_enum_Gpu(?:Texture|StorageTexture|Sampler)\w+ = \[).*\];$/gm, '$1];'],
  // Texts that are written into the module's memory character by character, and encoders that cannot write into it.
  [/^function passStringToWasm0\([\s\S]*?^\}\n/m, 'function passStringToWasm0(arg, malloc) {\n    return passArray8ToWasm0(cachedTextEncoder.encode(arg), malloc);\n}\n'],
  [/^if \((?:!\('encodeInto' in cachedTextEncoder\)|cachedTextEncoder)\) \{\n[\s\S]*?^\}\n/m, ''],
  // Starting from an address, and other arguments than one object.
  [/^( +)if \(Object\.getPrototypeOf\(\w+\) === Object\.prototype\) \{\n\s*(.*\n)\s*\} else \{\n.*\n\s*\}\n/gm, '$1$2'],
  [/^ +if \(typeof module_or_path === 'string' [\s\S]*?\n {4}\}\n/m, ''],
  // Platforms that are older than WASM SIMD.
  [/\(typeof FinalizationRegistry === 'undefined'\)\n.*\n +: new/g, 'new'],
  // Objects are freed by their method, by name.
  [/^if \(Symbol\.dispose\) .*\n/gm, ''],
  // What js/engine-host.ts frees in every case.
  [/^.*\b(?:Embedding|Generation)Finalization\b.*\n/gm, ''],
];

/** The bytes of a module and the text of its glue, with short names: `{ wasm, glue }`. */
export function shortenImports(wasm, glue) {
  const [section] = sectionsOf(wasm).filter(({ id }) => id === IMPORT_SECTION);
  if (!section) throw new Stop('the WASM module has no imports');
  const imports = importsOf(wasm, section);
  const functions = imports.filter(({ kind }) => kind === FUNCTION);
  const modules = [...new Set(imports.map(({ module }) => module))];
  if (modules.length !== 1) throw new Stop(`expected one imported module, found ${modules.join(', ')}`);
  const [module] = modules;
  const hash = createHash('sha256').update(functions.map(({ name }) => name).join('\n')).digest('hex').slice(0, 12);
  const names = new Map(functions.map(({ name }, index) => [name, `f${index.toString(36)}`]));
  return {
    wasm: withImports(wasm, section, imports.map((row) => ({ ...row, module: hash, name: names.get(row.name) ?? row.name }))),
    glue: renamed(renamed(glue, /^( +)(__wb\w+)(?=: function)/gm, names), /()("\.\/[\w-]+_bg\.js")(?=: import0)/g, new Map([[`"${module}"`, `"${hash}"`]])),
  };
}

/** The glue without what is never used. */
export function trimmed(glue) {
  return UNUSED.reduce((text, [pattern, instead]) => text.replace(pattern, instead), glue);
}

/** Replaces each of the names where the pattern's second group finds it, exactly once each. */
function renamed(text, pattern, names) {
  const left = new Set(names.keys());
  const result = text.replace(pattern, (whole, before, name) => (left.delete(name) ? before + names.get(name) : whole));
  if (left.size > 0) throw new Stop(`the glue lacks ${[...left].join(', ')}`);
  return result;
}

/** The sections: `{ id, start, body, end }`, `start` where the section's id is. */
function sectionsOf(wasm) {
  const sections = [];
  for (let at = 8; at < wasm.length;) {
    const [size, body] = leb(wasm, at + 1);
    sections.push({ id: wasm[at], start: at, body, end: body + size });
    at = body + size;
  }
  return sections;
}

/** The rows of the import section: `{ module, name, kind, rest }`, `rest` being the bytes after the kind. */
function importsOf(wasm, { body }) {
  let [count, at] = leb(wasm, body);
  const rows = [];
  for (; count > 0; count -= 1) {
    const [module, afterModule] = text(wasm, at);
    const [name, afterName] = text(wasm, afterModule);
    const end = afterDescription(wasm, afterName);
    rows.push({ module, name, kind: wasm[afterName], rest: wasm.subarray(afterName + 1, end) });
    at = end;
  }
  return rows;
}

/** Where the description of an import ends: a type, a table, a memory or a global. */
function afterDescription(wasm, at) {
  const afterLimits = (from) => {
    const hasMost = (wasm[from] & 1) === 1;
    const [, afterLeast] = leb(wasm, from + 1);
    return hasMost ? leb(wasm, afterLeast)[1] : afterLeast;
  };
  switch (wasm[at]) {
    case FUNCTION: return leb(wasm, at + 1)[1];
    case 1: return afterLimits(at + 2);
    case 2: return afterLimits(at + 1);
    case 3: return at + 3;
    default: throw new Stop(`the WASM module has an import of the unknown kind ${wasm[at]}`);
  }
}

function withImports(wasm, { start, end }, rows) {
  const string = (value) => [...lebBytes(value.length), ...Buffer.from(value)];
  const body = Buffer.from([...lebBytes(rows.length), ...rows.flatMap(({ module, name, kind, rest }) => [...string(module), ...string(name), kind, ...rest])]);
  return Buffer.concat([wasm.subarray(0, start), Buffer.from([IMPORT_SECTION, ...lebBytes(body.length)]), body, wasm.subarray(end)]);
}

/** A name and where it ends; the names here are ASCII. */
function text(wasm, at) {
  const [length, start] = leb(wasm, at);
  return [Buffer.from(wasm.subarray(start, start + length)).toString('latin1'), start + length];
}

/** An unsigned number and where it ends. */
function leb(wasm, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = wasm[at];
    at += 1;
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
  }
}

function lebBytes(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
}
