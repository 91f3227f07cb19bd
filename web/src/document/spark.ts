// The bars of a sparkline, in a square of side 1.
import type { Bar } from '../bars';
import type { Range } from '../time';

/** Max bars. */
export const SPARKS = 60;
/** Share of a bar's room that stays free. */
const GAP = 0.15;
/** The height of a bar of one event, however many another has. */
const HEIGHT_MIN = 0.04;

/** Bars of counts over a span of time; windows that begin before it or end after it are cut, by half of them at most. */
export function sparkBars(all: readonly Bar[], [from, to]: Range): { x: number; width: number; height: number }[] {
  const bars = all.filter((bar) => bar.count > 0 && bar.to > from && bar.from <= to);
  if (!bars.length) return [];
  const most = bars.reduce((max, bar) => Math.max(max, bar.count), 0);
  // An event may lie on the edge of its window, which would leave the bar no width.
  const middle = (bar: Bar): number => (bar.from + bar.to) / 2;
  const [first, last] = [Math.min(from, middle(bars[0])), Math.max(to, middle(bars[bars.length - 1]))];
  return bars.map((bar) => {
    const [left, right] = [Math.max(0, (bar.from - first) / (last - first)), Math.min(1, (bar.to - first) / (last - first))];
    return { x: left, width: (right - left) * (1 - GAP), height: Math.max(HEIGHT_MIN, bar.count / most) };
  });
}
