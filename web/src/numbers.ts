// Numbers for people.

const WHOLE = new Intl.NumberFormat('en');
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

const LARGE = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 4 });

/** A count in full: 1,234,567. */
export const formatCount = (value: number): string => WHOLE.format(value);

/** A short count: 1.2M. */
export const formatShort = (value: number): string => (Math.abs(value) < 10_000 ? WHOLE.format(Math.round(value * 100) / 100) : SHORT.format(value));

/** A size in bytes: 45 kB, 12.3 MB. */
export const formatBytes = (bytes: number): string => (bytes < 1e6 ? `${WHOLE.format(Math.ceil(bytes / 1e3))} kB` : `${WHOLE.format(Math.round(bytes / 1e5) / 10)} MB`);

/** A measured value with about four significant digits. */
export function formatValue(value: unknown): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6) return LARGE.format(value);
  if (size < 1e-3) return value.toExponential(2);
  return new Intl.NumberFormat('en', { maximumFractionDigits: size >= 1000 ? (size >= 100_000 ? 0 : 1) : size >= 10 ? 2 : 3 }).format(value);
}

/** A duration: 240 ms, 3.2 s, 1 min 5 s. */
export function formatWait(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A number of a legend or an axis, with three digits that matter: 19.7, 418, 1.23M. */
export function formatMark(value: number): string {
  const size = Math.abs(value);
  if (size >= 10_000) return new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 }).format(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return new Intl.NumberFormat('en', { maximumSignificantDigits: size >= 1000 ? 4 : 3 }).format(value + 0);
}
