// Time as the page handles it: milliseconds since 1970 in UTC. A range is half open, [from, to).

export type Range = readonly [from: number, to: number];

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365.2425 * DAY;
const MONTH = YEAR / 12;

/** Window lengths that the histogram may ask for, with their length in milliseconds (calendar ones on average). */
const WINDOWS: readonly (readonly [iso: string, ms: number])[] = [
  ['PT1S', SECOND],
  ['PT5S', 5 * SECOND],
  ['PT15S', 15 * SECOND],
  ['PT30S', 30 * SECOND],
  ['PT1M', MINUTE],
  ['PT5M', 5 * MINUTE],
  ['PT10M', 10 * MINUTE],
  ['PT30M', 30 * MINUTE],
  ['PT1H', HOUR],
  ['PT3H', 3 * HOUR],
  ['PT6H', 6 * HOUR],
  ['PT12H', 12 * HOUR],
  ['P1D', DAY],
  ['P1W', 7 * DAY],
  ['P1M', MONTH],
  ['P3M', 3 * MONTH],
  ['P6M', 6 * MONTH],
  ['P1Y', YEAR],
  ['P5Y', 5 * YEAR],
  ['P10Y', 10 * YEAR],
  ['P100Y', 100 * YEAR],
];

/** The shortest window with which a span has at most `most` windows, and its length in milliseconds. */
export function windowFor(span: number, most: number): { iso: string; ms: number } {
  const found = WINDOWS.find(([, ms]) => span / ms <= most) ?? WINDOWS[WINDOWS.length - 1];
  return { iso: found[0], ms: found[1] };
}

/** RFC 3339 allows only the years 0 to 9999. */
const FIRST = Date.parse('0000-01-01T00:00:00Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');
const text = (ms: number): string => new Date(Math.max(FIRST, Math.min(LAST, Math.round(ms)))).toISOString();

/** An instant as RFC 3339 text, to the second when it has no fraction. Years outside 0 to 9999 are clamped. */
export function isoInstant(ms: number): string {
  return text(ms).replace('.000Z', 'Z');
}

/**
 * A half-open range as an OGC `datetime` interval, which is closed. Its end is the last microsecond before `to`, the resolution
 * of the server. So neighbouring ranges share no event.
 */
export function datetimeParam([from, to]: Range): string {
  return `${isoInstant(from)}/${text(to - 1).slice(0, -1)}999Z`;
}

/** Parses RFC 3339 text, or a date alone, to milliseconds; NaN if it is neither. Microseconds are cut off. */
export function parseInstant(text: string): number {
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text)) return NaN;
  const zoned = text.includes('T') && !/(Z|[+-]\d\d:\d\d)$/.test(text) ? `${text}Z` : text;
  return Date.parse(zoned);
}

