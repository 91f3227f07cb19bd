// The results in the order of their arrival: a list that only grows, so that no row moves while it is read.
import { make } from '../dom';
import { formatCount } from '../numbers';
import { row } from './result';
import type { Result } from './run';
import type { Titles } from './words';

/** Rows drawn at once. A button shows more, so that thousands of rows do not slow the page down. */
const ROWS = 300;

export class ResultList {
  private results: readonly Result[] = [];
  private drawn = 0;
  private room = ROWS;
  private chosen = '';
  private firstAfter = '';

  constructor(
    private readonly list: HTMLElement,
    private readonly more: HTMLButtonElement,
    private readonly titles: Titles,
    /** Called with the chosen result. */
    private readonly choose: (result: Result) => void,
  ) {
    list.addEventListener('click', (e) => {
      const found = this.at(e.target);
      // A link is followed, not chosen.
      if (found && !(e.target as Element).closest('a')) this.choose(found);
    });
    list.addEventListener('keydown', (e) => this.key(e));
    more.addEventListener('click', () => {
      const next = this.drawn;
      this.room += ROWS;
      this.draw();
      this.focus(next);
    });
  }

  /** Clears the list. */
  clear(): void {
    this.results = [];
    this.drawn = 0;
    this.room = ROWS;
    this.chosen = '';
    this.list.replaceChildren();
    this.more.hidden = true;
  }

  /** Adds the new results; `results` are all so far. */
  grow(results: readonly Result[], firstAfter: string): void {
    this.results = results;
    this.firstAfter = firstAfter;
    this.draw();
  }

  private draw(): void {
    const until = Math.min(this.results.length, this.room);
    const rows = this.results.slice(this.drawn, until).map((result) => row(result, this.titles, this.firstAfter));
    // Only one row is reached by Tab. The arrow keys move from there.
    if (this.drawn === 0) rows[0]?.setAttribute('tabindex', '0');
    this.list.append(...rows);
    this.drawn = until;
    const rest = this.results.length - until;
    this.more.hidden = rest === 0;
    this.more.textContent = `Show ${formatCount(Math.min(rest, ROWS))} more of ${formatCount(rest)}`;
  }

  private at(target: EventTarget | null): Result | undefined {
    const item = target instanceof Element ? target.closest<HTMLElement>('[data-key]') : null;
    return item ? this.results[Number(item.dataset['key'])] : undefined;
  }

  private item(index: number): HTMLElement | undefined {
    return this.list.children[index] as HTMLElement | undefined;
  }

  private focus(index: number): void {
    const item = this.item(Math.max(0, Math.min(index, this.drawn - 1)));
    if (!item) return;
    for (const other of this.list.querySelectorAll('[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    item.setAttribute('tabindex', '0');
    item.focus();
  }

  private key(e: KeyboardEvent): void {
    const found = this.at(e.target);
    if (!found || e.altKey || e.ctrlKey || e.metaKey) return;
    const here = Number(found.key);
    const moves: Record<string, number> = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: this.drawn - 1 };
    if (e.key in moves) this.focus(moves[e.key]);
    else if (e.key === 'Enter' && !(e.target as Element).closest('a')) this.choose(found);
    else return;
    e.preventDefault();
  }

  /** Marks a result and scrolls to it; null marks none. */
  mark(result: Result | null): void {
    this.item(Number(this.chosen || -1))?.classList.remove('chosen');
    this.chosen = result?.key ?? '';
    if (!result) return;
    if (Number(result.key) >= this.drawn) {
      this.room = Math.ceil((Number(result.key) + 1) / ROWS) * ROWS;
      this.draw();
    }
    const item = this.item(Number(result.key));
    item?.classList.add('chosen');
    item?.scrollIntoView({ block: 'nearest' });
  }
}

/** A line for each source that is missing. */
export function lines(of: readonly (readonly [name: string, why: string])[]): HTMLElement[] {
  return of.map(([name, why]) => {
    const item = make('li');
    item.append(make('b', '', name), ` ${why}`);
    return item;
  });
}
