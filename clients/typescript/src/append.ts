import type { Http, RequestOptions } from './http.js';
import { Problem } from './problem.js';
import type { Feature, Properties, Written } from './types.js';

/** Events of one write at most, and about as many bytes; a server takes 64 MiB by default. */
const EVENTS_MAX = 10_000;
const BYTES_MAX = 8 << 20;

/** What can be written: GeoJSON features, or flat objects with places as columns such as `lon` and `lat`. */
export type NewEvent<P = Properties> = (Omit<Feature<P>, 'id'> & { id?: string | number }) | P;

export interface AppendOptions extends RequestOptions {
  /** The same call with the same key may be repeated for a day: what was stored counts as `duplicates`. */
  key?: string | undefined;
  /** Leaves out heights, and ids that the collection cannot keep, instead of refusing them. */
  lenient?: boolean | undefined;
}

/** Writes events in parts, each under an idempotency key of its own and stored completely or not at all. */
export class Appender {
  readonly #written: Written = { written: 0, replaced: 0, duplicates: 0, position: '' };
  readonly #key: string;

  constructor(
    private readonly http: Http,
    private readonly collection: string,
    private readonly options: AppendOptions,
  ) {
    // `randomUUID` is not there on pages without TLS.
    this.#key = options.key ?? Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(16)).join('');
  }

  async events(events: Iterable<unknown> | AsyncIterable<unknown>): Promise<Written> {
    let lines: string[] = [];
    let bytes = 0;
    let part = 0;
    for await (const event of events) {
      const line = JSON.stringify(event);
      lines.push(line);
      bytes += line.length;
      if (lines.length < EVENTS_MAX && bytes < BYTES_MAX) continue;
      await this.#lines(lines, `${this.#key}-${part++}`);
      lines = [];
      bytes = 0;
    }
    if (lines.length) await this.#lines(lines, `${this.#key}-${part}`);
    return this.#written;
  }

  /** A body in a format of the server, as one write. */
  async body(body: BodyInit, type: string): Promise<Written> {
    await this.#send(body, type, this.#key);
    return this.#written;
  }

  /** Writes a part, in halves if it is too large; halves of one part always have the same keys. */
  async #lines(lines: string[], key: string): Promise<void> {
    try {
      await this.#send(`${lines.join('\n')}\n`, 'application/x-ndjson', key);
    } catch (error) {
      if (!(error instanceof Problem && error.status === 413) || lines.length === 1) throw error;
      const middle = lines.length >> 1;
      await this.#lines(lines.slice(0, middle), `${key}.0`);
      await this.#lines(lines.slice(middle), `${key}.1`);
    }
  }

  async #send(body: BodyInit, type: string, key: string): Promise<void> {
    const headers: Record<string, string> = { 'content-type': type, 'idempotency-key': key };
    if (this.options.lenient) headers['prefer'] = 'handling=lenient';
    // The key makes a repetition safe; a body that is read once cannot be sent again.
    const repeatable = !(body instanceof ReadableStream);
    const asked = { path: { c: this.collection }, body, headers };
    const receipt = await this.http.json('post', '/collections/{c}/items', asked, { signal: this.options.signal, repeatable });
    this.#written.written += receipt.written;
    this.#written.replaced += receipt.replaced;
    this.#written.duplicates += receipt.duplicates;
    this.#written.position = receipt.position;
  }
}
