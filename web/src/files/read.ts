// A file that was dropped on the map, read in the browser: GeoJSON, GeoJSON text sequence, NDJSON, CSV.
import type { Feature, Geometry } from 'geojson';
import type { FieldKind } from '../api';
import { readCsv } from '../csv';
import { positionsOf } from '../frame';
import type { LngLat } from '../shapes';
import { noteOf, ofRounded, type Note } from './notes';
import { isWkt } from './places';
import { areInstants, isTime, readsInUtc, timeOf, timesOf } from './times';
import { isGeometry, parseWkt } from './wkt';

export interface FileField {
  readonly name: string;
  readonly kind: FieldKind;
}

/** Where the events are in a file. */
export interface Origin {
  readonly unit: 'line' | 'event';
  /** The line on which each event begins, or its number among the events of the file, from 1. */
  readonly numbers: readonly number[];
}

export interface FileContent {
  readonly features: readonly Feature[];
  readonly origin: Origin;
  /** The column of the place, or else `geometry`. */
  readonly place: string;
  readonly fields: readonly FileField[];
  /** Names of the fields that are the time: one instant, or start and end; empty where none is. */
  readonly times: readonly string[];
  /** Rows without a place, which the map cannot show. */
  readonly placeless: number;
  /** The first place of these rows that cannot be read, with its line; empty if they have none. */
  readonly misplaced: string;
  /** The same where the places are objects of JSON, which `meridian load` refuses; empty where none is wrong. */
  readonly misshapen: string;
  /** Columns that look like times or places and were not taken, and times that were read as UTC. */
  readonly notes: readonly Note[];
  /** The first whole number that is another one here, or a text in a column of numbers, as the file has it; empty where all are exact. */
  readonly inexact: string;
  /** The ids, of which each event has its own: the column that has them, or the member `id` of GeoJSON. Null where one is lacking or occurs twice. */
  readonly id: { readonly name: string; readonly member: boolean } | null;
  /** The first value of JSON that its field cannot keep, after the name of the field; empty where there is none. */
  readonly unkept: string;
}

/** Max size of a file in bytes, and max events: the browser keeps all of them. */
export const BYTES_MAX = 100_000_000;
export const EVENTS_MAX = 300_000;

const LON = /^(lon|lng|long|longitude|x|lon_?deg|decimallongitude)$/i;
const LAT = /^(lat|latitude|y|lat_?deg|decimallatitude)$/i;
/** Customary names of shapes, the likeliest first, and of ids: those of crates/formats/src/roles.rs. */
const SHAPES = ['geometry', 'geom', 'wkt', 'the_geom', 'shape', 'geo', 'wkb_geometry'];
const ID = /^(id|fid|@id)$/i;

type Row = Record<string, unknown>;

/** An object of these members alone: a name such as `__proto__` or `constructor` is one like others. */
export const recordOf = <T>(members: Iterable<readonly [string, T]>): Record<string, T> => Object.setPrototypeOf(Object.fromEntries(members), null) as Record<string, T>;

/** What a text says of its events besides their values. */
interface Form {
  /** Whether values are cells of a table. */
  readonly cells: boolean;
  /** The fields of JSON in which some whole number has a fraction or an exponent. */
  readonly floats: ReadonlySet<string>;
  readonly origin: Origin;
}

/** A cell without the blanks around it. */
const bare = (value: unknown): unknown => (typeof value === 'string' ? value.replace(/^[ \t]+|[ \t]+$/g, '') : value);

/** Whether a value is none. A text of JSON may be empty. */
const isNone = (value: unknown, cells: boolean): boolean => value === null || value === undefined || (cells && bare(value) === '');

/** Max degrees of a longitude and of a latitude. */
const EDGES = [180, 90];

/** A position that lies nowhere on Earth: the server would refuse it. */
const beyondOf = (geometry: Geometry): LngLat | undefined => positionsOf(geometry).find((position) => !EDGES.every((edge, i) => Math.abs(position[i]) <= edge));

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

