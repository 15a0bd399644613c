// Reads how many tests passed, failed and were skipped from the output of cargo and of Node's test runner. Pure text.

/** Counts in the output of one `cargo test` command: `{ passed, failed, skipped: [names] }`. */
export function cargoResults(output) {
  const counts = { passed: 0, failed: 0, skipped: [] };
  for (const line of lines(output)) {
    const result = /^test result: \w+\. (\d+) passed; (\d+) failed; \d+ ignored/.exec(line);
    if (result) {
      counts.passed += Number(result[1]);
      counts.failed += Number(result[2]);
    }
    const ignored = /^test (.+) \.\.\. ignored/.exec(line);
    if (ignored) counts.skipped.push(ignored[1]);
  }
  return counts;
}

/** Counts in the TAP output of `node --test`; a `todo` counts as skipped. */
export function tapResults(output) {
  const counts = { passed: 0, failed: 0, skipped: [] };
  for (const line of lines(output)) {
    const total = /^# (pass|fail|cancelled) (\d+)$/.exec(line);
    if (total) counts[total[1] === 'pass' ? 'passed' : 'failed'] += Number(total[2]);
    const skipped = /^\s*(?:not )?ok \d+ - (.*?) # (?:SKIP|TODO)/i.exec(line);
    if (skipped) counts.skipped.push(skipped[1]);
  }
  return counts;
}

/** Adds up suites' counts: `{ passed, failed, skipped }`. */
export function total(suites) {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const { passed, failed, skipped } of suites) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped.length;
  }
  return sum;
}

function lines(output) {
  // Some runners write terminal colours even into pipes.
  return output.replace(/\x1b\[[0-9;]*m/g, '').split(/\r?\n/);
}
