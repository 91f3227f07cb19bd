// A small stand-in for the server, in memory, over the real data sets of the project: just enough of the HTTP API for the
// page. The browser test runs against it when no MERIDIAN_URL is given; `npm run dev` serves it for work on the page.
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { decompress } from 'fzstd';
import { GeoJSONVT } from '@maplibre/geojson-vt';
import { fromGeojsonVt } from '@maplibre/vt-pbf';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const dist = join(root, 'web', 'dist');
/** Tiles with more points than this are answered as cells. */
const TILE_POINTS_MAX = 4_096;
const CELLS = 64;

/** Rows of a comma-separated text with quotes, as objects. */
function parseCsv(text) {
  const rows = [];
  let [field, row, quoted] = ['', [], false];
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ',' || c === '\n') {
      row.push(field);
      field = '';
      if (c === '\n') {
        rows.push(row);
        row = [];
      }
    } else if (c !== '\r') field += c;
  }
  const [head, ...rest] = rows;
  return rest.map((values) => Object.fromEntries(head.map((name, i) => [name, values[i]])));
}

const data = (path) => Buffer.from(decompress(readFileSync(join(root, 'data', path)))).toString('utf8');
const number = (text) => (text === '' ? null : Number(text));

function earthquakes() {
  const features = parseCsv(data('usgs-earthquakes/earthquakes.csv.zst')).map((r) => ({
    type: 'Feature',
    id: r.id,
    geometry: { type: 'Point', coordinates: [Number(r.longitude), Number(r.latitude)] },
    properties: { time: r.time, mag: number(r.mag), depth: number(r.depth), place: r.place, type: r.type, magType: r.magType, net: r.net, nst: number(r.nst), gap: number(r.gap), rms: number(r.rms) },
  }));
  return {
    id: 'earthquakes',
    title: 'Earthquakes',
    description: 'Earthquakes of fourteen months, U.S. Geological Survey',
    features,
    time: 'time',
    properties: {
      id: { type: 'string', 'x-ogc-role': 'id' },
      geometry: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' },
      time: { type: 'string', format: 'date-time', 'x-ogc-role': 'primary-instant' },
      mag: { type: ['number', 'null'] },
      depth: { type: ['number', 'null'] },
      place: { type: 'string' },
      type: { type: 'string' },
      magType: { type: 'string' },
      net: { type: 'string' },
      nst: { type: 'integer' },
      gap: { type: 'number' },
      rms: { type: 'number' },
    },
  };
}

function countries() {
  const features = data('natural-earth/countries_110m_pop.geojsonl.zst').split('\n').filter(Boolean).map((line, i) => ({ ...JSON.parse(line), id: `c${i}` }));
  return {
    id: 'countries',
    title: 'Countries',
    description: 'Countries of Natural Earth with their population',
    features,
    time: null,
    properties: {
      id: { type: 'string', 'x-ogc-role': 'id' },
      geometry: { format: 'geometry-polygon-or-multipolygon', 'x-ogc-role': 'primary-geometry' },
      name: { type: 'string' },
      continent: { type: 'string' },
      pop_est: { type: 'number' },
      gdp_md_est: { type: 'number' },
    },
  };
}

class Refusal extends Error {
  constructor(status, title, detail, field) {
    super(detail);
    Object.assign(this, { status, title, field });
  }
}

const bad = (field, detail) => new Refusal(400, 'Invalid parameter', detail, field);

const EARTH = 6_371_008.8;
const R = Math.PI / 180;
const metres = (a, b) =>
  2 * EARTH * Math.asin(Math.sqrt(Math.sin(((b[1] - a[1]) * R) / 2) ** 2 + Math.cos(a[1] * R) * Math.cos(b[1] * R) * Math.sin(((b[0] - a[0]) * R) / 2) ** 2));

