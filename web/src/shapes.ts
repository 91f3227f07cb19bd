// Shapes drawn on the map, and their query parameters.
// Longitudes of a drawn shape may pass 180 (the map repeats); they are wrapped only in a question.

export type LngLat = readonly [lng: number, lat: number];

export type Shape =
  | { readonly kind: 'box'; readonly west: number; readonly south: number; readonly east: number; readonly north: number }
  | { readonly kind: 'circle'; readonly center: LngLat; readonly radius: number }
  | { readonly kind: 'polygon'; readonly ring: readonly LngLat[] };

export type ShapeKind = Shape['kind'];

/** Mean radius of the earth in metres (IUGG). */
const EARTH = 6_371_008.8;
const RADIANS = Math.PI / 180;

/** Rounds to six decimals, some 10 cm: finer than any pointer. */
export const round6 = (value: number): number => Math.round(value * 1e6) / 1e6 + 0;

/** Longitude in [-180, 180]; a longitude that is already there stays as it is. */
export function wrapLng(lng: number): number {
  return lng >= -180 && lng <= 180 ? lng : ((((lng + 180) % 360) + 360) % 360) - 180;
}

const clampLat = (lat: number): number => Math.max(-90, Math.min(90, lat));

/** Great-circle distance in metres (haversine). */
export function distance([lng1, lat1]: LngLat, [lng2, lat2]: LngLat): number {
  const a =
    Math.sin(((lat2 - lat1) * RADIANS) / 2) ** 2 +
    Math.cos(lat1 * RADIANS) * Math.cos(lat2 * RADIANS) * Math.sin(((lng2 - lng1) * RADIANS) / 2) ** 2;
  return 2 * EARTH * Math.asin(Math.min(1, Math.sqrt(a)));
}

/** Box between two opposite corners. */
export function boxOf(a: LngLat, b: LngLat): Shape {
  return {
    kind: 'box',
    west: Math.min(a[0], b[0]),
    south: clampLat(Math.min(a[1], b[1])),
    east: Math.max(a[0], b[0]),
    north: clampLat(Math.max(a[1], b[1])),
  };
}

/** Circle around `center` through `edge`. */
export function circleOf(center: LngLat, edge: LngLat): Shape {
  return { kind: 'circle', center, radius: distance(center, edge) };
}

/** A `bbox` parameter. It crosses the antimeridian if west > east. A box wider than the world becomes the world. */
export function bboxParam(west: number, south: number, east: number, north: number): string {
  const whole = east - west >= 360;
  const bounds = [whole ? -180 : wrapLng(west), clampLat(south), whole ? 180 : wrapLng(east), clampLat(north)];
  return bounds.map(round6).join(',');
}

/** The outline to draw, as closed rings of longitude and latitude. */
export function outline(shape: Shape): LngLat[] {
  switch (shape.kind) {
    case 'box': {
      const { west, south, east, north } = shape;
      return [[west, south], [east, south], [east, north], [west, north], [west, south]];
    }
    case 'polygon':
      return [...shape.ring, shape.ring[0]];
    case 'circle': {
      const [lng, lat] = shape.center;
      const arc = shape.radius / EARTH;
      const out: LngLat[] = [];
      for (let i = 0; i <= 96; i++) {
        const bearing = (i / 96) * 2 * Math.PI;
        const y = Math.asin(Math.sin(lat * RADIANS) * Math.cos(arc) + Math.cos(lat * RADIANS) * Math.sin(arc) * Math.cos(bearing));
        const x = Math.atan2(
          Math.sin(bearing) * Math.sin(arc) * Math.cos(lat * RADIANS),
          Math.cos(arc) - Math.sin(lat * RADIANS) * Math.sin(y),
        );
        out.push([lng + x / RADIANS, y / RADIANS]);
      }
      return out;
    }
  }
}

/** Whether two lines cross, each between two positions. */
export const crosses = (a: LngLat, b: LngLat, c: LngLat, d: LngLat): boolean => {
  const side = (p: LngLat, q: LngLat, r: LngLat): number => Math.sign((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]));
  return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0;
};

/** Whether two sides of a polygon cross. Such a ring has no defined interior. */
export function selfCrossing(ring: readonly LngLat[]): boolean {
  const n = ring.length;
  for (let i = 0; i < n; i++)
    for (let j = i + 2; j < n; j++) {
      if (i === 0 && j === n - 1) continue;
      if (crosses(ring[i], ring[i + 1], ring[j], ring[(j + 1) % n])) return true;
    }
  return false;
}

