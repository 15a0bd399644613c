// The package's only entry for pages.

export { HanzoEdge } from './edge.js';
export { EDGE_ERROR_CODES, EdgeError } from './errors.js';
export type { EdgeErrorCode } from './errors.js';
export type {
  AdapterFacts,
  Availability,
  BackendName,
  Chat,
  ChatMessage,
  ChatOptions,
  Diagnostics,
  DownloadOptions,
  EdgeOptions,
  EdgeSession,
  FinishReason,
  GenerateOptions,
  GenerateResult,
  GenerateStats,
  MemoryReport,
  ModelFile,
  ModelInfo,
  ModelSource,
  ModelUrl,
  Models,
  Plan,
  Progress,
  SessionOptions,
  TextPart,
  TokenStream,
} from './types.js';
