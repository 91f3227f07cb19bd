// What a column seems to be besides what it was taken as, and how `meridian load` takes it: sentences for the user, as those of
// crates/formats/src/infer (notes.rs, numbers.rs, places.rs).
import { fits, fitting, isZoned } from './dates';
import { isCoordinate, isDegrees, isGeoJson, isHexWkb, isPair, isWkt } from './places';
import { areDates, lacksZone } from './times';

export interface Note {
  readonly column: string;
  readonly text: string;
  /** The options of `meridian load` that read it; empty where options alone do not. */
  readonly options: string;
  /** What reads it then. */
  readonly how?: string;
  /** What it was taken as, where it was taken. */
  readonly taken?: string;
}

/** What is known of a column besides its values. */
export interface Context {
  readonly isTime: (text: string) => boolean;
  /** Whether its values are cells of a table. */
  readonly cells: boolean;
  /** Whether no column is the time of the events. */
  readonly wantsTime: boolean;
  /** Whether its times are kept as a text. */
  readonly asText: boolean;
  /** Events without a value. */
  readonly lacking: number;
}

/** Texts that are looked at. */
const SAMPLE = 1000;
/** One in so many may be something else. */
const FEW = 10;
const LENGTH_MAX = 60;

const shorten = (text: string): string => (text.length > LENGTH_MAX ? `${text.slice(0, LENGTH_MAX)}…` : text);
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The first value that passes, where all pass but a few. */
function mostly<T>(values: readonly T[], passes: (value: T) => boolean): T | undefined {
  const failed = values.filter((value) => !passes(value)).length;
  return failed <= Math.floor(values.length / FEW) ? values.find(passes) : undefined;
}

/** The texts that do not pass, counted and shown; empty where all do. */
function but(texts: readonly string[], passes: (text: string) => boolean): string {
  const failed = texts.filter((text) => !passes(text));
  return failed.length ? ` (but not ${failed.length} of ${texts.length} looked at: “${shorten(failed[0])}”)` : '';
}

/** Names of columns that hold times. */
const TIME_NAME = /time|epoch|date|^(dtg|observed_at|occurred_at|created_at|ts|t|when|day)$/i;
const UNITS = [[1, 's'], [1e3, 'ms'], [1e6, 'us']] as const;

/** The unit of numbers since 1970 that lie between 1990 and 2100. */
function epochOf(values: readonly number[]): string | undefined {
  return UNITS.find(([by]) => values.every((value) => value / by > 6.3e8 && value / by < 4.1e9))?.[1];
}

/** Patterns of times that are written as one number, each with the number that stands for a year. */
const DIGITS = [[1e4, '%Y%m%d'], [1e8, '%Y%m%d%H%M'], [1e10, '%Y%m%d%H%M%S']] as const;

/** The words of a name: `runtime` and `candidate` are neither times nor dates. */
const wordsOf = (name: string): readonly string[] => name.replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' ').toLowerCase().split(/[^\p{L}]+/u);

/** Whether a word of a name is that of a date, or also of a time. */
const isNamedAsDate = (name: string, orTime: boolean): boolean =>
  wordsOf(name).some((word) => (orTime ? /^(date|datetime|time|timestamp|day)$/ : /^(date|datetime)$/).test(word));

const takes = (options: string): string => `meridian load takes it with ${options}`;

/** A note on a column of numbers, which are `whole`, and `written` as texts in the file. */
function ofNumbers(column: string, values: readonly number[], whole: boolean, written: boolean, mayBeTime: boolean): Note | null {
  // Options that need something before them, or a schema, do not load the file as it is.
  const note = (text: string, first: string, options: string, alone = true): Note =>
    first || !alone ? { column, text, options: '', how: [first, takes(options)].filter(Boolean).join(', ') } : { column, text, options };
  const named = (options: string, format: string): string => `${options} ${mayBeTime ? `--time ${quoted(column)}` : `and a schema with the format ${format}`}`;
  const unit = TIME_NAME.test(column) ? epochOf(values) : undefined;
  if (unit) return note(`looks like times as numbers since 1970 such as ${values[0]}`, whole ? '' : 'rounded to integers', `--epoch ${unit}`);
  for (const [year, pattern] of DIGITS) {
    // The digits of other numbers are rarely a day of the years 1900 to 2099.
    const example = mostly(values, (value) => value / year >= 1900 && value / year < 2100 && fits(pattern, String(value)));
    if (example === undefined) continue;
    const options = pattern.includes('%H') ? named(`--date-format '${pattern}' --zone UTC`, 'date-time') : named(`--date-format '${pattern}'`, 'date');
    // A pattern reads whole numbers of a table, and texts of every format.
    return note(`looks like dates such as ${example}`, whole && written ? '' : 'written as text', options, mayBeTime);
  }
  // Days of a spreadsheet count from 1899-12-30: these are the years 2000 to 2064.
  const day = isNamedAsDate(column, !whole) ? mostly(values, (value) => value >= 36_526 && value < 60_000) : undefined;
  return day === undefined ? null : note(`looks like days of a spreadsheet such as ${day}`, 'as round((days - 25569) * 86400)', named('--epoch s', 'date-time'));
}

