// The trail and the live mode of the map, in a real browser against a running server (MERIDIAN_URL) with the demo's earthquakes.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { serious } from './axe.mjs';
import * as shared from './browser.mjs';
import * as map from './map.mjs';

const { becomes, PATIENCE } = shared;
const url = new URL(process.env.MERIDIAN_URL ?? '').origin;
const troubles = [];
let browser;
let context;
let page;

const api = (path, init) => map.api(url, path, init);
const rest = () => shared.rest(page);
const show = (hash, path = '/map') => map.show(page, `${url}${path}#${hash}`);

describe('what moves on the map', { timeout: 3_600_000 }, () => {
  before(async () => {
    browser = await shared.launch();
    context = await browser.newContext({ viewport: { width: 1280, height: 800 }, bypassCSP: true });
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    shared.watch(page, url, troubles);
  });
  after(() => browser?.close());

  const step = (name, work) => shared.step(name, () => page, troubles, work);

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

  step('plays in the colours of a field also where it began as a surface', async () => {
    await show('c=earthquakes&f=mag&m=4.5/37/-119');
    assert.equal(await page.evaluate(() => window.meridianPicture.showsEvents), false);
    await page.selectOption('#speed', '0.125');
    await page.click('#play');
    const colored = () => window.meridianPicture.showsEvents && Array.isArray(window.meridianMap.getPaintProperty('event-point', 'circle-color')) && document.querySelectorAll('#legend [data-legend=field] .ends span').length > 1;
    await page.waitForFunction(colored, undefined, { timeout: PATIENCE });
    assert.equal(await page.evaluate(() => window.meridianTrail.shown), false, 'there are too many for a trail');
    await page.click('#play');
    await page.selectOption('#speed', '1');
    await page.click('#clear-time');
    await rest();
  });

  step('shows the whole time on a phone while it plays', async () => {
    await page.setViewportSize({ width: 375, height: 812 });
    try {
      await show('c=earthquakes&m=4/37/-119');
      await page.click('#play');
      await page.waitForFunction(() => document.body.classList.contains('playing') && document.querySelector('#when').textContent.includes('–'), undefined, { timeout: PATIENCE });
      const seen = await page.locator('#when').evaluate((one) => {
        const { left, right } = one.getBoundingClientRect();
        return { text: one.textContent, isCut: one.scrollWidth > one.clientWidth, isInside: left >= 0 && right <= innerWidth, wide: document.documentElement.scrollWidth };
      });
      assert.ok(!seen.isCut && seen.isInside && seen.wide <= 375, JSON.stringify(seen));
      await page.click('#play');
      await page.click('#clear-time');
      await rest();
    } finally {
      await page.setViewportSize({ width: 1280, height: 800 });
    }
  });

  step('plays lines in the colours of their field', async () => {
    const id = `tracks-test-${process.pid}`;
    const schema = {
      type: 'object',
      properties: { geometry: { format: 'geometry-linestring', 'x-ogc-role': 'primary-geometry' }, start: { type: 'string', format: 'date-time', 'x-ogc-role': 'primary-instant' }, wind: { type: 'integer' }, storm: { type: 'string', 'x-meridian-object': true } },
    };
    await fetch(`${url}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify(schema) });
    const tracks = Array.from({ length: 48 }, (_, i) => {
      const coordinates = [[-60 + i / 4, 15], [-55 + i / 4, 25]];
      return JSON.stringify({ type: 'Feature', geometry: { type: 'LineString', coordinates }, properties: { start: new Date(Date.UTC(2026, 0, 1, 6 * i)).toISOString(), wind: 30 + i, storm: `s${i}` } });
    });
    const write = (body) => api(`/collections/${id}/items`, { method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body });
    try {
      await write(tracks.join('\n'));
      await show(`c=${id}&m=4/20/-52&f=wind`);
      const answer = page.waitForResponse((response) => response.url().includes('f=csv'));
      await page.click('#play');
      await answer;
      // After the end of playing the lines would be drawn in any case.
      const plays = () => document.body.classList.contains('playing') && /[#&]t=/.test(location.hash) && window.meridianMap.queryRenderedFeatures({ layers: ['event-line'] }).length > 0;
      await page.waitForFunction(plays, undefined, { timeout: PATIENCE });
      assert.equal(await page.evaluate(() => window.meridianTrail.shown), false);
      assert.ok(Array.isArray(await page.evaluate(() => window.meridianMap.getPaintProperty('event-line', 'line-color'))), 'the field colours');
      await page.click('#play');
      await page.click('#clear-time');
      await rest();
      // Lines have no last position: live mode keeps them, and the count follows.
      const before = Number(await page.textContent('#count'));
      await page.click('#live');
      await becomes(async () => (await page.textContent('#live-state')).startsWith('Live'), true);
      await write(JSON.stringify({ type: 'Feature', geometry: { type: 'LineString', coordinates: [[-54, 18], [-52, 20]] }, properties: { start: '2026-02-01T00:00:00Z', wind: 40, storm: 'new' } }));
      await becomes(() => page.textContent('#count'), String(before + 1));
      await page.waitForFunction(() => window.meridianMap.queryRenderedFeatures({ layers: ['event-line'] }).length > 0, undefined, { timeout: PATIENCE });
      assert.equal(await page.locator('#legend [data-legend=live]').count(), 0);
      // Playing ends it, and the field colours on.
      await page.click('#play');
      assert.equal(await page.getAttribute('#live', 'aria-pressed'), 'false');
      await page.waitForFunction(plays, undefined, { timeout: PATIENCE });
      assert.ok(Array.isArray(await page.evaluate(() => window.meridianMap.getPaintProperty('event-line', 'line-color'))), 'the field colours after live mode');
      await page.click('#play');
      await rest();
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
  });

  step('says in the legend that live mode shows the newest events, where no field names an object', async () => {
    await show('c=earthquakes&m=4/37/-119');
    const legend = page.locator('#legend [data-legend=live]');
    assert.equal(await legend.count(), 0);
    await page.click('#live');
    await becomes(async () => (await legend.locator('p').allTextContents()).join(), 'on the map now2,000,event');
    assert.equal(await legend.locator('b').textContent(), 'Newest events, at most 2,000');
    await becomes(async () => /the newest 2,000 of [\d,]+ events/.test(await page.textContent('#live-state')), true);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await serious(page, `live, ${colorScheme}`), []);
    }
    await page.emulateMedia({ colorScheme: null });
    await page.click('#live');
    await becomes(() => legend.count(), 0);
    await rest();
  });

  step('follows events as they are written: objects move, and their tracks grow', async () => {
    const id = `live-test-${process.pid}`;
    const schema = {
      type: 'object',
      properties: { geometry: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' }, time: { type: 'string', format: 'date-time', 'x-ogc-role': 'primary-instant' }, boat: { type: 'string', 'x-meridian-object': true }, knots: { type: 'integer' } },
      required: ['time'],
    };
    await fetch(`${url}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify(schema) });
    const write = (boat, lng, minute) => api(`/collections/${id}/items`, { method: 'POST', headers: { 'content-type': 'application/geo+json' }, body: JSON.stringify({ type: 'Feature', geometry: { type: 'Point', coordinates: [lng, 54] }, properties: { time: `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`, boat, knots: 5 } }) });
    try {
      await write('a', 10, 0);
      await write('b', 12, 0);
      await show(`c=${id}&m=5/54/11&f=knots`);
      const field = page.locator('#legend [data-legend=field]');
      await becomes(() => field.count(), 1);
      await page.click('#live');
      await page.waitForFunction(() => /Live · 2 objects/.test(document.querySelector('#live-state').textContent), undefined, { timeout: PATIENCE });
      await write('a', 10.5, 1);
      await write('a', 11, 2);
      await page.waitForFunction(() => ['live-track', 'live-heading'].every((layer) => window.meridianMap.queryRenderedFeatures({ layers: [layer] }).length > 0), undefined, { timeout: PATIENCE });
      const [boat] = await page.evaluate(() => window.meridianMap.queryRenderedFeatures({ layers: ['live-heading'] }).map(({ properties }) => properties));
      assert.equal(boat.object, 'a');
      assert.ok(Math.abs(boat.heading - 90) < 1, `heads to ${boat.heading}`);
      const legend = page.locator('#legend [data-legend=live]');
      assert.equal(await legend.locator('b').textContent(), 'Last positions, at most 20,000');
      assert.deepEqual(await legend.locator('p').allTextContents(), ['on the map now2', 'object', 'object and its heading', 'track']);
      assert.equal(await field.count(), 0, 'objects have the one colour of the layer');
      // The colour of the legend is the colour of the map.
      const [drawn, said] = await page.evaluate(() => [window.meridianMap.getPaintProperty('live-track', 'line-color'), document.querySelector('#legend .mark-line').style.background]);
      assert.equal(said, `rgb(${drawn.match(/[0-9a-f]{2}/g).map((two) => parseInt(two, 16)).join(', ')})`);
      await becomes(() => page.textContent('#count'), '4');
      await page.click('#live');
      await becomes(() => page.getAttribute('#live', 'aria-pressed'), 'false');
      assert.equal(await legend.count(), 0);
      await becomes(() => field.count(), 1);
      await rest();
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
  });
});
