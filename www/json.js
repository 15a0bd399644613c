// The JSON view: a schema, an instruction, and an answer that the schema accepts whatever the model would rather say.

import { byId, make, showFault } from './dom.js';
import { summary } from './format.js';
import { makeRuns } from './runs.js';

const MOST_TOKENS = 400;
const short = { type: 'string', maxLength: 60 };

const EXAMPLES = [
  {
    title: 'A person from a text',
    prompt: 'Who is this about?\n\nAda Lovelace was born in London in 1815. She was a mathematician and wrote the first program for a machine that was never built.\n\nAnswer in JSON with the keys name, birth_year, city and occupation.',
    schema: object({ name: short, birth_year: { type: 'integer', minimum: 1000, maximum: 2100 }, city: short, occupation: short }),
  },
  {
    title: 'The mood of a review',
    prompt: 'What does this customer think?\n\nThe kettle arrived two days late, but it is quiet, quick and beautiful. I would buy it again.\n\nAnswer in JSON with the keys mood, stars and praised.',
    schema: object({ mood: { enum: ['happy', 'mixed', 'angry'] }, stars: { type: 'integer', minimum: 1, maximum: 5 }, praised: { type: 'array', items: { type: 'string', maxLength: 30 }, maxItems: 3 } }),
  },
  {
    title: 'A recipe',
    prompt: 'Give me a recipe for pancakes.\n\nAnswer in JSON with the keys name, minutes and ingredients.',
    schema: object({
      name: short,
      minutes: { type: 'integer', minimum: 1, maximum: 240 },
      ingredients: { type: 'array', minItems: 2, maxItems: 6, items: object({ what: { type: 'string', maxLength: 30 }, grams: { type: 'integer', minimum: 1, maximum: 2000 } }) },
    }),
  },
];

/** Builds the view for an engine's holder. `onSpeed(tokensPerSecond)` hears how fast answers are written. */
export function makeJson({ engine, settings, onSpeed }) {
  const output = byId('json-output');

  async function run(schema, signal) {
    byId('json-result').hidden = false;
    byId('json-note').textContent = '';
    output.textContent = '';
    const stream = engine.edge.chat([{ role: 'user', content: byId('json-prompt').value }], {
      maxTokens: MOST_TOKENS,
      ...settings.sampling(),
      responseFormat: { type: 'json_schema', schema },
      signal,
    });
    for await (const piece of stream) output.textContent += piece;
    const result = await stream.result;
    byId('json-note').textContent = `${parsed(result)} · ${summary(result)}`;
    onSpeed(result.stats.decodeTokensPerSecond);
  }

  /** Shows the answer laid out, if it is whole. */
  function parsed({ text, finishReason }) {
    if (finishReason !== 'stop') return 'Cut before its end';
    output.textContent = JSON.stringify(JSON.parse(text), null, 2);
    return 'Parsed as JSON';
  }

  const example = byId('json-example');
  const fill = () => {
    const { prompt, schema } = EXAMPLES[example.selectedIndex];
    byId('json-prompt').value = prompt;
    byId('json-schema').value = JSON.stringify(schema, null, 2);
  };
  example.append(...EXAMPLES.map(({ title }) => make('option', { textContent: title })));
  example.addEventListener('change', fill);
  fill();
  const begin = () => {
    try {
      const schema = JSON.parse(byId('json-schema').value);
      return (signal) => run(schema, signal);
    } catch (error) {
      showFault(byId('json-fault'), `The schema is no JSON: ${error.message}`);
      return null;
    }
  };
  makeRuns({ engine, view: 'json', begin });
}

function object(properties) {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}
