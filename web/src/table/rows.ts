// The rows of a question, of which only some are kept: pages are asked for where the table shows them.
//
// A page is reached by the token that the page before it gave. Far jumps walk there in long pages of one column, and each token on
// the way is kept, so the same way is walked once.
import type { Feature } from 'geojson';
import type { Page } from '../api';

/** Rows of a page. */
export const PAGE = 100;
/** Rows of a page that is only walked over: the most that the server gives. */
const STRIDE = 10_000;
/** Pages and tokens kept. */
const PAGES_MAX = 30;
const TOKENS_MAX = 2000;

export interface Source {
  /** The page after a token (null: the first). `slim` asks for as little of each row as there is. */
  page(token: string | null, limit: number, slim: boolean, signal: AbortSignal): Promise<Page>;
  /** New rows are there. */
  changed(): void;
  failed(error: unknown): void;
  /** Whether an error says that a token is not known any more. */
  expired(error: unknown): boolean;
}

export const tokenOf = (next: string): string | null => new URL(next, 'http://x').searchParams.get('token');

export class Rows {
  private readonly pages = new Map<number, readonly Feature[]>();
  /** By the row that a token leads to. */
  private tokens = new Map<number, string | null>([[0, null]]);
  private wanted: readonly number[] = [];
  private running: AbortController | null = null;
  private closed = false;

  constructor(
    private readonly source: Source,
    /** Rows of the question; what is found out later corrects it. */
    public total: number,
  ) {}

  row(index: number): Feature | undefined {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** Pages that are kept. */
  get kept(): number {
    return this.pages.size;
  }

  /** Asks for the rows from `from` to before `to`. What was asked before and is not in them is given up. */
  want(from: number, to: number): void {
    const pages: number[] = [];
    for (let page = Math.floor(from / PAGE); page * PAGE < Math.min(to, this.total); page++) pages.push(page);
    if (pages.join() === this.wanted.join() && this.running) return;
    this.wanted = pages;
    if (!this.running) void this.run();
    else if (!pages.includes(this.goal)) this.running.abort();
  }

  close(): void {
    this.closed = true;
    this.running?.abort();
  }

  private goal = -1;

  private async run(): Promise<void> {
    while (!this.closed) {
      const page = this.wanted.find((one) => !this.pages.has(one));
      if (page === undefined) break;
      this.goal = page;
      const running = new AbortController();
      this.running = running;
      try {
        await this.load(page, running.signal);
        if (!this.closed) this.source.changed();
      } catch (error) {
        if (running.signal.aborted) continue;
        this.running = null;
        if (!this.closed) this.source.failed(error);
        return;
      }
    }
    this.running = null;
  }

  private nearest(row: number): number {
    let best = 0;
    for (const at of this.tokens.keys()) if (at <= row && at > best) best = at;
    return best;
  }

  private async load(page: number, signal: AbortSignal): Promise<void> {
    const start = page * PAGE;
    for (let tries = 0; ; tries++) {
      try {
        for (let at = this.nearest(start); at < start; at = this.nearest(start)) {
          const step = Math.min(STRIDE, start - at);
          const { features, next } = await this.source.page(this.tokens.get(at) ?? null, step, true, signal);
          signal.throwIfAborted();
          if (!next) return this.end(page, at + features.length);
          this.keep(at + features.length, tokenOf(next));
        }
        const { features, next } = await this.source.page(this.tokens.get(start) ?? null, PAGE, false, signal);
        signal.throwIfAborted();
        if (next && features.length) this.keep(start + features.length, tokenOf(next));
        else this.total = start + features.length;
        this.pages.set(page, features);
        this.forget();
        return;
      } catch (error) {
        if (tries || signal.aborted || !this.source.expired(error)) throw error;
        // Tokens last for minutes: walk again from the start.
        this.tokens = new Map([[0, null]]);
      }
    }
  }

  /** There are fewer rows than was thought. */
  private end(page: number, total: number): void {
    this.total = total;
    this.pages.set(page, []);
  }

  private keep(row: number, token: string | null): void {
    this.tokens.set(row, token);
    if (this.tokens.size <= TOKENS_MAX) return;
    // Every second one goes, except for the first.
    [...this.tokens.keys()].sort((a, b) => a - b).forEach((at, i) => i % 2 && this.tokens.delete(at));
  }

  /** Forgets the pages farthest from what is wanted. */
  private forget(): void {
    const middle = this.wanted.length ? (this.wanted[0] + this.wanted[this.wanted.length - 1]) / 2 : 0;
    while (this.pages.size > PAGES_MAX) {
      const far = [...this.pages.keys()].reduce((a, b) => (Math.abs(b - middle) > Math.abs(a - middle) ? b : a));
      this.pages.delete(far);
    }
  }
}
