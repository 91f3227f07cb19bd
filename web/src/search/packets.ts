// Reads the packets of a search to the last one. After a lost connection, reading resumes at the next packet.
import type { Feature } from 'geojson';
import { call, Problem } from '../api';

/** How a source's part ended. */
export type State = 'complete' | 'skipped' | 'timeout' | 'error' | 'refused';

export interface ResultsPacket {
  readonly kind: 'results';
  readonly seq: number;
  readonly provider: string;
  readonly features: readonly Feature[];
}

export interface ProviderPacket {
  readonly kind: 'provider';
  readonly seq: number;
  readonly provider: string;
  readonly state: State;
  readonly detail: string;
  /** It may have more results than were requested. */
  readonly more?: boolean;
  readonly results: number;
  readonly ms: number;
}

export interface CompletePacket {
  readonly kind: 'complete';
  readonly seq: number;
  readonly state: 'complete' | 'partial' | 'absent';
  readonly providers: Readonly<Record<string, State>>;
  readonly ttfp_ms: number | null;
  readonly ttlp_ms: number | null;
}

export type Packet = ResultsPacket | ProviderPacket | CompletePacket;

/** Max silence, in milliseconds: the server sends at least a comment every 15 seconds. */
const SILENCE = 40_000;
/** Max reconnects in a row, each after a longer wait: some ten seconds in all. */
const TRIES = 8;
/** Max characters of an event; a packet has some ten thousand. */
const EVENT_MOST = 16 << 20;

/** Parses Server-Sent Events that arrive in pieces, and returns their data. Comments and events with a name are ignored: they are no packets. */
export class Events {
  private text = '';

  /** Adds a piece and returns the events that it completes. */
  take(piece: string): string[] {
    // A piece may end between a carriage return and its line feed, so the pair is parsed only when complete.
    const parts = (this.text + piece).replace(/\r\n/g, '\n').split('\n\n');
    this.text = parts.pop() ?? '';
    if (this.text.length > EVENT_MOST) throw new Error('an event has no end');
    return parts.map(dataOf).filter((data) => data !== '');
  }
}

const dataOf = (event: string): string => {
  const lines = event.split('\n');
  if (lines.some((line) => line.startsWith('event:'))) return '';
  return lines
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''))
    .join('\n');
};

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });

/** Reads the packets of one connection. Silence ends it. */
async function* connect(id: string, next: number, signal: AbortSignal): AsyncGenerator<Packet> {
  const broken = new AbortController();
  const both = AbortSignal.any([signal, broken.signal]);
  let timer = setTimeout(() => broken.abort(), SILENCE);
  const path = `/searches/${encodeURIComponent(id)}/packets${next ? `?after=${next - 1}` : ''}`;
  try {
    const response = await call(path, both, { headers: { accept: 'text/event-stream' }, cache: 'no-store' }, Infinity);
    if (!response.body) return;
    const events = new Events();
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => broken.abort(), SILENCE);
      for (const data of events.take(decoder.decode(value, { stream: true }))) yield JSON.parse(data) as Packet;
    }
  } finally {
    clearTimeout(timer);
    broken.abort();
  }
}

/**
 * Reads a search to its last packet: `take` gets each once and in order, `waiting` is called when a connection is lost or restored.
 * Fails with a `Problem` if the server refuses or can no longer be reached.
 */
export async function follow(id: string, signal: AbortSignal, take: (packet: Packet) => void, waiting: (broken: boolean) => void): Promise<void> {
  let next = 0;
  for (let tries = 0; ; tries++) {
    try {
      for await (const packet of connect(id, next, signal)) {
        // After a reconnect some packets may repeat. A gap counts as a lost connection.
        if (packet.seq > next) break;
        if (packet.seq < next) continue;
        if (tries) waiting(false);
        tries = 0;
        next += 1;
        take(packet);
        if (packet.kind === 'complete') return;
      }
    } catch (error) {
      // The server has answered that the search cannot be resumed.
      if (signal.aborted || (error instanceof Problem && error.status >= 400 && error.status < 500)) throw error;
    }
    if (signal.aborted) throw new DOMException('the search was cancelled', 'AbortError');
    if (tries >= TRIES) throw new Problem('The connection to the server is lost', 'The results received are shown below. The search itself may have continued.', 0, '');
    waiting(true);
    await pause(Math.min(50 * 2 ** tries, 4000), signal);
  }
}
