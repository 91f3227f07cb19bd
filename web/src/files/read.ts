// A file that was dropped on the map, read in the browser: GeoJSON, GeoJSON text sequence, NDJSON, CSV.
import type { Feature, Geometry } from 'geojson';
import type { FieldKind } from '../api';
import { readCsv } from '../csv';
import { positionsOf } from '../frame';
import type { LngLat } from '../shapes';
import { noteOf, type Note } from './notes';
import { areInstants, readsInUtc, timeOf, timesOf } from './times';
import { parseWkt } from './wkt';

export interface FileField {
  readonly name: string;
  readonly kind: FieldKind;
}

export interface FileContent {
  readonly features: readonly Feature[];
  readonly fields: readonly FileField[];
  /** Names of the fields that are the time: one instant, or start and end; empty where none is. */
  readonly times: readonly string[];
  /** Rows without a place, which the map cannot show. */
  readonly placeless: number;
  /** The first place of these rows that cannot be read, with its line; empty if they have none. */
  readonly misplaced: string;
  /** Columns that look like times or places and were not taken, and times that were read as UTC. */
  readonly notes: readonly Note[];
  /** The first whole number of JSON that is another one here, as the file has it; empty where all are exact. */
  readonly inexact: string;
  /** The ids, of which each event has its own: the column that has them, or the member `id` of GeoJSON. Null where one is lacking or occurs twice. */
  readonly id: { readonly name: string; readonly member: boolean } | null;
  /** The first list of other values than texts, which no collection keeps, after the name of its field; empty where there is none. */
  readonly unlisted: string;
}

/** Max size of a file in bytes, and max events: the browser keeps all of them. */
export const BYTES_MAX = 100_000_000;
export const EVENTS_MAX = 300_000;

const LON = /^(lon|lng|long|longitude|x|lon_?deg|decimallongitude)$/i;
const LAT = /^(lat|latitude|y|lat_?deg|decimallatitude)$/i;
const SHAPE = /^(wkt|geom|geometry|the_geom|shape)$/i;
/** Customary names of ids, those of crates/formats/src/roles.rs. */
const ID = /^(id|fid|@id)$/i;

type Row = Record<string, unknown>;

/** Max degrees of a longitude and of a latitude. */
const EDGES = [180, 90];