const part = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', ...options });
const AS_YEAR = part({ year: 'numeric' });
const AS_MONTH = part({ month: 'short', year: 'numeric' });
const AS_DAY = part({ day: 'numeric', month: 'short', year: 'numeric' });
const AS_DAY_SHORT = part({ day: 'numeric', month: 'short' });
const AS_MONTH_SHORT = part({ month: 'short' });
const AS_MINUTE = part({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const AS_SECOND = part({ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });

/** An instant as text, with the precision that a span of `resolution` milliseconds needs. */
export function formatInstant(ms: number, resolution: number): string {
  if (!Number.isFinite(ms)) return '–';
  if (resolution >= 0.9 * YEAR) return AS_YEAR.format(ms);
  if (resolution >= 27 * DAY) return AS_MONTH.format(ms);
  if (resolution >= DAY) return AS_DAY.format(ms);
  return `${AS_DAY.format(ms)}, ${(resolution >= MINUTE ? AS_MINUTE : AS_SECOND).format(ms)}`;
}

/** A range as text; `resolution` is the length of its windows. The end shown is the last window inside it. */
export function formatRange([from, to]: Range, resolution: number): string {
  const first = formatInstant(from, resolution);
  // Whole days and longer units read best inclusively: "1 May – 3 May", not "– 4 May".
  const last = formatInstant(resolution >= DAY ? to - 1 : to, resolution);
  if (first === last) return first;
  if (resolution < DAY) {
    const [day, clock] = last.split(', ');
    if (first.startsWith(`${day}, `)) return `${first} – ${clock}`;
  }
  return `${first} – ${last}`;
}

/** A date alone has no time of day, and is no instant. */
const DATE_LENGTH = 10;

/** The time of one event in a table, to the second; a date stays as it is. */
export function formatEventTime(text: string): string {
  const ms = parseInstant(text);
  if (Number.isNaN(ms) || text.length === DATE_LENGTH) return text;
  return isoInstant(Math.floor(ms / SECOND) * SECOND).replace('T', ' ').replace('Z', '');
}

/** The same with its zone, which only an instant has. */
export function formatZonedTime(text: string): string {
  const shown = formatEventTime(text);
  return shown === text ? text : `${shown} UTC`;
}

export interface Tick {
  readonly ms: number;
  readonly label: string;
  /** Whether a longer unit begins here (a new day among hours, a new year among months). */
  readonly major: boolean;
}

type Unit = 'second' | 'minute' | 'hour' | 'day' | 'month' | 'year';
const STEPS: readonly (readonly [unit: Unit, count: number, ms: number])[] = [
  ['second', 1, SECOND],
  ['second', 5, 5 * SECOND],
  ['second', 15, 15 * SECOND],
  ['minute', 1, MINUTE],
  ['minute', 5, 5 * MINUTE],
  ['minute', 15, 15 * MINUTE],
  ['hour', 1, HOUR],
  ['hour', 3, 3 * HOUR],
  ['hour', 6, 6 * HOUR],
  ['hour', 12, 12 * HOUR],
  ['day', 1, DAY],
  ['day', 7, 7 * DAY],
  ['month', 1, MONTH],
  ['month', 3, 3 * MONTH],
  ['month', 6, 6 * MONTH],
  ['year', 1, YEAR],
  ['year', 2, 2 * YEAR],
  ['year', 5, 5 * YEAR],
  ['year', 10, 10 * YEAR],
  ['year', 50, 50 * YEAR],
  ['year', 100, 100 * YEAR],
  ['year', 1000, 1000 * YEAR],
];

const utcYear = (year: number, month = 0): number => {
  const date = new Date(0);
  date.setUTCFullYear(year, month, 1);
  return date.getTime();
};

/** At most `most` marks for a time axis, at round instants. */
export function ticks([from, to]: Range, most: number): Tick[] {
  const step = STEPS.find(([, , ms]) => (to - from) / ms <= most) ?? STEPS[STEPS.length - 1];
  const [unit, count, ms] = step;
  const out: Tick[] = [];
  const add = (at: number, label: string, major: boolean): void => {
    if (at >= from && at < to) out.push({ ms: at, label, major });
  };
  if (unit === 'year') {
    for (let y = Math.floor(new Date(from).getUTCFullYear() / count) * count; utcYear(y) < to; y += count) add(utcYear(y), String(y), true);
  } else if (unit === 'month') {
    const start = new Date(from);
    let month = start.getUTCFullYear() * 12 + Math.floor(start.getUTCMonth() / count) * count;
    for (; utcYear(0, month) < to; month += count) {
      const at = utcYear(0, month);
      const major = month % 12 === 0;
      add(at, major ? AS_YEAR.format(at) : AS_MONTH_SHORT.format(at), major);
    }
  } else {
    // Weeks start on a Monday, all other units at midnight.
    const offset = count === 7 ? 4 * DAY : 0;
    for (let at = Math.floor((from - offset) / ms) * ms + offset; at < to; at += ms) {
      const midnight = at % DAY === 0;
      if (unit === 'day') add(at, AS_DAY_SHORT.format(at), new Date(at).getUTCDate() === 1);
      else add(at, midnight ? AS_DAY_SHORT.format(at) : (unit === 'second' ? AS_SECOND : AS_MINUTE).format(at), midnight);
    }
  }
  return out;
}

/** The precision for a range: years, months, days, minutes or seconds. */
export function resolutionOf([from, to]: Range): number {
  const both = (is: (ms: number) => boolean): boolean => is(from) && is(to);
  const midnight = (ms: number): boolean => ms % DAY === 0;
  if (both((ms) => midnight(ms) && new Date(ms).getUTCDate() === 1)) return both((ms) => new Date(ms).getUTCMonth() === 0) ? YEAR : MONTH;
  if (both(midnight) || to - from > 4 * DAY) return DAY;
  return both((ms) => ms % MINUTE === 0) || to - from > 2 * HOUR ? MINUTE : SECOND;
}

/** A length of time, rounded to its largest unit: 3 months. */
export function formatLength(ms: number): string {
  const units: readonly (readonly [string, number])[] = [['year', YEAR], ['month', MONTH], ['day', DAY], ['hour', HOUR], ['minute', MINUTE], ['second', SECOND]];
  const [name, length] = units.find(([, unit]) => ms >= unit * 0.95) ?? ['second', SECOND];
  const count = ms / length;
  const text = count < 9.5 ? String(Math.round(count * 10) / 10) : String(Math.round(count));
  return `${text} ${name}${text === '1' ? '' : 's'}`;
}
