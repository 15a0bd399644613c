// The set-up's promises: no sudo, no sandbox switched off for ordinary users, the right wasm-bindgen, one clear error.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import { bindgenVersion } from '../../scripts/lib/bindgen.mjs';
import { chromiumFlags, findChromium } from '../../scripts/lib/graphics.mjs';
import { Stop, run } from '../../scripts/lib/shell.mjs';
import { aptInstall } from '../../scripts/lib/system.mjs';

const { getuid } = process;
const { CHROME_PATH } = process.env;
afterEach(() => {
  process.getuid = getuid;
  if (CHROME_PATH === undefined) delete process.env.CHROME_PATH;
  else process.env.CHROME_PATH = CHROME_PATH;
});

test('without root it prints the one command line and stops', async () => {
  process.getuid = () => 1000;
  await assert.rejects(aptInstall(['one', 'two']), (error) => {
    assert.ok(error instanceof Stop);
    assert.match(error.message, /sudo apt-get update && sudo apt-get install -y --no-install-recommends one two$/);
    return true;
  });
});

test('the sandbox is off only for root', () => {
  process.getuid = () => 1000;
  assert.ok(!chromiumFlags().includes('--no-sandbox'));
  process.getuid = () => 0;
  assert.ok(chromiumFlags().includes('--no-sandbox'));
});

test('a CHROME_PATH that leads nowhere is said to', async () => {
  process.env.CHROME_PATH = '/no/such/chromium';
  const { found, missing } = await findChromium();
  assert.equal(found, undefined);
  assert.match(missing, /CHROME_PATH names \/no\/such\/chromium/);
});

test('the wasm-bindgen wanted is the one of Cargo.lock', () => {
  const lock = readFileSync(new URL('../../Cargo.lock', import.meta.url), 'utf8');
  assert.ok(lock.includes(`name = "wasm-bindgen"\nversion = "${bindgenVersion()}"`));
});

test('a program that hangs is killed with its children', async () => {
  const start = Date.now();
  const { timedOut, code } = await run('sh', ['-c', 'sleep 30 & sleep 30'], { quiet: true, timeoutMs: 200 });
  assert.ok(timedOut && code !== 0);
  assert.ok(Date.now() - start < 5000);
});

test('a program that does not exist has an exit code, not an exception', async () => {
  assert.equal((await run('no-such-program-here', [], { quiet: true })).code, 127);
});

for (const [args, message] of [
  [['--backend', 'gpu'], /--backend is auto, webgpu or cpu, not gpu/],
  [['--colour', 'red'], /--colour/],
  [['--prompt'], /--prompt/],
]) {
  test(`npm start ${args.join(' ')} is a clear error`, async () => {
    const { code, output } = await run(process.execPath, ['scripts/start.mjs', ...args], { quiet: true });
    assert.equal(code, 1);
    assert.match(output, message);
    assert.ok(!output.includes('at '), output);
  });
}
