// Numbers and colours: where the colours of a ramp change, from what is in view.

/** Values at the five colours of a ramp, ascending. */
export type Stops = readonly [number, number, number, number, number];

/** What the colours of a surface stand for: counts, or averages of a field. */
export type SurfaceScale = { readonly kind: 'counts'; readonly stops: Stops } | AverageScale;

export interface AverageScale {
  readonly kind: 'averages';
  /** One to five, ascending. */
  readonly stops: readonly number[];
  /** Whether events in view lack a value, so that the surface is grey in part. */
  readonly lacking: boolean;
}

/** The value below which a share of the sorted values lies. */
function quantile(sorted: ArrayLike<number>, share: number): number {
  const at = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}

/** A number with two digits, so that a legend gives it exactly. */
export function twoDigits(value: number): number {
  if (!value || !Number.isFinite(value)) return value;
  const step = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 1);
  // A power of ten below 1 has no exact form; its inverse has.
  return step >= 1 ? Math.round(value / step) * step : Math.round(value * Math.round(1 / step)) / Math.round(1 / step);
}

/** How full the view must be to be coloured at all: below this the surface fades out. */
export const FAINT = 0.06;
/** From here on the surface is as opaque as it gets. */
export const SOLID = 0.75;

/** The stops of the counts in view: five quantiles, from one event on. Null where nothing is in view. */
export function countStops(values: ArrayLike<number>): Stops | null {
  const seen = Float32Array.from(Array.from(values).filter((v) => v >= SOLID)).sort();
  if (!seen.length) return Array.from(values).some((v) => v > FAINT) ? [1, 2, 3, 4, 5] : null;
  const stops = [0.02, 0.4, 0.7, 0.9, 0.995].map((share) => quantile(seen, share));
  // The surface is smooth, and a count is a whole number. Counts that are all alike still need a rising scale.
  stops.forEach((stop, i) => (stops[i] = Math.max(Math.round(twoDigits(stop)), i ? stops[i - 1] + 1 : 1)));
  return stops as unknown as Stops;
}

/** The place of a value on the ramp, 0 to 1: even in the logarithm between two stops. */
export function onRamp(stops: Stops, value: number): number {
  if (value <= stops[0]) return 0;
  for (let i = 1; i < 5; i++) if (value <= stops[i]) return (i - 1 + Math.log(value / stops[i - 1]) / Math.log(stops[i] / stops[i - 1])) / 4;
  return 1;
}

/** The shares of values at which the colours of a field change. */
const VALUE_SHARES = [0.02, 0.25, 0.5, 0.75, 0.98];
/** A smaller share of events without a value is not seen as grey. */
const SEEN_SHARE = 0.02;

const rising = (stops: readonly number[]): readonly number[] => stops.filter((stop, i) => i === 0 || stop > stops[i - 1]);
const valueQuantiles = (sorted: ArrayLike<number>): readonly number[] => VALUE_SHARES.map((share) => quantile(sorted, share));

/** The scale of averages in view, given the counts and the shares of values there; null where nothing in view has a value. */
export function averageScale(averages: Float64Array, shares: Float64Array, counts: Float64Array): AverageScale | null {
  const seen = averages.filter((average, i) => counts[i] >= SOLID && Number.isFinite(average)).sort();
  if (!seen.length) return null;
  // What the division leaves after nine digits is no difference.
  const stops = rising(valueQuantiles(seen).map((stop) => Number(stop.toPrecision(9))));
  return { kind: 'averages', stops, lacking: shares.some((share, i) => counts[i] >= SOLID && share < 1 - SEEN_SHARE) };
}

/**
 * The place of a value of a field on the ramp of its stops (`rampOf`), 0 to 1. It is even between two stops, as the events have
 * it.
 */
export function onValueRamp(stops: readonly number[], value: number): number {
  const last = stops.length - 1;
  if (!last) return 0.5;
  if (value <= stops[0]) return 0;
  for (let i = 1; i <= last; i++) if (value <= stops[i]) return (i - 1 + (value - stops[i - 1]) / (stops[i] - stops[i - 1])) / last;
  return 1;
}

/**
 * The stops of a field's values in view: five quantiles, so that few values far above the rest leave colours to the others.
 * As many as differ, at least one; null where there is no value.
 */
export function valueStops(values: readonly number[]): readonly number[] | null {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return null;
  return rising(valueQuantiles(sorted));
}
