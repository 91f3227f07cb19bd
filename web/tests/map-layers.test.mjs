// Layers, files, measures, downloads, the picture, the frame, the trail and the live mode, in a real browser against a running server
// (MERIDIAN_URL) with the demo's earthquakes, ships, storms and countries.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe } from 'node:test';
import * as shared from './browser.mjs';

const { becomes, PATIENCE } = shared;
const url = new URL(process.env.MERIDIAN_URL ?? '').origin;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const troubles = [];
let browser;
let context;
let page;

const api = async (path, init) => {
  const response = await fetch(url + path, init);
  assert.ok(response.ok, `${response.status} ${path}: ${await response.clone().text()}`);
  return response.status === 204 ? null : response.json();
};
const ask = (collection, query) => api(`/collections/${collection}/aggregate?${new URLSearchParams(query)}`).then(({ groups }) => groups[0]);
const rest = () => shared.rest(page);

async function show(hash, path = '/map') {
  await page.goto('about:blank');
  await page.goto(`${url}${path}#${hash}`);
  await page.waitForFunction(() => window.meridianMap && (document.querySelectorAll('#table tbody tr[data-id][data-id]').length > 0 || !document.querySelector('#overlay').hidden), undefined, { timeout: PATIENCE });
  await rest();
}

const hashValue = async (key) => new URLSearchParams(new URL(page.url()).hash.slice(1)).get(key);
const layers = () => page.locator('#layers li').evaluateAll((rows) => rows.map((row) => `${row.dataset.collection ?? row.dataset.file}${row.classList.contains('active') ? '*' : ''}`));
const drawn = (layer) => page.evaluate((id) => (window.meridianMap.getLayer(id) ? window.meridianMap.queryRenderedFeatures({ layers: [id] }).length : -1), layer);
const sight = () => page.evaluate(() => window.meridianMap.getBounds().toArray().flat().map((v) => Math.round(v * 1e6) / 1e6).join(','));
/** Names of the style's layers from the lowest to the uppermost. */
const order = () => page.evaluate(() => window.meridianMap.getLayersOrder().filter((id) => /-point$/.test(id) && !/result|live|chosen/.test(id)));
const at = async (lng, lat) => shared.onScreen(page, lng, lat);

