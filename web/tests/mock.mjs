// A small stand-in for the server, in memory, over the real data sets of the project: just enough of the HTTP API for the
// page. The browser test runs against it when no MERIDIAN_URL is given; `npm run dev` serves it for work on the page.
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { countries, earthquakes } from './mock/collections.mjs';
import { aggregate, boxOf, iso, matching, Refusal, sorted, timeOf } from './mock/questions.mjs';
import { tile } from './mock/tile.mjs';

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(web, 'dist');

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
  if (parts[0] === 'favicon.svg') return send(200, 'image/svg+xml', readFileSync(join(web, 'src', 'favicon.svg')));
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
