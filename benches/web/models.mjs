// The files a run compares, in the user's cache folder: made there from the default model when they are missing.
// It knows formats and files, nothing of engines.

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from '../../scripts/lib/cache.mjs';
import { DEFAULT_MODEL, findModel, modelPath } from '../../scripts/lib/models.mjs';
import { Stop, must, say, which } from '../../scripts/lib/shell.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const SOURCE = modelPath(findModel(DEFAULT_MODEL));
const SOURCE_FORMAT = /\.(\w+)\.gguf$/.exec(SOURCE)[1];

/** Where the exports for transformers.js lie, a folder each. */
export const ONNX_FOLDER = join(cacheFolder(), 'onnx');

/** Formats that `requantize.py` writes; a K-quant needs llama.cpp's own tool. */
const MADE = ['Q4_0', 'Q8_0'];
/** Formats that `export_onnx.py` carries over, each with the hub's name of the kind and of its file. */
const EXPORTED = { Q4_0: { dtype: 'q4', file: 'model_q4.onnx' }, Q8_0: { dtype: 'q8', file: 'model_quantized.onnx' } };

/**
 * The model in each of `formats`: `[{ format, path, onnx }]`, `onnx` being null or `{ id, dtype }`: the folder below
 * [ONNX_FOLDER] with its export for transformers.js and the kind to load. A format whose file cannot be had is said and
 * left out.
 */
export async function modelFiles(formats) {
  const found = [];
  for (const format of formats) {
    const path = join(dirname(SOURCE), basename(SOURCE).replace(SOURCE_FORMAT, format));
    if (!existsSync(path) && MADE.includes(format)) await runPython('requantize.py', [SOURCE, path, format]);
    if (existsSync(path)) found.push({ format, path, onnx: format in EXPORTED ? await onnxExport(path, EXPORTED[format]) : null });
    else say(`bench: ${format} is left out: ${path} is missing; llama.cpp writes it: llama-quantize --allow-requantize ${SOURCE} ${path} ${format}`);
  }
  return found;
}

/** The export of a GGUF file, which is made when it is missing. */
async function onnxExport(path, { dtype, file }) {
  const id = basename(path, '.gguf');
  const folder = join(ONNX_FOLDER, id);
  if (!existsSync(join(folder, 'onnx', file))) {
    await mkdir(folder, { recursive: true });
    await runPython('export_onnx.py', [path, folder]);
  }
  return { id, dtype };
}

/** Runs a script of this folder in an environment of its own with the packages of requirements.txt. */
async function runPython(script, args) {
  const environment = join(cacheFolder(), 'bench-python');
  const python = process.platform === 'win32' ? join(environment, 'Scripts', 'python.exe') : join(environment, 'bin', 'python');
  if (!existsSync(python)) {
    const system = which('python3') ?? which('python');
    if (!system) throw new Stop('Python 3 was not found; it makes the files of the other formats');
    await must('making a Python environment', system, ['-m', 'venv', environment], { quiet: true });
  }
  const requirements = join(HERE, 'requirements.txt');
  await must('installing Python packages', python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements], { quiet: true });
  say(`bench: ${script} ${args.join(' ')}`);
  await must(script, python, [join(HERE, script), ...args], { quiet: true });
}
