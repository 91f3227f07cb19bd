// A server that answers as a test says: what a real one does only in trouble.
import { createServer } from 'node:http';

/** Answers requests by `answer(request, response, number)`, `early` ones before their body; `seen` has method, url, headers and body of each. */
export async function stub(answer, early = false) {
  const seen = [];
  const server = createServer(async (request, response) => {
    if (early) answer(request, response, seen.length + 1);
    let body = '';
    try {
      for await (const piece of request) body += piece;
    } catch {
      // The client has left before the end of its body: nobody waits for an answer.
      return;
    }
    seen.push({ method: request.method, url: request.url, headers: request.headers, body });
    if (!early) answer(request, response, seen.length);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    });
  return { url: `http://127.0.0.1:${server.address().port}`, seen, close };
}

/** A refusal with problem details. */
export function refuse(response, status, kind, members = {}, headers = {}) {
  const problem = { type: `urn:meridian:problem:${kind}`, title: kind, status, detail: `refused: ${kind}`, ...members };
  response.writeHead(status, { 'content-type': 'application/problem+json', ...headers }).end(JSON.stringify(problem));
}

/** A JSON answer. */
export const say = (response, document, status = 200) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document));
