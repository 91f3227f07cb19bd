// Which columns are the time of events, as `meridian load` chooses them (crates/formats/src/roles.rs and infer/guess.rs).
import { isDay, isZoned } from './dates';

/** Customary names of the time of an event, the likeliest first. */
const TIME: readonly string[] = [
  'time', 'timestamp', 'datetime', 'date_time', 'dtg', 'date', 'event_time', 'eventtime', 'event_date', 'observed_at', 'occurred_at', 'created_at', 'basedatetime',
  'ts', 't', 'when', 'day',
];
/** Customary names of the ends of an interval. */
const INTERVALS: readonly (readonly string[])[] = [
  ['start', 'end'], ['start_time', 'end_time'], ['time_start', 'time_end'], ['starttime', 'endtime'], ['begin', 'end'], ['begin_time', 'end_time'],
  ['valid_from', 'valid_to'], ['start_date', 'end_date'],
];

/** A time as crates/model/src/time.rs reads it: RFC 3339, and what ISO 8601 leaves out of it or writes without colons. */
const ISO = new RegExp(
  '^(\\d{4})-(\\d\\d)-(\\d\\d)' +
    '(?:[Tt ](?:[01]\\d|2[0-3])(?::[0-5]\\d(?::(?:[0-5]\\d|60)(?:[.,]\\d{1,9})?)?|[0-5]\\d(?:(?:[0-5]\\d|60)(?:[.,]\\d{1,9})?)?)?' +
    '(?:[Zz]|[+-](?:[01]\\d|2[0-3])(?::[0-5]\\d|[0-5]\\d)?)?)?$',
);

/** Whether a text is a time, of a day that the calendar has. */
export function isTime(text: string): boolean {
  const [, year, month, day] = ISO.exec(text) ?? [];
  return year !== undefined && isDay(Number(year), Number(month), Number(day));
}

/** A column whose values are all times. */
export interface TimeColumn {
  readonly name: string;
  readonly values: readonly string[];
}

/** Whether its values are all dates, without a time of day. */
export const areDates = (values: readonly string[]): boolean => values.every((value) => value.length === 10);

/** Whether a time of day has no zone. */
export const lacksZone = (value: string): boolean => value.length > 10 && !isZoned(value);

/** Whether a file is read as with `meridian load --zone UTC`, which takes its dates as times too: some time of day has no zone. */
export const readsInUtc = (columns: readonly TimeColumn[]): boolean => columns.some(({ values }) => values.some(lacksZone));

/** Whether a column is one of instants also where it is not the time of the events. */
export const areInstants = (values: readonly string[], inUtc: boolean): boolean => inUtc || values.every(isZoned);

/** A time as the server takes it. A date stays one, unless the file is read in UTC. A leap second is the second before, which browsers can show. */
export function timeOf(value: string, inUtc: boolean): string {
  if (value.length === 10) return inUtc ? `${value}T00:00:00Z` : value;
  return `${value.replace(/[t ]/, 'T').replace(/(T\d\d:?\d\d:?)60/, (_, minute: string) => `${minute}59`)}${isZoned(value) ? '' : 'Z'}`;
}

/** The names of one instant, or of start and end; empty where no column is surely the time. An instant has a value in each event. */
export function timesOf(columns: readonly TimeColumn[], events: number): readonly string[] {
  const named = (among: readonly TimeColumn[], wanted: string): TimeColumn[] => among.filter(({ name }) => name.toLowerCase() === wanted).slice(0, 1);
  const whole = columns.filter(({ values }) => values.length === events);
  const customary = (among: readonly TimeColumn[]): TimeColumn | undefined => TIME.flatMap((name) => named(among, name))[0];
  const likeliest = customary(whole);
  // The loader takes times without a zone by option alone, so that one with zones goes before.
  const zoned = likeliest?.values.some(lacksZone) ? customary(whole.filter(({ values }) => values.every(isZoned))) : undefined;
  if (likeliest) return [(zoned ?? likeliest).name];
  // Without a customary name: the only column that is certainly a time.
  const sure = columns.filter(({ values }) => values.every(isZoned));
  if (sure.length === 1 && whole.includes(sure[0])) return [sure[0].name];
  const inUtc = readsInUtc(columns);
  const timed = columns.filter(({ values }) => areInstants(values, inUtc));
  const pairs = INTERVALS.map((ends) => ends.flatMap((name) => named(timed, name)));
  return (pairs.find((pair) => pair.length === 2) ?? []).map(({ name }) => name);
}
