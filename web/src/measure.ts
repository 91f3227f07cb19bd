// Lengths and areas on the sphere of the earth's mean radius, as the server's distances are.
import { distance, formatMetres, type LngLat } from './shapes';

const EARTH = 6_371_008.8;
const RADIANS = Math.PI / 180;

/** Length of a line along great circles, in metres. */
export const lengthOf = (corners: readonly LngLat[]): number => corners.reduce((sum, corner, i) => (i ? sum + distance(corners[i - 1], corner) : 0), 0);

/**
 * Area of a polygon in square metres, between sides that are straight in longitude and sine of latitude (Chamberlain and Duquette
 * 2007, equation 7). Exact for boxes; others differ little while their sides are short.
 */
export function areaOf(corners: readonly LngLat[]): number {
  let twice = 0;
  corners.forEach(([lng, lat], i) => {
    const [next, nextLat] = corners[(i + 1) % corners.length];
    twice += (next - lng) * RADIANS * (2 + Math.sin(lat * RADIANS) + Math.sin(nextLat * RADIANS));
  });
  return (Math.abs(twice) / 2) * EARTH * EARTH;
}

/** A line with points on its great circles, so that the map draws the way that is measured. */
export function pathOf(corners: readonly LngLat[]): LngLat[] {
  const path: LngLat[] = corners.slice(0, 1);
  for (let i = 1; i < corners.length; i++) {
    const [from, to] = [corners[i - 1], corners[i]];
    const arc = distance(from, to) / EARTH;
    const steps = Math.max(1, Math.ceil(arc / (2 * RADIANS)));
    const vector = ([lng, lat]: LngLat): number[] => [Math.cos(lat * RADIANS) * Math.cos(lng * RADIANS), Math.cos(lat * RADIANS) * Math.sin(lng * RADIANS), Math.sin(lat * RADIANS)];
    const [a, b] = [vector(from), vector(to)];
    for (let step = 1; step < steps; step++) {
      const [p, q] = [Math.sin(arc * (1 - step / steps)), Math.sin((arc * step) / steps)];
      const [x, y, z] = a.map((v, k) => p * v + q * b[k]);
      const lng = Math.atan2(y, x) / RADIANS;
      const last = path[path.length - 1][0];
      path.push([lng + Math.round((last - lng) / 360) * 360, Math.atan2(z, Math.hypot(x, y)) / RADIANS]);
    }
    path.push(to);
  }
  return path;
}

/** An area with its unit. */
export function formatArea(squareMetres: number): string {
  if (squareMetres < 1e4) return `${Math.round(squareMetres).toLocaleString('en')} m²`;
  const km = squareMetres / 1e6;
  if (km < 1) return `${(squareMetres / 1e4).toFixed(1)} ha`;
  return `${km < 100 ? km.toFixed(1) : Math.round(km).toLocaleString('en')} km²`;
}

/** What is measured, in words. */
export function sayMeasure(corners: readonly LngLat[], closed: boolean): string {
  if (corners.length < 2) return '';
  if (!closed) return formatMetres(lengthOf(corners));
  const around = formatMetres(lengthOf([...corners, corners[0]]));
  return corners.length > 2 ? `${formatArea(areaOf(corners))}, ${around} around` : formatMetres(lengthOf(corners));
}
