// The one error class of the package. Its codes are those of the Rust crate's `ErrorKind`; a test compares the lists.

/** Every code, in the order of the Rust enum. */
export const EDGE_ERROR_CODES = [
  'invalid-argument',
  'not-found',
  'network',
  'integrity',
  'quota',
  'unsupported-model',
  'malformed-file',
  'out-of-memory',
  'limits',
  'device-lost',
  'context-overflow',
  'template',
  'closed',
  'internal',
] as const;

/** What kind of failure happened; stable. */
export type EdgeErrorCode = (typeof EDGE_ERROR_CODES)[number];

/** Every failure of the package that is not an abort; an abort rejects with the signal's own reason. */
export class EdgeError extends Error {
  readonly code: EdgeErrorCode;
  /** What the failure is about: a file, a tensor, an option. */
  readonly path?: string;

  constructor(code: EdgeErrorCode, message: string, options: { path?: string | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EdgeError';
    this.code = code;
    if (options.path !== undefined) this.path = options.path;
  }
}

/** An error as plain data, as it crosses a worker's border or comes from WASM. */
export interface ErrorData {
  code: EdgeErrorCode;
  message: string;
  path?: string;
}

/** Whether a value is error data with a known code. */
export function isErrorData(value: unknown): value is ErrorData {
  if (typeof value !== 'object' || value === null) return false;
  const { code, message } = value as Partial<ErrorData>;
  return typeof message === 'string' && EDGE_ERROR_CODES.includes(code as EdgeErrorCode);
}

/** Any thrown value as plain data. What is not ours is a fault of ours: 'internal'. */
export function toErrorData(error: unknown): ErrorData {
  if (isErrorData(error)) {
    return { code: error.code, message: error.message, ...(typeof error.path === 'string' && error.path !== '' ? { path: error.path } : {}) };
  }
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
}

/** Any thrown value as an `EdgeError`. */
export function toEdgeError(error: unknown): EdgeError {
  if (error instanceof EdgeError) return error;
  const { code, message, path } = toErrorData(error);
  return new EdgeError(code, message, { path, cause: isErrorData(error) ? undefined : error });
}

/** For the default branch of a switch: the compiler proves that it is never reached. */
export function unreachable(value: never): never {
  throw new EdgeError('internal', `unknown message ${JSON.stringify(value)}`);
}
