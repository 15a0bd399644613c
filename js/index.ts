// The package's only entry for pages.

export { HanzoEdge } from './edge.js';
export { EDGE_ERROR_CODES, EdgeError } from './errors.js';
export type { EdgeErrorCode } from './errors.js';
export type {
  ChatBody,
  ChatBodyMessage,
  ChatCompletion,
  ChatCompletionChoice,
  ChatCompletionChunk,
  ChatCompletionChunkChoice,
  ChatCompletions,
  ChatContentPart,
  ChatFinishReason,
  ChatLogprobs,
  ChatResponseFormat,
  ChatTokenLogprob,
  ChatTool,
  ChatToolCall,
  ChatToolChoice,
  CompletionUsage,
} from './openai-types.js';
export type {
  AdapterFacts,
  BackendName,
  Chat,
  ChatMessage,
  ChatOptions,
  Diagnostics,
  EdgeOptions,
  EdgeSession,
  FinishReason,
  GenerateOptions,
  GenerateResult,
  GenerateStats,
  MemoryReport,
  ModelFile,
  ModelSource,
  ModelUrl,
  Progress,
  PromptMessage,
  SessionInput,
  SessionOptions,
  TextPart,
  TokenLogprob,
  TokenStream,
} from './types.js';
