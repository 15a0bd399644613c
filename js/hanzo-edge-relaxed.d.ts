// The module with relaxed SIMD has the exports of the base module.

export * from './hanzo-edge.js';
export { default } from './hanzo-edge.js';
