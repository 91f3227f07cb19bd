// Numbers and colours: where the colours of a ramp change, from what is in view.

/** Values at the five colours of a ramp, ascending. */
export type Stops = readonly [number, number, number, number, number];

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
  stops[0] = Math.max(1, twoDigits(stops[0]));
  // Counts that are all alike still need a rising scale.
  for (let i = 1; i < 5; i++) stops[i] = Math.max(twoDigits(stops[i]), Math.floor(stops[i - 1]) + 1);
  return stops as unknown as Stops;
}

/** The place of a value on the ramp, 0 to 1: even in the logarithm between two stops. */
export function onRamp(stops: Stops, value: number): number {
  if (value <= stops[0]) return 0;
  for (let i = 1; i < 5; i++) if (value <= stops[i]) return (i - 1 + Math.log(value / stops[i - 1]) / Math.log(stops[i] / stops[i - 1])) / 4;
  return 1;
}

/**
 * The stops of a field's values in view: five quantiles, so that few values far above the rest leave colours to the others.
 * As many as differ, at least one; null where there is no value.
 */
export function valueStops(values: readonly number[]): readonly number[] | null {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const stops = [0.02, 0.25, 0.5, 0.75, 0.98].map((share) => quantile(sorted, share));
  return stops.filter((stop, i) => i === 0 || stop > stops[i - 1]);
}
