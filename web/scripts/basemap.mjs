// Makes the base map from Natural Earth (public domain): land, borders between countries, and points for the names.
//
// Neighbours in the source share their border vertex by vertex. Simplifying each ring alone would tear slivers between
// them, so rings are cut where the set of owners changes, each piece is simplified once in a fixed direction, and both
// neighbours get the same piece. Pieces owned twice are the borders; the rest is coast.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decompress } from 'fzstd';

/** Coordinates of the source are taken to this many units a degree (about 110 m). */
const QUANTUM = 1000;
/**
 * Tolerance of the simplification in degrees, and decimals kept: a pixel of the map at zoom 3.5, the source's own detail, 1:50 million,
 * or a pixel of a mini map of the world.
 */
export const DETAIL = { coarse: { tolerance: 0.06, decimals: 2 }, fine: { tolerance: 0.012, decimals: 3 }, outline: { tolerance: 0.5, decimals: 1 } };

/** Names whose letters the source lost to question marks, as Natural Earth spells them. */
const RESTORED = new Map([
  ['Chi?in?u', 'Chișinău'],
  ['?saka', 'Ōsaka'],
]);

/** A name for the map. A name that lost letters and has no restored form ends the build: nobody wants it on a map. */
function nameOf(name) {
  const restored = RESTORED.get(name) ?? name;
  if (/[?\ufffd]/.test(restored)) throw new Error(`the base map's name ${JSON.stringify(name)} lost letters: add it to RESTORED`);
  return restored;
}

const features = (folder, name) =>
  Buffer.from(decompress(readFileSync(join(folder, name))))
    .toString('utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

const polygonsOf = (geometry) => (geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates);

const quantise = (ring) => {
  const out = [];
  for (const [x, y] of ring) {
    const p = [Math.round(x * QUANTUM), Math.round(y * QUANTUM)];
    const last = out[out.length - 1];
    if (!last || last[0] !== p[0] || last[1] !== p[1]) out.push(p);
  }
  if (out.length > 1) out.pop(); // open ring: the first point is not repeated
  return out;
};

const edgeKey = (a, b) => (a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]) ? `${a}|${b}` : `${b}|${a}`);

/** Douglas-Peucker on an open line of quantised points; keeps both ends. */
function simplify(line, tolerance) {
  if (line.length < 3) return line;
  const keep = new Uint8Array(line.length);
  keep[0] = keep[line.length - 1] = 1;
  const stack = [[0, line.length - 1]];
  while (stack.length) {
    const [from, to] = stack.pop();
    const [ax, ay] = line[from];
    const dx = line[to][0] - ax;
    const dy = line[to][1] - ay;
    const length = dx * dx + dy * dy;
    let worst = -1;
    let far = tolerance * tolerance;
    for (let i = from + 1; i < to; i++) {
      const px = line[i][0] - ax;
      const py = line[i][1] - ay;
      const t = length ? Math.max(0, Math.min(1, (px * dx + py * dy) / length)) : 0;
      const d = (px - t * dx) ** 2 + (py - t * dy) ** 2;
      if (d > far) {
        far = d;
        worst = i;
      }
    }
    if (worst > 0) {
      keep[worst] = 1;
      stack.push([from, worst], [worst, to]);
    }
  }
  return line.filter((_, i) => keep[i]);
}

const ringArea = (ring) => {
  let sum = 0;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) sum += ring[j][0] * ring[i][1] - ring[i][0] * ring[j][1];
  return sum / 2;
};

/** Area in degrees squared, shrunk by latitude, so that the order of names follows true size. */
const landArea = (ring) => {
  const mid = ring.reduce((s, p) => s + p[1], 0) / ring.length / QUANTUM;
  return Math.abs(ringArea(ring)) * Math.cos((mid * Math.PI) / 180);
};

const signedDistance = (x, y, rings) => {
  let inside = false;
  let best = Infinity;
  for (const ring of rings) {
    for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
      const [ax, ay] = ring[i];
      const [bx, by] = ring[j];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
      const dx = bx - ax;
      const dy = by - ay;
      const t = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
      best = Math.min(best, (x - ax - t * dx) ** 2 + (y - ay - t * dy) ** 2);
    }
  }
  return (inside ? 1 : -1) * Math.sqrt(best);
};

/** A point well inside a polygon: the best of a grid, refined around the best three times. */
function labelPoint(rings) {
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of rings[0]) {
    west = Math.min(west, x);
    east = Math.max(east, x);
    south = Math.min(south, y);
    north = Math.max(north, y);
  }
  let best = [(west + east) / 2, (south + north) / 2, -Infinity];
  let [w, s, e, n] = [west, south, east, north];
  for (let round = 0; round < 4; round++) {
    const [sx, sy] = [(e - w) / 16, (n - s) / 16];
    for (let i = 0; i <= 16; i++)
      for (let j = 0; j <= 16; j++) {
        const [x, y] = [w + i * sx, s + j * sy];
        const d = signedDistance(x, y, rings);
        if (d > best[2]) best = [x, y, d];
      }
    [w, e, s, n] = [best[0] - sx, best[0] + sx, best[1] - sy, best[1] + sy];
  }
  return best;
}

