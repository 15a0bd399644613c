// One measured run of a prompt and its continuation. It knows the package and no elements.

/** Prose to cut prompts from; what it says does not matter, only that it is text. */
const PROSE = 'The river comes down from the hills in spring, brown and quick, and spreads over the low meadows until the road is gone. '
  + 'People who live there keep boats under their houses and speak of the water as of a neighbour who visits once a year. '
  + 'When it has left, the grass is thick, the ditches are full of small fish, and the children are sent to look for what it has brought. '
  + 'Once it was a door with its handle, another time a box of letters that nobody could read. '
  + 'In summer the same river is a line of stones with a little water between them, and strangers ask why the bridges are so high. ';

/**
 * Runs a prompt of about `promptTokens` tokens and continues it by up to `decodeTokens`, the likeliest each time. `run`
 * makes the prompt's beginning differ from other runs', so that nothing of it is cached. `onTimes({ times, promptMs })`
 * is called as pieces come, with their times in milliseconds since the start.
 */
export async function measure(edge, { run, promptTokens, decodeTokens, signal, onTimes }) {
  const prompt = await promptOf(edge, promptTokens, run);
  const started = performance.now();
  const stream = edge.complete(prompt, { maxTokens: decodeTokens, temperature: 0, signal });
  const times = [];
  for await (const _piece of stream) {
    times.push(performance.now() - started);
    onTimes(times);
  }
  const { usage, stats, finishReason } = await stream.result;
  return { usage, stats, finishReason, times };
}

/** A text of about this many tokens. */
async function promptOf(edge, count, run) {
  const lead = `Part ${run} of ${crypto.getRandomValues(new Uint32Array(1))[0]}. `;
  const ids = await edge.tokenize(lead + PROSE.repeat(Math.ceil(count / 80)));
  return edge.detokenize(ids.slice(0, count));
}
