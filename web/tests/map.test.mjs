// The map page in a real browser, against a running server (MERIDIAN_URL, with the demo's earthquakes) or, without one,
// against the stand-in of mock.mjs. CHROMIUM names the browser. What the page shows is compared with what the HTTP API
// itself answers to the same question, asked here in the test's own words.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import * as shared from './browser.mjs';
import * as map from './map.mjs';

const { becomes, PATIENCE } = shared;

let server;
let url;
let browser;
let context;
let page;
/** Everything that must not happen: errors on the console, failed requests, requests to elsewhere. */
const troubles = [];

const watch = (target) => shared.watch(target, url, troubles);
const onScreen = (lng, lat) => shared.onScreen(page, lng, lat);
const drag = (from, to) => shared.drag(page, from, to);
const api = (path) => map.api(url, path);
const encode = (query) => new URLSearchParams(query).toString();
const aggregate = async (query, collection = 'earthquakes') => (await api(`/collections/${collection}/aggregate?${encode({ function: 'count', ...query })}`)).groups[0] ?? { count: 0 };
const countOf = async (query, collection) => (await aggregate(query, collection)).count;

const english = new Intl.NumberFormat('en');
const shown = () => page.locator('#count').textContent();

const counts = async (query, what) => becomes(shown, english.format(await countOf(query)), what);

const rest = (target = page) => shared.rest(target);

const show = (hash) => map.show(page, `${url}/map#${hash}`);
const sight = () => map.sight(page);
const hashValue = (key) => map.hashValue(page, key);

