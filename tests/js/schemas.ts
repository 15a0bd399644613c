// Random JSON schemas from a seed, small enough that every answer ends.

/** A number generator: mulberry32. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Schema = Record<string, unknown>;

const NAMES = ['name', 'age', 'city', 'tags', 'größe', 'is_ok', 'x-y', 'Kind', 'note "a"', 'id'];
const WORDS = ['red', 'green', 'blue', 'true', '', '日本', 'a"b', 'new\nline'];

/** The schema of this number. */
export function schemaOf(seed: number): Schema {
  const next = random(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  const count = (most: number): number => Math.floor(next() * (most + 1));
  const definitions: Record<string, Schema> = {};

  const leaf = (): Schema => pick([
    () => ({ type: 'string', maxLength: 4 + count(16) }),
    () => ({ type: 'string', minLength: 2, maxLength: 8 }),
    () => ({ type: 'string', pattern: pick(['^[a-z]{2,8}$', '^\\d{3}-\\d{4}$', '^(yes|no)$', '^[A-Z][a-z]{1,6}$']) }),
    () => ({ type: 'string', format: pick(['date', 'time', 'uuid', 'ipv4']) }),
    () => ({ type: 'integer', minimum: -count(50), maximum: count(1000) }),
    () => ({ type: 'integer', exclusiveMinimum: 0, maximum: 99, multipleOf: pick([1, 5, 10]) }),
    () => ({ type: 'boolean' }),
    () => ({ type: 'null' }),
    () => ({ enum: [pick(WORDS), pick(WORDS), count(9), null, true] }),
    () => ({ const: pick([pick(WORDS), count(9), false]) }),
    () => ({ type: ['string', 'null'], maxLength: 6 }),
    () => ({ anyOf: [{ type: 'integer', minimum: 0, maximum: 9 }, { type: 'boolean' }] }),
  ])();

  const list = (depth: number): Schema => pick([
    () => ({ type: 'array', items: schema(depth - 1), maxItems: 1 + count(2) }),
    () => ({ type: 'array', items: leaf(), minItems: 1, maxItems: 3 }),
    () => ({ type: 'array', prefixItems: [leaf(), leaf()], items: false, minItems: 2 }),
  ])();

  const object = (depth: number): Schema => {
    const properties = Object.fromEntries(Array.from({ length: 1 + count(2) }, () => [pick(NAMES), schema(depth - 1)]));
    const required = Object.keys(properties).filter(() => next() < 0.7);
    return { type: 'object', properties, ...(required.length > 0 ? { required } : {}), ...(next() < 0.5 ? { additionalProperties: false } : {}) };
  };

  const reference = (): Schema => {
    const name = `d${Object.keys(definitions).length}`;
    definitions[name] = leaf();
    return { $ref: `#/$defs/${name}` };
  };

  const schema = (depth: number): Schema => {
    if (depth <= 0) return leaf();
    return pick([leaf, reference, () => list(depth), () => object(depth), () => object(depth)])();
  };

  const root = next() < 0.8 ? object(2) : schema(1);
  return Object.keys(definitions).length > 0 ? { ...root, $defs: definitions } : root;
}
