// A file that was dropped on the map, read in the browser: GeoJSON, GeoJSON text sequence, NDJSON, CSV.
import type { Feature, Geometry } from 'geojson';
import type { FieldKind } from '../api';
import { readCsv } from '../csv';
import { noteOf, type Note } from './notes';
import { parseWkt } from './wkt';

export interface FileField {
  readonly name: string;
  readonly kind: Exclude<FieldKind, 'list'>;
}

export interface FileContent {
  readonly features: readonly Feature[];
  readonly fields: readonly FileField[];
  /** Rows without a place, which the map cannot show. */
  readonly placeless: number;
  /** Columns that look like times or places and were not taken. */
  readonly notes: readonly Note[];
}

/** Max size of a file in bytes, and max events: the browser keeps all of them. */
export const BYTES_MAX = 100_000_000;
export const EVENTS_MAX = 300_000;

const LON = /^(lon|lng|long|longitude|x|lon_?deg|decimallongitude)$/i;
const LAT = /^(lat|latitude|y|lat_?deg|decimallatitude)$/i;
const SHAPE = /^(wkt|geom|geometry|the_geom|shape)$/i;

type Row = Record<string, unknown>;

function placeOf(row: Row, names: { lon?: string; lat?: string; shape?: string }): Geometry | null {
  if (names.lon !== undefined && names.lat !== undefined) {
    const [lon, lat] = [row[names.lon], row[names.lat]].map((value) => (value === '' || value === null || value === undefined ? NaN : Number(value)));
    return Math.abs(lon) <= 180 && Math.abs(lat) <= 90 ? { type: 'Point', coordinates: [lon, lat] } : null;
  }
  const text = names.shape === undefined ? null : row[names.shape];
  return typeof text === 'string' ? parseWkt(text) : null;
}

/** Rows as features; `cells` if they are those of a table. */
function ofRows(rows: readonly Row[], columns: readonly string[], cells: boolean): FileContent {
  const find = (pattern: RegExp): string | undefined => columns.find((name) => pattern.test(name.trim()));
  const names = { lon: find(LON), lat: find(LAT), shape: find(SHAPE) };
  if ((names.lon === undefined || names.lat === undefined) && names.shape === undefined)
    throw new Error(`There is no column for a place: expected lon and lat, longitude and latitude, or wkt, found ${columns.slice(0, 8).join(', ')}. With other names: meridian load COLLECTION FILE --lon NAME --lat NAME`);
  const used = names.lon !== undefined && names.lat !== undefined ? [names.lon, names.lat] : [names.shape];
  const features: Feature[] = [];
  for (const row of rows) {
    const geometry = placeOf(row, names);
    const properties = Object.fromEntries(Object.entries(row).filter(([name]) => !used.includes(name)));
    if (geometry) features.push({ type: 'Feature', geometry, properties });
  }
  return ofFeatures(features, rows.length - features.length, cells);
}

const TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/;

const isTime = (value: string): boolean => TIME.test(value) && !Number.isNaN(Date.parse(value.replace(' ', 'T')));

function kindOf(values: readonly unknown[]): FileField['kind'] {
  const all = (test: (value: unknown) => boolean): boolean => values.every(test);
  if (!values.length) return 'text';
  if (all((v) => typeof v === 'boolean' || v === 'true' || v === 'false')) return 'bool';
  const numeric = (v: unknown): boolean => typeof v === 'number' || (typeof v === 'string' && /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(v));
  if (all((v) => numeric(v) && Number.isSafeInteger(Number(v)) && !/[.eE]/.test(String(v)))) return 'int';
  // As a number of JavaScript a whole number of more digits would become another one.
  const isLong = (v: unknown): boolean => typeof v === 'string' && /^-?\d+$/.test(v) && !Number.isSafeInteger(Number(v));
  if (all(numeric)) return values.some(isLong) ? 'text' : 'float';
  return all((v) => typeof v === 'string' && isTime(v)) ? 'time' : 'text';
}

