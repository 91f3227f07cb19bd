// What a column seems to be besides what it was taken as, and how `meridian load` takes it: sentences for the user, as those of
// crates/formats/src/infer/notes.rs.
import { fits, fitting } from './dates';

export interface Note {
  readonly column: string;
  readonly text: string;
  /** The options of `meridian load` that read it; empty where there is none. */
  readonly options: string;
}

/** Texts that are looked at. */
const SAMPLE = 1000;
/** One in so many may be something else. */
const FEW = 10;
const LENGTH_MAX = 60;

const shorten = (text: string): string => (text.length > LENGTH_MAX ? `${text.slice(0, LENGTH_MAX)}…` : text);
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The first text that passes, where all pass but a few. */
function mostly(texts: readonly string[], passes: (text: string) => boolean): string | undefined {
  const failed = texts.filter((text) => !passes(text)).length;
  return failed <= Math.floor(texts.length / FEW) ? texts.find(passes) : undefined;
}

/** The texts that do not pass, counted and shown; empty where all do. */
function but(texts: readonly string[], passes: (text: string) => boolean): string {
  const failed = texts.filter((text) => !passes(text));
  return failed.length ? ` (but not ${failed.length} of ${texts.length} looked at: “${shorten(failed[0])}”)` : '';
}

/** Whether a text is two coordinates with decimals. */
export function isPair(text: string): boolean {
  const bare = text.replace(/^[([]+|[)\]]+$/g, '');
  const parts = bare.split(/[,;]|(?<=\d) /).filter((part) => part.trim());
  return parts.length === 2 && parts.every((part) => part.includes('.') && Math.abs(Number(part)) <= 180);
}

/** Names of columns that hold times. */
const TIME_NAME = /time|epoch|date|^(dtg|observed_at|occurred_at|created_at|ts|t|when|day)$/i;
const UNITS = [[1, 's'], [1e3, 'ms'], [1e6, 'us']] as const;

/** The unit of numbers since 1970 that lie between 1990 and 2100. */
function epochOf(values: readonly number[]): string | undefined {
  return UNITS.find(([by]) => values.every((value) => value / by > 6.3e8 && value / by < 4.1e9))?.[1];
}

/** A note on a column of texts. */
function ofTexts(column: string, texts: readonly string[], isTime: (text: string) => boolean): Note | null {
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
    const zone = /%[HI]/.test(first) && !/(%z|Z)$/.test(first) ? ' --zone UTC' : '';
    return { column, text: `looks like times such as ${shorten(mostly(texts, passes) ?? '')}${rest}${or}`, options: `--date-format '${first}'${zone}${rest ? ' --invalid skip' : ''}` };
  }
  const pair = mostly(texts, isPair);
  return pair === undefined ? null : { column, text: `looks like positions such as ${shorten(pair)}${but(texts, isPair)}`, options: '' };
}

/** The note on a column that was taken as texts or as integers; null where there is nothing to say. */
export function noteOf(column: string, kind: string, values: readonly unknown[], isTime: (text: string) => boolean): Note | null {
  const sample = values.slice(0, SAMPLE);
  if (!sample.length) return null;
  if (kind === 'text') return ofTexts(column, sample.filter((value) => typeof value === 'string').map((text) => text.trim()), isTime);
  const unit = kind === 'int' && TIME_NAME.test(column) ? epochOf(sample.map(Number)) : undefined;
  return unit ? { column, text: `looks like times as numbers since 1970 such as ${String(sample[0])}`, options: `--epoch ${unit}` } : null;
}

/** What was made of a column, in a sentence. */
export const sayNote = ({ column, text, options }: Note): string =>
  `Column ${column} ${text}. It was not taken: ${options ? `meridian load takes it with ${options}` : 'two columns of numbers, or WKT, are read as places'}.`;

/** The command that loads a file with what the notes say. */
export function commandOf(notes: readonly Note[], collection: string, file: string, origin: string): string {
  const options = new Set(notes.map((note) => note.options).filter(Boolean));
  return ['meridian load', collection, /^[\w.-]+$/.test(file) ? file : quoted(file), `--url ${origin}`, ...options].join(' ');
}