/** The brushed time as a closed interval of the API. */
async function brushed() {
  await page.waitForFunction(() => /[#&]t=/.test(location.hash), undefined, { timeout: PATIENCE });
  const [from, to] = (await hashValue('t')).split('/');
  const last = new Date(Date.parse(to) - 1).toISOString();
  return `${from}/${last.replace('Z', '999Z')}`;
}

/** The same once a drag has had its last word: the address follows the hand, and so may be read in mid-drag. */
async function brushedAtRest() {
  await rest();
  return brushed();
}

const rowIds = () => page.locator('#table tbody tr[data-id]').evaluateAll((rows) => rows.map((row) => row.dataset.id));

const CALIFORNIA = 'c=earthquakes&m=5/37/-119';

describe('the map page', { timeout: 900_000 }, () => {
  before(async () => {
    server = await map.serverOrMock();
    url = server.url;
    browser = await shared.launch();
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    watch(page);
  });

  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  const step = (name, work) => shared.step(name, () => page, troubles, work);

  step('opens by itself and lists the collections', async () => {
    await page.goto(`${url}/map`);
    await page.waitForFunction(() => !document.querySelector('#collection').disabled);
    const listed = await page.locator('#collection option').evaluateAll((options) => options.map((option) => option.value));
    const { collections } = await api('/collections');
    assert.deepEqual(listed, collections.map((c) => c.id));
    assert.ok(listed.includes('earthquakes'));
    await page.selectOption('#collection', 'earthquakes');
    await page.waitForSelector('#table tbody tr[data-id]');
    await rest();
    assert.equal(await hashValue('c'), 'earthquakes');
  });

  step('draws the events on the map', async () => {
    await show('c=earthquakes&m=1.4/25/10');
    // A surface, high where events are and nowhere else.
    const [california, sahara, single] = await page.evaluate(() => [[-118, 36], [12, 24]].map((at) => window.meridianPicture.eventsNear(at)).concat(window.meridianPicture.inView().length));
    assert.ok(california > 50 && sahara < 0.06 && single === 0, `${california} in California, ${sahara} in the Sahara, ${single} single events`);
    // And they are really painted: warm pixels, which the base map has none of.
    const warm = await page.evaluate(
      () =>
        new Promise((resolve) => {
          const map = window.meridianMap;
          map.once('render', () => {
            const gl = map.getCanvas().getContext('webgl2') ?? map.getCanvas().getContext('webgl');
            const pixels = new Uint8Array(gl.drawingBufferWidth * gl.drawingBufferHeight * 4);
            gl.readPixels(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
            let found = 0;
            for (let i = 0; i < pixels.length; i += 4) if (pixels[i] > pixels[i + 2] + 60) found++;
            resolve(found);
          });
          map.triggerRepaint();
        }),
    );
    assert.ok(warm > 2000, `${warm} warm pixels`);
  });

  step('counts what is in sight, and single events when near', async () => {
    await show('c=earthquakes&m=6/38/142');
    const bbox = await sight();
    await counts({ bbox });
    const drawn = await page.evaluate(() => window.meridianPicture.inView().length);
    const there = await countOf({ bbox });
    // A circle at the edge reaches into the view from beyond it.
    assert.ok(drawn >= there && drawn <= there * 1.1, `${drawn} drawn, ${there} there`);
  });

  step('brushes time', async () => {
    await show(CALIFORNIA);
    const before = await shown();
    const box = await page.locator('#histogram canvas').boundingBox();
    await drag({ x: box.x + box.width * 0.4, y: box.y + 60 }, { x: box.x + box.width * 0.7, y: box.y + 60 });
    await counts({ bbox: await sight(), datetime: await brushedAtRest() });
    assert.notEqual(await shown(), before);
    // A handle moves one end only, also by keyboard.
    const [from, to] = (await hashValue('t')).split('/');
    const handle = await page.locator('.handle.to').boundingBox();
    await drag({ x: handle.x + handle.width / 2, y: handle.y + 20 }, { x: handle.x + 60, y: handle.y + 20 });
    await page.waitForFunction((old) => !location.hash.includes(old), to);
    assert.equal((await hashValue('t')).split('/')[0], from);
    await page.locator('.handle.from').focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction((old) => !location.hash.includes(old), from);
    assert.ok(Date.parse((await hashValue('t')).split('/')[0]) < Date.parse(from));
    await counts({ bbox: await sight(), datetime: await brushedAtRest() });
    await page.click('#clear-time');
    await counts({ bbox: await sight() });
    await becomes(() => hashValue('t'), null);
  });

  step('plays time and stops', async () => {
    await page.selectOption('#speed', '4');
    await page.click('#play');
    const first = await brushed();
    await page.waitForFunction((old) => !location.hash.includes(old.split('/')[0]), first);
    assert.ok(await page.isVisible('#follows'), 'the table says that it follows');
    assert.ok(Number(await page.locator('#table-scroll').evaluate((table) => getComputedStyle(table).opacity)) < 0.6, 'and is grey');
    await page.click('#play');
    assert.equal(await page.isVisible('#follows'), false);
    assert.equal(await page.getAttribute('#play', 'aria-pressed'), 'false');
    await rest();
    await counts({ bbox: await sight(), datetime: await brushed() });
    await page.click('#clear-time');
    await rest();
  });

  step('asks for a drawn box and shows its rows', async () => {
    await page.click('[data-draw=box]');
    await drag(await onScreen(-122, 35), await onScreen(-116, 39));
    await page.waitForFunction(() => location.hash.includes('s=box:'));
    const bbox = (await hashValue('s')).slice('box:'.length);
    const [west, south, east, north] = bbox.split(',').map(Number);
    assert.ok(Math.abs(west + 122) < 0.1 && Math.abs(south - 35) < 0.1 && Math.abs(east + 116) < 0.1 && Math.abs(north - 39) < 0.1, bbox);
    await counts({ bbox });
    await rest();
    const ids = await rowIds();
    assert.ok(ids.length >= Math.min(10, await countOf({ bbox })), `${ids.length} rows`);
    const { features } = await api(`/collections/earthquakes/items?${encode({ bbox, limit: String(ids.length), sortby: '-time' })}`);
    assert.deepEqual(ids, features.map((f) => String(f.id)), 'the newest first');
  });

  step('asks for a drawn circle, nearest first', async () => {
    await page.click('[data-draw=circle]');
    await drag(await onScreen(-118, 36), await onScreen(-117, 37));
    await page.waitForFunction(() => location.hash.includes('s=circle:'));
    const [lng, lat, radius] = (await hashValue('s')).slice('circle:'.length).split(',');
    assert.ok(Number(radius) > 100_000 && Number(radius) < 200_000, radius);
    const query = { near: `${lng},${lat}`, radius };
    assert.ok((await countOf(query)) > 0);
    await counts(query);
    await rest();
    const ids = await rowIds();
    const { features } = await api(`/collections/earthquakes/items?${encode({ ...query, limit: String(ids.length) })}`);
    assert.deepEqual(ids, features.map((f) => String(f.id)));
    assert.match(await page.textContent('#rows'), /, nearest first$/);
    assert.equal(await page.locator('#table .sort').count(), 0, 'no column sorts it');
  });

  step('asks for a drawn polygon', async () => {
    await page.click('[data-draw=polygon]');
    const corners = [[-124, 40], [-120, 41], [-119, 37], [-122, 36]];
    for (const [lng, lat] of corners) {
      const at = await onScreen(lng, lat);
      await page.mouse.click(at.x, at.y);
    }
    await page.keyboard.press('Escape'); // taken back as a whole
    await becomes(() => page.isHidden('#draw-hint'), true);
    await page.click('[data-draw=polygon]');
    for (const [lng, lat] of corners) {
      const at = await onScreen(lng, lat);
      await page.mouse.click(at.x, at.y);
    }
    await page.click('#draw-finish');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.draw), 'polygon');
    await page.waitForFunction(() => location.hash.includes('s=polygon:'));
    const ring = (await hashValue('s')).slice('polygon:'.length).split(';').map((pair) => pair.split(',').join(' '));
    assert.equal(ring.length, 4);
    const filter = `S_INTERSECTS(geometry, POLYGON((${[...ring, ring[0]].join(', ')})))`;
    assert.ok((await countOf({ filter })) > 0);
    await counts({ filter });
  });

  step('draws with the keyboard alone', async () => {
    await page.focus('[data-draw=box]');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter'); // shows the cross
    await page.keyboard.press('Enter'); // first corner
    await page.keyboard.press('ArrowRight');
    await page.waitForTimeout(500);
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => !window.meridianMap.isMoving());
    await page.waitForTimeout(400);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash.includes('s=box:'));
    await counts({ bbox: (await hashValue('s')).slice('box:'.length) });
    await page.click('#clear-shape');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.draw), 'box');
    await becomes(() => hashValue('s'), null);
    await counts({ bbox: await sight() });
  });

  step('says how a polygon ends that is drawn with the keyboard', async () => {
    await page.focus('[data-draw=area]');
    for (const key of ['Enter', 'Enter', 'Enter', 'ArrowRight', 'Enter', 'ArrowDown', 'Enter']) {
      const before = await page.evaluate(() => String(window.meridianMap.getCenter()));
      await page.keyboard.press(key);
      if (key.startsWith('Arrow')) await page.waitForFunction((old) => !window.meridianMap.isMoving() && String(window.meridianMap.getCenter()) !== old, before);
    }
    assert.equal(await page.textContent('#draw-hint span'), 'Set more, or finish with Enter at the same spot.');
    await page.keyboard.press('Enter');
    await becomes(() => page.isHidden('#draw-hint'), true);
    await page.click('#measured-clear');
    await rest();
  });

  step('shows an event from its row and marks it', async () => {
    const [id] = await rowIds();
    await page.click('#table tbody tr[data-id] >> nth=0');
    await page.waitForSelector('.event-popup .card');
    assert.equal(await page.getAttribute('#table tbody tr[data-id] >> nth=0', 'aria-selected'), 'true');
    const { properties } = await api(`/collections/earthquakes/items/${encodeURIComponent(id)}`);
    const card = await page.textContent('.event-popup .card');
    for (const value of [id, properties.place, properties.mag]) if (value !== null) assert.ok(card.includes(String(value)), `${value} in ${card}`);
    await page.click('.maplibregl-popup-close-button');
    await becomes(() => page.locator('.event-popup').count(), 0);
    assert.equal(await page.locator('#table tr.chosen').count(), 0);
  });

  step('shows an event that is clicked on the map', async () => {
    await show('c=earthquakes&m=6/-22/-69');
    const hit = await page.evaluate(() => {
      const map = window.meridianMap;
      const box = map.getContainer().getBoundingClientRect();
      // One that is clear of the tools at the edges of the map.
      for (const f of map.queryRenderedFeatures({ layers: ['event-point'] })) {
        const at = map.project(f.geometry.coordinates);
        if (at.x > 120 && at.x < box.width - 200 && at.y > 120 && at.y < box.height - 120) return { x: box.left + at.x, y: box.top + at.y };
      }
      return null;
    });
    assert.ok(hit, 'a single event is in sight');
    await page.mouse.click(hit.x, hit.y);
    await page.waitForSelector('.event-popup .card');
    const id = await page.textContent('.event-popup .card-foot span');
    const event = await api(`/collections/earthquakes/items/${encodeURIComponent(id)}`);
    assert.ok((await page.textContent('.event-popup .card')).includes(event.properties.place));
  });

  step('aggregates a field', async () => {
    await show(`${CALIFORNIA}&s=box:-122,35,-116,39`);
    await page.selectOption('#field', 'mag');
    await page.waitForSelector('#stats [data-measure=avg]');
    await rest();
    const group = await aggregate({ bbox: '-122,35,-116,39', function: 'count,avg(mag),min(mag),max(mag),sum(mag)' });
    for (const measure of ['avg', 'min', 'max', 'sum']) {
      const value = Number(await page.getAttribute(`#stats [data-measure=${measure}]`, 'title'));
      const wanted = group[`${measure}(mag)`];
      assert.ok(Math.abs(value - wanted) <= 1e-9 * Math.max(1, Math.abs(wanted)), `${measure}: ${value}, not ${wanted}`);
    }
    assert.equal(await page.textContent('#line-name'), 'average mag');
    await page.click('#measure [data-measure=max]');
    await becomes(() => page.textContent('#line-name'), 'max mag');
  });

  step('filters with CQL2', async () => {
    await page.fill('#filter', 'mag >= 3');
    await page.keyboard.press('Enter');
    await counts({ bbox: '-122,35,-116,39', filter: 'mag >= 3' });
    await rest();
  });

  step('restores a view from its link', async () => {
    await page.evaluate(() => location.assign(`${location.hash}&t=2021-01-01T00:00:00Z/2024-01-01T00:00:00Z`));
    await counts({ bbox: '-122,35,-116,39', filter: 'mag >= 3', datetime: '2021-01-01T00:00:00Z/2023-12-31T23:59:59.999999Z' });
    await rest();
    const read = (target) =>
      target.evaluate(() => ({
        hash: location.hash,
        collection: document.querySelector('#collection').value,
        count: document.querySelector('#count').textContent,
        field: document.querySelector('#field').value,
        measure: document.querySelector('#measure [aria-checked=true]').dataset.measure,
        filter: document.querySelector('#filter').value,
        when: document.querySelector('#when').textContent,
        chips: [...document.querySelectorAll('#chips li')].map((chip) => chip.textContent),
        rows: [...document.querySelectorAll('#table tbody tr[data-id]')].map((row) => row.dataset.id),
        zoom: window.meridianMap.getZoom().toFixed(2),
        center: window.meridianMap.getCenter().toArray().map((v) => v.toFixed(3)),
      }));
    const here = await read(page);
    assert.equal(here.measure, 'max');
    assert.equal(here.when, '2021 – 2023');
    const other = await context.newPage();
    watch(other);
    await other.goto(page.url());
    await other.waitForSelector('#table tbody tr[data-id]', { timeout: PATIENCE });
    await rest(other);
    assert.deepEqual(await read(other), here);
    await other.close();
  });

  it('says what is wrong with a filter, in the words of the server', async () => {
    await page.fill('#filter', 'magnitude !! 3');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#filter-problem:not([hidden])');
    const refused = await fetch(`${url}/collections/earthquakes/aggregate?${encode({ function: 'count', filter: 'magnitude !! 3', 'filter-lang': 'cql2-text' })}`);
    assert.equal(refused.status, 400);
    const { detail } = await refused.json();
    await becomes(() => page.textContent('#filter-problem'), detail);
    await page.fill('#filter', 'mag >= 3');
    await page.keyboard.press('Enter');
    await becomes(() => page.isHidden('#filter-problem'), true);
    await rest();
    assert.deepEqual(troubles.filter((text) => !text.startsWith('400: ') && !text.includes('status of 400')), []);
    troubles.length = 0;
  });
});
