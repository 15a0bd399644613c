// The page of the browser projects: asks with each of the options in its address and prints the answers.

import { ask } from './ask.js';

/** Not awaited at the top level, which some bundlers refuse by default. */
async function main() {
  const outcomes = [];
  for (const options of JSON.parse(new URLSearchParams(location.search).get('runs') ?? '[{}]')) {
    const outcome = await ask(options);
    document.body.append([outcome].flat().map(({ text, error }) => text ?? error.message).join('\n'));
    outcomes.push(outcome);
  }
  globalThis.outcomes = outcomes;
}

main();
