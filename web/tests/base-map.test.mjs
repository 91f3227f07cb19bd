// The operator's base map in a real browser: a PMTiles file of pictures, one of vector tiles, and a style. The page is that of a
// running server (MERIDIAN_URL); its name of a base map, and the files, are given here.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { crc32, deflateSync } from 'node:zlib';
import { GeoJSONVT } from '@maplibre/geojson-vt';
import { fromGeojsonVt } from '@maplibre/vt-pbf';
import * as shared from './browser.mjs';

const url = new URL(process.env.MERIDIAN_URL ?? '').origin;
const troubles = [];
let browser;

/** A picture of 8 by 8 pixels in one colour. */
function png([r, g, b]) {
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body) >>> 0);
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.from([0, 0, 0, 8, 0, 0, 0, 8, 8, 2, 0, 0, 0]);
  const row = Buffer.from([0, ...Array.from({ length: 8 }, () => [r, g, b]).flat()]);
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', head), chunk('IDAT', deflateSync(Buffer.concat(Array.from({ length: 8 }, () => row)))), chunk('IEND', Buffer.alloc(0))]);
}

/** A PMTiles file (version 3) with one tile, that of zoom 0. Type 1 is a vector tile, 2 a PNG. */
function pmtiles(type, tile, metadata = {}) {
  const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(n >>> 7)]);
  const directory = Buffer.from([1, 0, 1, ...varint(tile.length), 1]);
  const about = Buffer.from(JSON.stringify(metadata));
  const header = Buffer.alloc(127);
  header.write('PMTiles');
  header[7] = 3;
  const at = [127, directory.length, 127 + directory.length, about.length, 0, 0, 127 + directory.length + about.length, tile.length, 1, 1, 1];
  at.forEach((value, i) => header.writeBigUInt64LE(BigInt(value), 8 + 8 * i));
  header.set([1, 1, 1, type, 0, 0], 96);
  [-180e7, -85e7, 180e7, 85e7].forEach((value, i) => header.writeInt32LE(value, 102 + 4 * i));
  return Buffer.concat([header, directory, about, tile]);
}

/** Opens the map over a base map whose files are `files`; answers the page. */
async function open(address, files) {
  const page = await browser.newPage({ viewport: { width: 1000, height: 700 } });
  page.setDefaultTimeout(shared.PATIENCE);
  shared.watch(page, url, troubles);
  await page.route(`${url}/map`, async (route) => {
    const response = await route.fetch();
    const html = (await response.text()).replace('<meta name="meridian-base-map" content="">', `<meta name="meridian-base-map" content="${address}">`);
    assert.ok(html.includes(address), 'the page has a place for the address');
    await route.fulfill({ response, body: html });
  });
  for (const [path, content] of Object.entries(files))
    await page.route(url + path, async (route) => {
      const range = /bytes=(\d+)-(\d+)/.exec(route.request().headers()['range'] ?? '');
      if (!range) return route.fulfill({ body: content, contentType: 'application/json' });
      const part = content.subarray(Number(range[1]), Number(range[2]) + 1);
      await route.fulfill({ status: 206, body: part, headers: { 'content-range': `bytes ${range[1]}-${Number(range[1]) + part.length - 1}/${content.length}`, 'accept-ranges': 'bytes' } });
    });
  await page.goto(`${url}/map#c=earthquakes&m=2/0/-140&q=mag+>+9`);
  await page.waitForFunction(() => window.meridianMap?.loaded(), undefined, { timeout: shared.PATIENCE });
  await shared.rest(page);
  return page;
}

/** The colour of the map at a place. */
async function colour(page, lng, lat) {
  const { x, y } = await shared.onScreen(page, lng, lat);
  const data = (await page.screenshot({ clip: { x: Math.round(x), y: Math.round(y), width: 1, height: 1 } })).toString('base64');
  return page.evaluate(async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const c = new OffscreenCanvas(1, 1).getContext('2d');
    c.drawImage(image, 0, 0);
    return [...c.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  }, data);
}

const close = (seen, wanted) => assert.ok(Math.hypot(...seen.map((v, i) => v - wanted[i])) < 8, `${seen}, not ${wanted}`);

describe('a base map of the operator', { timeout: 3_600_000 }, () => {
  before(async () => (browser = await shared.launch()));
  after(() => browser?.close());
  let page;
  const step = (name, work) => shared.step(name, () => page, troubles, work);

  step('may be pictures in a PMTiles file', async () => {
    page = await open('/base-map.pmtiles', { '/base-map.pmtiles': pmtiles(2, png([10, 200, 30]), { attribution: 'Pictures of a test' }) });
    close(await colour(page, -150, 5), [10, 200, 30]);
    assert.match(await page.textContent('.maplibregl-ctrl-attrib-inner'), /Pictures of a test/);
    await page.close();
  });

  step('may be vector tiles, in the colours of the page', async () => {
    const land = { type: 'Feature', properties: {}, geometry: { type: 'Polygon', coordinates: [[[-170, -20], [-120, -20], [-120, 20], [-170, 20], [-170, -20]]] } };
    const made = new GeoJSONVT({ type: 'FeatureCollection', features: [land] }, { maxZoom: 0, indexMaxZoom: 0 }).getTile(0, 0, 0);
    const tile = Buffer.from(fromGeojsonVt({ earth: made }, { version: 2 }));
    page = await open('/base-map.pmtiles', { '/base-map.pmtiles': pmtiles(1, tile, { vector_layers: [{ id: 'earth' }] }) });
    close(await colour(page, -150, 5), [0xf7, 0xf6, 0xf2]);
    close(await colour(page, -150, 35), [0xdb, 0xe4, 0xea]);
    await page.close();
  });

  step('of which no layer is known is said with the layers found, and the built-in one is shown', async () => {
    page = await open('/base-map.pmtiles', { '/base-map.pmtiles': pmtiles(1, Buffer.alloc(1), { vector_layers: [{ id: 'parcels' }, { id: 'hydrants' }] }) });
    assert.ok(await page.isVisible('#problem'));
    assert.match(await page.textContent('#problem'), /base-map\.pmtiles has none of the layers of Protomaps or OpenMapTiles.*found parcels, hydrants/);
    close(await colour(page, -150, 35), [0xdb, 0xe4, 0xea]);
    await page.close();
  });

  step('may be a style', async () => {
    const style = { version: 8, sources: {}, layers: [{ id: 'ground', type: 'background', paint: { 'background-color': '#884422' } }] };
    page = await open('/some/style.json', { '/some/style.json': Buffer.from(JSON.stringify(style)) });
    close(await colour(page, -150, 5), [0x88, 0x44, 0x22]);
    await page.close();
  });

  step('that cannot be read is said, and the built-in one is shown', async () => {
    page = await open('/some/style.json', { '/some/style.json': Buffer.from('{"version":7}') });
    assert.ok(await page.isVisible('#problem'));
    assert.match(await page.textContent('#problem'), /not a style/);
    close(await colour(page, -150, 35), [0xdb, 0xe4, 0xea]);
    await page.close();
  });
});
