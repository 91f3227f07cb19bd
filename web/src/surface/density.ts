// Density as a smooth surface: each cell's count spreads over a disc that is as wide on the screen at every zoom.
//
// The weight at a distance r from a cell is (1 - r²/R²)², the quartic kernel (Silverman 1986, equation 4.5). It ends at R, so that
// a scale in logarithms does not draw its far tails. It weighs as much as a circle of radius R/√3: the value at a place is the
// number of events in such a circle there. A lone event is 1 at its place, and many together are as many. The average of a field
// is that of the events in the same circle, each with the same weight.
import { CELLS, type TileCells } from './cells';
import { mercatorX, mercatorY, tilesOf, type Box, type Cover } from './cover';

/** Reach of the kernel, R, in pixels of the screen. */
export const REACH = 14;
/** Radius of the circle that a value counts, in pixels. */
export const RADIUS = REACH / Math.sqrt(3);
/** Max width of the surface's own pixels: finer than the eye sees in something smooth. */
const PIXEL = 3;
/** The same where few tiles cover the view, as far out: there, cells of many events have hard edges that show corners. */
const FINE_PIXEL = 1.5;
const FINE_TILES = 16;

export interface Surface {
  readonly width: number;
  readonly height: number;
  /** Events in a circle, row by row from the north-west. */
  readonly values: Float32Array;
  readonly averages: Averages | null;
  readonly cover: Cover;
}

/** The average of a field at each pixel of a surface. */
export interface Averages {
  /** NaN where no event has a value. */
  readonly values: Float64Array;
  /** Share of the events that have a value. */
  readonly shares: Float64Array;
}

/** The kernel around the middle of a cell of `parts` pixels a side, and the offset of its first pixel from the cell's first. */
function stamp(parts: number, pixel: number): { readonly side: number; readonly first: number; readonly weights: Float32Array } {
  const reach = Math.ceil(REACH / pixel);
  const side = 2 * reach + parts;
  const from = (i: number): number => (i + 0.5 - side / 2) * pixel;
  const weights = new Float32Array(side * side);
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) weights[y * side + x] = Math.max(0, 1 - (from(x) ** 2 + from(y) ** 2) / REACH ** 2) ** 2;
  return { side, first: -reach, weights };
}

/** Averages from the sums of values and their numbers, which become the averages and the shares. */
function averagesOf(sums: Float64Array, valued: Float64Array, events: Float32Array): Averages {
  for (let i = 0; i < sums.length; i++) {
    sums[i] /= valued[i];
    valued[i] = events[i] > 0 ? Math.min(1, valued[i] / events[i]) : 0;
  }
  return { values: sums, shares: valued };
}

/** The surface of a view. `cellWidth` is the width of a cell in pixels; `tile` gives the cells of a column and a row. */
export function surfaceOf(cover: Cover, cellWidth: number, tile: (column: number, row: number) => TileCells, averaged = false): Surface {
  const parts = Math.ceil(cellWidth / (tilesOf(cover) > FINE_TILES ? PIXEL : FINE_PIXEL));
  const [width, height] = [(cover.east - cover.west + 1) * CELLS * parts, (cover.south - cover.north + 1) * CELLS * parts];
  const values = new Float32Array(width * height);
  // With twice the digits: the average of equal values must not differ from place to place.
  const [sums, valued] = [0, 1].map(() => new Float64Array(averaged ? width * height : 0));
  const { side, first, weights } = stamp(parts, cellWidth / parts);
  const add = (target: Float32Array | Float64Array, left: number, top: number, count: number): void => {
    const [west, east] = [Math.max(0, -left), Math.min(side, width - left)];
    for (let y = Math.max(0, -top); y < Math.min(side, height - top); y++) {
      const row = (top + y) * width + left;
      for (let x = west; x < east; x++) target[row + x] += count * weights[y * side + x];
    }
  };
  for (let row = cover.north; row <= cover.south; row++)
    for (let column = cover.west; column <= cover.east; column++) {
      const cells = tile(column, row);
      const [left, top] = [(column - cover.west) * CELLS, (row - cover.north) * CELLS];
      cells.counts.forEach((count, i) => {
        const [x, y] = [(left + cells.columns[i]) * parts + first, (top + cells.rows[i]) * parts + first];
        add(values, x, y, count);
        if (!averaged || !cells.values[i]) return;
        add(sums, x, y, cells.values[i] * cells.averages[i]);
        add(valued, x, y, cells.values[i]);
      });
    }
  return { width, height, values, averages: averaged ? averagesOf(sums, valued, values) : null, cover };
}

/** The values inside a box, or what else the surface has of each pixel. */
export function valuesIn({ width, height, cover, ...surface }: Surface, [west, south, east, north]: Box, values: Float32Array | Float64Array = surface.values): Float64Array {
  const [side, scale] = [2 ** cover.z, width / (cover.east - cover.west + 1)];
  const column = (lng: number): number => Math.max(0, Math.min(width, Math.round((mercatorX(lng) * side - cover.west) * scale)));
  const row = (lat: number): number => Math.max(0, Math.min(height, Math.round((mercatorY(lat) * side - cover.north) * scale)));
  const [left, right, top, bottom] = [column(west), column(east), row(north), row(south)];
  const out = new Float64Array(Math.max(0, right - left) * Math.max(0, bottom - top));
  for (let y = top; y < bottom; y++) out.set(values.subarray(y * width + left, y * width + right), (y - top) * (right - left));
  return out;
}

/** The value at a place, on whatever copy of the world it is; 0 outside of the surface. */
export function valueAt({ values, width, height, cover }: Surface, lng: number, lat: number): number {
  const [side, scale] = [2 ** cover.z, width / (cover.east - cover.west + 1)];
  const row = Math.floor((mercatorY(lat) * side - cover.north) * scale);
  const turns = Math.ceil(cover.west / side - mercatorX(lng));
  const column = Math.floor(((mercatorX(lng) + turns) * side - cover.west) * scale);
  return row >= 0 && row < height && column >= 0 && column < width ? values[row * width + column] : 0;
}