/** The place in one column of shapes, as well-known text or, where some `areObjects`, as GeoJSON too, or in two of longitude and latitude; where there is none, what is wrong, if anything. */
function placeOf(row: Row, used: readonly string[], areObjects: boolean): Geometry | string {
  const lacking = used.filter((name) => isNone(row[name], true));
  if (lacking.length) return lacking.length < used.length ? `${lacking[0]} has no value` : '';
  const found = (name: string): string => `${name}: ${JSON.stringify(row[name]).slice(0, 60)}`;
  if (used.length === 1) {
    const value = row[used[0]];
    const geometry = typeof value === 'string' ? parseWkt(value) : isGeometry(value) ? value : null;
    if (!geometry) return `${found(used[0])} where ${areObjects ? 'a geometry of GeoJSON' : 'well-known text'} was expected`;
    const beyond = areObjects ? beyondOf(geometry) : undefined;
    return beyond ? `${used[0]}: ${JSON.stringify(beyond)} where a longitude and a latitude were expected` : geometry;
  }
  const bad = used.findIndex((name, i) => !(Math.abs(Number(row[name])) <= EDGES[i]));
  if (bad >= 0) return `${found(used[bad])} where a number from -${EDGES[bad]} to ${EDGES[bad]} was expected`;
  return { type: 'Point', coordinates: used.map((name) => Number(row[name])) };
}

/** Whether some values are ids, no two of them the same. */
function areIds(values: readonly unknown[]): boolean {
  const ids = values.map((value) => (typeof value === 'string' || Number.isInteger(value) ? String(value).trim() : '')).filter(Boolean);
  return new Set(ids).size === values.length;
}

/** The columns of the place, as the loader has them: one of shapes alone, else longitude and latitude, else one that is named as a shape. */
function placeColumns(rows: readonly Row[], columns: readonly string[]): string[] {
  const named = SHAPES.flatMap((shape) => columns.filter((name) => name.toLowerCase() === shape));
  const hasShapes = (name: string, all: boolean): boolean => {
    const values = rows.map((row) => row[name]).filter((value) => !isNone(value, true));
    const isShape = (value: unknown): boolean => (typeof value === 'string' ? isWkt(value.trim()) : isGeometry(value));
    return values.length > 0 && (all ? values.every(isShape) : values.some(isShape));
  };
  const whole = named.find((name) => hasShapes(name, true));
  if (whole !== undefined) return [whole];
  const [lon, lat] = [LON, LAT].map((pattern) => columns.find((name) => pattern.test(name.trim())));
  if (lon !== undefined && lat !== undefined) return [lon, lat];
  const partly = named.find((name) => hasShapes(name, false)) ?? named.at(0);
  return partly === undefined ? [] : [partly];
}

/** Rows as features. */
function ofRows(rows: readonly Row[], columns: readonly string[], form: Form): FileContent {
  const { unit, numbers } = form.origin;
  const used = placeColumns(rows, columns);
  if (!used.length)
    throw new Error(`There is no column for a place: expected lon and lat, longitude and latitude, wkt or geometry, found ${columns.slice(0, 8).join(', ')}. With other names: meridian load COLLECTION FILE --lon NAME --lat NAME`);
  const areObjects = used.length === 1 && rows.some((row) => isObject(row[used[0]]));
  const features: Feature[] = [];
  const places: number[] = [];
  let misplaced = '';
  for (const [i, row] of rows.entries()) {
    const geometry = placeOf(row, used, areObjects);
    const properties = recordOf(Object.entries(row).filter(([name]) => !used.includes(name)));
    if (typeof geometry !== 'string') {
      features.push({ type: 'Feature', geometry, properties });
      places.push(numbers[i]);
    } else if (geometry && !misplaced) misplaced = `${unit} ${numbers[i]}: ${geometry}`;
  }
  const ids = columns.find((name) => ID.test(name) && !used.includes(name) && areIds(rows.map((row) => row[name])));
  const content = ofFeatures(features, rows.length - features.length, ids === undefined ? null : { name: ids, member: false }, { ...form, origin: { unit, numbers: places } });
  return { ...content, misplaced, misshapen: areObjects ? misplaced : '', place: used.length === 1 ? used[0] : content.place };
}

const areTexts = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every((one) => typeof one === 'string');

