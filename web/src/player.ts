// Moves the chosen time along the histogram.
import type { Range } from './time';

/** Milliseconds of a sweep over the range shown, at speed 1. */
const SWEEP = 24_000;
/** Time between steps. */
const STEP = 120;

export class Player {
  private timer: ReturnType<typeof setInterval> | undefined;
  speed = 1;

  constructor(
    private readonly now: () => { span: Range; when: Range | null } | null,
    private readonly moved: (when: Range) => void,
    private readonly changed: (playing: boolean) => void,
  ) {}

  get playing(): boolean {
    return this.timer !== undefined;
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
    this.moved([Math.round(from), Math.round(from + window)]);
    let last = performance.now();
    this.timer = setInterval(() => {
      const at = performance.now();
      // A hidden page is not called for a while: it goes on where it was.
      const passed = Math.min(at - last, 4 * STEP);
      last = at;
      this.step(passed);
    }, STEP);
    this.changed(true);
  }

  private step(passed: number): void {
    const state = this.now();
    if (!state?.when) return this.stop();
    const { span, when } = state;
    const by = ((span[1] - span[0]) * passed * this.speed) / SWEEP;
    const length = when[1] - when[0];
    const from = Math.min(when[0] + by, span[1] - length);
    this.moved([Math.round(from), Math.round(from + length)]);
    if (from >= span[1] - length - 0.5) this.stop();
  }

  stop(): void {
    if (!this.playing) return;
    clearInterval(this.timer);
    this.timer = undefined;
    this.changed(false);
  }
}
