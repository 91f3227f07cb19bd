import { pieces, type OpenResponse } from './http.js';
import { Unreachable } from './problem.js';
import type { Watch } from './watch.js';

/** What the client uses of a WebSocket, for which Node 20 has no type. */
export interface Socket {
  readonly url: string;
  readonly readyState: number;
  readonly OPEN: number;
  addEventListener(type: string, listener: (event: unknown) => void): void;
  close(): void;
}

/** One message of a connection. */
export interface Frame {
  event: string;
  data: string;
  id: string | undefined;
}

/** A server says something every 15 s; after three times that, the connection is dead. In milliseconds. */
export const SILENCE_MS = 45_000;
/** A reader that falls behind a WebSocket by this many messages is cut off, and resumes: browsers cannot slow one down. */
const BEHIND_MAX = 10_000;

/** The messages of Server-Sent Events. Comments and unknown fields are left out. */
export async function* sentEvents(opened: OpenResponse, caller: AbortSignal | undefined): AsyncGenerator<Frame, void> {
  let rest = '';
  let event = '';
  let id: string | undefined;
  let data: string[] = [];
  for await (const piece of pieces(opened, caller)) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const ended of lines) {
      const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended;
      if (line === '') {
        if (data.length || id !== undefined || event) yield { event: event || 'message', data: data.join('\n'), id };
        event = '';
        id = undefined;
        data = [];
        continue;
      }
      const colon = line.indexOf(':');
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (name === 'event') event = value;
      else if (name === 'data') data.push(value);
      else if (name === 'id') id = value;
    }
  }
}

/** Opens a WebSocket, and gives its text messages: none is lost between the two. Browsers do not say why one was refused. */
export async function socketFrames(make: () => Socket, watch: Watch): Promise<AsyncGenerator<Frame, void>> {
  const socket = make();
  const waiting: string[] = [];
  let wake: (() => void) | undefined;
  let ended = false;
  const end = (): void => {
    ended = true;
    wake?.();
  };
  socket.addEventListener('message', (message) => {
    const { data } = message as { data: unknown };
    watch.heard();
    if (typeof data !== 'string' || ended) return;
    // What comes after a message that is left out must be left out too: the reader resumes behind the last one that it has.
    if (waiting.length < BEHIND_MAX) waiting.push(data);
    else ended = true;
    wake?.();
  });
  for (const name of ['close', 'error']) socket.addEventListener(name, end);
  watch.signal.addEventListener('abort', end);
  await new Promise<void>((resolve) => {
    socket.addEventListener('open', () => resolve());
    wake = resolve;
    if (watch.signal.aborted) end();
  });
  if (socket.readyState !== socket.OPEN) {
    watch.end();
    socket.close();
    throw new Unreachable(`${socket.url}: the WebSocket was not opened`);
  }
  return messages();

  async function* messages(): AsyncGenerator<Frame, void> {
    try {
      for (;;) {
        for (let data = waiting.shift(); data !== undefined; data = waiting.shift()) yield { event: 'message', data, id: undefined };
        if (ended) return;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      watch.end();
      socket.close();
    }
  }
}