function valueAs(value: unknown, kind: FileField['kind']): unknown {
  if (value === null || value === undefined || value === '') return undefined;
  if (kind === 'int' || kind === 'float') return Number(value);
  if (kind === 'bool') return value === true || value === 'true';
  // Without a zone a time is in UTC, as in the server's own loader.
  if (kind === 'time' && typeof value === 'string' && value.length > 10) return /(Z|[+-]\d\d:?\d\d)$/.test(value) ? value.replace(' ', 'T') : `${value.replace(' ', 'T')}Z`;
  if (kind === 'time') return value;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Features with their fields: each with the one kind that all its values have. */
function ofFeatures(list: readonly Feature[], placeless: number, cells = false): FileContent {
  const columns = new Map<string, unknown[]>();
  for (const { properties } of list)
    for (const [name, value] of Object.entries((properties ?? {}))) {
      let values = columns.get(name);
      if (!values) columns.set(name, (values = []));
      if (value !== null && value !== undefined && value !== '') values.push(value);
    }
  const fields = [...columns].map(([name, values]): FileField => ({ name, kind: kindOf(values) }));
  const features = list.map((feature): Feature => {
    const given = (feature.properties ?? {});
    const properties = Object.fromEntries(fields.map(({ name, kind }) => [name, valueAs(given[name], kind)] as const).filter(([, value]) => value !== undefined));
    // An id that is a field too would be shown twice.
    const id = feature.id === undefined || String(feature.id) === String(properties['id']) ? {} : { id: feature.id };
    return { type: 'Feature', ...id, geometry: feature.geometry, properties };
  });
  const wantsTime = !fields.some(({ kind }) => kind === 'time');
  const notes = fields.flatMap(({ name, kind }) => {
    const values = columns.get(name) ?? [];
    return noteOf(name, kind, values, { isTime, cells, mayBeTime: wantsTime && values.length === list.length }) ?? [];
  });
  return { features, fields, placeless, notes };
}

const isFeature = (value: unknown): value is Feature => typeof value === 'object' && value !== null && (value as Feature).type === 'Feature';

/** The events of JSON values: features, geometries, or flat rows. */
function ofValues(values: readonly unknown[]): FileContent {
  const features = values.flatMap((value): unknown[] => ((value as { type?: string }).type === 'FeatureCollection' ? (value as { features: unknown[] }).features : [value]));
  if (features.length && !features.some(isFeature)) {
    const rows = features as Row[];
    if (rows.every((row) => 'coordinates' in row)) return ofFeatures(rows.map((geometry) => ({ type: 'Feature', properties: {}, geometry: geometry as unknown as Geometry })), 0);
    return ofRows(rows, [...new Set(rows.flatMap((row) => Object.keys(row)))], false);
  }
  const found = features.filter(isFeature).filter(({ geometry }) => geometry !== null && geometry !== undefined);
  return ofFeatures(found, features.length - found.length);
}

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

function parseTable(text: string): FileContent {
  const head = text.slice(0, text.indexOf('\n') < 0 ? text.length : text.indexOf('\n'));
  const separator = ['\t', ';', ','].reduce((best, one) => (head.split(one).length > head.split(best).length ? one : best), ',');
  let columns: readonly string[] | null = null;
  const rows: Row[] = [];
  readCsv(text, (values) => {
    if (!columns) columns = values.map((name) => name.trim());
    else if (rows.length <= EVENTS_MAX) rows.push(Object.fromEntries(columns.map((name, i) => [name, values[i] ?? ''])));
  }, separator);
  const place = (columns ?? []).filter((name) => LON.test(name) || LAT.test(name));
  if (rows.some((row) => place.some((name) => DECIMAL_COMMA.test(String(row[name])))))
    throw new Error('Its positions have a decimal comma, which the browser does not read; the server\'s loader does: meridian load COLLECTION FILE --decimal-comma');
  return ofRows(rows, columns ?? [], true);
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

/** Reads a file's text. Throws what is wrong with it, in a sentence. */
export function readFile(text: string): FileContent {
  const plain = text.replace(/^\ufeff/, '');
  const content = ['{', '[', RECORD].includes(plain.trimStart()[0]) ? ofValues(parseJson(plain)) : parseTable(plain);
  if (!content.features.length) throw new Error('The file has no event with a place.');
  if (content.features.length > EVENTS_MAX) throw new Error(`The file has more than ${EVENTS_MAX.toLocaleString('en')} events: load it into a collection with meridian load.`);
  return content;
}