function inRing([x, y], ring) {
  let inside = false;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    const [[ax, ay], [bx, by]] = [ring[i], ring[j]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

function boxOf(f) {
  if (f.box) return f.box;
  const flat = [f.geometry.coordinates].flat(5);
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < flat.length; i += 2) {
    box[0] = Math.min(box[0], flat[i]);
    box[1] = Math.min(box[1], flat[i + 1]);
    box[2] = Math.max(box[2], flat[i]);
    box[3] = Math.max(box[3], flat[i + 1]);
  }
  Object.defineProperty(f, 'box', { value: box });
  return box;
}

/** The few forms of CQL2 that the tests need: comparisons of a property, S_INTERSECTS with polygons, joined by AND. */
function filterTest(text, c) {
  const parts = text.split(/\s+AND\s+(?![^(]*\)\))/i).map((part) => part.trim().replace(/^\((.*)\)$/s, '$1'));
  const tests = parts.map((part) => {
    const spatial = /^S_INTERSECTS\(\s*(\w+)\s*,\s*(?:MULTI)?POLYGON\s*\((.*)\)\)$/is.exec(part);
    if (spatial) {
      const rings = spatial[2].match(/[-\d][^()]*/g).map((ring) => ring.split(',').map((p) => p.trim().split(/\s+/).map(Number)));
      return (f) => rings.some((ring) => inRing(f.geometry.coordinates, ring));
    }
    const plain = /^"?(\w+)"?\s*(>=|<=|<>|=|<|>)\s*('(?:[^']*)'|-?[\d.]+)$/.exec(part);
    if (!plain) throw bad('filter', `expected a comparison at character 1, found “${part.slice(0, 20)}”`);
    const [, name, op, raw] = plain;
    if (!c.properties[name]) throw bad('filter', `there is no property “${name}”`);
    const value = raw.startsWith("'") ? raw.slice(1, -1) : Number(raw);
    const compare = { '>=': (v) => v >= value, '<=': (v) => v <= value, '<>': (v) => v !== value, '=': (v) => v === value, '<': (v) => v < value, '>': (v) => v > value }[op];
    return (f) => f.properties[name] !== null && f.properties[name] !== undefined && compare(f.properties[name]);
  });
  return (f) => tests.every((t) => t(f));
}

const timeOf = (c, f) => (f.ms ??= Date.parse(f.properties[c.time]));

function matching(c, query) {
  const tests = [];
  const near = query.get('near');
  if (query.has('bbox')) {
    const b = query.get('bbox').split(',').map(Number);
    if (b.length !== 4 || !b.every(Number.isFinite)) throw bad('bbox', 'expected four numbers');
    const [w, s, e, n] = b;
    tests.push((f) => {
      const [fw, fs, fe, fn] = boxOf(f);
      return fn >= s && fs <= n && (w <= e ? fe >= w && fw <= e : fe >= w || fw <= e);
    });
  }
  if (query.has('datetime') && c.time) {
    const [a, b = a] = query.get('datetime').split('/');
    const from = a === '..' || a === '' ? -Infinity : Date.parse(a);
    const to = b === '..' || b === '' ? Infinity : Date.parse(b);
    if (Number.isNaN(from) || Number.isNaN(to)) throw bad('datetime', 'expected an instant or an interval');
    tests.push((f) => timeOf(c, f) >= from && timeOf(c, f) <= to);
  }
  let origin;
  if (near) {
    origin = near.split(',').map(Number);
    const radius = Number(query.get('radius'));
    tests.push((f) => f.geometry.type === 'Point' && metres(origin, f.geometry.coordinates) <= radius);
  }
  if (query.get('filter')) tests.push(filterTest(query.get('filter'), c));
  const found = tests.length ? c.features.filter((f) => tests.every((t) => t(f))) : c.features;
  return origin ? found.slice().sort((a, b) => metres(origin, a.geometry.coordinates) - metres(origin, b.geometry.coordinates)) : found;
}

