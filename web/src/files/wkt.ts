// Well-known text of a geometry.
import type { Geometry, Position } from 'geojson';

const TYPES: Record<string, Geometry['type']> = {
  POINT: 'Point', LINESTRING: 'LineString', POLYGON: 'Polygon', MULTIPOINT: 'MultiPoint', MULTILINESTRING: 'MultiLineString', MULTIPOLYGON: 'MultiPolygon',
};
/** Levels of brackets around a position. */
const DEPTH: Record<string, number> = { Point: 0, LineString: 1, MultiPoint: 1, Polygon: 2, MultiLineString: 2, MultiPolygon: 3 };

function depthOf(value: unknown): number {
  return Array.isArray(value) && Array.isArray(value[0]) ? 1 + depthOf(value[0]) : 0;
}

/** Whether a value is a geometry of GeoJSON. Whether its rings are closed is for the server to say. */
export function isGeometry(value: unknown): value is Geometry {
  const isAt = (part: unknown, depth: number): boolean =>
    Array.isArray(part) && (depth ? part.length > 0 && part.every((one) => isAt(one, depth - 1)) : part.length >= 2 && part.length <= 4 && part.every((one) => typeof one === 'number'));
  const { type, coordinates } = (value ?? {}) as { readonly type?: unknown; readonly coordinates?: unknown };
  return typeof type === 'string' && Object.hasOwn(DEPTH, type) && isAt(coordinates, DEPTH[type]);
}

/** Null where the text is not one geometry in two dimensions or more. Heights stay: a load must refuse them, as it does those of GeoJSON. */
export function parseWkt(text: string): Geometry | null {
  const found = /^\s*(?:SRID=4326;)?([A-Z]+)\s*(?:Z|M|ZM)?\s*(\(.*\))\s*$/is.exec(text);
  const type = found && TYPES[found[1].toUpperCase()];
  if (!found || !type || /[^-+\d.eE,()\s]/.test(found[2])) return null;
  const json = found[2].replace(/[-+\d.eE]+(?:\s+[-+\d.eE]+)+/g, (pair) => `[${pair.trim().split(/\s+/).map(Number).join(',')}]`);
  try {
    const nested = JSON.parse(json.replaceAll('(', '[').replaceAll(')', ']')) as unknown[];
    // A point's only bracket, and those around each point of MULTIPOINT((1 2), (3 4)), hold one position.
    const coordinates = type === 'Point' ? nested[0] : type === 'MultiPoint' ? nested.map((one) => (Array.isArray(one) && Array.isArray(one[0]) ? (one[0] as Position) : one)) : nested;
    return depthOf(coordinates) === DEPTH[type] ? ({ type, coordinates } as Geometry) : null;
  } catch {
    return null;
  }
}
