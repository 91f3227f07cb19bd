// The map page at its limits: nothing to show, and little room. In a real browser, over the servers of map.test.mjs.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
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
const rest = () => shared.rest(page);
const show = (hash) => map.show(page, `${url}/map#${hash}`);
const hashValue = (key) => map.hashValue(page, key);
const shown = () => page.locator('#count').textContent();

async function counts(query, what) {
  const { groups } = await map.api(url, `/collections/earthquakes/aggregate?${new URLSearchParams({ function: 'count', ...query })}`);
  await becomes(shown, new Intl.NumberFormat('en').format(groups[0]?.count ?? 0), what);
}

const CALIFORNIA = 'c=earthquakes&m=5/37/-119';

describe('the map page at its limits', { timeout: 900_000 }, () => {
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

  step('is clear about an empty collection', async () => {
    const id = `map-test-${process.pid}`;
    const schema = {
      type: 'object',
      properties: {
        geometry: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' },
        time: { type: 'string', format: 'date-time', 'x-ogc-role': 'primary-instant' },
      },
      required: ['time'],
    };
    const made = await fetch(`${url}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify(schema) });
    assert.ok(made.ok, `${made.status} ${await made.text()}`);
    try {
      await show(`c=${id}`);
      assert.match(await page.textContent('#overlay'), /is empty/);
      assert.match(await page.textContent('#overlay pre'), new RegExp(`meridian load ${id}`));
      assert.equal(await shown(), '0');
    } finally {
      await fetch(`${url}/collections/${id}`, { method: 'DELETE' });
    }
  });

  step('shows the guide alone where there is no collection that the caller may read', async () => {
    const json = (body) => (route) => route.fulfill({ contentType: 'application/json', body: JSON.stringify(body) });
    const sessions = [[{ sign_in: false }, /No collections yet.*This server holds no events/s], [{ sign_in: true, user: 'anna', role: 'reader' }, /You can read no collection here/]];
    await page.route('**/collections?f=json', json({ collections: [], links: [] }));
    for (const [session, says] of sessions) {
      await page.route('**/session', json(session));
      await show('');
      assert.match(await page.textContent('#overlay'), says);
      assert.match(await page.textContent('#overlay'), /Shapefile.*GTFS-Realtime/);
      assert.equal(await page.locator('#layers li').count(), 0, 'no layer without a name');
      for (const id of ['problem', 'add-condition', 'apply', 'embed', 'timeline']) assert.equal(await page.isVisible(`#${id}`), false, id);
      // A file can be opened there too, and asked.
      await page.setInputFiles('#file', { name: 'spots.csv', mimeType: 'text/csv', buffer: Buffer.from('lon,lat,time,size\n4,45,2026-01-01T00:00:00Z,1\n5,45,2026-01-02T00:00:00Z,2\n') });
      await page.click('#layers .file .layer-name');
      await page.waitForFunction(() => document.querySelector('#count').textContent === '2');
      await page.waitForSelector('#table tbody tr[data-id]');
      for (const id of ['count', 'add-condition', 'timeline']) assert.equal(await page.isVisible(`#${id}`), true, id);
      await page.unroute('**/session');
    }
    await page.unroute('**/collections?f=json');
  });

  step('shows all of an event on the map, above its controls', async () => {
    const size = page.viewportSize();
    for (const small of [{ width: 1000, height: 620 }, { width: 390, height: 700 }]) {
      await page.setViewportSize(small);
      await show('c=earthquakes');
      await page.locator('#table tbody tr[data-id]').first().click();
      await page.waitForSelector('.maplibregl-popup');
      await rest();
      const [popup, map] = [await page.locator('.maplibregl-popup').boundingBox(), await page.locator('#map').boundingBox()];
      assert.ok(popup.x >= map.x && popup.y >= map.y && popup.x + popup.width <= map.x + map.width && popup.y + popup.height <= map.y + map.height, JSON.stringify({ popup, map }));
      await page.evaluate(() => scrollTo(0, 0));
      const covered = await page.locator('.maplibregl-popup-content').evaluate((content) => {
        const { left, right, top, bottom } = content.getBoundingClientRect();
        return [[left + 12, top + 12], [right - 12, top + 12], [left + 12, bottom - 12], [right - 12, bottom - 12]].filter(([x, y]) => !content.contains(document.elementFromPoint(x, y))).length;
      });
      assert.equal(covered, 0, 'nothing is drawn over it');
    }
    await page.setViewportSize(size);
  });

  step('says so when a link names no collection', async () => {
    await show('c=no-such-thing');
    assert.match(await page.textContent('#overlay'), /no collection “no-such-thing”/);
  });

  step('fits a phone, in the dark, and draws with a finger', async () => {
    const phone = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: 'dark' });
    const desk = page;
    page = await phone.newPage();
    try {
      page.setDefaultTimeout(PATIENCE);
      watch(page);
      await show('c=earthquakes');
      // Mercator ends at 85 degrees, and the world fills the width.
      await counts({}, 'the first view holds the box of the collection');
      await show(CALIFORNIA);
      const { wide, background } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, background: getComputedStyle(document.documentElement).backgroundColor }));
      assert.ok(wide <= 390, `the page is ${wide} pixels wide`);
      assert.deepEqual(await page.locator('#legend b span').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)), [], 'no title of the legend is cut');
      const scale = await page.locator('.maplibregl-ctrl-scale').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent));
      assert.deepEqual(scale, [], 'the text of the scale is within it');
      const [red] = background.match(/\d+/g).map(Number);
      assert.ok(red < 60, background);
      assert.ok((await page.locator('#map').boundingBox()).height > 250);
      // As for a user who is signed in.
      await page.evaluate(() => { document.getElementById('account').hidden = false; });
      const chosen = await page.locator('#collection').boundingBox();
      assert.ok(chosen.width >= 144, `the names of collections have ${chosen.width} pixels`);
      await page.tap('[data-draw=box]');
      for (const [lng, lat] of [[-121, 35.5], [-117, 38.5]]) {
        const at = await onScreen(lng, lat);
        await page.touchscreen.tap(at.x, at.y);
      }
      await page.waitForFunction(() => location.hash.includes('s=box:'));
      await counts({ bbox: (await hashValue('s')).slice('box:'.length) });
      await rest();
    } finally {
      await phone.close();
      page = desk;
    }
  });
});
