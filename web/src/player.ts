// Moves the chosen time along the histogram, smoothly; over stretches without events if asked.
import { nextEvent, type Bar } from './bars';
import type { Range } from './time';

/** Milliseconds of a sweep over the events in view, at speed 1. */
const SWEEP = 40_000;
/** Milliseconds that the window takes over its own length at least, at speed 1: so no step passes over an event. */
const DWELL = 500;
/** Time between changes of what the page asks, in milliseconds; each frame moves the picture. */
const STEP = 240;

export interface PlaybackState {
  readonly span: Range;
  readonly bars: readonly Bar[];
  readonly when: Range | null;
}

type Played = Pick<PlaybackState, 'span' | 'bars'>;

/** The range that is played: from the first to the last event of the bars, which count what is in view. */
export function reachOf({ span, bars }: Played): Range {
  const held = bars.filter(({ count }) => count > 0);
  const [from, to] = [Math.max(held[0]?.from ?? span[0], span[0]), Math.min(held.at(-1)?.to ?? span[1], span[1])];
  return from < to ? [from, to] : span;
}

/** How far a window moves in a millisecond at speed 1. The pace is that of the events in view: all of time may be far longer. */
export function paceOf([start, end]: Range, played: Played): number {
  const [from, to] = reachOf(played);
  return Math.min((to - from) / SWEEP, (end - start) / DWELL);
}

/** The first window: the chosen one, or a twelfth of what is played. After the last event it begins again. */
export function startOf({ span, bars, when }: PlaybackState): Range {
  const [from, to] = reachOf({ span, bars });
  const chosen = when !== null && when[1] - when[0] < 0.98 * (span[1] - span[0]);
  const length = chosen ? when[1] - when[0] : (to - from) / 12;
  if (chosen && when[1] > from && when[1] < to) return when;
  // A window that would hold all events at once begins before them.
  return length < to - from ? [from, from + length] : [from - length, from];
}

/** The next window: moved by `by`, and on to the next event if it would show none and gaps are skipped. */
export function advance(when: Range, by: number, { span, bars }: Played, skipGaps: boolean): Range {
  const length = when[1] - when[0];
  const [first, last] = reachOf({ span, bars });
  // What is in view may have changed: before its first event there is nothing to wait for.
  let end = Math.max(when[1] + by, first);
  if (skipGaps) {
    // The window may hold its last events until they have faded; then the next event is at its end.
    const next = nextEvent(bars, end - length);
    if (next !== null && next > end) end = next + Math.min(by, length / 50);
  }
  end = Math.min(end, Math.max(last, when[1]));
  return [end - length, end];
}

export class Player {
  private frame: number | undefined;
  private when: Range | null = null;
  private last = 0;
  private told = 0;
  speed = 1;
  skipGaps = false;

  constructor(
    private readonly now: () => PlaybackState | null,
    /** Called at each frame. */
    private readonly shown: (when: Range) => void,
    /** Called several times a second, and at the end. */
    private readonly moved: (when: Range) => void,
    private readonly changed: (playing: boolean) => void,
  ) {}

  get playing(): boolean {
    return this.frame !== undefined;
  }

  toggle(): void {
    if (this.playing) this.stop();
    else this.start();
  }

  private start(): void {
    const state = this.now();
    if (!state) return;
    this.when = startOf(state);
    this.last = this.told = performance.now();
    this.frame = requestAnimationFrame((at) => this.step(at));
    this.changed(true);
    this.moved(this.whole());
  }

  /** The window in whole milliseconds. */
  private whole(): Range {
    const [from, to] = this.when ?? [0, 0];
    return [Math.round(from), Math.round(to)];
  }

  private step(at: number): void {
    const state = this.now();
    if (!this.when || !state) return this.stop();
    // A hidden page is not called for a while: it goes on where it was.
    const passed = Math.max(0, Math.min(at - this.last, 2 * STEP));
    this.last = at;
    this.when = advance(this.when, paceOf(this.when, state) * passed * this.speed, state, this.skipGaps);
    this.shown(this.when);
    if (this.when[1] >= reachOf(state)[1]) return this.stop();
    if (at - this.told >= STEP) {
      this.told = at;
      this.moved(this.whole());
    }
    this.frame = requestAnimationFrame((next) => this.step(next));
  }

  stop(): void {
    if (this.frame === undefined) return;
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    if (this.when) this.moved(this.whole());
    this.when = null;
    this.changed(false);
  }
}