/** A note on texts that look like places. */
function ofPlaces(column: string, texts: readonly string[], cells: boolean): Note | null {
  const like = (what: string, passes: (text: string) => boolean): string => {
    const example = mostly(texts, passes);
    return example === undefined ? '' : `looks like ${what} such as ${shorten(example)}${but(texts, passes)}`;
  };
  const named = isCoordinate(column);
  const pair = like('positions', isPair);
  if (pair) return { column, text: pair, options: '', how: 'two columns of numbers, or WKT, are read as places' };
  const degrees = like('coordinates in degrees', (text) => isDegrees(text, named));
  if (degrees) return { column, text: degrees, options: '', how: 'decimals such as -48.25 are read as places' };
  const wkt = like('geometries in WKT', isWkt);
  if (wkt && cells) return { column, text: wkt, options: `--geometry ${quoted(column)}${texts.every(isWkt) ? '' : ' --invalid skip'}` };
  const wkb = like('geometries in hexadecimal WKB', isHexWkb);
  const text = wkt || wkb || like('geometries in GeoJSON', isGeoJson);
  if (!text) return null;
  if (!cells) return { column, text, options: '', how: 'objects of GeoJSON in JSON are read as places' };
  const names = `-oo AUTODETECT_TYPE=YES -oo GEOM_POSSIBLE_NAMES=${quoted(column)} -oo KEEP_GEOM_COLUMNS=NO`;
  return { column, text, options: '', how: `ogr2ogr ${names} ${wkb ? '-s_srs EPSG:CODE -t_srs' : '-a_srs'} EPSG:4326 converted.fgb FILE makes a file with it as the place` };
}

/** A note on a column of texts. */
function ofTexts(column: string, texts: readonly string[], { isTime, cells, wantsTime }: Context): Note | null {
  const time = mostly(texts, isTime);
  if (time !== undefined) {
    const others = new Set(texts.filter((text) => !isTime(text)));
    const [word] = others;
    // One word for a missing value is named; other misfits are left out.
    const options = others.size === 1 ? `--null=${quoted(word)}` : `--time ${quoted(column)} --invalid skip`;
    return { column, text: `looks like times such as ${time}${but(texts, isTime)}`, options };
  }
  const [first, other] = fitting(texts, Math.floor(texts.length / FEW));
  if (first) {
    const passes = (text: string): boolean => fits(first, text);
    const rest = but(texts, passes);
    const or = other ? `. It may be '${other}' too: the file does not tell which` : '';
    // A time of day needs a zone; what the browser reads by itself is in UTC.
    const zone = /%[HI]/.test(first) && !/%z|UTC|Z$/.test(first) ? ' --zone UTC' : '';
    return { column, text: `looks like times such as ${shorten(mostly(texts, passes) ?? '')}${rest}${or}`, options: `--date-format '${first}'${zone}${rest ? ' --invalid skip' : ''}` };
  }
  return ofPlaces(column, texts, cells) ?? (!wantsTime || texts.some(isTime) ? null : ofNamed(column, texts));
}

/** A time of day alone, such as 25:10:00, 12h05 or 1:05 PM. */
const CLOCK = /^\d{1,2}[:h][\d:.,+\-m]*\D*$/i;
/** Whether a pattern of days may read a text: one with the digits of a day and a year, and no time of day alone. */
const mayBeDay = (text: string): boolean => (text.match(/\d/g) ?? []).length >= 3 && !CLOCK.test(text);