describe('the layers of the map', { timeout: 3_600_000 }, () => {
  before(async () => {
    browser = await shared.launch();
    context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true });
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    shared.watch(page, url, troubles);
  });
  after(() => browser?.close());

  const step = (name, work) => shared.step(name, () => page, troubles, work);

  step('adds a collection under the one that is asked about, moves, hides and removes it', async () => {
    await show('c=earthquakes&m=5/28/-88&q=mag+>+4');
    await page.selectOption('#add-layer', 'storms');
    await page.waitForFunction(() => window.meridianMap.getLayer('below0-line'));
    await rest();
    assert.deepEqual(await layers(), ['earthquakes*', 'storms']);
    assert.ok((await drawn('below0-line')) > 0, 'storms are drawn');
    assert.deepEqual(await order(), ['below0-point', 'event-point']);
    // The question is still about earthquakes.
    const { count } = await ask('earthquakes', { function: 'count', filter: 'mag > 4', bbox: await sight() });
    await becomes(() => page.textContent('#count'), new Intl.NumberFormat('en').format(count));
    await page.click('[data-layer=storms][data-act=up]');
    await becomes(async () => (await layers()).join(), 'storms,earthquakes*');
    await rest();
    assert.deepEqual(await order(), ['event-point', 'above0-point']);
    assert.ok((await drawn('above0-line')) > 0);
    await page.click('[data-layer=storms][data-act=eye]');
    await rest();
    assert.equal(await drawn('above0-line'), -1);
    await page.click('[data-layer=storms][data-act=eye]');
    await rest();
    assert.ok((await drawn('above0-line')) > 0);
    await page.click('[data-layer=storms][data-act=remove]');
    await becomes(async () => (await layers()).join(), 'earthquakes*');
    await rest();
    assert.equal(await drawn('above0-line'), -1);
  });

  step('restores layers from a link, and asks about another one with its own filter', async () => {
    const filter = 'mag > 4';
    await show(`c=storms&m=4/28/-88&u=${encodeURIComponent(new URLSearchParams({ c: 'earthquakes', q: filter, k: '3', o: '50' }))}`);
    assert.deepEqual(await layers(), ['earthquakes', 'storms*']);
    assert.equal(await page.evaluate(() => window.meridianMap.getPaintProperty('above0-point', 'circle-color')), '#009e73');
    const presence = await page.evaluate(() => window.meridianMap.getPaintProperty('above0-point', 'circle-opacity'));
    assert.ok(presence > 0 && presence <= 0.85 * 0.5 + 1e-9, `${presence}`);
    const titles = await page.locator('#legend [data-legend=layer]').allTextContents();
    assert.deepEqual(titles, ['earthquakes', 'storms']);
    await page.click('[data-layer=earthquakes][data-act=name]');
    await becomes(() => page.inputValue('#filter'), filter);
    await rest();
    const { count } = await ask('earthquakes', { function: 'count', filter, bbox: await sight() });
    await becomes(() => page.textContent('#count'), new Intl.NumberFormat('en').format(count));
    assert.deepEqual(await layers(), ['earthquakes*', 'storms']);
  });

  step('shows the details of an event of another layer', async () => {
    await show(`c=earthquakes&m=5/28/-88&q=mag+>+4&u=${encodeURIComponent('c=storms')}`);
    const hit = await page.evaluate(() => {
      const map = window.meridianMap;
      const box = map.getContainer().getBoundingClientRect();
      for (let x = 150; x < box.width - 260; x += 12)
        for (let y = 150; y < box.height - 150; y += 12) if (map.queryRenderedFeatures([x, y], { layers: ['above0-line'] }).length) return { x: box.left + x, y: box.top + y };
      return null;
    });
    assert.ok(hit, 'a storm is in sight');
    await page.mouse.click(hit.x, hit.y);
    await page.waitForSelector('.event-popup .card');
    const id = await page.textContent('.event-popup .card-foot span');
    const { properties } = await api(`/collections/storms/items/${encodeURIComponent(id)}`);
    assert.ok((await page.textContent('.event-popup .card')).includes(String(properties.name ?? properties.storm_id)));
  });

  step('colours by the values of a text, counts them, and asks for one that is clicked', async () => {
    await show('c=earthquakes&m=5.3/36/-119&q=mag+>+2.5');
    await page.selectOption('#field', 'type');
    await page.waitForSelector('#legend [data-value=earthquake]');
    await rest();
    const bbox = await sight();
    const group = await ask('earthquakes', { function: 'count,top(type,8)', filter: 'mag > 2.5', bbox });
    const said = await page.locator('#legend .value').evaluateAll((rows) => rows.map((row) => [row.dataset.value, row.querySelector('.value-count').textContent]));
    assert.deepEqual(said, group['top(type,8)'].map(({ value, count }) => [value, new Intl.NumberFormat('en').format(count)]));
    // The colour of the legend is the colour of the map.
    const swatch = await page.locator('#legend [data-value=earthquake] em').evaluate((dot) => dot.style.background);
    const paint = await page.evaluate(() => window.meridianMap.getPaintProperty('event-point', 'circle-color'));
    const color = paint[2][paint[2].indexOf('earthquake') + 1];
    assert.equal(swatch, `rgb(${[1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)).join(', ')})`);
    const other = said.find(([value]) => value !== 'earthquake')?.[0] ?? 'earthquake';
    await page.click(`#legend [data-value="${other}"]`);
    const filter = `mag > 2.5 AND type = '${other}'`;
    await becomes(() => page.inputValue('#filter'), filter);
    const { count } = await ask('earthquakes', { function: 'count', filter, bbox });
    await becomes(() => page.textContent('#count'), new Intl.NumberFormat('en').format(count));
  });

  step('sizes by a number: the largest circle has the largest value', async () => {
    await show('c=earthquakes&m=5.3/36/141&z=mag');
    await page.waitForSelector('#legend [data-legend=size] .circles');
    const radii = await page.evaluate(() => {
      const radius = window.meridianMap.getPaintProperty('event-point', 'circle-radius');
      return JSON.stringify(radius).includes('mag');
    });
    assert.ok(radii);
    // As the screen has it: a strong event's disc is wider than a weak one's.
    const circles = await page.locator('#legend [data-legend=size] em').evaluateAll((list) => list.map((one) => one.offsetWidth));
    assert.ok(circles.length === 3 && circles[0] < circles[1] && circles[1] < circles[2], circles.join());
  });

  step('measures a distance and an area', async () => {
    await show('c=countries&m=4/50/10');
    await page.click('[data-draw=distance]');
    for (const [lng, lat] of [[2.35, 48.86], [13.4, 52.52]]) {
      const there = await at(lng, lat);
      await page.mouse.click(there.x, there.y);
    }
    await page.click('#draw-finish');
    // Paris to Berlin.
    const km = Number((await page.textContent('#measured-text')).match(/^([\d,]+) km$/)[1].replace(',', ''));
    assert.ok(Math.abs(km - 878) < 15, `${km} km`);
    await page.click('[data-draw=area]');
    for (const [lng, lat] of [[5, 45], [15, 45], [15, 55], [5, 55]]) {
      const there = await at(lng, lat);
      await page.mouse.click(there.x, there.y);
    }
    await page.click('#draw-finish');
    const area = Number((await page.textContent('#measured-text')).match(/^([\d,]+) km²/)[1].replaceAll(',', ''));
    assert.ok(Math.abs(area / 794_000 - 1) < 0.03, `${area} km²`);
    await page.click('#measured-clear');
    assert.ok(await page.isHidden('#measured'));
    assert.equal(await hashValue('s'), null, 'nothing was asked');
  });

  step('looks at a file without sending it, and loads it where the caller may write', async () => {
    const id = `file-test-${process.pid}`;
    const csv = 'name,lon,lat,size,seen\nAlpha,-118.2,36.1,4,2024-05-01T10:00:00Z\nBeta,-117.5,35.2,9,2024-05-02T10:00:00Z\nNowhere,,,1,\n';
    await show('c=countries&m=4/37/-119');
    const posted = [];
    page.on('request', (request) => request.method() !== 'GET' && posted.push(request.url()));
    await page.setInputFiles('#file', { name: `${id}.csv`, mimeType: 'text/csv', buffer: Buffer.from(csv) });
    await page.waitForSelector('#layers .file');
    await rest();
    assert.deepEqual([await drawn('file1-point'), posted], [2, []]);
    assert.match(await page.textContent('#layers .file'), /\.csv2Load….*1 without a place/);
    const there = await at(-117.5, 35.2);
    await page.mouse.click(there.x, there.y);
    await page.waitForSelector('.event-popup .card');
    assert.match(await page.textContent('.event-popup .card'), /Beta/);
    await page.click('.maplibregl-popup-close-button');
    assert.ok((await page.textContent('#legend')).includes(`${id}.csv`), 'the legend names the file');
    await page.click('#layers .file [data-act=eye]');
    await becomes(async () => (await page.textContent('#legend')).includes(`${id}.csv`), false);
    await page.click('#layers .file [data-act=eye]');
    try {
      await page.click('#layers .file >> text=Load…');
      await page.waitForSelector('#load-dialog[open]');
      assert.equal(await page.inputValue('#load-name'), id);
      await page.click('#load-go');
      await page.waitForFunction((name) => document.querySelector('#collection').value === name, id, { timeout: PATIENCE });
      await rest();
      const { features } = await api(`/collections/${id}/items?sortby=name&limit=10`);
      assert.deepEqual(features.map(({ properties, geometry }) => [properties.name, properties.size, properties.seen, ...geometry.coordinates]), [['Alpha', 4, '2024-05-01T10:00:00Z', -118.2, 36.1], ['Beta', 9, '2024-05-02T10:00:00Z', -117.5, 35.2]]);
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
  });

  step('says which column of a file looks like times and was not taken, and how it is', async () => {
    await show('c=countries&m=4/37/-119');
    await page.setInputFiles('#file', { name: 'seen.csv', mimeType: 'text/csv', buffer: Buffer.from('lon,lat,seen\n-118,36,1/31/2026 1:05 PM\n-118,35,2/1/2026 9:00 AM\n') });
    assert.match(await page.textContent('#layers .file .lacking'), /seen looks like times such as 1\/31\/2026 1:05 PM/);
    await page.click('#layers .file >> text=Load…');
    await page.waitForSelector('#load-dialog[open]');
    assert.match(await page.textContent('#load-notes-list'), /Column seen looks like times/);
    assert.match(await page.textContent('#load-command'), /^meridian load seen seen\.csv --url \S+ --date-format '%m\/%d\/%Y %I:%M %p' --zone UTC$/);
    await page.click('#load-cancel');
    await page.click('#layers .file [data-act=remove]');
    assert.equal(await page.locator('#layers .file').count(), 0);
  });

  step('draws what lies exactly on the antimeridian', async () => {
    await show('c=countries&m=2/10/175');
    await page.setInputFiles('#file', { name: 'edge.csv', mimeType: 'text/csv', buffer: Buffer.from('lon,lat\n180,10\n-180,14\n170,5\n-170,5\n') });
    await page.waitForSelector('#layers .file');
    await rest();
    const seen = () => page.evaluate(() => new Set(window.meridianMap.queryRenderedFeatures({ layers: ['file1-point'] }).map(({ properties }) => properties['@at'])).size);
    assert.equal(await seen(), 4);
  });

  step('shows the places of a file clear of tools and notes, and says what is counted beside it', async () => {
    for (const [width, csv] of [[1280, 'lon,lat\n8.5,47.36\n8.56,47.4\n'], [1280, 'lon,lat\n8.5,47.4\n8.56,47.36\n'], [390, 'lon,lat\n8.5,47.36\n8.56,47.36\n']]) {
      await page.setViewportSize({ width, height: 800 });
      await show('c=countries&m=4/37/-119');
      await page.setInputFiles('#file', { name: 'near.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });
      await page.waitForSelector('#layers .file');
      await rest();
      const places = await Promise.all(csv.trim().split('\n').slice(1).map((line) => at(...line.split(',').map(Number))));
      const covers = await page.locator('.base-note, .legend, .tools, .maplibregl-ctrl-group').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
      for (const { x, y } of places) assert.deepEqual(covers.filter((box) => x > box.left && x < box.right && y > box.top && y < box.bottom), [], `${width} wide: ${x}, ${y}`);
      assert.match(await page.textContent('.total'), /events? of countries/i);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  step('says of events without a place whether they have a time', async () => {
    const id = `plain-test-${process.pid}`;
    await fetch(`${url}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify({ type: 'object', properties: { tag: { type: 'string' } } }) });
    try {
      await api(`/collections/${id}/items`, { method: 'POST', headers: { 'content-type': 'application/geo+json' }, body: JSON.stringify({ type: 'Feature', geometry: null, properties: { tag: 'a' } }) });
      await show(`c=${id}`);
      assert.match(await page.textContent('#overlay'), /neither a place nor a time/);
      assert.doesNotMatch(await page.textContent('#overlay'), /histogram/);
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
  });

  step('says what is wrong with a file', async () => {
    await show('c=countries&m=4/37/-119');
    await page.setInputFiles('#file', { name: 'x.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') });
    await page.waitForSelector('#problem:not([hidden])');
    assert.match(await page.textContent('#problem'), /x\.csv is not shown.*There is no column for a place/);
    await page.setInputFiles('#file', { name: 'walk.gpx', mimeType: 'application/gpx+xml', buffer: Buffer.from('<?xml version="1.0"?><gpx version="1.1"></gpx>') });
    await becomes(() => page.textContent('#problem b'), 'walk.gpx is not shown');
    assert.match(await page.textContent('#problem p'), /does not read GPX;.*meridian load COLLECTION walk\.gpx/);
    assert.equal(await page.isHidden('#retry'), true, 'another try finds the same');
  });

  step('downloads what is selected, in each format', async () => {
    await show(`c=earthquakes&m=5/37/-119&s=box:-122,35,-116,39&q=${encodeURIComponent('mag > 4')}`);
    await page.click('#download');
    await page.waitForSelector('#download-list a');
    const links = await page.locator('#download-list a').evaluateAll((list) => list.map((link) => [link.dataset.format, link.getAttribute('href'), link.download]));
    for (const format of ['json', 'csv', 'ndjson', 'geojsonseq', 'arrow', 'parquet', 'flatgeobuf']) assert.ok(links.some(([one]) => one === format), format);
    const { count } = await ask('earthquakes', { function: 'count', filter: 'mag > 4', bbox: '-122,35,-116,39' });
    const body = async (format) => (await fetch(url + links.find(([one]) => one === format)[1])).text();
    assert.equal((await body('csv')).trim().split('\n').length - 1, count);
    assert.equal(JSON.parse(await body('json')).features.length, count);
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('#download-list a[data-format=ndjson]')]);
    assert.equal(file.suggestedFilename(), 'earthquakes.ndjson');
    assert.equal(readFileSync(await file.path(), 'utf8').trim().split('\n').length, count);
    const command = await page.textContent('#download-commands pre[data-extension=gpkg]');
    assert.equal(command, `meridian export earthquakes earthquakes.gpkg --bbox=-122,35,-116,39 '--filter=mag > 4' --url ${url}`);
    await page.keyboard.press('Escape');
  });

  step('saves the picture with its legend and its sources', async () => {
    await show('c=earthquakes&m=5.3/36/141&f=mag');
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('#save-picture')]);
    assert.equal(file.suggestedFilename(), 'earthquakes.png');
    const png = readFileSync(await file.path()).toString('base64');
    const seen = await page.evaluate(async (data) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const c = new OffscreenCanvas(image.width, image.height).getContext('2d');
      c.drawImage(image, 0, 0);
      const bytes = c.getImageData(0, 0, image.width, image.height).data;
      const near = (i, hex) => Math.hypot(...[0, 1, 2].map((k) => bytes[i + k] - parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16))) < 12;
      const found = { sea: 0, legend: 0 };
      // The end of the ramp of values, in the lower right corner.
      for (let i = 0; i < bytes.length; i += 4) {
        const [x, y] = [(i / 4) % image.width, Math.floor(i / 4 / image.width)];
        if (near(i, '#dbe4ea')) found.sea++;
        if (x > image.width - 210 && y > image.height - 120 && near(i, '#34429d')) found.legend++;
      }
      return { ...found, width: image.width, height: image.height };
    }, png);
    const box = await page.locator('#map').boundingBox();
    assert.deepEqual([seen.width, seen.height], [Math.round(box.width), Math.round(box.height)]);
    assert.ok(seen.sea > 10_000 && seen.legend > 20, JSON.stringify(seen));
  });

  step('is a map alone in a frame, with a way to the whole page', async () => {
    await show('c=earthquakes&m=4/37/-119', '/map?embed');
    for (const hidden of ['.bar', '.panel', '.tools']) assert.ok(await page.isHidden(hidden), hidden);
    const [map, time] = [await page.locator('#map').boundingBox(), await page.locator('#timeline').boundingBox()];
    assert.ok(map.width === 1280 && map.height + time.height > 790, JSON.stringify([map, time]));
    await page.evaluate(() => document.querySelector('#embed-open').addEventListener('click', (e) => e.preventDefault()));
    await page.click('#embed-open');
    assert.match(await page.getAttribute('#embed-open', 'href'), /^\/map#c=earthquakes/);
  });

  step('frames events around the antimeridian', async () => {
    const id = `dateline-test-${process.pid}`;
    const schema = { type: 'object', properties: { geometry: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' }, n: { type: 'integer' } } };
    await fetch(`${url}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify(schema) });
    try {
      const lines = [177, 179, -179, -176].map((lng, n) => JSON.stringify({ type: 'Feature', geometry: { type: 'Point', coordinates: [lng, -18] }, properties: { n } }));
      await api(`/collections/${id}/items`, { method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body: lines.join('\n') });
      await show(`c=${id}`);
      const [west, , east] = (await sight()).split(',').map(Number);
      assert.ok(east - west < 60, `from ${west} to ${east}`);
      assert.equal(await page.textContent('#count'), '4');
      assert.equal(await page.evaluate(() => window.meridianPicture.inView().length), 4);
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
  });

  step('plays a trail of single events that moves, and gives the picture back', async () => {
    await show('c=earthquakes&m=4/37/-119&q=mag+>+3');
    await page.click('#play');
    await page.waitForFunction(() => window.meridianTrail.shown && window.meridianTrail.layer.visible() > 0, undefined, { timeout: PATIENCE });
    assert.equal(await page.evaluate(() => window.meridianPicture.showsEvents || window.meridianPicture.stops() !== null), false);
    assert.ok((await page.locator('#legend [data-legend=trail]').count()) === 1);
    const first = await page.evaluate(() => location.hash);
    await page.waitForFunction((old) => location.hash !== old, first, { timeout: PATIENCE });
    await page.click('#play');
    await rest();
    assert.equal(await page.evaluate(() => window.meridianTrail.shown), false);
    assert.equal(await page.locator('#legend [data-legend=trail]').count(), 0);
    await page.click('#clear-time');
  });

  step('follows events as they are written: objects move, and their tracks grow', async () => {
    const id = `live-test-${process.pid}`;
    const schema = {
      type: 'object',
      properties: { geometry: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' }, time: { type: 'string', format: 'date-time', 'x-ogc-role': 'primary-instant' }, boat: { type: 'string', 'x-meridian-object': true } },
      required: ['time'],
    };
    await fetch(`${url}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify(schema) });
    const write = (boat, lng, minute) => api(`/collections/${id}/items`, { method: 'POST', headers: { 'content-type': 'application/geo+json' }, body: JSON.stringify({ type: 'Feature', geometry: { type: 'Point', coordinates: [lng, 54] }, properties: { time: `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`, boat } }) });
    try {
      await write('a', 10, 0);
      await write('b', 12, 0);
      await show(`c=${id}&m=5/54/11`);
      await page.click('#live');
      await page.waitForFunction(() => /Live · 2 objects/.test(document.querySelector('#live-state').textContent), undefined, { timeout: PATIENCE });
      await write('a', 10.5, 1);
      await write('a', 11, 2);
      await page.waitForFunction(() => ['live-track', 'live-heading'].every((layer) => window.meridianMap.queryRenderedFeatures({ layers: [layer] }).length > 0), undefined, { timeout: PATIENCE });
      const [boat] = await page.evaluate(() => window.meridianMap.queryRenderedFeatures({ layers: ['live-heading'] }).map(({ properties }) => properties));
      assert.equal(boat.object, 'a');
      assert.ok(Math.abs(boat.heading - 90) < 1, `heads to ${boat.heading}`);
      await becomes(() => page.textContent('#count'), '4');
      await page.click('#live');
      await becomes(() => page.getAttribute('#live', 'aria-pressed'), 'false');
      await rest();
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
  });

  for (const scheme of ['light', 'dark'])
    step(`has nothing serious that axe finds with layers, conditions and dialogs, in the ${scheme}`, async () => {
      const shown = await browser.newContext({ viewport: { width: 390, height: 844 }, colorScheme: scheme, bypassCSP: true });
      const desk = page;
      try {
        page = await shown.newPage();
        page.setDefaultTimeout(PATIENCE);
        await show(`c=earthquakes&f=type&z=mag&m=4/37/-119&q=${encodeURIComponent('mag > 3')}&u=${encodeURIComponent('c=storms')}`);
        await page.waitForSelector('#conditions li');
        await page.evaluate(() => (document.querySelector('.style-more').open = true));
        await page.evaluate(axe);
        const check = async (what) => {
          const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
          const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
          assert.deepEqual(serious.map((one) => `${what} ${one.id}: ${one.nodes.map((n) => n.target).join(' ')}`), []);
        };
        await check('page');
        const { wide } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth }));
        assert.ok(wide <= 390, `the page is ${wide} pixels wide`);
        await page.click('#columns');
        await check('columns');
        await page.keyboard.press('Escape');
        await page.click('#embed');
        await check('embed');
      } finally {
        await page.close();
        page = desk;
        await shown.close();
      }
    });
});
