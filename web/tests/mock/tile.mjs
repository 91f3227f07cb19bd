// A vector tile of the stand-in: its events, or cells with their counts.
import { GeoJSONVT } from '@maplibre/geojson-vt';
import { fromGeojsonVt } from '@maplibre/vt-pbf';
import { boxOf, matching } from './questions.mjs';

/** Tiles with more points than this are answered as cells. */
const TILE_POINTS_MAX = 4_096;
const CELLS = 64;

const R = Math.PI / 180;
const tileX = (lng, z) => ((lng + 180) / 360) * 2 ** z;
const tileY = (lat, z) => {
  const s = Math.sin(Math.max(-85.05, Math.min(85.05, lat)) * R);
  return (0.5 - Math.log((1 + s) / (1 - s)) / (4 * Math.PI)) * 2 ** z;
};
const lngOf = (x, z) => (x / 2 ** z) * 360 - 180;
const latOf = (y, z) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / 2 ** z))) * 180) / Math.PI;

export function tile(c, query, z, row, col) {
  const edge = 0.1;
  const [w, e] = [lngOf(col - edge, z), lngOf(col + 1 + edge, z)];
  const [s, n] = [latOf(row + 1 + edge, z), latOf(row - edge, z)];
  const inside = matching(c, query).filter((f) => {
    const [fw, fs, fe, fn] = boxOf(f);
    return fe >= w && fw <= e && fn >= s && fs <= n;
  });
  const names = query.has('properties') ? query.get('properties').split(',').filter(Boolean) : Object.keys(c.properties);
  let features = inside.map((f) => ({ type: 'Feature', geometry: f.geometry, properties: { ...Object.fromEntries(names.map((n) => [n, f.properties[n]])), id: f.id } }));
  if (inside.length > TILE_POINTS_MAX || query.get('density') === 'true') {
    const cells = new Map();
    const averaged = query.get('avg');
    for (const f of inside) {
      const [fw, fs, fe, fn] = boxOf(f);
      const [lng, lat] = [(fw + fe) / 2, (fs + fn) / 2];
      const [i, j] = [Math.floor((tileX(lng, z) - col) * CELLS), Math.floor((tileY(lat, z) - row) * CELLS)];
      if (i < 0 || j < 0 || i >= CELLS || j >= CELLS) continue;
      const cell = cells.get(i * CELLS + j) ?? { count: 0, values: 0, sum: 0 };
      cell.count++;
      if (averaged && typeof f.properties[averaged] === 'number') {
        cell.values++;
        cell.sum += f.properties[averaged];
      }
      cells.set(i * CELLS + j, cell);
    }
    features = [...cells].map(([key, { count, values, sum }]) => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [lngOf(col + (Math.floor(key / CELLS) + 0.5) / CELLS, z), latOf(row + ((key % CELLS) + 0.5) / CELLS, z)] },
      properties: { count, density: true, ...(values ? { values, avg: sum / values } : {}) },
    }));
  }
  const made = new GeoJSONVT({ type: 'FeatureCollection', features }, { maxZoom: z, indexMaxZoom: 0, buffer: 64 }).getTile(z, col, row);
  return made ? Buffer.from(fromGeojsonVt({ [c.id]: made }, { version: 2 })) : null;
}
