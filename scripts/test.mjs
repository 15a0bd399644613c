// npm test: sets up, runs every suite in order, and ends with `N passed, N failed`. `npm test -- unit web` runs only those.

import { setup } from './setup.mjs';
import { total } from './lib/results.mjs';
import { Stop, main, say } from './lib/shell.mjs';
import { SUITES } from './lib/suites.mjs';

main(async () => {
  const chosen = choose(process.argv.slice(2));
  await setup();
  const results = [];
  for (const suite of chosen) {
    say(`\n=== ${suite.name}`);
    const start = Date.now();
    const counts = await suite.work();
    if (counts.passed + counts.failed === 0) {
      say(`test: the suite ${suite.name} ran no test`);
      counts.failed = 1;
    }
    results.push({ name: suite.name, seconds: (Date.now() - start) / 1000, ...counts });
  }
  return report(results);
});

function choose(names) {
  const unknown = names.filter((name) => !SUITES.some((suite) => suite.name === name));
  if (unknown.length > 0) throw new Stop(`no suite is named ${unknown.join(', ')}; there are ${SUITES.map((suite) => suite.name).join(', ')}`);
  return names.length === 0 ? SUITES : SUITES.filter((suite) => names.includes(suite.name));
}

/** Prints a line for each suite, the skipped tests by name, and the last line; returns the exit code. */
function report(results) {
  const print = (line) => process.stdout.write(`${line}\n`);
  print('');
  for (const { name, passed, failed, skipped, seconds } of results) {
    print(`${name.padEnd(8)} ${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed ${String(skipped.length).padStart(4)} skipped ${seconds.toFixed(0).padStart(6)} s`);
  }
  for (const { name, skipped } of results) for (const test of skipped) print(`skipped: ${name}: ${test}`);
  const sum = total(results);
  print(`${sum.passed} passed, ${sum.failed} failed`);
  return sum.failed === 0 ? 0 : 1;
}
