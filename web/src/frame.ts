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

/** The box of positions: around the antimeridian where they are there, with east past 180. */
export function boxOf(positions: readonly LngLat[]): Bbox {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  const counts = new Array<number>(COLUMNS).fill(0);
  for (const [lng, lat] of positions) {
    [west, east] = [Math.min(west, lng), Math.max(east, lng)];
    [south, north] = [Math.min(south, lat), Math.max(north, lat)];
    counts[Math.min(COLUMNS - 1, Math.floor(((wrapLng(lng) + 180) / 360) * COLUMNS))]++;
  }
  const found = east - west < 180 ? null : stretch(counts);
  if (!found) return [west, south, east, north];
  [west, east] = [Infinity, -Infinity];
  for (const [lng] of positions) {
    // A stretch that passes 180 has its eastern part there.
    const at = wrapLng(lng) < found[0] ? wrapLng(lng) + 360 : wrapLng(lng);
    [west, east] = [Math.min(west, at), Math.max(east, at)];
  }
  return [west, south, east, north];
}

/** The box to show for a collection. */
export async function frameOf(id: string, bbox: Bbox, signal: AbortSignal): Promise<Bbox> {
  const [west, south, east, north] = bbox;
  if (east < west || east - west < 180) return bbox;
  const { counts } = await api.get<{ counts: number[] }>(`${api.collectionPath(id)}/density?bbox=-180,-90,180,90&width=${COLUMNS}&height=1`, signal);
  const found = stretch(counts);
  return found ? [found[0], south, found[1], north] : bbox;
}
