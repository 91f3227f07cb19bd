// What a person sees, looked at as pixels: against a running server (MERIDIAN_URL) with the demo's earthquakes and ships.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import * as shared from './browser.mjs';
import { serious } from './axe.mjs';
import { sources } from './sources.mjs';

const { PATIENCE } = shared;
const { palette, eventstyle } = await sources(['palette', 'eventstyle']);
const { LIGHT } = palette;
const { valueStops, onRamp } = (await sources(['scale'], 'surface/')).scale;
const url = new URL(process.env.MERIDIAN_URL ?? '').origin;
/** Where one tile holds too many events to draw and its neighbour does not. */
const CALIFORNIA = 'c=earthquakes&m=4.5/37/-119';
/** Fewer events than a surface needs. */
const JAPAN = 'c=earthquakes&m=5.3/36/141';

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const distance = (a, b) => Math.hypot(...a.map((v, i) => v - b[i]));

let browser;
let page;
const troubles = [];

const rest = () => shared.rest(page);

async function show(hash) {
  await page.goto('about:blank');
  await page.goto(`${url}/map#${hash}`);
  await page.waitForFunction(() => window.meridianMap && document.querySelectorAll('#table tbody tr[data-id]').length > 0, undefined, { timeout: PATIENCE });
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

/** What is drawn: the presence of the surface and of single events. */
const drawing = () => page.evaluate(() => ({ surface: window.meridianPicture.stops() !== null || window.meridianPicture.averages() !== null, events: window.meridianPicture.inView().length, tiles: window.meridianMap.queryRenderedFeatures({ layers: ['event-point'] }).length }));
const legends = () => page.locator('#legend [data-legend]').evaluateAll((parts) => parts.map((part) => part.dataset.legend));

/** Places of the surface with their numbers of events, far from the tools and the legend. */
const surfacePlaces = () =>
  page.evaluate(() => {
    const box = window.meridianMap.getContainer().getBoundingClientRect();
    const stops = window.meridianPicture.stops();
    const out = [];
    for (let x = 120; x < box.width - 220; x += 40)
      for (let y = 40; y < box.height - 180; y += 40) {
        const at = window.meridianMap.unproject([x, y]);
        out.push({ x: box.left + x, y: box.top + y, value: window.meridianPicture.eventsNear([at.lng, at.lat]), stops });
      }
    return out;
  });

/** A colour drawn at `opacity` over another. */
const over = (colour, ground, opacity) => colour.map((v, i) => v * opacity + ground[i] * (1 - opacity));

/** The colour of a field's ramp for a value. */
function valueColour(stops, value) {
  const ramp = eventstyle.rampOf(LIGHT.values, stops.length);
  const above = stops.findIndex((stop) => value <= stop);
  if (above <= 0) return rgb(ramp[above === 0 ? 0 : stops.length - 1]);
  return over(rgb(ramp[above]), rgb(ramp[above - 1]), (value - stops[above - 1]) / (stops[above] - stops[above - 1]));
}

/** The colour of the counts' ramp for a value. */
function countColour(stops, value) {
  const at = onRamp(stops, value) * 4;
  const low = Math.min(3, Math.floor(at));
  return over(rgb(LIGHT.counts[low + 1]), rgb(LIGHT.counts[low]), at - low);
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

  step('draws the whole view as a surface where events are many, in the colours of the legend', async () => {
    await show(CALIFORNIA);
    const near = await drawing();
    assert.ok(near.surface && near.events === 0 && near.tiles === 0, JSON.stringify(near));
    assert.deepEqual(await legends(), ['counts']);
    const solid = (await surfacePlaces()).filter(({ value }) => value > 2);
    assert.ok(solid.length > 40, `${solid.length} places`);
    const seen = await coloursAt(solid);
    const wrong = solid.filter(({ value, stops }, i) => Math.min(...[LIGHT.land, LIGHT.sea].map((ground) => distance(seen[i], over(countColour(stops, value), rgb(ground), 0.85)))) > 24);
    assert.ok(wrong.length <= solid.length / 8, `${wrong.length} of ${solid.length} places have another colour`);
  });

  step('has the averages of a number on the surface, in the colours of the field', async () => {
    await show(`${CALIFORNIA}&f=mag`);
    assert.deepEqual(await legends(), ['field']);
    assert.match(await page.textContent('#legend'), /^Average mag.*where events are many/);
    const solid = (await surfacePlaces()).filter(({ value }) => value > 2);
    assert.ok(solid.length > 40, `${solid.length} places`);
    const seen = await coloursAt(solid);
    const grounds = [LIGHT.land, LIGHT.sea].map(rgb);
    const ramp = Array.from({ length: 65 }, (_, i) => valueColour([0, 16, 32, 48, 64], i));
    const off = seen.filter((colour) => Math.min(...ramp.flatMap((one) => grounds.map((ground) => distance(colour, over(one, ground, 0.85))))) > 24);
    assert.ok(off.length <= solid.length / 8, `${off.length} of ${solid.length} places have another colour`);
    // Many small earthquakes and few large ones: the colours do not follow the counts.
    const places = new Set(seen.map((colour) => ramp.map((one) => distance(colour, over(one, grounds[0], 0.85))).reduce((best, d, i, all) => (d < all[best] ? i : best), 0)));
    assert.ok(places.size > 5, `${places.size} colours`);
    await page.selectOption('#field', 'net');
    await page.waitForFunction(() => /counts of events, not this field/.test(document.querySelector('#legend').textContent), undefined, { timeout: PATIENCE });
    await rest();
    assert.deepEqual(await legends(), ['counts', 'field']);
  });

  step('turns into single events over the surface of the same events, with a legend for each', async () => {
    await page.selectOption('#field', 'depth');
    await page.evaluate(() => window.meridianMap.jumpTo({ center: [140, 38], zoom: 4.2 }));
    await page.waitForFunction(() => window.meridianPicture.inView().length > 100, undefined, { timeout: PATIENCE });
    await rest();
    assert.ok((await drawing()).surface);
    // The surface and the events have one scale, and the legend has one part for both.
    assert.deepEqual(await legends(), ['field']);
    assert.deepEqual(await page.evaluate(() => [window.meridianPicture.averages().stops, window.meridianPicture.averages().stops.length > 1]), [await page.evaluate(() => window.meridianPicture.scale.stops), true]);
    assert.match(await page.textContent('#legend'), /Under the events is their average/);
    await page.evaluate(() => window.meridianMap.jumpTo({ center: [140, 38], zoom: 6 }));
    await rest();
    assert.deepEqual([(await drawing()).surface, await legends()], [false, ['field']]);
  });

  step('colours each event by its value among those in view', async () => {
    await show(JAPAN);
    await page.selectOption('#field', 'depth');
    await page.waitForFunction(() => window.meridianPicture.inView().some((f) => 'depth' in f.properties), undefined, { timeout: PATIENCE });
    await rest();
    const stops = valueStops(await page.evaluate(() => window.meridianPicture.inView().map((f) => f.properties.depth).filter((v) => typeof v === 'number')));
    const alone = (await aloneOnScreen()).slice(0, 40);
    assert.ok(alone.length >= 10, `${alone.length} events stand alone`);
    const seen = await coloursAt(alone);
    const wrong = alone.filter(({ properties }, i) => {
      const wanted = valueColour(stops, properties.depth);
      // Under an event lies land or sea; a name may be drawn over it.
      return Math.min(...[LIGHT.land, LIGHT.sea].map((ground) => distance(seen[i], over(wanted, rgb(ground), 0.85)))) > 12;
    });
    assert.ok(wrong.length <= alone.length / 10, JSON.stringify(wrong.slice(0, 3)));
    assert.ok(new Set(seen.map(String)).size > 3, 'events of many depths have one colour');
  });

  step('says what grey means, and when no event in view has a value', async () => {
    await show('c=ships&m=12/37.8/-122.38');
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
      // Those of other pages are in `pages.test.mjs`.
      const paths = ['/map#c=earthquakes&f=mag', '/search'];
      try {
        for (const path of paths) {
          const target = await context.newPage();
          await target.goto(url + path);
          if (path.startsWith('/map')) await target.waitForFunction(() => document.body.getAttribute('aria-busy') === 'false' && document.querySelectorAll('#table tbody tr').length > 0, undefined, { timeout: PATIENCE });
          assert.deepEqual(await serious(target, path), []);
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

