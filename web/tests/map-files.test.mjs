// Files that are dropped on the map, downloads, and the picture, in a real browser against a running server (MERIDIAN_URL) with the
// demo's earthquakes and countries.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { after, before, describe } from 'node:test';
import * as shared from './browser.mjs';
import * as map from './map.mjs';

const { becomes, PATIENCE } = shared;
const url = new URL(process.env.MERIDIAN_URL ?? '').origin;
const troubles = [];
let browser;
let context;
let page;

const api = (path, init) => map.api(url, path, init);
const ask = (collection, query) => api(`/collections/${collection}/aggregate?${new URLSearchParams(query)}`).then(({ groups }) => groups[0]);
const rest = () => shared.rest(page);
const show = (hash, path = '/map') => map.show(page, `${url}${path}#${hash}`);
const drawn = (layer) => map.drawn(page, layer);
const at = (lng, lat) => shared.onScreen(page, lng, lat);

describe('the files of the map', { timeout: 3_600_000 }, () => {
  before(async () => {
    browser = await shared.launch();
    context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true });
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    shared.watch(page, url, troubles);
  });
  after(() => browser?.close());

  const step = (name, work) => shared.step(name, () => page, troubles, work);

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
      await Promise.all([page.waitForEvent('load'), page.click('#load-go')]);
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

  step('does not load whole numbers that the browser changes', async () => {
    await show('c=countries&m=4/37/-119');
    const line = '{"type":"Feature","id":9007199254740993,"geometry":{"type":"Point","coordinates":[-118,36]},"properties":{"n":1}}';
    await page.setInputFiles('#file', { name: 'long.ndjson', mimeType: 'text/plain', buffer: Buffer.from(line) });
    await page.click('#layers .file >> text=Load…');
    await page.waitForSelector('#load-dialog[open]');
    assert.match(await page.textContent('#load-state'), /beyond 2\^53, the first of which is 9007199254740993/);
    assert.equal(await page.isDisabled('#load-go'), true);
    assert.match(await page.textContent('#load-command'), /^meridian load long long\.ndjson --url \S+$/);
    await page.click('#load-cancel');
    await page.click('#layers .file [data-act=remove]');
  });

  step('makes only a new collection of a file, and removes it with a refused file unless others wrote to it', async () => {
    const id = `taken-test-${process.pid}`;
    const body = JSON.stringify({ type: 'object', properties: { name: { type: 'integer' } } });
    await fetch(`${url}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body });
    const refuses = (address) => address.pathname === `/collections/${id}-b/items`;
    try {
      await show('c=countries&m=4/37/-119');
      await page.setInputFiles('#file', { name: `${id}.csv`, mimeType: 'text/csv', buffer: Buffer.from('name,lon,lat\nAlpha,-118,36\n') });
      await page.click('#layers .file >> text=Load…');
      await page.waitForSelector('#load-dialog[open]');
      await page.click('#load-go');
      await becomes(async () => (await page.textContent('#load-state')).startsWith('The name is taken: '), true);
      assert.equal((await api(`/collections/${id}/schema`)).properties.name.type, 'integer', 'the empty collection keeps its types');
      const problem = { type: 'urn:meridian:problem:invalid-body', title: 'Invalid body', status: 400, detail: 'no place' };
      await page.route(refuses, (route) => route.fulfill({ status: 400, contentType: 'application/problem+json', body: JSON.stringify(problem) }));
      await page.fill('#load-name', `${id}-b`);
      await page.click('#load-go');
      await becomes(() => page.textContent('#load-state'), 'Invalid body: no place');
      assert.equal((await fetch(`${url}/collections/${id}-b`)).status, 404, 'the empty collection is gone');
      await page.unroute(refuses);
      // Another client writes to it before the refusal.
      await page.route(refuses, async (route) => {
        const other = { type: 'Feature', geometry: { type: 'Point', coordinates: [-118, 36] }, properties: { name: 'Beta' } };
        await fetch(`${url}/collections/${id}-b/items`, { method: 'POST', headers: { 'content-type': 'application/geo+json' }, body: JSON.stringify(other) });
        await route.fulfill({ status: 400, contentType: 'application/problem+json', body: JSON.stringify(problem) });
      });
      await page.click('#load-go');
      await becomes(() => page.textContent('#load-state'), `Invalid body: no place. The collection ${id}-b is made, and stays: meridian drop ${id}-b --url ${url} removes it`);
      assert.equal((await api(`/collections/${id}-b`)).itemCount, 1);
      await page.unroute(refuses);
      // The same load again takes the collection that it made.
      await Promise.all([page.waitForEvent('load'), page.click('#load-go')]);
      await page.waitForFunction((name) => document.querySelector('#collection').value === name, `${id}-b`, { timeout: PATIENCE });
      await rest();
      // The browser reports the refusals too.
      assert.deepEqual(troubles.splice(0).filter((one) => !/400|412/.test(one)), []);
    } finally {
      for (const name of [id, `${id}-b`]) await fetch(`${url}/collections/${name}`, { method: 'DELETE' });
    }
  });

  step('stores no event of a file twice, also after the page opened anew', async () => {
    const id = `again-test-${process.pid}`;
    const file = { name: `${id}.csv`, mimeType: 'text/csv', buffer: Buffer.from('n,lon,lat\n1,-118,36\n2,-117,37\n') };
    try {
      await show('c=countries&m=4/37/-119');
      for (const again of [false, true]) {
        await page.setInputFiles('#file', file);
        await page.click('#layers .file >> text=Load…');
        await page.waitForSelector('#load-dialog[open]');
        await page.selectOption('#load-target', again ? id : '');
        if (again) {
          await page.click('#load-go');
          await becomes(() => page.textContent('#load-state'), `Already loaded: ${id} has got these events, and none is written again`);
          await page.click('#load-cancel');
        } else {
          await Promise.all([page.waitForEvent('load'), page.click('#load-go')]);
          await page.waitForFunction((name) => document.querySelector('#collection').value === name, id, { timeout: PATIENCE });
          await rest();
        }
        assert.equal((await api(`/collections/${id}`)).itemCount, 2);
      }
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
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

  step('asks a file in the browser: table, time and conditions, and keeps its filter beside a collection', async () => {
    await show('c=countries&m=4/37/-119');
    const asked = [];
    page.on('request', (request) => /file1|walks/.test(request.url()) && asked.push(request.url()));
    const csv = 'name,lon,lat,size,seen\nAlpha,-118.2,35.8,4,2024-05-01T10:00:00Z\nBeta,-117.5,35.4,10,2024-05-02T10:00:00Z\nGamma,-118.9,35.6,,2024-05-04T10:00:00Z\n';
    await page.setInputFiles('#file', { name: 'walks.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });
    await page.click('#layers .file .layer-name');
    const names = async () => (await page.locator('#table tbody tr[data-id]').evaluateAll((rows) => rows.map((row) => row.cells[1].textContent))).join();
    await becomes(names, 'Gamma,Beta,Alpha', 'the newest first');
    assert.deepEqual([await page.textContent('#count'), await page.textContent('#count-of')], ['3', 'of walks.csv']);
    assert.ok(await page.isDisabled('#download'), 'the server does not have it');
    await page.click('[data-sort=size]');
    await becomes(names, 'Beta,Alpha,Gamma', 'the largest first, and last what has no value');
    await page.click('#columns');
    await page.uncheck('#column-list [value=size]');
    await page.click('#column-dialog [value=ok]');
    await becomes(async () => (await page.locator('#table th').allTextContents()).join(), 'seen,name,id');
    await rest();
    const box = await page.locator('#histogram canvas').boundingBox();
    const at = (share) => ({ x: box.x + 42 + share * (box.width - 88), y: box.y + box.height / 2 });
    await shared.drag(page, at(0.15), at(0.7));
    await becomes(names, 'Beta');
    await rest();
    assert.deepEqual([await drawn('file1-point'), await page.textContent('#layers .file small')], [1, '1 of 3']);
    await page.click('#clear-time');
    await becomes(names, 'Beta,Alpha,Gamma');
    await page.click('#add-condition');
    await page.locator('#conditions li select').nth(0).selectOption('size');
    await page.locator('#conditions li select').nth(1).selectOption('<');
    await page.locator('#conditions li input').fill('10');
    await page.keyboard.press('Enter');
    await becomes(names, 'Alpha');
    await rest();
    assert.equal(await drawn('file1-point'), 1);
    await page.fill('#filter', 'size < 10 OR size > 20');
    await page.keyboard.press('Enter');
    await becomes(async () => /joined by AND/.test(await page.textContent('#filter-problem')), true);
    await page.click('#layers [data-collection=countries] .layer-name');
    await becomes(async () => /^of countries$/i.test(await page.textContent('#count-of')), true);
    await rest();
    assert.deepEqual([await page.inputValue('#filter'), await drawn('file1-point')], ['', 1], 'the filter is of the file, which stays filtered');
    await page.click('#layers .file .layer-name');
    await becomes(names, 'Alpha');
    await rest();
    assert.equal(await map.hashValue(page, 'c'), 'countries', 'a link has no file');
    await page.click('#layers .file [data-act=remove]');
    await becomes(() => page.textContent('#count-of'), '');
    await rest();
    assert.deepEqual(asked, []);
  });

  step('says what is wrong with a file', async () => {
    await show('c=countries&m=4/37/-119');
    await page.evaluate(() => {
      const refused = new MutationObserver(() => (window.chosenAtRefusal = document.querySelector('#file').files.length));
      refused.observe(document.querySelector('#problem'), { attributes: true, attributeFilter: ['hidden'] });
    });
    await page.setInputFiles('#file', { name: 'x.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') });
    await page.waitForSelector('#problem:not([hidden])');
    await becomes(() => page.evaluate(() => document.querySelector('#file').files.length), 0, 'the same file may be chosen again');
    assert.equal(await page.evaluate(() => window.chosenAtRefusal), 1, 'a file stays chosen until its refusal is shown');
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
    for (const format of ['csv', 'ndjson', 'geojsonseq', 'arrow', 'parquet', 'flatgeobuf']) assert.ok(links.some(([one]) => one === format), format);
    const { count } = await ask('earthquakes', { function: 'count', filter: 'mag > 4', bbox: '-122,35,-116,39' });
    const body = async (format) => (await fetch(url + links.find(([one]) => one === format)[1])).text();
    assert.equal((await body('csv')).trim().split('\n').length - 1, count);
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('#download-list a[data-format=ndjson]')]);
    assert.equal(file.suggestedFilename(), 'earthquakes.ndjson');
    assert.equal(readFileSync(await file.path(), 'utf8').trim().split('\n').length, count);
    // As in browsers that ask for no file: the page gathers a stream, which no page's max cuts.
    await page.evaluate(() => (window.showSaveFilePicker = undefined));
    const [whole] = await Promise.all([page.waitForEvent('download'), page.click('#download-list button[data-format=json]')]);
    assert.equal(whole.suggestedFilename(), 'earthquakes.geojson');
    assert.equal(JSON.parse(readFileSync(await whole.path(), 'utf8')).features.length, count);
    assert.match(await page.textContent('#download-state'), /events are saved/);
    const [database] = await Promise.all([page.waitForEvent('download'), page.click('#download-list button[data-format=gpkg]')]);
    assert.equal(database.suggestedFilename(), 'earthquakes.gpkg');
    const counting = 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM earthquakes").fetchone()[0])';
    assert.equal(Number(execFileSync('python3', ['-c', counting, await database.path()], { encoding: 'utf8' })), count);
    // Nothing of it is in the memory of the page.
    assert.equal(await page.textContent('#download-state'), 'The server makes the GeoPackage; the browser downloads it then.');
    await page.evaluate(() => {
      window.showSaveFilePicker = async () => (await navigator.storage.getDirectory()).getFileHandle('chosen.gpkg', { create: true });
    });
    await page.click('#download-list button[data-format=gpkg]');
    await becomes(async () => /^[\d,.]+ [kM]B are saved\.$/.test(await page.textContent('#download-state')), true);
    const saved = await page.evaluate(async () => {
      const folder = await navigator.storage.getDirectory();
      const { size } = await (await folder.getFileHandle('chosen.gpkg')).getFile();
      await folder.removeEntry('chosen.gpkg');
      return size;
    });
    assert.equal(saved, statSync(await database.path()).size);
    const command = await page.textContent('#download-commands pre[data-extension=gpkg]');
    assert.equal(command, `meridian export earthquakes earthquakes.gpkg --bbox=-122,35,-116,39 '--filter=mag > 4' --url ${url}`);
    await page.keyboard.press('Escape');
  });

  step('says that a download is given up, and leaves no file where one was chosen', async () => {
    await show('c=earthquakes&m=5/37/-119');
    // The file is one of the page's own, and it takes no bytes, so that the download never ends.
    await page.evaluate(() => {
      window.showSaveFilePicker = async () => {
        const folder = await navigator.storage.getDirectory();
        const handle = await folder.getFileHandle('chosen.geojson', { create: true });
        return { createWritable: async () => new WritableStream({}, { highWaterMark: 0 }), remove: () => handle.remove() };
      };
    });
    const files = () => page.evaluate(async () => (await Array.fromAsync((await navigator.storage.getDirectory()).keys())).join());
    const begin = async () => {
      await page.click('#download-list button[data-format=json]');
      await page.waitForSelector('#download-run:not([hidden])');
      await becomes(files, 'chosen.geojson');
    };
    await page.click('#download');
    await page.waitForSelector('#download-list button');
    await begin();
    await page.click('#download-cancel');
    await becomes(() => page.textContent('#download-state'), 'Cancelled. A file that was replaced is lost.');
    assert.equal(await files(), '');
    await begin();
    await page.keyboard.press('Escape');
    await becomes(() => page.textContent('#toast'), 'Download of earthquakes: Cancelled. A file that was replaced is lost.');
    assert.equal(await files(), '');
  });

  step('takes another click for a file whose answer comes late', async () => {
    await show(`c=earthquakes&m=5/37/-119&s=box:-122,35,-116,39&q=${encodeURIComponent('mag > 4')}`);
    // As a few seconds after a click, when browsers let a page ask for no file.
    await page.evaluate(() => {
      Object.defineProperty(navigator, 'userActivation', { configurable: true, value: { isActive: false } });
      window.choices = 0;
      window.showSaveFilePicker = async () => (window.choices++, { createWritable: async () => new WritableStream(), remove: async () => {} });
    });
    const asked = (address) => address.searchParams.get('f') === 'gpkg';
    const late = page.locator('#download-run button', { hasText: 'Choose the file…' });
    const choices = () => page.evaluate(() => window.choices);
    let answer;
    const held = new Promise((resolve) => (answer = resolve));
    await page.route(asked, async (route) => {
      await held;
      await route.continue();
    });
    await page.click('#download');
    await page.click('#download-list button[data-format=gpkg]');
    await becomes(() => page.textContent('#download-state'), 'The server makes the GeoPackage…');
    assert.equal(await late.count(), 0, 'the server has not agreed yet');
    answer();
    await late.waitFor();
    assert.equal(await late.evaluate((button) => button === document.activeElement), true);
    await page.click('#download-cancel');
    await becomes(() => page.textContent('#download-state'), 'Cancelled: nothing is saved.');
    assert.deepEqual([await late.count(), await choices()], [0, 0]);
    await page.click('#download-list button[data-format=gpkg]');
    await late.click();
    await becomes(async () => /^[\d,.]+ [kM]B are saved\.$/.test(await page.textContent('#download-state')), true);
    assert.deepEqual([await late.count(), await choices()], [0, 1]);
    await page.unroute(asked);
    await page.evaluate(() => delete navigator.userActivation);
    await page.keyboard.press('Escape');
  });

  step('says why the server makes no file, and shows the command that does', async () => {
    await show('c=earthquakes&m=5/37/-119');
    // A browser empties a file that is replaced as soon as it is chosen, so the server is asked first.
    await page.evaluate(() => {
      window.choices = 0;
      window.showSaveFilePicker = async () => (window.choices++, { createWritable: async () => new WritableStream(), remove: async () => {} });
    });
    const problem = { type: 'urn:meridian:problem:invalid-parameter', title: 'Invalid parameter', status: 400, detail: 'the events take more than 5 bytes', field: 'f' };
    const asked = (address) => address.searchParams.get('f') === 'gpkg';
    await page.route(asked, (route) => route.fulfill({ status: 400, contentType: 'application/problem+json', body: JSON.stringify(problem) }));
    await page.click('#download');
    await page.click('#download-list button[data-format=gpkg]');
    await becomes(() => page.textContent('#download-state'), 'Nothing is saved: Invalid parameter: the events take more than 5 bytes');
    assert.equal(await page.evaluate(() => window.choices), 0);
    await page.waitForSelector('#download-more[open]');
    assert.equal(await page.isHidden('#download-run'), true);
    await page.unroute(asked);
    // The browser reports the refusal too.
    assert.deepEqual(troubles.splice(0).filter((one) => !one.includes('400')), []);
    await page.keyboard.press('Escape');
  });

  step('shows no export command for a collection without places', async () => {
    const id = `placeless-test-${process.pid}`;
    const schema = { type: 'object', properties: { name: { type: 'string' }, time: { type: 'string', format: 'date-time', 'x-ogc-role': 'primary-instant' } } };
    const send = async (method, path, type, body) => {
      const response = await fetch(`${url}/collections/${id}${path}`, { method, headers: { 'content-type': type }, body: JSON.stringify(body) });
      assert.ok(response.ok, `${response.status} ${await response.text()}`);
    };
    try {
      await send('PUT', '', 'application/schema+json', schema);
      await send('POST', '/items', 'application/geo+json', { type: 'Feature', geometry: null, properties: { name: 'a', time: '2026-01-01T00:00:00Z' } });
      await show(`c=${id}`);
      await page.click('#download');
      await page.waitForSelector('#download-list button');
      assert.equal(await page.isHidden('#download-more'), true);
      await page.keyboard.press('Escape');
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
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
});
