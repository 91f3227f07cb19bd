// The state of a running search: sources and results. It uses no document and no clock; the page passes both.
import type { Feature } from 'geojson';
import type { Packet, State } from './packets';

export interface Source {
  readonly name: string;
  /** `asked` until the source has reported its end. */
  readonly state: State | 'asked';
  readonly detail: string;
  readonly results: number;
  /** Milliseconds from the search's arrival to its end. */
  readonly ms: number | null;
}

export interface Result {
  /** Unique within the search. */
  readonly key: string;
  readonly provider: string;
  readonly feature: Feature;
  /** Whether it is the first result. */
  readonly first: boolean;
}

/** How a search ended; `lost` if its last packet never arrived. */
export type Outcome = 'complete' | 'partial' | 'absent' | 'lost';

/** Max results of a source where the question does not say. */
const LIMIT = 100;

export class Run {
  readonly sources = new Map<string, Source>();
  readonly results: Result[] = [];
  outcome: Outcome | null = null;
  /** Whether the user has cancelled it. */
  stopped = false;
  /** Milliseconds from the request to the first and last result and to the end, as measured by the page. */
  firstMs: number | null = null;
  lastMs: number | null = null;
  totalMs: number | null = null;

  /** `asked` has the states of the sources in the server's answer to the question. */
  constructor(
    readonly id: string,
    asked: Readonly<Record<string, { state: string; detail?: string }>>,
    /** Max results of each source. */
    readonly limit = LIMIT,
  ) {
    for (const [name, { state, detail = '' }] of Object.entries(asked))
      this.sources.set(name, { name, state: state === 'skipped' ? 'skipped' : 'asked', detail, results: 0, ms: null });
  }

  /** Adds a packet that arrived `at` milliseconds after the request. Returns the new results. */
  take(packet: Packet, at: number): readonly Result[] {
    switch (packet.kind) {
      case 'results': {
        const before = this.results.length;
        for (const feature of packet.features)
          this.results.push({ key: String(this.results.length), provider: packet.provider, feature, first: this.results.length === 0 });
        const added = this.results.slice(before);
        if (added.length) {
          this.firstMs ??= at;
          this.lastMs = at;
        }
        const source = this.sources.get(packet.provider);
        if (source) this.sources.set(packet.provider, { ...source, results: source.results + added.length });
        return added;
      }
      case 'provider': {
        const { provider: name, state, detail, results, ms } = packet;
        this.sources.set(name, { name, state, detail, results, ms });
        return [];
      }
      case 'complete':
        this.outcome = packet.state;
        this.firstMs ??= packet.ttfp_ms;
        this.lastMs ??= packet.ttlp_ms;
        this.totalMs = at;
        return [];
      default:
        // A newer server may say more.
        return [];
    }
  }

  /** Ends a search whose last packet never arrived. The outcome of open sources is unknown. */
  lose(at: number): void {
    this.outcome = 'lost';
    this.totalMs = at;
  }

  get running(): boolean {
    return this.outcome === null;
  }

  /** The sources with one of these states. */
  with(...states: Source['state'][]): Source[] {
    return [...this.sources.values()].filter((source) => states.includes(source.state));
  }
}