/** A note on texts in no usual form of times, where the name of the column is that of one. */
function ofNamed(column: string, texts: readonly string[]): Note | null {
  const example = mostly(texts, mayBeDay);
  if (example === undefined || !wordsOf(column).some((word) => /^(date|datetime|time|timestamp)$/.test(word))) return null;
  return { column, text: `is named as a time, but texts such as “${shorten(example)}” have no usual form of a day`, options: '', how: 'meridian load --date-format reads other forms' };
}

/** A note on times that are a field, where no column is the time of the events. */
function ofTimes(column: string, texts: readonly string[], events: number, lacking: number): Note {
  const zone = areDates(texts) || texts.every(isZoned) ? '' : ' --zone UTC';
  const without = lacking ? ` (but ${lacking} of ${events} events ${lacking === 1 ? 'has' : 'have'} none)` : '';
  return { column, text: `looks like the time of the events such as ${texts[0]}${texts.some(lacksZone) ? ', read as UTC where it has no time zone' : ''}${without}`, options: `--time ${quoted(column)}${zone}${lacking ? ' --invalid skip' : ''}` };
}

/** A note on times that were taken; null where each has its zone. */
function ofZoneless(column: string, texts: readonly string[]): Note | null {
  const example = texts.find(lacksZone);
  return example === undefined ? null : { column, text: `has times without a time zone such as ${example}`, options: '--zone UTC', how: 'meridian load takes them with --zone UTC, or another zone', taken: 'read as UTC' };
}

/** A note on dates beside the time of the events: a file alone makes no field of days. */
function ofDates(column: string, texts: readonly string[]): Note {
  const text = `has dates such as ${texts.find((one) => one.length === 10) ?? texts[0]}`;
  const taken = 'kept as text';
  return areDates(texts) ? { column, text, options: '', how: 'a schema with the format date keeps them as days', taken } : { column, text, options: '--zone UTC', taken };
}

/** The note on a column of fractions and of whole numbers such as `example`, which would be rounded beside them. */
export const ofRounded = (column: string, example: string): Note =>
  ({ column, text: `has fractions beside integers of too many digits such as ${example}`, options: '', how: 'a schema with numbers in this column rounds them', taken: 'kept as text' });

/** The note on a column that was taken as texts, as numbers or as times; null where there is nothing to say. */
export function noteOf(column: string, kind: string, values: readonly unknown[], context: Context): Note | null {
  const sample = values.slice(0, SAMPLE);
  if (!sample.length) return null;
  if (kind === 'text') return ofTexts(column, sample.filter((value) => typeof value === 'string').map((text) => text.trim()), context);
  if (kind === 'time' && context.wantsTime) return ofTimes(column, sample as string[], values.length + context.lacking, context.lacking);
  if (kind === 'time') return context.asText ? ofDates(column, values as string[]) : ofZoneless(column, values as string[]);
  if (kind !== 'int' && kind !== 'float') return null;
  return ofNumbers(column, sample.map(Number), kind === 'int', typeof sample[0] === 'string', context.wantsTime && !context.lacking);
}

/** What was made of a column, in a sentence. */
export const sayNote = ({ column, text, options, how, taken = 'not taken' }: Note): string => `Column ${column} ${text}. It was ${taken}: ${how ?? takes(options)}.`;

/** An option with its value, as notes have them. */
const OPTION = /(--[\w-]+)(?:[ =](?:'(?:[^']|'\\'')*'|[^-\s']\S*))?/g;
/** Options of which a command has one. Only `--null` may be repeated. */
const ONCE_AS: Record<string, string | undefined> = { '--epoch': '--date-format' };

/** The command that loads a file with what the notes say, the first ones first. */
export function commandOf(notes: readonly Note[], collection: string, file: string, origin: string): string {
  const given = new Map<string, string>();
  for (const { options } of notes) {
    const own = Array.from(options.matchAll(OPTION), ([text, name]) => [ONCE_AS[name] ?? (name === '--null' ? text : name), text] as const);
    // An option holds for the whole file: a column that needs it with another value is left out.
    if (own.every(([name, text]) => (given.get(name) ?? text) === text)) for (const [name, text] of own) given.set(name, text);
  }
  return ['meridian load', collection, /^[\w.-]+$/.test(file) ? file : quoted(file), `--url ${origin}`, ...given.values()].join(' ');
}