/** The place in one column of shapes, or in two of longitude and latitude; where there is none, what is wrong, if anything. */
function placeOf(row: Row, used: readonly string[]): Geometry | string {
  const lacking = used.filter((name) => ['', null, undefined].includes(row[name] as string | null | undefined));
  if (lacking.length) return lacking.length < used.length ? `${lacking[0]} has no value` : '';
  const found = (name: string): string => `${name}: ${JSON.stringify(row[name]).slice(0, 60)}`;
  if (used.length === 1) {
    const text = row[used[0]];
    return (typeof text === 'string' ? parseWkt(text) : null) ?? `${found(used[0])} where well-known text was expected`;
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

/** Rows as features; `lines` are those on which the rows of a table begin. */
function ofRows(rows: readonly Row[], columns: readonly string[], lines?: readonly number[]): FileContent {
  const find = (pattern: RegExp): string | undefined => columns.find((name) => pattern.test(name.trim()));
  const [lon, lat, shape] = [find(LON), find(LAT), find(SHAPE)];
  const used = lon !== undefined && lat !== undefined ? [lon, lat] : shape !== undefined ? [shape] : [];
  if (!used.length)
    throw new Error(`There is no column for a place: expected lon and lat, longitude and latitude, or wkt, found ${columns.slice(0, 8).join(', ')}. With other names: meridian load COLLECTION FILE --lon NAME --lat NAME`);
  const features: Feature[] = [];
  let misplaced = '';
  for (const [i, row] of rows.entries()) {
    const geometry = placeOf(row, used);
    const properties = Object.fromEntries(Object.entries(row).filter(([name]) => !used.includes(name)));
    if (typeof geometry !== 'string') features.push({ type: 'Feature', geometry, properties });
    else if (geometry && !misplaced) misplaced = `${lines ? `line ${lines[i]}` : `event ${i + 1}`}: ${geometry}`;
  }
  const ids = columns.find((name) => ID.test(name) && !used.includes(name) && areIds(rows.map((row) => row[name])));
  return { ...ofFeatures(features, rows.length - features.length, ids === undefined ? null : { name: ids, member: false }, lines !== undefined), misplaced };
}

const TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/;

const isTime = (value: string): boolean => TIME.test(value) && !Number.isNaN(Date.parse(value.replace(' ', 'T')));

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

function kindOf(values: readonly unknown[], cells: boolean): FileField['kind'] {
  const all = (test: (value: unknown) => boolean): boolean => values.every(test);
  if (!values.length) return 'text';
  if (all((v) => typeof v === 'boolean' || v === 'true' || v === 'false')) return 'bool';
  const numeric = (v: unknown): boolean => typeof v === 'number' || (typeof v === 'string' && /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(v));
  if (all((v) => numeric(v) && Number.isSafeInteger(Number(v)) && !/[.eE]/.test(String(v)))) return 'int';
  // As a number of JavaScript a whole number of more digits would become another one.
  const isLong = (v: unknown): boolean => typeof v === 'string' && /^-?\d+$/.test(v) && !Number.isSafeInteger(Number(v));
  if (all(numeric)) return values.some(isLong) ? 'text' : 'float';
  if (all((v) => listOf(v, cells) !== null)) return 'list';
  return all((v) => typeof v === 'string' && isTime(v)) ? 'time' : 'text';
}

function valueAs(value: unknown, kind: FileField['kind'], cells: boolean, inUtc: boolean): unknown {
  if (value === null || value === undefined || value === '') return undefined;
  if (kind === 'int' || kind === 'float') return Number(value);
  if (kind === 'bool') return value === true || value === 'true';
  // Without a zone a time is in UTC, which a note says.
  if (kind === 'time') return timeOf(value as string, inUtc);
  if (kind === 'list') return listOf(value, cells);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Features with their fields: each with the one kind that all its values have. */
function ofFeatures(list: readonly Feature[], placeless: number, id: FileContent['id'], cells = false): FileContent {
  const columns = new Map<string, unknown[]>();
  for (const { properties } of list)
    for (const [name, value] of Object.entries((properties ?? {}))) {
      let values = columns.get(name);
      if (!values) columns.set(name, (values = []));
      if (value !== null && value !== undefined && value !== '') values.push(value);
    }
  const ids = idColumn({ id });
  const found = [...columns].map(([name, values]): FileField & { readonly values: readonly unknown[] } => {
    const kind = kindOf(values, cells);
    // Ids keep the digits that the file has.
    return { name, values, kind: name === ids && kind !== 'int' ? 'text' : kind };
  });
  const timed = found.filter(({ kind }) => kind === 'time').map(({ name, values }) => ({ name, values: values as string[] }));
  const [times, inUtc] = [timesOf(timed, list.length), readsInUtc(timed)];
  // As the loader has it: dates are a text, unless they are the time of the events.
  const texts = new Set(timed.filter(({ name, values }) => !times.includes(name) && !areInstants(values, inUtc)).map(({ name }) => name));
  const fields = found.map(({ name, kind }): FileField => ({ name, kind: texts.has(name) ? 'text' : kind }));
  const features = list.map((feature): Feature => {
    const given = (feature.properties ?? {});
    const properties = Object.fromEntries(fields.map(({ name, kind }) => [name, valueAs(given[name], kind, cells, inUtc)] as const).filter(([, value]) => value !== undefined));
    return { type: 'Feature', ...(feature.id === undefined ? {} : { id: feature.id }), geometry: feature.geometry, properties };
  });
  const notes = found.filter(({ name }) => name !== ids).flatMap(({ name, kind, values }) =>
    noteOf(name, kind, values, { isTime, cells, wantsTime: !times.length, asText: texts.has(name), lacking: list.length - values.length }) ?? []);
  const isUnlisted = (value: unknown): boolean => Array.isArray(value) && !areTexts(value);
  const [unlisted = ''] = found.flatMap(({ name, values }) => values.filter(isUnlisted).slice(0, 1).map((value) => `${name}: ${JSON.stringify(value).slice(0, 60)}`));
  return { features, fields, times, placeless, misplaced: '', notes, inexact: '', id, unlisted };
}

/** The column that has the ids; empty where none has. */
export const idColumn = ({ id }: Pick<FileContent, 'id'>): string => (id && !id.member ? id.name : '');

const isFeature = (value: unknown): value is Feature => typeof value === 'object' && value !== null && (value as Feature).type === 'Feature';

/** The events of JSON values: features, geometries, or flat rows. */
function ofValues(values: readonly unknown[]): FileContent {
  const features = values.flatMap((value): unknown[] => ((value as { type?: string }).type === 'FeatureCollection' ? (value as { features: unknown[] }).features : [value]));
  if (features.length && !features.some(isFeature)) {
    const rows = features as Row[];
    if (rows.every((row) => 'coordinates' in row)) return ofFeatures(rows.map((geometry) => ({ type: 'Feature', properties: {}, geometry: geometry as unknown as Geometry })), 0, null);
    return ofRows(rows, [...new Set(rows.flatMap((row) => Object.keys(row)))]);
  }
  const found = features.filter(isFeature).filter(({ geometry }) => geometry !== null && geometry !== undefined);
  const shown = found.filter(({ geometry }) => !beyondOf(geometry));
  const bad = shown.length < found.length ? found.find(({ geometry }) => beyondOf(geometry)) : undefined;
  const misplaced = bad ? `event ${features.indexOf(bad) + 1}: geometry: ${JSON.stringify(beyondOf(bad.geometry))} where a longitude and a latitude were expected` : '';
  const areDistinct = areIds(features.map((value) => (isFeature(value) ? value.id : null)));
  return { ...ofFeatures(shown, features.length - shown.length, areDistinct ? { name: 'id', member: true } : null), misplaced };
}

/** A position that lies nowhere on Earth: the server would refuse it. */
const beyondOf = (geometry: Geometry): LngLat | undefined => positionsOf(geometry).find((position) => !EDGES.every((edge, i) => Math.abs(position[i]) <= edge));

/** Begins each line of a GeoJSON text sequence (RFC 8142). */
const RECORD = '\u001e';

function parseLines(text: string): unknown[] {
  return text.split('\n').flatMap((line, i) => {
    const json = (line.startsWith(RECORD) ? line.slice(1) : line).trim();
    if (!json) return [];
    try {
      const value: unknown = JSON.parse(json);
      if (typeof value !== 'object' || value === null) throw new Error('not an object');
      return [value];
    } catch {
      throw new Error(`Line ${i + 1} is not a JSON object`);
    }
  });
}

function parseJson(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [value];
  } catch {
    return parseLines(text);
  }
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
    rows.push(Object.fromEntries(columns.flatMap((name, i) => (name ? [[name, values[i]]] : []))));
    lines.push(line);
  }, separator);
  const named = columns.filter((name) => name);
  const place = named.filter((name) => LON.test(name) || LAT.test(name));
  if (rows.some((row) => place.some((name) => DECIMAL_COMMA.test(String(row[name])))))
    throw new Error('Its positions have a decimal comma, which the browser does not read; the server\'s loader does: meridian load COLLECTION FILE --decimal-comma');
  return ofRows(rows, named, lines);
}

/** Kinds that `meridian load` reads and the browser does not: by the ending of the name. */
const ENDINGS: Record<string, string> = {
  gpx: 'GPX', kml: 'KML', kmz: 'KMZ', shp: 'Shapefile', dbf: 'Shapefile', shx: 'Shapefile', gpkg: 'GeoPackage', fgb: 'FlatGeobuf', nmea: 'NMEA', parquet: 'GeoParquet', geoparquet: 'GeoParquet',
  arrow: 'Arrow', arrows: 'Arrow', feather: 'Arrow', zip: 'zip', gz: 'gzip', zst: 'zstd',
};

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
  const content = ['{', '[', RECORD].includes(plain.trimStart()[0]) ? { ...ofValues(parseJson(plain)), inexact: inexactOf(plain) } : parseTable(plain);
  if (!content.features.length) throw new Error(`The file has no event with a place${content.misplaced && `: ${content.misplaced}`}.`);
  if (content.features.length > EVENTS_MAX) throw new Error(`The file has more than ${EVENTS_MAX.toLocaleString('en')} events: load it into a collection with meridian load.`);
  return content;
}
