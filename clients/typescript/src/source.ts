import type { Body } from './http.js';
import type { Watch } from './watch.js';

type Reader = Pick<ReadableStreamDefaultReader<unknown>, 'read' | 'cancel'>;

/** A body that is read once: a stream, or in Node an async iterator. Its own failure is none of the network. */
export class Source {
  /** What reading it failed with. */
  failure: { cause: unknown } | undefined;
  readonly stream: ReadableStream<unknown>;
  /** Is told when the source pauses, which is not the server's silence, and when the server takes more. */
  watch: Watch | undefined;

  /** Throws a TypeError if something else reads the stream. */
  constructor(body: object) {
    const reader = readerOf(body);
    const encoder = new TextEncoder();
    const pull = async (controller: ReadableStreamDefaultController<unknown>): Promise<void> => {
      this.watch?.paused();
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value);
      } catch (cause) {
        this.failure = { cause };
        throw cause;
      }
      this.watch?.heard();
    };
    // Nothing is read before `fetch` asks.
    this.stream = new ReadableStream<unknown>({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 });
  }

  /** Whether a body is read once, so that it cannot be sent again. */
  static is(body: Body | undefined): body is Exclude<Body, string> {
    return typeof body === 'object' && ('getReader' in body || Symbol.asyncIterator in body);
  }
}

function readerOf(body: object): Reader {
  if ('getReader' in body) return (body as ReadableStream<unknown>).getReader();
  const items = (body as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  return {
    read: async () => (await items.next()) as ReadableStreamReadResult<unknown>,
    cancel: async () => void (await items.return?.()),
  };
}
