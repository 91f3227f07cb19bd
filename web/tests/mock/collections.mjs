// The collections of the stand-in: real data sets of the project, read into memory.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decompress } from 'fzstd';

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));

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

export function earthquakes() {
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

export function countries() {
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
