// The page of the loading tests: the package as it is, and errors as plain data.

import { EdgeError, HanzoEdge } from '/dist/index.js';

globalThis.HanzoEdge = HanzoEdge;
/** Runs the work and answers its value, or its error as plain data. */
globalThis.attempt = async (work) => {
  try {
    return { value: await work() };
  } catch (error) {
    return { error: { isEdgeError: error instanceof EdgeError, code: error?.code, message: error?.message ?? String(error) } };
  }
};
