// Where to look: events around the antimeridian have the whole world as their box, though they are close to each other.
import type { Geometry } from 'geojson';
import * as api from './api';
import { wrapLng, type LngLat } from './shapes';

export type Bbox = readonly [west: number, south: number, east: number, north: number];

/** Columns of longitude that are counted. */
const COLUMNS = 144;
/** A gap of fewer degrees does not make the view smaller in a way that helps. */
const GAP_MIN = 90;

/** The shortest stretch of longitude with all columns that hold events; east may pass 180. Null for all of the world. */
export function stretch(counts: readonly number[]): readonly [west: number, east: number] | null {
  const width = 360 / counts.length;
  const held = counts.flatMap((n, i) => (n > 0 ? [i] : []));
  if (!held.length) return null;
  // The widest gap between one column that holds events and the next, around the world.
  let [gap, after] = [0, 0];
  held.forEach((column, i) => {
    const next = i + 1 < held.length ? held[i + 1] : held[0] + counts.length;
    if (next - column - 1 > gap) [gap, after] = [next - column - 1, i + 1];
  });
  if (gap * width < GAP_MIN) return null;
  const first = held[after % held.length];
  const last = held[(after - 1 + held.length) % held.length];
  const west = -180 + first * width;
  const east = -180 + (last + 1) * width;
  return [west, east <= west ? east + 360 : east];
}

/** All positions of a geometry. */
export function positionsOf(geometry: Geometry | null): LngLat[] {
  if (!geometry) return [];
  if (geometry.type === 'GeometryCollection') return geometry.geometries.flatMap(positionsOf);
  const out: LngLat[] = [];
  const walk = (part: unknown): void => {
    if (!Array.isArray(part)) return;
    if (typeof part[0] === 'number') out.push([part[0], part[1] as number]);
    else part.forEach(walk);
  };
  walk(geometry.coordinates);
  return out;
}

/** The parts of a geometry, each with all of its positions: a point, a line, or a ring, which is in all columns from its west to its east. */
export function partsOf(geometry: Geometry | null): (readonly LngLat[])[] {
  if (geometry?.type === 'GeometryCollection') return geometry.geometries.flatMap(partsOf);
  const arePoints = geometry?.type === 'MultiPoint';
  const out: LngLat[][] = [];
  const walk = (part: unknown): void => {
    if (!Array.isArray(part)) return;
    const [first] = part as unknown[];
    if (typeof first === 'number') out.push([part as unknown as LngLat]);
    else if (!arePoints && Array.isArray(first) && typeof first[0] === 'number') out.push(part as LngLat[]);
    else part.forEach(walk);
  };
  if (geometry) walk(geometry.coordinates);
  return out;
}

/** The box of parts: around the antimeridian where they are there, with east past 180. */
export function boxOf(parts: readonly (readonly LngLat[])[]): Bbox {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  const counts = new Array<number>(COLUMNS).fill(0);
  const columnOf = (lng: number): number => Math.min(COLUMNS - 1, Math.floor(((wrapLng(lng) + 180) / 360) * COLUMNS));
  const spans = parts.map((part): readonly [west: number, east: number] => {
    let [from, to] = [Infinity, -Infinity];
    for (const [lng, lat] of part) {
      [from, to] = [Math.min(from, lng), Math.max(to, lng)];
      [south, north] = [Math.min(south, lat), Math.max(north, lat)];
    }
    [west, east] = [Math.min(west, from), Math.max(east, to)];
    const first = columnOf(from);
    const last = to - from >= 360 ? first + COLUMNS - 1 : columnOf(to);
    for (let column = first; column <= (last < first ? last + COLUMNS : last); column++) counts[column % COLUMNS]++;
    return [from, to];
  });
  const found = east - west < 180 ? null : stretch(counts);
  if (!found) return [west, south, east, north];
  [west, east] = [Infinity, -Infinity];
  for (const [from, to] of spans) {
    // A stretch that passes 180 has its eastern part there.
    const at = wrapLng(from) < found[0] ? wrapLng(from) + 360 : wrapLng(from);
    [west, east] = [Math.min(west, at), Math.max(east, at + to - from)];
  }
  return [west, south, east, north];
}

/** Columns that are asked one by one. */
const ASKED = 12;

/** Events in each column. `/density` has an event in the one of its middle: whether it crosses others is asked for each. */
async function columnsOf(id: string, arePoints: boolean, signal: AbortSignal): Promise<readonly number[]> {
  if (arePoints) return (await api.get<{ counts: number[] }>(`${api.collectionPath(id)}/density?bbox=-180,-90,180,90&width=${COLUMNS}&height=1`, signal)).counts;
  const width = 360 / ASKED;
  const boxes = Array.from({ length: ASKED }, (_, i) => new URLSearchParams({ bbox: [i * width - 180, -90, (i + 1) * width - 180, 90].join(',') }));
  return Promise.all(boxes.map(async (box) => (await api.aggregate(id, ['count'], box, signal))[0]?.count ?? 0));
}

/** The box to show for a collection. */
export async function frameOf(id: string, bbox: Bbox, arePoints: boolean, signal: AbortSignal): Promise<Bbox> {
  const [west, south, east, north] = bbox;
  if (east < west || east - west < 180) return bbox;
  const found = stretch(await columnsOf(id, arePoints, signal));
  return found ? [found[0], south, found[1], north] : bbox;
}
