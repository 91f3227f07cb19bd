import type { Parameters } from './http.js';
import type { Box, Position } from './types.js';

/** An instant: RFC 3339, a date (the whole day in UTC), or a `Date`. */
export type Instant = string | Date;

/** Which events: all conditions must hold. */
export interface Conditions {
  bbox?: Box | undefined;
  /** An instant, a date, or start and end with null for an open end. */
  datetime?: Instant | readonly [Instant | null, Instant | null] | undefined;
  /** CQL2: text, or JSON as an object. */
  filter?: string | Readonly<Record<string, unknown>> | undefined;
  /** Fields, or `id`, that equal a value. */
  equals?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** Longitude and latitude; with `radius`, or for events with `nearest`. Nearest events come first. */
  near?: Position | undefined;
  /** Max distance from `near` in metres (great circle). */
  radius?: number | undefined;
  /** In a collection of mode `latest`: all events, not only the newest of each object. */
  history?: boolean | undefined;
  /** Deadline of the server in milliseconds. */
  timeout?: number | undefined;
  /** `eventual` may miss the newest events: in a cluster, scan servers answer it. */
  consistency?: 'immediate' | 'eventual' | undefined;
}

/** How events are returned. */
export interface Shape {
  /** Only these fields. */
  properties?: readonly string[] | undefined;
  /** Fields to order by, each with `-` before it for descending. */
  sortby?: string | readonly string[] | undefined;
}

const text = (instant: Instant): string => (instant instanceof Date ? instant.toISOString() : instant);

function datetime(when: NonNullable<Conditions['datetime']>): string {
  if (typeof when === 'string' || when instanceof Date) return text(when);
  return when.map((end) => (end === null ? '..' : text(end))).join('/');
}

/** The parameters of a question for anything but events: the server counts and follows no nearest events. */
export function conditionParameters(conditions: Conditions & { nearest?: undefined }): Parameters {
  if (conditions.nearest !== undefined) throw new TypeError('nearest: only items, pages and near take it; all questions take `near` with a radius');
  return parameters(conditions);
}

/** The parameters of conditions. A name that means something to a question cannot be a field in `equals`. */
export function parameters({ bbox, datetime: when, filter, equals, near, ...same }: Conditions & Shape): Parameters {
  const found: Parameters = { ...equals };
  const set = (name: string, value: Parameters[string]): void => {
    if (value === undefined) return;
    if (name in found) throw new TypeError(`equals.${name}: a parameter has this name; say it in the filter`);
    found[name] = value;
  };
  for (const [name, value] of Object.entries(same)) set(name, value);
  set('bbox', numbers('bbox', bbox, 4));
  set('near', numbers('near', near, 2));
  if (when !== undefined) set('datetime', datetime(when));
  if (typeof filter === 'string') set('filter', filter);
  else if (filter !== undefined) {
    set('filter', JSON.stringify(filter));
    set('filter-lang', 'cql2-json');
  }
  return found;
}

function numbers(name: string, values: readonly number[] | undefined, count: number): readonly number[] | undefined {
  if (values !== undefined && (values.length !== count || !values.every(Number.isFinite))) throw new TypeError(`${name}: expected ${count} numbers`);
  return values;
}
