// `@hanzo/edge/openai`: a `fetch` for the official `openai` package that answers from a loaded model. It speaks HTTP in
// shape only: no request leaves the machine, whatever the base URL says.

import type { HanzoEdge } from './edge.js';
import { EdgeError, toEdgeError } from './errors.js';
import type { EdgeErrorCode } from './errors.js';
import { createEmbeddings } from './openai-embeddings.js';
import type { ChatBody } from './openai-types.js';
import { createText } from './text-completions.js';

/** What this file needs of an engine. */
export type FetchEngine = Pick<HanzoEdge, 'chat' | 'complete' | 'embed' | 'diagnostics'>;

/** Answers a request; a failure is thrown. */
type Handler = (engine: FetchEngine, request: HttpRequest) => Promise<Response>;

interface HttpRequest {
  method: string;
  /** The path below the API's root, such as `chat/completions`. */
  path: string;
  body: string;
  signal: AbortSignal | null;
}

const ROUTES: readonly { path: RegExp; method: 'GET' | 'POST'; handle: Handler }[] = [
  { path: /^chat\/completions$/, method: 'POST', handle: chat },
  { path: /^completions$/, method: 'POST', handle: complete },
  { path: /^embeddings$/, method: 'POST', handle: async (engine, { body, signal }) => json(await createEmbeddings(engine, parse(body), signal)) },
  { path: /^models$/, method: 'GET', handle: async ({ diagnostics }) => json({ object: 'list', data: [modelOf(diagnostics.model)] }) },
  { path: /^models\/.+$/, method: 'GET', handle: oneModel },
];

const STATUS: Readonly<Record<EdgeErrorCode, number>> = {
  'invalid-argument': 400, 'template': 400, 'context-overflow': 400, 'not-found': 404, 'closed': 503, 'device-lost': 503,
  'out-of-memory': 507, 'quota': 507, 'limits': 507, 'network': 502, 'integrity': 502, 'unsupported-model': 500, 'malformed-file': 500,
  'internal': 500,
};

/**
 * A `fetch` that answers OpenAI's API from this engine: `new OpenAI({ apiKey: 'local', baseURL: 'http://edge/v1', fetch:
 * createFetch(edge) })`. It serves POST chat/completions and completions (JSON and server-sent events), POST embeddings and GET models.
 * Failures are answers in OpenAI's form; only an abort rejects, with the signal's reason.
 */
export function createFetch(engine: FetchEngine): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  return async (input, init = {}) => {
    const request = typeof input === 'string' || input instanceof URL ? null : input;
    const signal = init.signal ?? request?.signal ?? null;
    signal?.throwIfAborted();
    try {
      const body = await new Response(init.body ?? request?.body ?? null).text();
      const method = (init.method ?? request?.method ?? 'GET').toUpperCase();
      return await answer(engine, { method, path: pathOf(request?.url ?? String(input)), body, signal });
    } catch (error) {
      signal?.throwIfAborted();
      return failure(error);
    }
  };
}

async function answer(engine: FetchEngine, request: HttpRequest): Promise<Response> {
  const routes = ROUTES.filter(({ path }) => path.test(request.path));
  const route = routes.find(({ method }) => method === request.method);
  if (route) return route.handle(engine, request);
  const served = ROUTES.map(({ method, path }) => `${method} ${path.source.replace(/[\\^$]/g, '').replace('.+', 'NAME')}`).join(', ');
  const message = `${request.method} ${request.path} is not served here; served: ${served}`;
  return errorResponse(routes.length > 0 ? 405 : 404, { message, type: 'invalid_request_error', param: null, code: null });
}

/** What follows the version in a path; all of it without one. */
function pathOf(url: string): string {
  const { pathname } = new URL(url, 'http://localhost');
  return pathname.replace(/^.*?\/v1\//, '').replace(/^\/|\/$/g, '');
}

async function chat({ chat: { completions } }: FetchEngine, { body, signal }: HttpRequest): Promise<Response> {
  const answered = await completions.create(parse(body) as ChatBody, { signal });
  return Symbol.asyncIterator in answered ? eventStream(answered) : json(answered);
}

async function oneModel({ diagnostics }: FetchEngine, { path }: HttpRequest): Promise<Response> {
  const id = decodeURIComponent(path.slice('models/'.length));
  if (id === diagnostics.model) return json(modelOf(id));
  throw new EdgeError('not-found', `expected the model ${diagnostics.model}, found ${id}`, { path: 'model' });
}

function modelOf(id: string): object {
  return { id, object: 'model', created: 0, owned_by: 'local' };
}

async function complete(engine: FetchEngine, { body, signal }: HttpRequest): Promise<Response> {
  const answered = await createText(engine, parse(body), signal);
  return Symbol.asyncIterator in answered ? eventStream(answered) : json(answered);
}

function parse(body: string): object {
  try {
    return JSON.parse(body) as object;
  } catch (error) {
    throw new EdgeError('invalid-argument', `the request's body is not JSON: ${error instanceof Error ? error.message : String(error)}`, { path: 'body' });
  }
}

function json(value: object): Response {
  return Response.json(value);
}

/** Server-sent events, as they are read: one per chunk, then `[DONE]`. A failure is the last event. */
function eventStream(chunks: AsyncIterable<object>): Response {
  const iterator = chunks[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const say = (data: string) => controller.enqueue(encoder.encode(`data: ${data}\n\n`));
      try {
        const { done, value } = await iterator.next();
        say(done ? '[DONE]' : JSON.stringify(value));
        if (done) controller.close();
      } catch (error) {
        if (!(error instanceof EdgeError)) {
          // An abort, with its reason.
          controller.error(error);
          return;
        }
        say(JSON.stringify({ error: describe(error) }));
        controller.close();
      }
    },
    async cancel() {
      await iterator.return?.();
    },
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' } });
}

function failure(error: unknown): Response {
  const edgeError = toEdgeError(error);
  return errorResponse(STATUS[edgeError.code], describe(edgeError));
}

interface ErrorBody {
  message: string;
  type: 'invalid_request_error' | 'server_error';
  param: string | null;
  code: string | null;
}

function describe({ code, message, path }: EdgeError): ErrorBody {
  const type = STATUS[code] < 500 ? 'invalid_request_error' : 'server_error';
  return { message, type, param: path ?? null, code: code === 'context-overflow' ? 'context_length_exceeded' : code };
}

/** The client must not try again by itself: the answer would be the same. */
function errorResponse(status: number, error: ErrorBody): Response {
  return Response.json({ error }, { status, headers: { 'x-should-retry': 'false' } });
}
