// The modules with threads have the same exports.

export * from './hanzo-edge-threads.js';
export { default } from './hanzo-edge-threads.js';
