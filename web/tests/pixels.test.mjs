// What a person sees, looked at as pixels: against a running server (MERIDIAN_URL) with the demo's earthquakes and ships.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe } from 'node:test';
import * as shared from './browser.mjs';
import { sources } from './sources.mjs';

const { PATIENCE } = shared;
const { fieldScale, LIGHT } = (await sources(['style'])).style;
const url = new URL(process.env.MERIDIAN_URL ?? '').origin;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Where one tile holds too many events to draw and its neighbour does not. */
const CALIFORNIA = 'c=earthquakes&m=4.5/37/-119';
const JAPAN = 'c=earthquakes&m=4.2/38/140';

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const distance = (a, b) => Math.hypot(...a.map((v, i) => v - b[i]));

let browser;
let page;
const troubles = [];

const rest = () => shared.rest(page);

async function show(hash) {
  await page.goto('about:blank');
  await page.goto(`${url}/map#${hash}`);
  await page.waitForFunction(() => window.meridianMap && document.querySelectorAll('#table tbody tr').length > 0, undefined, { timeout: PATIENCE });
  await rest();
}

/** The colours of the page at these places, as the screen has them. */
async function coloursAt(places) {
  const png = (await page.screenshot()).toString('base64');
  return page.evaluate(
    async ({ png, places }) => {
      const image = new Image();
      image.src = `data:image/png;base64,${png}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d', { willReadFrequently: true });
      canvas.drawImage(image, 0, 0);
      return places.map(({ x, y }) => [...canvas.getImageData(Math.round(x), Math.round(y), 1, 1).data.slice(0, 3)]);
    },
    { png, places },
  );
}

/**
 * Events drawn one by one that no other covers, where they are on the screen, and their properties; with `lacking`, those
 * without that field that only others without it may cover.
 */
const aloneOnScreen = (lacking = null) =>
  page.evaluate((lacking) => {
    const map = window.meridianMap;
    const box = map.getContainer().getBoundingClientRect();
    const all = map.queryRenderedFeatures({ layers: ['event-point'] }).map((feature) => ({ properties: feature.properties, ...map.project(feature.geometry.coordinates) }));
    const lacks = ({ properties }) => lacking !== null && !(lacking in properties);
    const clear = (a, b) => a === b || Math.hypot(a.x - b.x, a.y - b.y) > 14 || (lacks(a) && lacks(b));
    const inside = ({ x, y }) => x > 80 && x < box.width - 180 && y > 40 && y < box.height - 140;
    const alone = all.filter((a) => inside(a) && (lacking === null || lacks(a)) && all.every((b) => clear(a, b)));
    return alone.map(({ properties, x, y }) => ({ properties, x: box.left + x, y: box.top + y }));
  }, lacking);

const kinds = () =>
  page.evaluate(() => {
    const drawn = (layers) => window.meridianMap.queryRenderedFeatures({ layers }).length;
    return { cells: drawn(['event-cell']), events: drawn(['event-point', 'event-line', 'event-fill']) };
  });

/** A colour drawn at `opacity` over another. */
const over = (colour, ground, opacity) => colour.map((v, i) => v * opacity + ground[i] * (1 - opacity));

/** The colour of the ramp for a value. */
function rampColour(scale, value, ramp) {
  const { stops } = scale;
  const at = Math.min(3, Math.max(0, stops.findIndex((stop, i) => value <= stops[i + 1])));
  const t = (value - stops[at]) / (stops[at + 1] - stops[at]);
  return over(rgb(ramp[at + 1]), rgb(ramp[at]), Math.min(1, Math.max(0, t)));
}

describe('what the pages look like', { timeout: 600_000 }, () => {
  before(async () => {
    browser = await shared.launch();
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(PATIENCE);
    shared.watch(page, url, troubles);
  });
  after(() => browser?.close());

  const step = (name, work) => shared.step(name, () => page, troubles, work);

  step('shows counts or events in the whole view, never both', async () => {
    await show(CALIFORNIA);
    const near = await kinds();
    assert.ok(near.cells > 50 && near.events === 0, JSON.stringify(near));
    assert.match(await page.textContent('#legend'), /Events in a cell/);
    await page.evaluate(() => window.meridianMap.jumpTo({ center: [140, 38], zoom: 4.2 }));
    await page.waitForFunction(() => window.meridianMap.queryRenderedFeatures({ layers: ['event-point'] }).length > 100, undefined, { timeout: PATIENCE });
    await rest();
    assert.equal((await kinds()).cells, 0);
  });

  step('colours each event by its value', async () => {
    await show(JAPAN);
    await page.selectOption('#field', 'depth');
    await page.waitForFunction(() => window.meridianMap.queryRenderedFeatures({ layers: ['event-point'] }).some((f) => 'depth' in f.properties), undefined, { timeout: PATIENCE });
    await rest();
    const answer = await fetch(`${url}/collections/earthquakes/aggregate?function=min(depth),avg(depth),max(depth)`);
    const [group] = (await answer.json()).groups;
    const scale = fieldScale('depth', group['min(depth)'], group['avg(depth)'], group['max(depth)']);
    const alone = (await aloneOnScreen()).slice(0, 40);
    assert.ok(alone.length >= 10, `${alone.length} events stand alone`);
    const seen = await coloursAt(alone);
    const wrong = alone.filter(({ properties }, i) => {
      const wanted = rampColour(scale, properties.depth, LIGHT.ramp);
      // Under an event lies land or sea; a name may be drawn over it.
      return Math.min(...[LIGHT.land, LIGHT.sea].map((ground) => distance(seen[i], over(wanted, rgb(ground), 0.85)))) > 12;
    });
    assert.ok(wrong.length <= alone.length / 10, JSON.stringify(wrong.slice(0, 3)));
    assert.ok(new Set(seen.map(String)).size > 3, 'events of many depths have one colour');
  });

  step('says what grey means, and when no event in view has a value', async () => {
    await show('c=ships&m=10.5/37.8/-122.35');
    await page.selectOption('#field', 'draft_m');
    await page.waitForFunction(() => /no value/.test(document.querySelector('#legend').textContent), undefined, { timeout: PATIENCE });
    await rest();
    const lacking = (await aloneOnScreen('draft_m')).slice(0, 10);
    assert.ok(lacking.length > 2, `${lacking.length} events lack a value and stand clear of the others`);
    const greys = (await coloursAt(lacking)).filter((seen) => [LIGHT.land, LIGHT.sea].some((ground) => distance(seen, over(rgb(LIGHT.none), rgb(ground), 0.85)) < 12));
    assert.ok(greys.length >= lacking.length / 2, `${greys.length} of ${lacking.length} are grey`);
    await page.fill('#filter', 'draft_m IS NULL');
    await page.click('#filter-form button');
    await page.waitForFunction(() => /no event in view has a value/.test(document.querySelector('#legend').textContent) || document.querySelector('#legend').hidden, undefined, { timeout: PATIENCE });
  });

  for (const scheme of ['light', 'dark'])
    step(`has nothing serious that axe finds, in the ${scheme}`, async () => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: scheme, bypassCSP: true });
      const paths = ['/map#c=earthquakes&f=mag', '/search', '/?f=html', '/collections?f=html', '/collections/ships?f=html', '/collections/ships/items?f=html', '/conformance?f=html'];
      try {
        for (const path of paths) {
          const target = await context.newPage();
          await target.goto(url + path);
          if (path.startsWith('/map')) await target.waitForFunction(() => document.body.getAttribute('aria-busy') === 'false' && document.querySelectorAll('#table tbody tr').length > 0, undefined, { timeout: PATIENCE });
          await target.evaluate(axe);
          const { violations } = await target.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
          const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
          assert.deepEqual(serious.map(({ id, nodes }) => `${path} ${id}: ${nodes.map((n) => n.target).join(' ')}`), []);
          await target.close();
        }
      } finally {
        await context.close();
      }
    });

  step('is dark all over in the dark', async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'dark' });
    const light = page;
    try {
      for (const path of ['/search', '/collections?f=html']) {
        page = await context.newPage();
        await page.goto(url + path);
        const [corner] = await coloursAt([{ x: 3, y: 780 }]);
        assert.ok(Math.max(...corner) < 60, `${path}: ${corner}`);
        await page.close();
      }
    } finally {
      page = light;
      await context.close();
    }
  });
});