/** The part of a ring on one side of a meridian (Sutherland-Hodgman). */
function clip(ring: readonly LngLat[], meridian: number, keepWest: boolean): LngLat[] {
  const inside = ([x]: LngLat): boolean => (keepWest ? x <= meridian : x >= meridian);
  const out: LngLat[] = [];
  ring.forEach((b, i) => {
    const a = ring[(i + ring.length - 1) % ring.length];
    if (inside(a) !== inside(b)) out.push([meridian, a[1] + ((meridian - a[0]) / (b[0] - a[0])) * (b[1] - a[1])]);
    if (inside(b)) out.push(b);
  });
  return out;
}

/** A ring as one or more rings between -180 and 180: planar questions must not cross the antimeridian. */
export function splitRing(ring: readonly LngLat[]): LngLat[][] {
  const lngs = ring.map(([x]) => x);
  const shift = Math.floor((Math.min(...lngs) + 180) / 360) * 360;
  const moved = ring.map(([x, y]): LngLat => [x - shift, clampLat(y)]);
  if (Math.max(...lngs) - shift <= 180) return [moved];
  const east = clip(moved, 180, false).map(([x, y]): LngLat => [x - 360, y]);
  return [clip(moved, 180, true), east].filter((r) => r.length > 2);
}

/** Well-known text of a polygon, counter-clockwise, split at the antimeridian if necessary. */
export function polygonText(ring: readonly LngLat[]): string {
  const rings = splitRing(ring).map((r) => {
    const area = r.reduce((sum, [x, y], i) => sum + x * r[(i + 1) % r.length][1] - r[(i + 1) % r.length][0] * y, 0);
    const turned = area < 0 ? r.slice().reverse() : r;
    return `(${[...turned, turned[0]].map(([x, y]) => `${round6(x)} ${round6(y)}`).join(',')})`;
  });
  return rings.length === 1 ? `POLYGON(${rings[0]})` : `MULTIPOLYGON(${rings.map((r) => `(${r})`).join(',')})`;
}

/** A description of the shape. */
export function describe(shape: Shape): string {
  const at = ([lng, lat]: LngLat): string =>
    `${Math.abs(lat).toFixed(2)}°${lat < 0 ? 'S' : 'N'} ${Math.abs(wrapLng(lng)).toFixed(2)}°${wrapLng(lng) < 0 ? 'W' : 'E'}`;
  switch (shape.kind) {
    case 'box':
      return `Box ${at([shape.west, shape.south])} to ${at([shape.east, shape.north])}`;
    case 'circle':
      return `Circle of ${formatMetres(shape.radius)} around ${at(shape.center)}`;
    case 'polygon':
      return `Polygon of ${shape.ring.length} corners`;
  }
}

/** A length with its unit. */
export function formatMetres(metres: number): string {
  if (metres < 1000) return `${Math.round(metres)} m`;
  const km = metres / 1000;
  return `${km < 10 ? km.toFixed(1) : Math.round(km).toLocaleString('en')} km`;
}

const pair = ([lng, lat]: LngLat): string => `${round6(lng)},${round6(lat)}`;

/** A shape as text, for the address of the page. */
export function shapeText(shape: Shape): string {
  switch (shape.kind) {
    case 'box':
      return `box:${[shape.west, shape.south, shape.east, shape.north].map(round6).join(',')}`;
    case 'circle':
      return `circle:${pair(shape.center)},${Math.round(shape.radius * 10) / 10}`;
    case 'polygon':
      return `polygon:${shape.ring.map(pair).join(';')}`;
  }
}

/** Parses the text of `shapeText`; null if it is not one. */
export function parseShape(text: string): Shape | null {
  const [kind, rest = ''] = text.split(/:(.*)/s);
  const numbers = rest.split(/[,;]/).map((part) => (part.trim() ? Number(part) : NaN));
  if (!numbers.every(Number.isFinite)) return null;
  if (kind === 'box' && numbers.length === 4) {
    const [west, south, east, north] = numbers;
    return west <= east && south <= north ? { kind, west, south, east, north } : null;
  }
  if (kind === 'circle' && numbers.length === 3) {
    const [lng, lat, radius] = numbers;
    return radius > 0 && Math.abs(lat) <= 90 ? { kind, center: [lng, lat], radius } : null;
  }
  if (kind === 'polygon' && numbers.length >= 6 && numbers.length % 2 === 0) {
    const ring: LngLat[] = [];
    for (let i = 0; i < numbers.length; i += 2) ring.push([numbers[i], numbers[i + 1]]);
    return { kind, ring };
  }
  return null;
}

/** West, south, east and north of positions. */
export function extent(positions: readonly LngLat[]): [number, number, number, number] {
  const [lngs, lats] = [positions.map(([lng]) => lng), positions.map(([, lat]) => lat)];
  return [Math.min(...lngs), Math.min(...lats), Math.max(...lngs), Math.max(...lats)];
}
