// The only file that touches `navigator.gpu`. It finds the adapter, decides whether it counts as a GPU, and lends it to the
// WASM module: wgpu asks for adapters and devices by itself, so while a device is opened these two requests are
// answered here, with the limits that the adapter has. No prototype is changed.

import type { AdapterFacts } from './types.js';

/** Limits worth raising to what the adapter has. */
const LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupSizeZ',
] as const;

/** A GPU that can be used. */
export interface Gpu {
  readonly adapter: AdapterFacts;
  readonly device: GpuDevice;
  /** Runs `work` while requests for adapters and devices are answered with this GPU. */
  lend<T>(work: () => Promise<T>): Promise<T>;
  /** Calls back when the device is lost, unless that was asked for. */
  onLost(callback: (reason: string) => void): void;
  destroy(): void;
}

/** What the planner of the WASM module is told of a GPU. */
export interface GpuDevice {
  bufferBytes: number;
  storageBuffers: number;
  workgroupBytes: number;
  f16: boolean;
  int8: boolean;
}

/** A usable GPU, or why there is none. */
export type Probe = { gpu: Gpu } | { gpu: null; reason: string };

/** Looks for a GPU. `takeFallback`: software adapters count too. */
export async function probeGpu(powerPreference: GPUPowerPreference | undefined, takeFallback: boolean): Promise<Probe> {
  const gpu = typeof navigator === 'undefined' ? undefined : (navigator.gpu as GPU | undefined);
  if (!gpu) return { gpu: null, reason: 'navigator.gpu does not exist here (no WebGPU, or the page is not a secure context)' };
  let adapter: GPUAdapter | null;
  try {
    adapter = await gpu.requestAdapter(powerPreference ? { powerPreference } : {});
  } catch (error) {
    return { gpu: null, reason: `requestAdapter failed: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (!adapter) return { gpu: null, reason: 'WebGPU found no adapter' };
  const facts = factsOf(adapter);
  if (facts.isFallback && !takeFallback) return { gpu: null, reason: `the adapter ${adapterName(facts)} is software; backend: 'webgpu' takes it anyway` };
  return { gpu: new LentGpu(gpu, adapter, facts) };
}

/** What an adapter says of itself. */
function factsOf(adapter: GPUAdapter): AdapterFacts {
  const { vendor, architecture, device, description } = adapter.info;
  const info = adapter.info as GPUAdapterInfo & { isFallbackAdapter?: boolean };
  const old = adapter as GPUAdapter & { isFallbackAdapter?: boolean };
  const isSoftware = /swiftshader|llvmpipe|lavapipe|software|basic render/i.test(`${vendor} ${architecture} ${device} ${description}`);
  return { vendor, architecture, device, description, isFallback: info.isFallbackAdapter === true || old.isFallbackAdapter === true || isSoftware };
}

/** An adapter's name for people. */
export function adapterName(facts: AdapterFacts): string {
  return [facts.vendor, facts.architecture, facts.device, facts.description].filter(Boolean).join(' ') || 'without a name';
}

/** One opening at a time, since the requests of all engines in this thread go through the same object. */
let lending: Promise<unknown> = Promise.resolve();

class LentGpu implements Gpu {
  readonly adapter: AdapterFacts;
  readonly device: GpuDevice;
  readonly #gpu: GPU;
  readonly #adapter: GPUAdapter;
  readonly #request: GPUAdapter['requestDevice'];
  #devices: GPUDevice[] = [];
  #callbacks: ((reason: string) => void)[] = [];
  /** Why the device was lost, once it was. */
  #lost: string | null = null;
  #isDestroyed = false;

  constructor(gpu: GPU, adapter: GPUAdapter, facts: AdapterFacts) {
    this.#gpu = gpu;
    this.#adapter = adapter;
    this.#request = adapter.requestDevice.bind(adapter);
    this.adapter = facts;
    const { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage, maxComputeWorkgroupStorageSize } = adapter.limits;
    this.device = {
      bufferBytes: Math.min(maxBufferSize, maxStorageBufferBindingSize),
      storageBuffers: maxStorageBuffersPerShaderStage,
      workgroupBytes: maxComputeWorkgroupStorageSize,
      f16: adapter.features.has('shader-f16'),
      int8: gpu.wgslLanguageFeatures?.has('packed_4x8_integer_dot_product') ?? false,
    };
  }

  async lend<T>(work: () => Promise<T>): Promise<T> {
    const turn = lending.catch(() => {}).then(() => this.#lendNow(work));
    lending = turn.catch(() => {});
    return turn;
  }

  onLost(callback: (reason: string) => void): void {
    if (this.#lost === null) this.#callbacks.push(callback);
    else callback(this.#lost);
  }

  destroy(): void {
    this.#isDestroyed = true;
    for (const device of this.#devices) device.destroy();
    this.#devices = [];
  }

  async #lendNow<T>(work: () => Promise<T>): Promise<T> {
    const restore = [
      withOwn(this.#gpu, 'requestAdapter', async () => this.#adapter),
      withOwn(this.#adapter, 'requestDevice', (descriptor?: GPUDeviceDescriptor) => this.#requestDevice(descriptor)),
      // wgpu traps where these are missing (old browsers) or where their keys are no iterator (Dawn in Node).
      withOwn(this.#gpu, 'wgslLanguageFeatures', new Set(this.#gpu.wgslLanguageFeatures ?? [])),
      withWorkerScope(),
    ];
    try {
      return await work();
    } finally {
      for (const undo of restore) undo();
    }
  }

  async #requestDevice(descriptor: GPUDeviceDescriptor = {}): Promise<GPUDevice> {
    const adapter = this.#adapter;
    const limits: Record<string, number> = {};
    for (const [name, value] of Object.entries(descriptor.requiredLimits ?? {})) if (typeof value === 'number') limits[name] = value;
    for (const name of LIMITS) {
      const has = adapter.limits[name];
      if (typeof has === 'number') limits[name] = has;
    }
    const device = await this.#request({ ...descriptor, requiredLimits: limits });
    this.#devices.push(device);
    void device.lost.then(({ reason, message }) => {
      if (this.#isDestroyed) return;
      this.#lost = message || reason || 'no reason was given';
      for (const callback of this.#callbacks) callback(this.#lost);
    });
    return device;
  }
}

/** Gives an object a property of its own that hides its prototype's; the answer takes it away again. */
function withOwn(target: object, name: string, value: unknown): () => void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
  return () => { Reflect.deleteProperty(target, name); };
}

/** wgpu looks for a window or a worker's global scope, and Node has neither. */
function withWorkerScope(): () => void {
  const hasScope = 'Window' in globalThis || 'WorkerGlobalScope' in globalThis;
  return hasScope ? () => {} : withOwn(globalThis, 'WorkerGlobalScope', class {});
}