function sorted(features, by) {
  if (!by) return features;
  const value = (f) => f.properties[by.replace('-', '')];
  return features.slice().sort((a, b) => (by.startsWith('-') ? -1 : 1) * (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
}

function windowStart(ms, iso) {
  const [, p, n, unit] = /^P(T?)(\d+)([SMHDWY])$/.exec(iso) ?? [];
  if (!unit) throw bad('window', 'expected an ISO 8601 duration');
  const count = Number(n);
  const date = new Date(ms);
  if (!p && (unit === 'M' || unit === 'Y')) {
    const months = count * (unit === 'Y' ? 12 : 1);
    const start = Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / months) * months;
    return [Date.UTC(1970, start - 23640), Date.UTC(1970, start + months - 23640)];
  }
  const length = count * { S: 1e3, M: 6e4, H: 36e5, D: 864e5, W: 6048e5 }[unit];
  const offset = unit === 'W' ? 4 * 864e5 : 0;
  const start = Math.floor((ms - offset) / length) * length + offset;
  return [start, start + length];
}

const iso = (ms) => new Date(ms).toISOString().replace('.000Z', 'Z');

function aggregate(c, query) {
  const functions = ((query.get('function') ?? 'count').match(/\w+(\([^)]*\))?/g) ?? []).map((text) => {
    const [, name, field, limit] = /^(\w+)(?:\((\w+)(?:,(\d+))?\))?$/.exec(text) ?? [];
    if (!name || (field && !c.properties[field])) throw bad('function', `cannot read “${text}”`);
    return { text, name, field, limit: Number(limit) };
  });
  const groups = new Map();
  for (const f of matching(c, query)) {
    const w = query.has('window') ? windowStart(timeOf(c, f), query.get('window')) : null;
    const key = w ? w[0] : 0;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { window: w, list: [] }));
    group.list.push(f);
  }
  if (!groups.size && !query.has('window')) groups.set(0, { window: null, list: [] });
  return [...groups.entries()]
    .sort((a, b) => a[0] - b[0])
    .map(([, { window, list }]) => {
      const out = window ? { window: `${iso(window[0])}/${iso(window[1])}` } : {};
      out.count = list.length;
      for (const { text, name, field, limit } of functions) {
        if (!field) continue;
        if (name === 'top') {
          const counts = new Map();
          for (const f of list) if (f.properties[field] !== null) counts.set(f.properties[field], (counts.get(f.properties[field]) ?? 0) + 1);
          out[text] = [...counts].sort((a, b) => b[1] - a[1]).slice(0, limit).map(([value, count]) => ({ value, count }));
          continue;
        }
        const values = list.map((f) => f.properties[field]).filter((v) => typeof v === 'number');
        const sum = values.reduce((a, b) => a + b, 0);
        const least = values.reduce((a, b) => Math.min(a, b), Infinity);
        const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
        out[text] = values.length ? { sum, avg: sum / values.length, min: least, max: most, count: values.length }[name] : null;
      }
      return out;
    });
}

const tileX = (lng, z) => ((lng + 180) / 360) * 2 ** z;
const tileY = (lat, z) => {
  const s = Math.sin(Math.max(-85.05, Math.min(85.05, lat)) * R);
  return (0.5 - Math.log((1 + s) / (1 - s)) / (4 * Math.PI)) * 2 ** z;
};
const lngOf = (x, z) => (x / 2 ** z) * 360 - 180;
const latOf = (y, z) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / 2 ** z))) * 180) / Math.PI;

