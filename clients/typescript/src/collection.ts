import { Appender, type AppendOptions, type NewEvent } from './append.js';
import { conditionParameters, parameters, type Conditions, type Shape } from './conditions.js';
import type { components } from './contract.js';
import { pieces, type Body, type Http, type Parameters, type RequestOptions } from './http.js';
import { BrokenOff, Problem } from './problem.js';
import type { FollowOptions } from './resumed.js';
import { found } from './search.js';
import { EventStream } from './stream.js';
import type {
  AggregateFunction,
  CollectionInfo,
  Deleted,
  Density,
  Event,
  Feature,
  Group,
  Page,
  Position,
  Properties,
  Schema,
  Settings,
  Track,
  TrackSummary,
  When,
  Written,
} from './types.js';

/** Most events of a page. */
const PAGE_MAX = 10_000;

/** A question for events. */
export interface Query extends Conditions, Shape, RequestOptions {
  /** Only the k events nearest to `near`. */
  nearest?: number | undefined;
  /** Max number of events; all without it. */
  limit?: number | undefined;
}
/** Groups of an aggregate: docs/aggregate.md. */
export interface Grouping {
  /** A group for each window of time: an ISO 8601 duration such as `PT1H`. */
  window?: string | undefined;
  /** A group for each value of a field, or each combination of values. */
  by?: string | readonly string[] | undefined;
  /** The time zone of the windows' midnights; UTC by default. */
  zone?: string | undefined;
  /** Lists windows without events too. */
  empty?: boolean | undefined;
}
/** A question about the events as a whole. */
export type Whole = Conditions & RequestOptions;

/** A collection of events with one schema; made by `Database.collection`, without a request. `P` are its properties. */
export class Collection<P = Properties> {
  constructor(
    private readonly http: Http,
    readonly name: string,
  ) {}

  // What it is

