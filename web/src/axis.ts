// Marks of an axis at round numbers.

/** A step of 1, 2 or 5 times a power of ten that cuts a length into at most `most` parts. */
function roundStep(length: number, most: number): number {
  const power = 10 ** Math.floor(Math.log10(length / most));
  return ([1, 2, 5].find((n) => length / (n * power) <= most * (1 + 1e-12)) ?? 10) * power;
}

/** Marks above 0 for counts up to `max`, all of them whole numbers; the last is at or above `max`. */
export function countMarks(max: number, most = 3): number[] {
  const step = Math.max(1, Math.round(roundStep(Math.max(1, max), most)));
  return Array.from({ length: Math.max(1, Math.ceil(max / step - 1e-9)) }, (_, i) => (i + 1) * step);
}

/** Marks for measured values from `low` to `high`; the first is at or below `low`, the last at or above `high`. */
export function valueMarks(low: number, high: number, most = 3): number[] {
  const length = high - low || Math.abs(high) / 5 || 1;
  const step = roundStep(length, most);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toFixed(digits)));
}
