// Which events of a file touch a shape: planar in degrees, as filters of the server are; points in a circle by great-circle distance.
import type { Geometry } from 'geojson';
import { positionsOf, type Bbox } from '../frame';
import { crosses, distance, extent, outline, type LngLat, type Shape } from '../shapes';

export interface Placed {
  readonly geometry: Geometry;
  /** The box of its positions. */
  readonly box: Bbox;
}

type Ring = readonly LngLat[];

/** Whether a position is in rings, of which every second one around it is a hole. */
const isIn = ([x, y]: LngLat, rings: readonly Ring[]): boolean =>
  rings.flatMap((ring) => ring.filter(([x1, y1], i) => {
    const [x2, y2] = ring[(i + 1) % ring.length];
    return y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1;
  })).length % 2 === 1;

const isPoint = ({ type }: Geometry): boolean => type === 'Point' || type === 'MultiPoint';

/** The lines of a geometry, or the rings of its polygons. */
function linesOf(geometry: Exclude<Geometry, { type: 'GeometryCollection' }>): Ring[] {
  const lines: Ring[] = [];
  const walk = (part: unknown): void => {
    if (!Array.isArray(part)) return;
    if (Array.isArray(part[0]) && typeof (part[0] as unknown[])[0] === 'number') lines.push(part);
    else part.forEach(walk);
  };
  walk(geometry.coordinates);
  return lines;
}

function touchesRing(geometry: Geometry, ring: Ring): boolean {
  if (geometry.type === 'GeometryCollection') return geometry.geometries.some((part) => touchesRing(part, ring));
  if (positionsOf(geometry).some((position) => isIn(position, [ring]))) return true;
  if (isPoint(geometry)) return false;
  const lines = linesOf(geometry);
  const isArea = geometry.type.endsWith('Polygon');
  return (isArea && isIn(ring[0], lines)) || lines.some((line) => line.some((from, i) => i > 0 && ring.some((corner, k) => crosses(line[i - 1], from, corner, ring[(k + 1) % ring.length]))));
}

/** The shortest distance from a position to those of a geometry, in metres. */
export const metresTo = (center: LngLat, geometry: Geometry): number => positionsOf(geometry).reduce((least, position) => Math.min(least, distance(center, position)), Infinity);

/** Whether an event touches a shape, on whatever copy of the world that lies. */
export function touches(shape: Shape): (event: Placed) => boolean {
  if (shape.kind === 'box' && shape.east - shape.west >= 360) shape = { ...shape, west: -180, east: 180 };
  const corners = outline(shape);
  const [west, south, east, north] = extent(corners);
  const turns = [-720, -360, 0, 360, 720].filter((turn) => west + turn <= 180 && east + turn >= -180);
  const rings = turns.map((turn) => corners.map(([x, y]): LngLat => [x + turn, y]));
  return ({ geometry, box: [w, s, e, n] }) => {
    if (shape.kind === 'circle' && isPoint(geometry)) return metresTo(shape.center, geometry) <= shape.radius;
    return turns.some((turn, i) => {
      if (e < west + turn || w > east + turn || n < south || s > north) return false;
      if (shape.kind === 'box' && w >= west + turn && e <= east + turn && s >= south && n <= north) return true;
      return touchesRing(geometry, rings[i]);
    });
  };
}
