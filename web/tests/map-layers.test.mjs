// Layers, colours, sizes, measures and the frame of the map, in a real browser against a running server (MERIDIAN_URL) with the
// demo's earthquakes, ships, storms and countries.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { axe } from './axe.mjs';
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
const hashValue = (key) => map.hashValue(page, key);
const layers = () => page.locator('#layers li').evaluateAll((rows) => rows.map((row) => `${row.dataset.collection ?? row.dataset.file}${row.classList.contains('active') ? '*' : ''}`));
const drawn = (layer) => map.drawn(page, layer);
const sight = () => map.sight(page);
/** Names of the style's layers from the lowest to the uppermost. */
const order = () => page.evaluate(() => window.meridianMap.getLayersOrder().filter((id) => /-point$/.test(id) && !/result|live|chosen/.test(id)));
const at = (lng, lat) => shared.onScreen(page, lng, lat);

describe('the layers of the map', { timeout: 3_600_000 }, () => {
  before(async () => {
    browser = await shared.launch();
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
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
    // What was begun is gone once something else is drawn.
    await page.click('[data-draw=area]');
    for (const [lng, lat] of [[5, 45], [15, 45]]) {
      const there = await at(lng, lat);
      await page.mouse.click(there.x, there.y);
    }
    assert.ok(await page.isVisible('#measured'));
    await page.click('[data-draw=box]');
    assert.ok(await page.isHidden('#measured'));
    const rings = await page.evaluate(() => window.meridianMap.getSource('ruler').serialize().data.features.length);
    assert.equal(rings, 0);
    await page.click('#draw-cancel');
    assert.equal(await hashValue('s'), null, 'nothing was asked');
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

  step('frames all that lines cross', async () => {
    const id = `wide-test-${process.pid}`;
    const schema = { type: 'object', properties: { geometry: { format: 'geometry-any', 'x-ogc-role': 'primary-geometry' }, n: { type: 'integer' } } };
    await fetch(`${url}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify(schema) });
    try {
      const shapes = [{ type: 'LineString', coordinates: [[-170, 10], [170, 10]] }, { type: 'Point', coordinates: [0, 50] }];
      await api(`/collections/${id}/items`, { method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body: shapes.map((geometry, n) => JSON.stringify({ type: 'Feature', geometry, properties: { n } })).join('\n') });
      await show(`c=${id}`);
      const [west, , east] = (await sight()).split(',').map(Number);
      assert.ok(west <= -170 && east >= 170, `from ${west} to ${east}`);
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
