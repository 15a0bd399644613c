// Running programs and printing: the only file of the scripts that starts a process. It knows nothing of what is run.

import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's root folder. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A failure whose message is all the user needs; scripts print it without a stack and exit with 1. */
export class Stop extends Error {}

/** Running process groups of their own, which the terminal's Ctrl-C does not reach. */
const groups = new Set();
for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]]) {
  process.on(signal, () => {
    for (const pid of groups) killGroup(pid);
    if (groups.size > 0 || process.listenerCount(signal) === 1) process.exit(code);
  });
}

/** One line of progress on stderr, so that stdout carries results only. */
export function say(line) {
  process.stderr.write(`${line}\n`);
}

/**
 * Runs a program to its end.
 * `quiet` keeps its output from the terminal, `onLine` sees every line of both streams, `timeoutMs` kills it.
 * Resolves with `{ code, output, timedOut }`, `output` holding both streams; a program that cannot start has code 127.
 */
export function run(command, args, { cwd = ROOT, env, quiet = false, onLine, timeoutMs } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: Boolean(timeoutMs) });
    if (timeoutMs) groups.add(child.pid);
    const chunks = [];
    let timedOut = false;
    const timer = timeoutMs && setTimeout(() => { timedOut = true; killGroup(child.pid); }, timeoutMs);
    for (const [stream, target] of [[child.stdout, process.stdout], [child.stderr, process.stderr]]) {
      const lines = onLine && lineSplitter(onLine);
      stream.on('data', (chunk) => {
        chunks.push(chunk);
        if (!quiet) target.write(chunk);
        lines?.(chunk.toString());
      });
      stream.on('end', () => lines?.('\n'));
    }
    child.on('error', (error) => { chunks.push(Buffer.from(`${command}: ${error.message}\n`)); finish(127); });
    child.on('close', (code) => finish(code ?? 1));
    function finish(code) {
      clearTimeout(timer);
      groups.delete(child.pid);
      resolve({ code, output: Buffer.concat(chunks).toString(), timedOut });
    }
  });
}

/** Runs a program that must succeed; otherwise throws [Stop] with what was being done and the end of its output. */
export async function must(what, command, args, options = {}) {
  const result = await run(command, args, options);
  if (result.code === 0) return result.output;
  const tail = options.quiet ? `\n${result.output.trim().split('\n').slice(-15).join('\n')}` : '';
  const why = result.timedOut ? 'took too long' : `exited with ${result.code}`;
  throw new Stop(`${what} failed: ${command} ${args.join(' ')} ${why}${tail}`);
}

/** The path of a program found in PATH, else null. */
export function which(name) {
  const suffixes = process.platform === 'win32' ? ['.exe', '.cmd', ''] : [''];
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const suffix of suffixes) {
      const path = join(folder, name + suffix);
      if (folder && isExecutable(path)) return path;
    }
  }
  return null;
}

/** Whether the path is a file that may be run. */
export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Runs a script's main function: a [Stop] becomes one line and exit code 1, anything else keeps its stack. */
export function main(work) {
  work().then(
    (code) => { process.exitCode = code ?? 0; },
    (error) => {
      say(error instanceof Stop ? `error: ${error.message}` : (error?.stack ?? String(error)));
      process.exitCode = 1;
    },
  );
}

function killGroup(pid) {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // It ended by itself in the meantime.
  }
}

function lineSplitter(onLine) {
  let rest = '';
  return (text) => {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) onLine(line);
  };
}
