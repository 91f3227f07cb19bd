// The events that a trail plays: place, time and value of each, all at once, so that playing asks the server for nothing.
import * as api from '../api';
import { readCsv } from '../csv';
import type { PictureQuery } from '../picture';
import { bboxParam } from '../shapes';
import { mercatorX, mercatorY, type Box } from '../surface/cover';
import { datetimeParam, type Range } from '../time';

/** Max events of a trail. More are played as a surface. */
export const TRAIL_MAX = 60_000;

export interface TrailEvents {
  readonly count: number;
  /** Mercator position in the middle of all: places are relative to it, so that 24 bits are enough for them. */
  readonly origin: readonly [x: number, y: number];
  /** Place (x, y), and time within `span` from 0 to 1, of each event. */
  readonly places: Float32Array;
  /** Value of the field, or the number of a text among the coloured ones (-1: another); NaN where there is none. */
  readonly values: Float32Array;
  readonly span: Range;
}

interface Columns {
  readonly lon: number;
  readonly lat: number;
  readonly time: number;
  readonly field: number;
}

/** The columns of a header; null if the events are not points. The id is first, then longitude and latitude of points, or one column of shapes, then the fields. */
function columnsOf(header: readonly string[], time: string, field: string): Columns | null {
  const fields = [time, field].filter(Boolean).map((name) => header.indexOf(name, 1));
  return Math.min(...fields) === 3 ? { lon: 1, lat: 2, time: fields[0], field: fields[1] ?? -1 } : null;
}

/** Reads an answer in CSV; null if its events are not points. `texts`: the values that have a colour, if the field is a text. */
export function readTrail(text: string, time: string, field: string, texts: readonly string[] | null, [west, south, east, north]: Box, span: Range): TrailEvents | null {
  const origin = [mercatorX((west + east) / 2), (mercatorY(south) + mercatorY(north)) / 2] as const;
  const places: number[] = [];
  const values: number[] = [];
  // A name of a field has no line break.
  const end = text.indexOf('\n');
  const header: string[] = [];
  readCsv(text.slice(0, end), (row) => header.push(...row));
  const columns = columnsOf(header, time, field);
  if (!columns) return null;
  readCsv(text.slice(end + 1), (row) => {
    const [lon, lat, ms] = [row[columns.lon], row[columns.lat], Date.parse(row[columns.time])];
    if (!lon || !lat || Number.isNaN(ms)) return;
    // The copy of the world that is nearest to the middle of the view.
    const x = mercatorX(Number(lon)) - origin[0];
    places.push(x - Math.round(x), mercatorY(Number(lat)) - origin[1], (ms - span[0]) / (span[1] - span[0]));
    const value = columns.field < 0 ? '' : row[columns.field];
    values.push(value === '' ? NaN : texts ? texts.indexOf(value) : Number(value));
  });
  return { count: values.length, origin, places: Float32Array.from(places), values: Float32Array.from(values), span };
}

/** Loads the events of a box and a span of time; null if they are too many, or not points. */
export async function loadTrail(asked: PictureQuery, texts: readonly string[] | null, time: string, box: Box, span: Range, signal: AbortSignal): Promise<TrailEvents | null> {
  const query = new URLSearchParams(asked.query);
  query.set('bbox', bboxParam(...box));
  query.set('datetime', datetimeParam(span));
  const [group] = await api.aggregate(asked.collection, ['count'], query, signal);
  if (!group || group.count > TRAIL_MAX) return null;
  query.set('properties', [time, asked.field].filter((name, i, all) => name && all.indexOf(name) === i).join(','));
  query.set('f', 'csv');
  const text = await (await api.call(`${api.collectionPath(asked.collection)}/items?${query}`, signal)).text();
  return readTrail(text, time, asked.field, texts, box, span);
}
