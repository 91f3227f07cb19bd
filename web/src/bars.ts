// Converts the answer of `aggregate` into the bars and the line of the histogram.
import type { Measure } from './hash';
import type { Range } from './time';

/** One group of an aggregate answer. */
export interface Group {
  readonly window?: string;
  readonly count: number;
  readonly [name: string]: unknown;
}

export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** The measure of the chosen field; null where no event has a value. */
  readonly value: number | null;
}

/** Bars in time order. Groups without a readable window are left out. */
export function barsOf(groups: readonly Group[], measure: Measure, field: string): Bar[] {
  const name = `${measure}(${field})`;
  const bars: Bar[] = [];
  for (const group of groups) {
    const [from, to] = (group.window ?? '').split('/').map((text) => Date.parse(text));
    if (!(from < to)) continue;
    const value = group[name];
    bars.push({ from, to, count: group.count, value: typeof value === 'number' && Number.isFinite(value) ? value : null });
  }
  return bars.sort((a, b) => a.from - b.from);
}

/** The bar at an instant, by binary search. */
export function barAt(bars: readonly Bar[], ms: number): Bar | null {
  let low = 0;
  let high = bars.length - 1;
  while (low <= high) {
    const mid = (low + high) >> 1;
    if (ms < bars[mid].from) high = mid - 1;
    else if (ms >= bars[mid].to) low = mid + 1;
    else return bars[mid];
  }
  return null;
}

/** Events in the bars that begin inside a range. */
export function countIn(bars: readonly Bar[], [from, to]: Range): number {
  return bars.reduce((sum, bar) => sum + (bar.from >= from && bar.from < to ? bar.count : 0), 0);
}

/** The min and max of the line; null where it has no value. */
export function valueExtent(bars: readonly Bar[]): readonly [low: number, high: number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const { value } of bars) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > high ? null : [low, high];
}

/**
 * The line of values in pieces: it goes from one window to the next, and never across windows without a value. A piece of one
 * bar is a value alone. `unit` is the length of a window.
 */
export function pieces(bars: readonly Bar[], unit: number): Bar[][] {
  const out: Bar[][] = [];
  let last: Bar | null = null;
  for (const bar of bars) {
    if (bar.value === null) continue;
    if (last && bar.from - last.to < unit * 0.5) out[out.length - 1].push(bar);
    else out.push([bar]);
    last = bar;
  }
  return out;
}

/** The first instant at or after `ms` at which there may be an event; null where none follows. */
export function nextEvent(bars: readonly Bar[], ms: number): number | null {
  const bar = bars.find(({ to, count }) => count > 0 && to > ms);
  return bar ? Math.max(ms, bar.from) : null;
}

/** Sizes of a histogram drawing, in CSS pixels. */
export interface Frame {
  readonly left: number;
  readonly right: number;
  readonly span: Range;
}

/** The position of an instant on the axis. */
export const toX = ({ left, right, span }: Frame, ms: number): number => left + ((ms - span[0]) / (span[1] - span[0])) * (right - left);

/** The instant at a position on the axis, within the span. */
export function toTime({ left, right, span }: Frame, x: number): number {
  const share = Math.max(0, Math.min(1, (x - left) / (right - left)));
  return span[0] + share * (span[1] - span[0]);
}

/**
 * Moves an instant to the nearest edge of a window, so that a brushed count is a sum of bars. Edges repeat with the
 * `unit` from `origin`, an edge of some bar; calendar windows, which do not repeat, snap to the edges of the bars.
 */
export function snap(ms: number, bars: readonly Bar[], unit: number): number {
  if (!bars.length) return Math.round(ms / unit) * unit;
  const inside = barAt(bars, ms);
  if (inside) return ms - inside.from < inside.to - ms ? inside.from : inside.to;
  let best = NaN;
  for (const bar of bars) for (const edge of [bar.from, bar.to]) if (!(Math.abs(edge - ms) >= Math.abs(best - ms))) best = edge;
  const regular = unit < 27 * 86_400_000;
  const grid = regular ? bars[0].from + Math.round((ms - bars[0].from) / unit) * unit : ms;
  return regular || Math.abs(best - ms) > unit ? grid : best;
}
