import type { Frame } from './frames.js';
import type { Http, RequestOptions } from './http.js';
import { Problem } from './problem.js';
import { Resumed, type FollowOptions } from './resumed.js';
import { document } from './stream.js';
import type { Feature, Properties, SavedSearchStatus, SearchStatus, When } from './types.js';

/** The outcome of one source. */
export type ProviderState = 'complete' | 'skipped' | 'timeout' | 'error' | 'refused';
/** The outcome of a search: every source is complete, some are, or none is and there are no results. */
export type Completeness = 'complete' | 'partial' | 'absent';

interface Numbered {
  search: string;
  /** From 0, without a gap. */
  seq: number;
}
export interface ResultsPacket extends Numbered {
  kind: 'results';
  provider: string;
  features: Feature[];
  when?: When;
}
/** How a source ended. `more` where it has results that it cannot give. */
export interface ProviderPacket extends Numbered {
  kind: 'provider';
  provider: string;
  state: ProviderState;
  detail: string;
  results: number;
  ms: number;
  more?: boolean;
}
/** Results could not be kept. */
export interface KeepPacket extends Numbered {
  kind: 'keep';
  provider: string;
  state: 'error';
  detail: string;
}
/** The last packet of a search. */
export interface CompletePacket extends Numbered {
  kind: 'complete';
  state: Completeness;
  packets: number;
  result_packets: number;
  providers: Record<string, ProviderState>;
  ttfp_ms: number | null;
  ttlp_ms: number | null;
  more?: string[];
  kept?: number;
}
/** A packet of a search: docs/searches.md. */
export type Packet = ResultsPacket | ProviderPacket | KeepPacket | CompletePacket;

/** A result: a GeoJSON feature, with its source and, for moving objects, its transition. */
export type Result = Feature<Properties> & { provider: string; when?: When };
/** What a source has said of its own end. */
export type ProviderOutcome = Omit<ProviderPacket, 'search' | 'seq' | 'kind' | 'provider'>;

/** The packets of a search or a saved search. */
export class Packets extends Resumed<Packet> {
  protected override take(frame: Frame): Packet | undefined {
    if (frame.event === 'end') {
      // Access has ended; the next connection is refused with the reason.
      this.disconnect();
      return undefined;
    }
    if (!frame.data) return undefined;
    const packet = document<Packet>(frame) as Packet;
    this.position = String(packet.seq);
    if (packet.kind === 'complete') this.finish();
    return packet;
  }
}

/** The results of packets, one by one. */
export class Results implements AsyncIterableIterator<Result> {
  readonly #waiting: Result[] = [];

  constructor(protected readonly source: Packets) {}

  async next(): Promise<IteratorResult<Result>> {
    while (this.#waiting.length === 0) {
      const taken = await this.source.next();
      if (taken.done) return { done: true, value: undefined };
      const packet = taken.value;
      if (packet.kind === 'results') {
        const said = { provider: packet.provider, ...(packet.when ? { when: packet.when } : {}) };
        this.#waiting.push(...packet.features.map((feature) => ({ ...feature, ...said })));
      }
      this.noted(packet);
    }
    return { done: false, value: this.#waiting.shift() as Result };
  }

  async return(): Promise<IteratorResult<Result>> {
    this.source.close();
    await this.left();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Learns what a packet says besides results. */
  protected noted(_packet: Packet): void {}

  /** The loop was left early. */
  protected async left(): Promise<void> {}
}

/** A search that runs. Its iterator gives results as they are found; leaving the loop early ends it on the server. */
export class Search extends Results {
  readonly id: string;
  /** Sources that have ended, by name: state, number of results, and why. */
  readonly providers: Record<string, ProviderOutcome> = {};
  /** The names of all sources that are asked. */
  readonly asked: readonly string[];
  readonly #http: Http;
  #state: 'running' | Completeness = 'running';
  #last: CompletePacket | undefined;

  constructor(http: Http, status: SearchStatus, options: FollowOptions) {
    super(new Packets(http, { path: '/searches/{id}/packets', names: { id: status.search } }, { patience: 10_000, ...options }));
    this.#http = http;
    this.id = status.search;
    this.asked = Object.keys(status.providers);
  }

  /** `running`, then what the search has come to. */
  get state(): 'running' | Completeness {
    return this.#state;
  }

  /** The last packet, once it has come. */
  get last(): CompletePacket | undefined {
    return this.#last;
  }

  /** Its packets in place of its results: use one of the two. */
  async *packets(): AsyncGenerator<Packet, void> {
    try {
      for await (const packet of this.source) {
        this.noted(packet);
        yield packet;
      }
    } finally {
      await this.left();
    }
  }

  protected override noted(packet: Packet): void {
    if (packet.kind === 'provider') {
      const { search: _search, seq: _seq, kind: _kind, provider, ...outcome } = packet;
      this.providers[provider] = outcome;
    } else if (packet.kind === 'complete') {
      this.#state = packet.state;
      this.#last = packet;
    }
  }

  protected override async left(): Promise<void> {
    if (this.#state !== 'running') return;
    // Without a reader it ends by itself too, a little later.
    await this.#http.json('delete', '/searches/{id}', { path: { id: this.id } }, { repeatable: true }).catch(() => undefined);
  }
}

/** A question that the server keeps, and answers with every new event. Made by `Database.saveSearch`. */
export class SavedSearch {
  constructor(
    private readonly http: Http,
    readonly id: string,
  ) {}

  /** Its question, its packets sent and lost, and the state of its webhook and polls. */
  status(options: RequestOptions = {}): Promise<SavedSearchStatus> {
    return this.http.json('get', '/saved-searches/{id}', { path: { id: this.id } }, options);
  }

  /** Its packets, from the oldest that is kept or behind `after`. */
  packets(options: FollowOptions = {}): Packets {
    return new Packets(this.http, { path: '/saved-searches/{id}/packets', names: { id: this.id } }, options);
  }

  /** Its results as they come. */
  results(options: FollowOptions = {}): Results {
    return new Results(this.packets(options));
  }

  /** Deletes it; false if there is none. */
  delete(options: RequestOptions = {}): Promise<boolean> {
    return found(this.http.json('delete', '/saved-searches/{id}', { path: { id: this.id } }, { ...options, repeatable: true }));
  }
}

/** Whether there was what a request asked for: a 404 is false. */
export async function found(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return false;
    throw error;
  }
}
