// Registers the service worker that the page's address names, and asks it.

const { script, type } = JSON.parse(new URLSearchParams(location.search).get('runs'))[0];
const registration = await navigator.serviceWorker.register(script, { type });
const worker = registration.installing ?? registration.waiting ?? registration.active;
if (worker.state !== 'activated') await new Promise((resolve) => worker.addEventListener('statechange', () => { if (worker.state === 'activated') resolve(); }));
const { port1, port2 } = new MessageChannel();
const outcome = new Promise((resolve) => { port1.onmessage = (event) => resolve(event.data); });
worker.postMessage('ask', [port2]);
globalThis.outcomes = [await outcome];
await registration.unregister();
