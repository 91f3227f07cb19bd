// The tiles that a view needs. Mercator positions run from 0 to 1, from west to east and from north to south. An x beyond that
// lies on another copy of the world.
import { CELLS } from './cells';

/** Size of the map's world at zoom 0, in pixels. */
const WORLD = 512;
/** Max tiles of a view: a very large screen has coarser cells. */
const TILES_MAX = 60;
const ZOOM_MAX = 24;

/** A rectangle of tiles, both ends included. Columns may lie on another copy of the world. */
export interface Cover {
  readonly z: number;
  readonly west: number;
  readonly east: number;
  readonly north: number;
  readonly south: number;
}

/** West, south, east and north in degrees; west and east may pass 180. */
export type Box = readonly [west: number, south: number, east: number, north: number];

export const mercatorX = (lng: number): number => lng / 360 + 0.5;

/** Latitudes beyond the square are on its edge. */
export function mercatorY(lat: number): number {
  const sin = Math.sin((Math.max(-89, Math.min(89, lat)) * Math.PI) / 180);
  return Math.max(0, Math.min(1, 0.5 - Math.log((1 + sin) / (1 - sin)) / (4 * Math.PI)));
}

export const lngOf = (x: number): number => (x - 0.5) * 360;
export const latOf = (y: number): number => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;

function tilesAt(z: number, [west, south, east, north]: Box, pad: number): Cover {
  const side = 2 ** z;
  const row = (y: number): number => Math.max(0, Math.min(side - 1, Math.floor(y * side)));
  return {
    z,
    west: Math.floor((mercatorX(west) - pad) * side),
    east: Math.floor((mercatorX(east) + pad) * side),
    north: row(mercatorY(north) - pad),
    south: row(mercatorY(south) + pad),
  };
}

export const tilesOf = ({ west, east, north, south }: Cover): number => (east - west + 1) * (south - north + 1);

/** The tiles of counts of a view and of `pad` pixels around it. Their cells are 4 to 8 pixels wide. */
export function countTiles(zoom: number, box: Box, pad: number): Cover {
  const share = pad / (WORLD * 2 ** zoom);
  let z = Math.max(0, Math.min(ZOOM_MAX, Math.ceil(zoom - 1e-6)));
  let cover = tilesAt(z, box, share);
  while (z > 0 && tilesOf(cover) > TILES_MAX) cover = tilesAt(--z, box, share);
  return cover;
}

/** The boxes of the tiles that the map itself loads for a view, each with the edge that the server draws around it. */
export function eventTileBoxes(zoom: number, box: Box): Box[] {
  const z = Math.max(0, Math.floor(zoom));
  const { west, east, north, south } = tilesAt(z, box, 0);
  const [side, edge] = [2 ** z, 1 / CELLS];
  const y = (row: number): number => latOf(Math.max(0, Math.min(1, row / side)));
  const boxes = new Map<string, Box>();
  for (let row = north; row <= south; row++)
    for (let column = west; column <= east; column++) {
      // The world repeats: a tile on another copy is the same.
      const at = ((column % side) + side) % side;
      boxes.set(`${row}/${at}`, [lngOf((at - edge) / side), y(row + 1 + edge), lngOf((at + 1 + edge) / side), y(row - edge)]);
    }
  return [...boxes.values()];
}

/** Width of a cell in pixels. */
export const cellWidth = (z: number, zoom: number): number => (WORLD * 2 ** (zoom - z)) / CELLS;
