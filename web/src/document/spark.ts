// The bars of a sparkline, in a square of side 1.
import type { Bar } from '../bars';
import type { Range } from '../time';

/** Max bars. */
export const SPARKS = 60;
/** Share of a bar's room that stays free. */
const GAP = 0.15;
/** The height of a bar of one event, however many another has. */
const HEIGHT_MIN = 0.04;

/** Bars of counts over a span of time; windows that begin before it or end after it are cut. */
export function sparkBars(bars: readonly Bar[], [from, to]: Range): { x: number; width: number; height: number }[] {
  const most = bars.reduce((max, bar) => Math.max(max, bar.count), 0);
  return bars
    .filter((bar) => bar.count > 0 && bar.to > from && bar.from <= to)
    .map((bar) => {
      const [left, right] = [Math.max(0, (bar.from - from) / (to - from)), Math.min(1, (bar.to - from) / (to - from))];
      return { x: left, width: (right - left) * (1 - GAP), height: Math.max(HEIGHT_MIN, bar.count / most) };
    });
}