/** The longer side of a ring's box. */
const reach = (ring) => Math.max(...[0, 1].map((axis) => Math.max(...ring.map((p) => p[axis])) - Math.min(...ring.map((p) => p[axis]))));

const collection = (list) => JSON.stringify({ type: 'FeatureCollection', features: list });

/** The rings of GeoJSON land as one SVG path in degrees, with south downwards. */
export const landPath = (land) =>
  JSON.parse(land)
    .features.flatMap((feature) => feature.geometry.coordinates.flat())
    .map((ring) => `M${ring.slice(0, -1).map(([x, y]) => `${x} ${y === 0 ? 0 : -y}`).join('L')}Z`)
    .join('');

/**
 * Reads the folder `natural-earth` and returns the base map as GeoJSON texts, simplified as one of `DETAIL`.
 * @returns {{land: string, borders: string, places: string}}
 */
export function basemap(folder, { tolerance, decimals }) {
  const countries = features(folder, 'countries_50m.geojsonl.zst').map((f) => ({
    name: f.properties.name,
    polygons: polygonsOf(f.geometry).map((rings) => rings.map(quantise).filter((r) => r.length > 2)).filter((p) => p.length),
  }));

  const owners = new Map();
  countries.forEach((country, index) => {
    for (const ring of country.polygons.flat())
      ring.forEach((a, i) => {
        const key = edgeKey(a, ring[(i + 1) % ring.length]);
        const list = owners.get(key);
        if (list) list.push(index);
        else owners.set(key, [index]);
      });
  });

  const short = (v) => Number((v / QUANTUM).toFixed(decimals));
  const degrees = ([x, y]) => [short(x), short(y)];
  const borders = [];
  const seen = new Set();
  const cut = (ring) => {
    const owner = ring.map((a, i) => owners.get(edgeKey(a, ring[(i + 1) % ring.length])).slice().sort().join());
    let start = owner.findIndex((o, i) => o !== owner[(i + ring.length - 1) % ring.length]);
    if (start < 0) start = 0;
    const out = [];
    let i = 0;
    while (i < ring.length) {
      const at = (start + i) % ring.length;
      const line = [ring[at]];
      let j = i;
      while (j < ring.length && owner[(start + j) % ring.length] === owner[at]) {
        j++;
        line.push(ring[(start + j) % ring.length]);
      }
      // A fixed direction, so that both owners simplify to the same points.
      const [a, b] = [line[0], line[line.length - 1]];
      const turned = a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]);
      const fixed = simplify(turned ? line.reverse() : line, tolerance * QUANTUM);
      if (owner[at].includes(',')) {
        const key = `${fixed[0]}|${fixed[Math.min(1, fixed.length - 1)]}|${fixed[fixed.length - 1]}|${fixed.length}`;
        if (!seen.has(key)) {
          seen.add(key);
          borders.push(fixed.map(degrees));
        }
      }
      const piece = turned ? fixed.slice().reverse() : fixed;
      out.push(...piece.slice(0, -1));
      i = j;
    }
    return out;
  };

  const land = [];
  const places = [];
  for (const country of countries) {
    const polygons = [];
    let largest = null;
    let area = 0;
    for (const polygon of country.polygons) {
      const size = landArea(polygon[0]) / QUANTUM ** 2;
      area += size;
      if (!largest || size > largest.size) largest = { size, polygon };
      // What is smaller than the tolerance was smaller than what is left out of a coast.
      const rings = polygon.filter((ring) => reach(ring) > tolerance * QUANTUM).map(cut).filter((r) => r.length > 2).map((r) => [...r, r[0]].map(degrees));
      if (rings.length) polygons.push(rings);
    }
    land.push({ type: 'Feature', properties: {}, geometry: { type: 'MultiPolygon', coordinates: polygons } });
    const [x, y] = labelPoint(largest.polygon);
    places.push({
      type: 'Feature',
      properties: { kind: 'country', name: nameOf(country.name), area: Math.round(area) },
      geometry: { type: 'Point', coordinates: [Math.round(x / 10) / 100, Math.round(y / 10) / 100] },
    });
  }
  for (const city of features(folder, 'capitals_110m.geojsonl.zst'))
    places.push({
      type: 'Feature',
      properties: { kind: 'city', name: nameOf(city.properties.name) },
      geometry: { type: 'Point', coordinates: city.geometry.coordinates.map((v) => Math.round(v * QUANTUM) / QUANTUM) },
    });

  return {
    land: collection(land),
    borders: collection([{ type: 'Feature', properties: {}, geometry: { type: 'MultiLineString', coordinates: borders } }]),
    places: collection(places),
  };
}
