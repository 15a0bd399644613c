// The functions that the tools view offers to the model: what each is for, its arguments as a JSON schema, and what it does.
// All of it happens in this page.

const ZONES = ['UTC', 'America/New_York', 'Europe/Berlin', 'Asia/Tokyo', 'Australia/Sydney'];

/** Bounded, since a small model may find no end of a number. */
const WHOLE = { type: 'integer', minimum: -1_000_000, maximum: 1_000_000 };

const FUNCTIONS = [
  {
    name: 'get_time',
    description: 'Tells the current date and time in a time zone.',
    parameters: object({ time_zone: { type: 'string', enum: ZONES } }),
    run: ({ time_zone }) => ({ time: new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'short', timeZone: time_zone }).format(new Date()) }),
  },
  {
    name: 'add_numbers',
    description: 'Adds two whole numbers.',
    parameters: object({ a: WHOLE, b: WHOLE }),
    run: ({ a, b }) => ({ sum: a + b }),
  },
  {
    name: 'roll_dice',
    description: 'Rolls dice and tells what they show.',
    parameters: object({ count: { type: 'integer', minimum: 1, maximum: 10 }, sides: { type: 'integer', minimum: 2, maximum: 100 } }),
    run: ({ count, sides }) => ({ rolls: Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides)) }),
  },
];

/** The functions as the package takes them. */
export const TOOLS = FUNCTIONS.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }));

/** Runs a call of the model's; what went wrong is told to the model too. */
export function runCall({ function: { name, arguments: text } }) {
  const known = FUNCTIONS.find((candidate) => candidate.name === name);
  if (!known) return { error: `there is no function ${name}` };
  try {
    return known.run(JSON.parse(text));
  } catch (error) {
    return { error: error.message };
  }
}

function object(properties) {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}
