// The geometry of a mini map: its box, and the cells of a density.

export type Box = readonly [west: number, south: number, east: number, north: number];

/** The smallest height of a map, in degrees. */
const HEIGHT_MIN = 0.02;
/** Room around the events, as a share of their extent. */
const MARGIN = 0.08;
/** A cell's opacity, by the share of the largest count on a logarithmic scale. */
const SHADES: readonly number[] = [0.3, 0.45, 0.6, 0.8, 1];

/**
 * A box twice as wide as it is high on the ground, around an extent. The result is the world where that is too large or crosses
 * the antimeridian.
 */
export function boxOf([west, south, east, north]: readonly number[]): Box {
  if (!(west <= east && south <= north)) return [-180, -90, 180, 90];
  const shrink = Math.max(0.1, Math.cos((((south + north) / 2) * Math.PI) / 180));
  const height = Math.max(HEIGHT_MIN, (north - south) * (1 + 2 * MARGIN), ((east - west) * (1 + 2 * MARGIN) * shrink) / 2);
  const width = (2 * height) / shrink;
  if (height >= 180 || width >= 360) return [-180, -90, 180, 90];
  const from = (centre: number, size: number, edge: number): number => Math.min(Math.max(centre - size / 2, -edge), edge - size);
  const [x, y] = [from((west + east) / 2, width, 180), from((south + north) / 2, height, 90)];
  return [x, y, x + width, y + height];
}

/** Paths of the cells that have events, one a shade, in degrees with south downwards. */
export function cellPaths(counts: readonly number[], columns: number, rows: number, [west, south, east, north]: Box): { d: string; opacity: number }[] {
  const most = Math.log1p(Math.max(0, ...counts));
  const [width, height] = [(east - west) / columns, (north - south) / rows];
  const paths = SHADES.map(() => '');
  counts.forEach((count, i) => {
    if (count <= 0) return;
    const shade = Math.min(SHADES.length - 1, Math.floor((Math.log1p(count) / most) * SHADES.length));
    const [x, y] = [west + (i % columns) * width, Math.floor(i / columns) * height - north];
    paths[shade] += `M${+x.toFixed(5)} ${+y.toFixed(5)}h${+width.toFixed(5)}v${+height.toFixed(5)}h${-(+width.toFixed(5))}z`;
  });
  return paths.map((d, i) => ({ d, opacity: SHADES[i] })).filter(({ d }) => d);
}
