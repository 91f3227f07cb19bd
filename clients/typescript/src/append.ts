import type { Body, Http, RequestOptions } from './http.js';
import { behind, Problem } from './problem.js';
import type { Feature, GeometryOf, Properties, Written } from './types.js';

/** Events of one write at most, and about as many bytes; a server takes 64 MiB by default. */
const EVENTS_MAX = 10_000;
const BYTES_MAX = 8 << 20;

/** A geometry to write. Heights are refused, or left out by `lenient`. */
type NewGeometry = GeometryOf<readonly [number, number, number?]>;
/** What a flat event has beside its fields: an id, and a place under usual names. */
type Columns = { id?: string | number | undefined } & {
  [N in 'lon' | 'lng' | 'long' | 'longitude' | 'x' | 'lat' | 'latitude' | 'y']?: number | null | undefined;
} & { [N in 'geometry' | 'geom' | 'shape']?: NewGeometry | null | undefined };
/**
 * What can be written: GeoJSON features, or flat objects with their place as columns such as `lon` and `lat`, or as
 * `geometry`. A place under a name of your own is a member of `P`.
 */
export type NewEvent<P = Properties> =
  | (Omit<Feature<P>, 'id' | 'geometry'> & { id?: string | number | undefined; geometry: NewGeometry | null })
  | (P & Omit<Columns, keyof P>);

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
    let before = 0;
    for await (const event of events) {
      const line = JSON.stringify(event);
      lines.push(line);
      bytes += line.length;
      if (lines.length < EVENTS_MAX && bytes < BYTES_MAX) continue;
      await this.#lines(lines, `${this.#key}-${part++}`, before);
      before += lines.length;
      lines = [];
      bytes = 0;
    }
    if (lines.length) await this.#lines(lines, `${this.#key}-${part}`, before);
    return this.#written;
  }

  /** A body in a format of the server, as one write. */
  async body(body: Body, type: string): Promise<Written> {
    await this.#send(body, type, this.#key);
    return this.#written;
  }

  /** Writes a part behind `before` events, in halves if it is too large; halves of one part always have the same keys. */
  async #lines(lines: string[], key: string, before: number): Promise<void> {
    try {
      await this.#send(`${lines.join('\n')}\n`, 'application/x-ndjson', key);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.status !== 413 || lines.length === 1) throw before ? behind(before, error) : error;
      const middle = lines.length >> 1;
      await this.#lines(lines.slice(0, middle), `${key}.0`, before);
      await this.#lines(lines.slice(middle), `${key}.1`, before + middle);
    }
  }

  async #send(body: Body, type: string, key: string): Promise<void> {
    const headers: Record<string, string> = { 'content-type': type, 'idempotency-key': key };
    if (this.options.lenient) headers['prefer'] = 'handling=lenient';
    const asked = { path: { c: this.collection }, body, headers };
    // The key makes a repetition safe.
    const receipt = await this.http.json('post', '/collections/{c}/items', asked, { signal: this.options.signal, repeatable: true });
    this.#written.written += receipt.written;
    this.#written.replaced += receipt.replaced;
    this.#written.duplicates += receipt.duplicates;
    this.#written.position = receipt.position;
  }
}
