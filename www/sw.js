// The service worker of a page that works offline: it asks the network first, keeps what comes, and answers from what it
// kept where there is no network. It leaves models alone, which the package stores itself.

const CACHE = 'hanzo-edge-page';
/** What a page is made of. Answers keep their headers, so that an isolated page stays isolated. */
const KINDS = /\.(html|js|css|json|svg|wasm)$|\/$/;

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  const isOurs = request.method === 'GET' && url.origin === self.location.origin && !request.headers.has('range') && KINDS.test(url.pathname);
  if (isOurs) event.respondWith(answer(request));
});

async function answer(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    // A page is the same page whatever its address asks for.
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
}