/** A list of texts, which `cells` of a table hold as JSON; null for any other value. */
function listOf(value: unknown, cells: boolean): readonly string[] | null {
  let list: unknown = value;
  if (cells && typeof value === 'string' && value.trimStart().startsWith('['))
    try {
      list = JSON.parse(value);
    } catch {
      return null;
    }
  return areTexts(list) ? list : null;
}

/** A number in a cell, as `infer/kinds.rs` has it. Leading zeros or a plus are a code. */
const NUMBER = /^-?(?:(?!0\d)\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$/;

/** Whether a value is a number. Texts of JSON stay texts. */
const isNumber = (value: unknown, cells: boolean): boolean => typeof value === 'number' || (cells && typeof value === 'string' && NUMBER.test(value) && Number.isFinite(Number(value)));

/** Whether a cell has digits alone. */
const isWhole = (value: unknown): value is string => typeof value === 'string' && /^-?\d+$/.test(value);

/** Whether a cell is a whole number that may be another one in JavaScript. */
const isLong = (value: unknown): value is string => isWhole(value) && !Number.isSafeInteger(Number(value));

/** Whether 64 bits hold a whole number. */
const isIn64 = (text: string): boolean => BigInt.asIntN(64, BigInt(text)) === BigInt(text);

/** The first long number in a column of integers of 64 bits. Longer ones are texts for the loader too. */
function longOf(values: readonly unknown[]): string | undefined {
  const longs = values.every((value) => isWhole(value) && isNumber(value, true)) ? values.filter(isLong) : [];
  return longs.every(isIn64) ? longs[0] : undefined;
}

/** The first whole number in cells with fractions too that is none of the loader's, or another one there. */
function roundedOf(values: readonly unknown[]): string | undefined {
  if (values.every(isWhole) || !values.every((value) => isNumber(value, true))) return undefined;
  return values.filter(isLong).find((text) => !isIn64(text) || BigInt(Number(text)) !== BigInt(text));
}

function kindOf(values: readonly unknown[], cells: boolean): FileField['kind'] {
  const all = (test: (value: unknown) => boolean): boolean => values.every(test);
  if (!values.length) return 'text';
  if (all((v) => typeof v === 'boolean' || (cells && typeof v === 'string' && /^(true|false)$/i.test(v)))) return 'bool';
  if (all((v) => isNumber(v, cells))) {
    if (all((v) => Number.isSafeInteger(Number(v)) && !/[.eE]/.test(String(v)))) return 'int';
    return values.every(isWhole) || roundedOf(values) !== undefined ? 'text' : 'float';
  }
  if (all((v) => listOf(v, cells) !== null)) return 'list';
  return all((v) => typeof v === 'string' && isTime(v)) ? 'time' : 'text';
}

function valueAs(value: unknown, kind: FileField['kind'], cells: boolean, inUtc: boolean): unknown {
  // Blanks in a column of texts are a value.
  if (value === '' ? cells : isNone(value, cells && kind !== 'text')) return undefined;
  if (kind === 'int' || kind === 'float') return Number(value);
  if (kind === 'bool') return value === true || /true/i.test(String(value));
  // Without a zone a time is in UTC, which a note says.
  if (kind === 'time') return timeOf(bare(value) as string, inUtc);
  if (kind === 'list') return listOf(value, cells);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Features with their fields: each with the one kind that all its values have. */
function ofFeatures(list: readonly Feature[], placeless: number, id: FileContent['id'], { cells, floats, origin }: Form): FileContent {
  const columns = new Map<string, unknown[]>();
  for (const { properties } of list)
    for (const [name, value] of Object.entries((properties ?? {}))) {
      let values = columns.get(name);
      if (!values) columns.set(name, (values = []));
      if (!isNone(value, cells)) values.push(cells ? bare(value) : value);
    }
  const ids = idColumn({ id });
  const found = [...columns].map(([name, values]): FileField & { readonly values: readonly unknown[] } => {
    const narrow = kindOf(values, cells);
    const kind = narrow === 'int' && floats.has(name) ? 'float' : narrow;
    // Ids keep the digits that the file has.
    return { name, values, kind: name === ids && kind !== 'int' ? 'text' : kind };
  });
  const timed = found.filter(({ kind }) => kind === 'time').map(({ name, values }) => ({ name, values: values as string[] }));
  const [times, inUtc] = [timesOf(timed, list.length), readsInUtc(timed)];
  // As the loader has it: dates are a text, unless they are the time of the events.
  const texts = new Set(timed.filter(({ name, values }) => !times.includes(name) && !areInstants(values, inUtc)).map(({ name }) => name));
  const fields = found.map(({ name, kind }): FileField => ({ name, kind: texts.has(name) ? 'text' : kind }));
  const features = list.map((feature): Feature => {
    const given = recordOf<unknown>(Object.entries(feature.properties ?? {}));
    const properties = recordOf(fields.map(({ name, kind }) => [name, valueAs(given[name], kind, cells, inUtc)] as const).filter(([, value]) => value !== undefined));
    return { type: 'Feature', ...(feature.id === undefined ? {} : { id: feature.id }), geometry: feature.geometry, properties };
  });
  const rounded = (name: string, values: readonly unknown[]): Note | undefined => {
    const example = cells ? roundedOf(values) : undefined;
    if (example === undefined) return undefined;
    const at = list.findIndex(({ properties }) => bare(properties?.[name]) === example);
    return ofRounded(name, `${example} on ${origin.unit} ${origin.numbers[at]}`);
  };
  const notes = found.filter(({ name }) => name !== ids).flatMap(({ name, kind, values }) =>
    rounded(name, values) ?? noteOf(name, kind, values, { isTime, cells, wantsTime: !times.length, asText: texts.has(name), lacking: list.length - values.length }) ?? []);
  const asTexts = found.filter(({ name, kind }) => kind === 'text' && name !== ids);
  const [unkept = ''] = asTexts.flatMap(({ name, values }) => values.filter((value) => typeof value !== 'string').slice(0, 1).map((value) => `${name}: ${JSON.stringify(value).slice(0, 60)}`));
  const [inexact = ''] = cells ? asTexts.flatMap(({ values }) => longOf(values) ?? []) : [];
  return { features, origin, place: 'geometry', fields, times, placeless, misplaced: '', misshapen: '', notes, inexact, id, unkept };
}

/** The column that has the ids; empty where none has. */
export const idColumn = ({ id }: Pick<FileContent, 'id'>): string => (id && !id.member ? id.name : '');

const isFeature = (value: unknown): value is Feature => typeof value === 'object' && value !== null && (value as Feature).type === 'Feature';

/** The events of JSON values: features, geometries, or flat rows. */
function ofValues({ values, lines }: Parsed, floats: Form['floats']): FileContent {
  const features: unknown[] = [];
  const numbers: number[] = [];
  for (const [i, value] of values.entries())
    for (const one of (value as { type?: string }).type === 'FeatureCollection' ? (value as { features: unknown[] }).features : [value]) {
      features.push(one);
      numbers.push(lines ? lines[i] : features.length);
    }
  const unit = lines ? 'line' : 'event';
  const form: Form = { cells: false, floats, origin: { unit, numbers } };
  if (features.length && !features.some(isFeature)) {
    const rows = features as Row[];
    if (rows.every((row) => 'coordinates' in row)) return ofFeatures(rows.map((geometry) => ({ type: 'Feature', properties: {}, geometry: geometry as unknown as Geometry })), 0, null, form);
    return ofRows(rows, [...new Set(rows.flatMap((row) => Object.keys(row)))], form);
  }
  const shown: Feature[] = [];
  const places: number[] = [];
  let misplaced = '';
  for (const [i, one] of features.entries()) {
    if (!isFeature(one) || one.geometry === null || one.geometry === undefined) continue;
    const beyond = beyondOf(one.geometry);
    if (!beyond) {
      shown.push(one);
      places.push(numbers[i]);
    } else if (!misplaced) misplaced = `${unit} ${numbers[i]}: geometry: ${JSON.stringify(beyond)} where a longitude and a latitude were expected`;
  }
  const areDistinct = areIds(features.map((value) => (isFeature(value) ? value.id : null)));
  const id = areDistinct ? { name: 'id', member: true } : null;
  return { ...ofFeatures(shown, features.length - shown.length, id, { ...form, origin: { unit, numbers: places } }), misplaced };
}

/** Values of JSON, with their lines where each has its own. */
interface Parsed {
  readonly values: readonly unknown[];
  readonly lines?: readonly number[];
}

/** Begins each record of a GeoJSON text sequence (RFC 8142), which may have several lines. */
const RECORD = '\u001e';

function parseLines(text: string): Parsed {
  const isSequence = text.trimStart().startsWith(RECORD);
  const [values, lines]: [unknown[], number[]] = [[], []];
  let line = 1;
  for (const part of text.split(isSequence ? RECORD : '\n')) {
    try {
      if (part.trim()) {
        const value: unknown = JSON.parse(part);
        if (typeof value !== 'object' || value === null) throw new Error('not an object');
        values.push(value);
        lines.push(line);
      }
    } catch {
      throw new Error(isSequence ? `Record ${values.length + 1}, on line ${line}, is not a JSON object` : `Line ${line} is not a JSON object`);
    }
    line += isSequence ? part.split('\n').length - 1 : 1;
  }
  return { values, lines };
}

function parseJson(text: string): Parsed {
  try {
    const value: unknown = JSON.parse(text);
    return { values: Array.isArray(value) ? value : [value] };
  } catch {
    return parseLines(text);
  }
}

/** Texts, of which the names of members have their number where that has a fraction or an exponent. */
const FLOAT = /("[^"\\]*(?:\\.[^"\\]*)*")(?:\s*:\s*-?\d+(?:\.|[eE])[-+\d.eE]*)?/g;

/** The names of members with numbers such as `1.0`, which are whole numbers in JavaScript, and no integers for the loader. */
function floatsOf(json: string): Set<string> {
  const names = new Set<string>();
  if (!/:\s*-?\d+(?:\.0+(?!\d)|(?:\.\d+)?[eE])/.test(json)) return names;
  for (const [found, name] of json.matchAll(FLOAT)) if (found.length > name.length) names.add(name);
  return new Set([...names].map((name) => JSON.parse(name) as string));
}

/** Texts, which may hold digits, and whole numbers of 16 digits or more. A part of another number is none. */
const LONG = /"[^"\\]*(?:\\.[^"\\]*)*"|(?<![-+.\w])-?\d{16,}(?![.\w])/g;

/** The first whole number beyond 2^53 outside of texts: numbers of JavaScript hold only some of these. Empty where there is none. */
function inexactOf(json: string): string {
  if (!/\d{16}/.test(json)) return '';
  for (const [found] of json.matchAll(LONG)) if (!found.startsWith('"') && !Number.isSafeInteger(Number(found))) return found;
  return '';
}

/** The names of the columns, empty for one without a name. Refuses what would mix up columns. */
function columnsOf(header: readonly string[], line: number): string[] {
  const names = header.map((name) => name.trim());
  const twice = names.find((name, i) => name && names.indexOf(name) < i);
  if (twice !== undefined) throw new Error(`Line ${line}: ${twice}: two columns have this name`);
  return names;
}

function parseTable(text: string): FileContent {
  const head = (/[^\r\n]+/.exec(text)?.[0] ?? '').replace(/"[^"]*"/g, '');
  const separator = [',', '\t', ';', '|'].reduce((best, one) => (head.split(one).length > head.split(best).length ? one : best));
  let columns: readonly string[] = [];
  const rows: Row[] = [];
  const lines: number[] = [];
  readCsv(text, (values, line) => {
    if (!columns.length) {
      columns = columnsOf(values, line);
      return;
    }
    if (values.length !== columns.length) {
      const cut = values.length < columns.length ? '; was the row cut off?' : '';
      throw new Error(`Line ${line}: a row of ${values.length} fields where the header has ${columns.length}${cut}`);
    }
    // Spreadsheets end rows with empty columns.
    const unnamed = columns.findIndex((name, i) => !name && values[i].trim());
    if (unnamed >= 0) throw new Error(`Line ${line}: a value in column ${unnamed + 1}, which has no name in the header`);
    if (rows.length > EVENTS_MAX) return;
    rows.push(recordOf(columns.flatMap((name, i) => (name ? [[name, values[i]] as const] : []))));
    lines.push(line);
  }, separator);
  const named = columns.filter((name) => name);
  const place = named.filter((name) => LON.test(name) || LAT.test(name));
  if (rows.some((row) => place.some((name) => DECIMAL_COMMA.test(String(row[name])))))
    throw new Error('Its positions have a decimal comma, which the browser does not read; the server\'s loader does: meridian load COLLECTION FILE --decimal-comma');
  return ofRows(rows, named, { cells: true, floats: new Set(), origin: { unit: 'line', numbers: lines } });
}

/** Kinds that `meridian load` reads and the browser does not: by the ending of the name. */
const ENDINGS = recordOf<string>(Object.entries({
  gpx: 'GPX', kml: 'KML', kmz: 'KMZ', shp: 'Shapefile', dbf: 'Shapefile', shx: 'Shapefile', gpkg: 'GeoPackage', fgb: 'FlatGeobuf', nmea: 'NMEA', parquet: 'GeoParquet', geoparquet: 'GeoParquet',
  arrow: 'Arrow', arrows: 'Arrow', feather: 'Arrow', zip: 'zip', gz: 'gzip', zst: 'zstd',
}));

/** The same by the first characters, and by what an XML document is. */
const MAGIC = { 'SQLite format 3': 'GeoPackage', 'fgb\u0003': 'FlatGeobuf', PAR1: 'GeoParquet', ARROW1: 'Arrow', 'PK\u0003\u0004': 'zip' } as const;
const XML = /^\s*(?:<\?xml[^]*?)?<(gpx|kml)[\s>]/i;
const NMEA = /^[$!][A-Z]{5},/;

function kindOfHead(head: string): string | undefined {
  const found = Object.entries(MAGIC).find(([magic]) => head.startsWith(magic))?.[1];
  return found ?? XML.exec(head)?.[1].toUpperCase() ?? (NMEA.test(head) ? 'NMEA' : undefined);
}

/** Refuses a file of a kind that only the server's loader reads; `head` is its first characters. */
export function refuseKind(name: string, head: string): void {
  const kind = kindOfHead(head.replace(/^\ufeff/, '')) ?? ENDINGS[/\.([^.]+)$/.exec(name)?.[1].toLowerCase() ?? ''];
  if (kind) throw new Error(`The browser does not read ${kind}; the server's loader does: meridian load COLLECTION ${name}`);
  if (/^\s*<(\?xml|[a-z!])/i.test(head)) throw new Error('The browser does not read XML: expected GeoJSON, NDJSON or CSV.');
}

const DECIMAL_COMMA = /^\s*[-+]?\d+,\d+\s*$/;

/** The text of a file's bytes. Refuses other encodings than UTF-8: their letters would be lost. */
export function textOf(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    const converts = (encoding: string): string => `this converts it: iconv -f ${encoding} -t utf-8 ${name} > converted.txt`;
    if ([0xfeff, 0xfffe].includes(256 * bytes[0] + bytes[1])) throw new Error(`The file is UTF-16, where UTF-8 was expected; ${converts('utf-16')}`);
    // What is no letter becomes U+FFFD.
    const line = new TextDecoder().decode(bytes).split('\ufffd', 1)[0].split('\n').length;
    throw new Error(`Line ${line} is not UTF-8; if the text is Latin-1, ${converts('latin1')}`);
  }
}

/** Reads a file's text. Throws what is wrong with it, in a sentence. */
export function readFile(text: string): FileContent {
  const plain = text.replace(/^\ufeff/, '');
  if (!plain.trim()) throw new Error('The file is empty: expected GeoJSON, NDJSON or CSV.');
  const content = ['{', '[', RECORD].includes(plain.trimStart()[0]) ? { ...ofValues(parseJson(plain), floatsOf(plain)), inexact: inexactOf(plain) } : parseTable(plain);
  if (!content.features.length) throw new Error(`The file has no event with a place${content.misplaced && `: ${content.misplaced}`}.`);
  if (content.features.length > EVENTS_MAX) throw new Error(`The file has more than ${EVENTS_MAX.toLocaleString('en')} events: load it into a collection with meridian load.`);
  return content;
}