function tile(c, query, z, row, col) {
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

const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', json: 'application/json', woff2: 'font/woff2', txt: 'text/plain; charset=utf-8' };

function describe(c) {
  const out = { id: c.id, title: c.title, description: c.description, itemCount: c.features.length, extent: {}, links: [] };
  if (!c.features.length) return out;
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  let [first, last] = [Infinity, -Infinity];
  for (const f of c.features) {
    const b = boxOf(f);
    box[0] = Math.min(box[0], b[0]);
    box[1] = Math.min(box[1], b[1]);
    box[2] = Math.max(box[2], b[2]);
    box[3] = Math.max(box[3], b[3]);
    if (c.time) {
      first = Math.min(first, timeOf(c, f));
      last = Math.max(last, timeOf(c, f));
    }
  }
  out.extent.spatial = { bbox: [box] };
  if (c.time) out.extent.temporal = { interval: [[iso(first), iso(last)]] };
  return out;
}

function answer(collections, method, url, send) {
  const parts = url.pathname.split('/').filter(Boolean).map(decodeURIComponent);
  const query = url.searchParams;
  if (parts[0] === 'map') return send(200, TYPES.html, readFileSync(join(dist, 'map.html')));
  if (parts[0] === 'favicon.svg') return send(200, 'image/svg+xml', readFileSync(join(dist, 'favicon.svg')));
  if (parts[0] === 'assets' && parts.length === 2 && existsSync(join(dist, 'assets', parts[1]))) {
    return send(200, TYPES[parts[1].split('.').pop()] ?? 'application/octet-stream', createReadStream(join(dist, 'assets', parts[1])));
  }
  const json = (body, type = 'application/json') => send(200, type, JSON.stringify(body));
  if (parts[0] === 'session') return json({ sign_in: false });
  if (parts[0] !== 'collections') throw new Refusal(404, 'Not found', `there is nothing at ${url.pathname}`);
  if (parts.length === 1) return json({ collections: [...collections.values()].map(describe), links: [] });
  const id = parts[1];
  if (method === 'PUT' && parts.length === 2) {
    collections.set(id, { id, title: id, description: '', features: [], time: 'time', properties: { geometry: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' }, time: { type: 'string', format: 'date-time', 'x-ogc-role': 'primary-instant' } } });
    return send(201, TYPES.json, '{}');
  }
  const c = collections.get(id);
  if (!c) throw new Refusal(404, 'Not found', `there is no collection “${id}”`);
  if (method === 'DELETE' && parts.length === 2) {
    collections.delete(id);
    return send(204, TYPES.json, '');
  }
  if (parts.length === 2) return json(describe(c));
  if (parts[2] === 'schema') return json({ type: 'object', properties: c.properties });
  if (parts[2] === 'aggregate') return json({ groups: aggregate(c, query) });
  if (parts[2] === 'density') {
    const [width, counts] = [Number(query.get('width')), Array(Number(query.get('width'))).fill(0)];
    for (const f of c.features) counts[Math.min(width - 1, Math.floor(((boxOf(f)[0] + 180) / 360) * width))]++;
    return json({ width, height: 1, counts });
  }
  if (parts[2] === 'items' && parts.length === 4) {
    const f = c.features.find((one) => one.id === parts[3]);
    if (!f) throw new Refusal(404, 'Not found', `there is no event “${parts[3]}”`);
    return json(f, 'application/geo+json');
  }
  if (parts[2] === 'items') {
    const limit = Number(query.get('limit') ?? 10);
    const at = Number(query.get('token') ?? 0);
    const all = sorted(matching(c, query), query.get('sortby'));
    if (query.get('f') === 'csv') {
      const names = query.get('properties')?.split(',') ?? Object.keys(c.properties).filter((name) => !c.properties[name]['x-ogc-role'] || name === c.time);
      const cell = (value) => (value === null || value === undefined ? '' : /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
      const lines = all.map((f) => [f.id, ...f.geometry.coordinates, ...names.map((name) => f.properties[name])].map(cell).join(','));
      return send(200, 'text/csv', `${['id', 'lon', 'lat', ...names].join(',')}\r\n${lines.map((line) => `${line}\r\n`).join('')}`);
    }
    const features = all.slice(at, at + limit).map(({ type, id: one, geometry, properties }) => ({ type, id: one, geometry, properties }));
    const links = [];
    if (at + limit < all.length) {
      const next = new URL(url);
      next.searchParams.set('token', String(at + limit));
      links.push({ rel: 'next', href: next.href });
    }
    return json({ type: 'FeatureCollection', features, links, numberReturned: features.length }, 'application/geo+json');
  }
  if (parts[2] === 'tiles' && parts[3] === 'WebMercatorQuad' && parts.length === 7) {
    const made = tile(c, query, Number(parts[4]), Number(parts[5]), Number(parts[6]));
    return made ? send(200, 'application/vnd.mapbox-vector-tile', made) : send(204, 'application/vnd.mapbox-vector-tile', '');
  }
  throw new Refusal(404, 'Not found', `there is nothing at ${url.pathname}`);
}

/** Starts the stand-in on a free port (or the given one) and answers its address and a way to stop it. */
export async function startMock(port = 0) {
  const collections = new Map([earthquakes(), countries()].map((c) => [c.id, c]));
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', `http://${request.headers.host}`);
    const send = (status, type, body) => {
      response.writeHead(status, { 'content-type': type });
      if (typeof body?.pipe === 'function') body.pipe(response);
      else response.end(body);
    };
    request.resume();
    request.on('end', () => {
      try {
        answer(collections, request.method, url, send);
      } catch (error) {
        const status = error instanceof Refusal ? error.status : 500;
        send(status, 'application/problem+json', JSON.stringify({ type: 'about:blank', title: error.title ?? 'Failure', status, detail: error.message, field: error.field }));
      }
    });
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url } = await startMock(Number(process.env.PORT ?? 0));
  console.log(`${url}/map`);
}
