// Several answers to one request, computed one after the other, told as events. It knows the streams of this package,
// and neither OpenAI's shapes nor anyone else's.

import type { ChatOptions, GenerateResult, TokenLogprob, TokenStream, ToolCallDelta } from './types.js';

/** What became known of the answer with this index. Each answer ends with its `result`. */
export type ChoiceEvent = { index: number } & (
  | { kind: 'reasoning' | 'piece'; piece: string }
  | { kind: 'tool'; delta: ToolCallDelta }
  | { kind: 'logprob'; entry: TokenLogprob }
  | { kind: 'end'; result: GenerateResult }
);

/** Options of a chat that hear what its stream does not tell. */
export type Listeners = Required<Pick<ChatOptions, 'onReasoning' | 'onToolCallDelta' | 'onLogprob'>>;

/** Starts the answer with this index. */
export type StartChoice = (index: number, listeners: Listeners) => TokenStream;

/** Answers under way. */
export interface Choices {
  /** Read once, by whoever runs them: nothing starts before the first read. */
  readonly events: AsyncGenerator<ChoiceEvent, undefined>;
  /** Stops the answer under way, whose partial result still comes, and starts no other. */
  cancel(): void;
}

/** Runs `count` answers. */
export function runChoices(count: number, start: StartChoice): Choices {
  let current: TokenStream | null = null;
  let isCancelled = false;
  async function* events(): AsyncGenerator<ChoiceEvent, undefined> {
    for (let index = 0; index < count && !isCancelled; index += 1) {
      const told: ChoiceEvent[] = [];
      let wake = () => {};
      const tell = (event: ChoiceEvent) => { told.push(event); wake(); };
      const stream = start(index, {
        onReasoning: (piece) => tell({ index, kind: 'reasoning', piece }),
        onToolCallDelta: (delta) => tell({ index, kind: 'tool', delta }),
        onLogprob: (entry) => tell({ index, kind: 'logprob', entry }),
      });
      current = stream;
      const reading = readAll(stream, (piece) => tell({ index, kind: 'piece', piece }));
      let isOver = false;
      const onOver = () => { isOver = true; wake(); };
      reading.then(onOver, onOver);
      try {
        while (!isOver || told.length > 0) {
          const event = told.shift();
          if (event) yield event;
          else await new Promise<void>((resolve) => { wake = resolve; });
        }
        yield { index, kind: 'end', result: await reading };
      } finally {
        stream.cancel();
      }
    }
    return undefined;
  }
  const cancel = () => {
    isCancelled = true;
    current?.cancel();
  };
  return { events: events(), cancel };
}

async function readAll(stream: TokenStream, onPiece: (piece: string) => void): Promise<GenerateResult> {
  for await (const piece of stream) onPiece(piece);
  return stream.result;
}

/**
 * An iterator whose first step was taken already. Leaving it calls `cancel` at once, also while a step is awaited, and
 * then closes `rest`.
 */
export function resumed<T>(first: IteratorResult<T, undefined>, rest: AsyncGenerator<T, undefined>, cancel: () => void): AsyncIterableIterator<T, undefined> {
  let begin: IteratorResult<T, undefined> | null = first;
  return {
    async next() {
      const step = begin ?? (await rest.next());
      begin = null;
      return step;
    },
    async return() {
      begin = null;
      cancel();
      return rest.return(undefined);
    },
    [Symbol.asyncIterator]() { return this; },
  };
}
