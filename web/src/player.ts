// Moves the chosen time along the histogram, smoothly; over stretches without events if asked.
import { nextEvent, type Bar } from './bars';
import type { Range } from './time';

/** Milliseconds of a sweep over the range shown, at speed 1. */
const SWEEP = 24_000;
/** Time between changes of what the page asks, in milliseconds; each frame moves the picture. */
const STEP = 240;

export interface PlaybackState {
  readonly span: Range;
  readonly bars: readonly Bar[];
  readonly when: Range | null;
}

/** The next window: moved by `by`, and on to the next event if it would show none and gaps are skipped. */
export function advance(when: Range, by: number, { span, bars }: Pick<PlaybackState, 'span' | 'bars'>, skipGaps: boolean): Range {
  const length = when[1] - when[0];
  let end = when[1] + by;
  if (skipGaps) {
    // The window may hold its last events until they have faded; then the next event is at its end.
    const next = nextEvent(bars, end - length);
    if (next !== null && next > end) end = next + Math.min(by, length / 50);
  }
  end = Math.min(end, span[1]);
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
    const { span } = state;
    const length = state.when ? state.when[1] - state.when[0] : 0;
    // Without a brush a twelfth of the time is swept; from the end it begins again.
    const window = length > 0 && length < 0.98 * (span[1] - span[0]) ? length : (span[1] - span[0]) / 12;
    const from = state.when && length === window && state.when[1] < span[1] ? state.when[0] : span[0];
    this.when = [from, from + window];
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
    const { span } = state;
    // A hidden page is not called for a while: it goes on where it was.
    const passed = Math.max(0, Math.min(at - this.last, 2 * STEP));
    this.last = at;
    this.when = advance(this.when, ((span[1] - span[0]) * passed * this.speed) / SWEEP, state, this.skipGaps);
    this.shown(this.when);
    if (this.when[1] >= span[1]) return this.stop();
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
