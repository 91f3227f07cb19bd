import type { Body } from './http.js';
import { pause, type Watch } from './watch.js';

interface Reader {
  read(): Promise<{ done?: boolean; value?: unknown }>;
  cancel(reason: unknown): Promise<void>;
}

/** How long a source is read at a stretch, in milliseconds. One that never waits would else hold up timers and the answer. */
const STRETCH_MS = 20;

/** A body that is read once: a stream, or in Node an async iterator. Its own failure is none of the network. */
export class Source {
  /** What reading it failed with. */
  failure: { cause: unknown } | undefined;
  readonly stream: ReadableStream<unknown>;
  readonly #reader: Reader;
  #watch: Watch | undefined;
  #ended = false;

  /** Throws a TypeError if something else reads the stream. */
  constructor(body: object) {
    this.#reader = readerOf(body);
    const encoder = new TextEncoder();
    let since = Date.now();
    const pull = async (controller: ReadableStreamDefaultController<unknown>): Promise<void> => {
      if (Date.now() - since > STRETCH_MS) {
        await pause(0, undefined);
        since = Date.now();
      }
      if (this.#ended) return;
      this.#watch?.paused();
      try {
        const { done, value } = await this.#reader.read();
        // What an ended source still gives is neither sent nor an end of the body.
        if (this.#ended) return;
        this.#ended = done === true;
        if (done) controller.close();
        else controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value);
      } catch (cause) {
        if (this.#ended) return;
        this.#ended = true;
        this.failure = { cause };
        throw cause;
      }
      this.#watch?.heard();
    };
    // Nothing is read before `fetch` asks.
    this.stream = new ReadableStream<unknown>({ pull, cancel: (reason) => this.end(reason) }, { highWaterMark: 0 });
  }

  /** Whether a body is read once, so that it cannot be sent again. */
  static is(body: Body | undefined): body is Exclude<Body, string> {
    return typeof body === 'object' && ('getReader' in body || Symbol.asyncIterator in body);
  }

  /** Ends with the request of `watch`, which is told when the source pauses, and when the server takes more. */
  under(watch: Watch): void {
    this.#watch = watch;
    watch.signal.addEventListener('abort', () => this.end(watch.signal.reason), { once: true });
  }

  /** Reads no more, and lets the source free what it holds: once, and not after its own end. */
  end(reason?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    // Not waited for: a generator ends when what it waits for has come.
    this.#reader.cancel(reason).catch(() => undefined);
  }
}

function readerOf(body: object): Reader {
  if ('getReader' in body) return (body as ReadableStream<unknown>).getReader();
  const items = (body as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  return {
    read: () => items.next(),
    cancel: async () => void (await items.return?.()),
  };
}