  /** Extent, number of events, bytes, durability, retention and links. */
  describe({ signal }: RequestOptions = {}): Promise<CollectionInfo> {
    return this.http.json('get', '/collections/{c}', { path: this.#path(), query: { f: 'json' } }, { signal });
  }

  /** Whether there is such a collection for this token. */
  exists(options: RequestOptions = {}): Promise<boolean> {
    return found(this.describe(options));
  }

  /** Its fields, as JSON Schema. */
  schema({ signal }: RequestOptions = {}): Promise<Schema> {
    return this.http.json('get', '/collections/{c}/schema', { path: this.#path(), query: { f: 'json' } }, { signal });
  }

  // Events

  /** Events as the server finds them, in one answer of any length. Leaving the loop ends the server's work. */
  async *items(query: Query = {}): AsyncGenerator<Event<P>, void> {
    const { signal, ...asked } = query;
    const sending = { signal, timeout: this.#silence(asked.timeout) };
    const opened = await this.http.open('get', '/collections/{c}/items', this.#asked({ ...parameters(asked), f: 'ndjson' }), sending);
    let rest = '';
    for await (const piece of pieces(opened, signal)) {
      const lines = (rest + piece).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line) yield feature(line);
    }
    if (rest) yield feature(rest);
  }

  /**
   * Pages of at most `size` events (10,000), all of one snapshot: for work between pages that takes minutes. A page has to
   * be asked for within five minutes of the one before.
   */
  async *pages({ size = PAGE_MAX, limit, signal, ...query }: Query & { size?: number } = {}): AsyncGenerator<Page<P>, void> {
    let token: string | undefined;
    let left = limit ?? Infinity;
    do {
      const asked = this.#asked({ ...parameters(query), f: 'json', limit: Math.min(size, PAGE_MAX, left), token });
      const page = (await this.http.json('get', '/collections/{c}/items', asked, { signal, timeout: this.#silence(query.timeout) })) as Page<P>;
      if (page.features.length || token === undefined) yield page;
      left -= page.features.length;
      token = following(page.links, 'token');
    } while (token !== undefined && left > 0);
  }

  /** Events around a place, nearest first: within `radius` metres, or the `nearest` k. Each has its `distance` in metres. */
  async *near(
    place: Position,
    query: Omit<Query, 'near'> & ({ radius: number } | { nearest: number }),
  ): AsyncGenerator<Event<P> & { distance: number }, void> {
    // Only pages have distances.
    for await (const page of this.pages({ ...query, near: place })) yield* page.features as (Event<P> & { distance: number })[];
  }

  /** One event; undefined if there is none. */
  async get(id: string, { signal }: RequestOptions = {}): Promise<Event<P> | undefined> {
    try {
      const path = { ...this.#path(), id };
      return (await this.http.json('get', '/collections/{c}/items/{id}', { path, query: { f: 'json' } }, { signal })) as Event<P>;
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) throw error;
      // A collection that is not there is another answer.
      await this.describe({ signal });
      return undefined;
    }
  }

  // Numbers

  /** The number of events that match. */
  async count(conditions: Whole = {}): Promise<number> {
    return (await this.aggregate(['count'], conditions))[0]?.count ?? 0;
  }

  /**
   * Counts, sums, averages, extremes, percentiles, distinct counts and top values, for each window and value. Each function
   * is a text of its own, such as `'top(type, 2)'`, and its value is under that text.
   */
  async aggregate<const F extends AggregateFunction>(functions: readonly F[], { signal, window, by, zone, empty, ...conditions }: Whole & Grouping = {}): Promise<Group<F>[]> {
    const asked = this.#asked({ ...conditionParameters(conditions), function: functions, window, by, zone, empty, f: 'json' });
    const answer = await this.http.json('get', '/collections/{c}/aggregate', asked, { signal, timeout: this.#silence(conditions.timeout) });
    // An answer with `explain` has their number here.
    return (answer as components['schemas']['Aggregate']).groups.map((group) => named(group, functions));
  }

  /** Counts on a grid over `bbox`, by default the world: row by row from the north-west. */
  async density({ signal, width = 64, height = 32, ...conditions }: Whole & { width?: number; height?: number } = {}): Promise<Density> {
    const asked = this.#asked({ ...conditionParameters(conditions), width, height });
    return (await this.http.json('get', '/collections/{c}/density', asked, { signal, timeout: this.#silence(conditions.timeout) })) as Density;
  }

  // Moving objects

  /** The objects that passed, in order: count, first and last instant of each. */
  async *tracks({ signal, ...conditions }: Whole = {}): AsyncGenerator<TrackSummary, void> {
    let after: string | undefined;
    do {
      const asked = this.#asked({ ...conditionParameters(conditions), limit: PAGE_MAX, after });
      const page = await this.http.json('get', '/collections/{c}/tracks', asked, { signal, timeout: this.#silence(conditions.timeout) });
      yield* page.tracks;
      after = following(page.links, 'after');
    } while (after !== undefined);
  }

  /** The events of one object as a line in time order. `simplify` leaves out events within that many metres of the line. */
  async track(object: string | number, { signal, simplify, ...conditions }: Whole & { simplify?: number } = {}): Promise<Track> {
    const asked = this.#asked({ ...conditionParameters(conditions), track: object, simplify, f: 'json' });
    return (await this.http.json('get', '/collections/{c}/items', asked, { signal, timeout: this.#silence(conditions.timeout) })) as Track;
  }

  /**
   * Events as they are written, in that order, from now on or behind `after` (`'0'` for the oldest). `await` opens the
   * stream: what is written after that is in it. A cut connection is made again, without a loss or a repetition.
   */
  stream(options: Conditions & { properties?: readonly string[]; when?: readonly When[] } & FollowOptions = {}): Promise<EventStream<P>> {
    const { after, signal, transport, patience, when, ...conditions } = options;
    const followed = { path: '/collections/{c}/stream', names: this.#path(), query: { ...conditionParameters(conditions), when } } as const;
    return new EventStream<P>(this.http, followed, { after, signal, transport, patience }).open();
  }

  // Changes

  /**
   * Writes events: GeoJSON features, or flat objects, from a list or an (async) iterator of any length. They go in parts of
   * at most 10,000, each stored completely or not at all. A part without an answer is sent again under the same key, so that
   * nothing is stored twice.
   */
  append(events: Iterable<NewEvent<P>> | AsyncIterable<NewEvent<P>>, options: AppendOptions = {}): Promise<Written> {
    return new Appender(this.http, this.name, options).events(events);
  }

  /**
   * Writes a body in a format of the server, such as `text/csv` or `application/vnd.apache.arrow.stream`: all or nothing. A
   * stream or an iterator is sent once: a refusal for load or a lost answer is an error at once, which ends it.
   */
  appendBody(body: Body, type: string, options: AppendOptions = {}): Promise<Written> {
    return new Appender(this.http, this.name, options).body(body, type);
  }

  /** Replaces an event, or creates it. */
  async replace(id: string, event: Omit<Feature<P>, 'id'>, { signal }: RequestOptions = {}): Promise<void> {
    const asked = { path: { ...this.#path(), id }, json: { ...event, id }, headers: { 'content-type': 'application/geo+json' } };
    await this.http.json('put', '/collections/{c}/items/{id}', asked, { signal, repeatable: true });
  }

  /** Changes some properties of an event; null removes one. */
  async update(id: string, properties: Partial<{ [N in keyof P]: P[N] | null }>, { signal }: RequestOptions = {}): Promise<void> {
    const asked = { path: { ...this.#path(), id }, json: { properties }, headers: { 'content-type': 'application/merge-patch+json' } };
    await this.http.json('patch', '/collections/{c}/items/{id}', asked, { signal });
  }

  /** Deletes one event; false if there is none. */
  deleteOne(id: string, { signal }: RequestOptions = {}): Promise<boolean> {
    return found(this.http.json('delete', '/collections/{c}/items/{id}', { path: { ...this.#path(), id } }, { signal }));
  }

  /** Deletes the events that match: at least one condition is needed, `filter: 'TRUE'` for all. */
  async delete({ signal, ...conditions }: Whole): Promise<Deleted> {
    const asked = { path: this.#path(), query: conditionParameters(conditions) };
    return this.http.json('delete', '/collections/{c}/items', asked, { signal, timeout: this.#silence(conditions.timeout) });
  }

  /** Changes settings. A retention that would remove events needs `confirm` with at least their number. */
  async change(settings: Settings, { signal, confirm }: RequestOptions & { confirm?: number } = {}): Promise<void> {
    await this.http.json('patch', '/collections/{c}', { path: this.#path(), query: { confirm }, json: settings }, { signal });
  }

  #path(): { c: string } {
    return { c: this.name };
  }

  #asked(query: Parameters): { path: { c: string }; query: Parameters } {
    return { path: this.#path(), query };
  }

  /** A deadline of the server is no silence. */
  #silence(timeout: number | undefined): number | undefined {
    return timeout === undefined ? undefined : Math.max(this.http.timeout, timeout + 5_000);
  }
}

/**
 * A group under the caller's texts. The server answers under names of its own, such as `percentile(f,50)` for a median, in
 * the requested order.
 */
function named<F extends AggregateFunction>({ window, by, count, ...values }: components['schemas']['Group'], functions: readonly F[]): Group<F> {
  const group: Record<string, unknown> = { ...(window !== undefined && { window }), ...(by !== undefined && { by }), count };
  const names = Object.keys(values).filter((name) => !name.startsWith('error('));
  const others = functions.filter((text) => text !== 'count');
  if (others.length !== names.length) throw new TypeError(`aggregate: expected a list with one function in each text, not ${JSON.stringify(functions)}`);
  for (const [at, text] of others.entries()) {
    const name = names[at] ?? text;
    group[text] = values[name];
    const error = values[`error(${name})`];
    if (error !== undefined) group[`error(${text})`] = error;
  }
  return group as Group<F>;
}

/** The event of a line. */
function feature<P>(line: string): Event<P> {
  try {
    return JSON.parse(line) as Event<P>;
  } catch (cause) {
    throw new BrokenOff('the answer broke off within an event', { cause });
  }
}

/** A parameter of the next page. The page is asked for at the address of this client, whatever host the link names. */
function following(links: readonly { rel: string; href: string }[] | undefined, name: string): string | undefined {
  const next = links?.find((link) => link.rel === 'next');
  return next && (new URL(next.href, 'http://localhost').searchParams.get(name) ?? undefined);
}
