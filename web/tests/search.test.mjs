// The search page in a real browser, against a running server (MERIDIAN_URL) whose outside sources are those of
// search-sources.sh: `meridian lab mock`, some of them slow, broken or silent for ever.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serious } from './axe.mjs';
import { becomes, drag, launch, onScreen, PATIENCE, step as stepOf, watch } from './browser.mjs';
import { startProxy } from './proxy.mjs';

const server = new URL(process.env.MERIDIAN_URL ?? 'http://unset.invalid').origin;
const troubles = [];
let proxy;
let url;
let browser;
let context;
let page;

const tone = () => page.getAttribute('#banner', 'data-tone');
const headline = () => page.textContent('#headline');
const ended = () => page.waitForFunction(() => ['good', 'warn', 'bad'].includes(document.querySelector('#banner').dataset.tone), undefined, { timeout: PATIENCE });
const rows = () => page.locator('#list .result').count();
const facts = () => page.locator('#list .result').evaluateAll((items) => items.map((item) => `${item.dataset.source} ${item.querySelector('h2').textContent}`).sort());
const state = (name) => page.getAttribute(`[data-source="${name}"].source`, 'data-state');
const hashValue = (key) => new URLSearchParams(new URL(page.url()).hash.slice(1)).get(key);

/** Opens the page at a question, as a link would. */
async function show(hash) {
  await page.goto('about:blank');
  await page.goto(`${url}/search#${hash}`);
  await page.waitForSelector('#sources .source', { state: 'attached' });
}

/** All packets of the same question, asked here. */
async function packets(question) {
  const begun = await fetch(`${server}/searches`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(question) });
  assert.equal(begun.status, 202, await begun.clone().text());
  const { search } = await begun.json();
  const text = await (await fetch(`${server}/searches/${search}/packets`)).text();
  return text.split('\n\n').flatMap((event) => event.split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6))));
}
const features = (list) => list.flatMap((packet) => packet.features ?? []);

describe('the search page', { timeout: 900_000 }, () => {
  before(async () => {
    assert.ok(process.env.MERIDIAN_URL, 'MERIDIAN_URL is not set: scripts/browser_test.sh runs this test');
    proxy = await startProxy(server);
    url = proxy.url;
    browser = await launch();
    context = await browser.newContext({ viewport: { width: 1440, height: 860 } });
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on('dialog', (dialog) => {
      troubles.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    watch(page, url, troubles);
  });

  after(async () => {
    await browser?.close();
    proxy?.stop();
  });

  const step = (name, work) => stepOf(name, () => page, troubles, work);

  step('lists the sources, what each takes, and which cannot be asked', async () => {
    await show('');
    const { providers } = await (await fetch(`${server}/providers`)).json();
    assert.deepEqual(await page.locator('#sources .source').evaluateAll((items) => items.map((item) => item.dataset.source)), providers.map((p) => p.name));
    assert.match(await page.textContent('[data-source=quick]'), /Quick news.*takes keywords, not OR/s);
    assert.match(await page.textContent('[data-source=keyless]'), /it needs MERIDIAN_NO_SUCH_KEY/);
    assert.equal(await state('keyless'), 'off');
    assert.equal(await tone(), 'quiet');
  });

  step('has nothing serious that axe finds beside results and warnings, in both schemes', async () => {
    const axed = await browser.newContext({ viewport: { width: 1440, height: 860 }, bypassCSP: true });
    const target = await axed.newPage();
    await target.goto(`${url}/search#q=flood&p=quick,paged,garbage`);
    await target.waitForFunction(() => ['good', 'warn', 'bad'].includes(document.querySelector('#banner').dataset.tone), undefined, { timeout: PATIENCE });
    assert.ok((await target.locator('#list .result').count()) > 0);
    for (const colorScheme of ['light', 'dark']) {
      await target.emulateMedia({ colorScheme });
      assert.deepEqual(await serious(target, `search, ${colorScheme}`), []);
    }
    await axed.close();
  });

  step('keeps all results in view until the user moves the map, and then says how many are outside', async () => {
    const outside = () => page.textContent('#outside-text');
    const there = async () => Math.max(...(await page.evaluate(() => {
      const b = window.meridianMap.getBounds();
      return window.meridianMap.getSource('results').serialize().data.features.map(({ geometry: { coordinates: [lng, lat] } }) => (lat > b.getSouth() && lat < b.getNorth() && [-360, 0, 360].some((turn) => lng + turn > b.getWest() && lng + turn < b.getEast()) ? 0 : 1));
    })));
    await show('q=flood&p=quick,paged');
    await ended();
    await becomes(there, 0, 'every result is in view');
    assert.equal(await page.isVisible('#outside'), false);
    const box = await page.locator('#map').boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    for (let i = 0; i < 8; i++) await page.mouse.wheel(0, -600);
    await page.waitForSelector('#outside:not([hidden])');
    assert.match(await outside(), /^\d+ results? (is|are) outside of the map/);
    await page.click('#show-all');
    await becomes(there, 0, 'the button shows all');
    await page.waitForSelector('#outside', { state: 'hidden' });
  });

  step('shows results while it waits for the rest, and cancels', async () => {
    await show('');
    await page.fill('#keywords', 'flood');
    await page.click('#none');
    for (const name of ['quick', 'hang']) await page.check(`#sources input[value=${name}]`);
    await page.click('#go');
    await page.waitForFunction(() => document.querySelectorAll('#list .result').length === 6);
    await becomes(() => state('quick'), 'complete');
    assert.equal(await state('hang'), 'asked');
    assert.equal(await tone(), 'busy');
    assert.equal(await headline(), '6 results so far. 1 of 2 sources have answered.');
    assert.equal(await page.textContent('#awaited'), 'Still waiting for Says nothing.');
    assert.match(await page.textContent('#list .result >> nth=0'), /^First, after [\d.]+ m?s/);
    assert.equal(await page.locator('.badge').count(), 1);
    // They are on the map as well, the first with a ring.
    await page.waitForFunction(() => window.meridianMap.loaded() && window.meridianMap.querySourceFeatures('results').some((f) => f.properties.first), undefined, { timeout: PATIENCE });
    assert.deepEqual([hashValue('q'), hashValue('p')], ['flood', 'hang,quick']);
    await page.click('#stop');
    await ended();
    assert.equal(await tone(), 'warn');
    assert.equal(await headline(), 'Cancelled. Partial: 6 results, but not everything. 1 of 2 sources is missing:');
    assert.match(await page.textContent('#lacking'), /^Says nothing ran out of time: the search was stopped/);
    assert.equal(await page.textContent('#list-end'), 'The end of a partial list: Says nothing is missing.');
    assert.equal(await page.isHidden('#stop'), true);
  });

  step('says prominently that it is partial, which sources are missing and why', async () => {
    await show('q=flood&p=quick,hang,garbage&d=8');
    await ended();
    assert.equal(await headline(), 'Partial: 6 results, but not everything. 2 of 3 sources are missing:');
    const lacking = await page.locator('#lacking li').allTextContents();
    assert.equal(lacking.length, 2);
    assert.match(lacking.join('\n'), /Sends garbage failed: /);
    assert.match(lacking.join('\n'), /Says nothing ran out of time/);
    assert.deepEqual([await state('quick'), await state('garbage'), await state('hang')], ['complete', 'error', 'timeout']);
    assert.match(await page.title(), /6 results, not complete/);
    assert.match(await page.textContent('#announce'), /^Partial: /);
    assert.match(await page.textContent('#figures'), /^First result after .*ended after .* s\.$/);
  });

  step('says that it is complete only when everything is there', async () => {
    await show('q=storm&p=quick,paged,late');
    await ended();
    assert.equal(await headline(), 'Complete: 41 results. From all 3 sources, everything they have.');
    assert.equal(await page.isHidden('#lacking'), true);
    assert.equal(await page.isHidden('#list-end'), true);
    const all = await packets({ keywords: 'storm', providers: ['quick', 'paged', 'late'] });
    assert.equal(await rows(), features(all).length);
    assert.equal(await page.locator('.badge').count(), 1);
    assert.equal(await page.locator('#list .result >> nth=0 >> .badge').count(), 1);
  });

  step('restores a question from its link and asks it again', async () => {
    const first = await facts();
    const link = page.url();
    await page.goto('about:blank');
    await page.goto(link);
    await ended();
    assert.equal(await page.inputValue('#keywords'), 'storm');
    assert.deepEqual(await page.locator('#sources input:checked').evaluateAll((boxes) => boxes.map((box) => box.value).sort()), ['late', 'paged', 'quick']);
    assert.deepEqual(await facts(), first);
    // Another question, and back to the one before.
    await page.fill('#keywords', 'fire');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash.includes('q=fire'));
    await ended();
    await page.goBack();
    await becomes(() => page.inputValue('#keywords'), 'storm');
    await ended();
    assert.deepEqual(await facts(), first);
  });

  step('copies a link to what the form says', async () => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
    await show('q=storm&p=paged');
    await ended();
    await page.fill('#keywords', 'fire');
    await page.click('#share');
    await becomes(() => page.textContent('#toast'), 'Link copied');
    const link = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(link, page.url());
    assert.deepEqual([hashValue('q'), hashValue('p')], ['fire', 'paged']);
    // This starts no search; following the link does.
    assert.match(await headline(), /^Complete: 30 results/);
    await page.goto('about:blank');
    await page.goto(link);
    await ended();
    assert.equal(await page.inputValue('#keywords'), 'fire');
  });

  step('asks in a drawn place', async () => {
    await show('q=storm&p=paged');
    await ended();
    await page.waitForFunction(() => !window.meridianMap.isMoving());
    await page.click('[data-draw=box]');
    await drag(page, await onScreen(page, -60, -35), await onScreen(page, 60, 35));
    await page.waitForSelector('#drawn:not([hidden])');
    assert.match(await page.textContent('#drawn-text'), /^Box /);
    await page.keyboard.press('Enter'); // the button to search has the focus
    await page.waitForFunction(() => /[#&]s=box:/.test(location.hash));
    await ended();
    const bbox = hashValue('s').slice('box:'.length).split(',').map(Number);
    const wanted = features(await packets({ keywords: 'storm', providers: ['paged'], bbox }));
    assert.ok(wanted.length > 0 && wanted.length < 30, `${wanted.length} in ${bbox}`);
    assert.equal(await rows(), wanted.length);
    await page.click('#clear-drawn');
    assert.equal(await page.isVisible('#address'), true);
  });

  step('goes on after a broken connection, without loss or repeat', async () => {
    await show('q=tide&p=quick,hang');
    await page.waitForFunction(() => document.querySelectorAll('#list .result').length === 6);
    proxy.asked.length = 0;
    proxy.cut();
    await becomes(async () => proxy.asked.some((line) => /^GET \/searches\/\w+\/packets\?after=\d+$/.test(line)), true, 'it asked for what follows');
    await page.click('#stop');
    await ended();
    assert.match(await headline(), /^Cancelled\. Partial: 6 results/);
    assert.equal(await rows(), 6);
    // The browser itself may note the cut.
    assert.deepEqual(troubles.filter((text) => !/net::ERR_|network error/i.test(text)), []);
    troubles.length = 0;
  });

  step('is used with the keyboard alone', async () => {
    await show('');
    const active = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.className || '');
    const value = () => page.evaluate(() => document.activeElement?.value ?? '');
    const tabTo = async (wanted, most, read = active) => {
      for (let i = 0; i < most; i++) {
        await page.keyboard.press('Tab');
        if ((await read()) === wanted) return;
      }
      assert.fail(`${wanted} was not reached in ${most} steps`);
    };
    await page.focus('.brand');
    await tabTo('keywords', 8);
    await page.keyboard.type('flood');
    await page.keyboard.press('Tab'); // the button beside it
    assert.equal(await active(), 'go');
    await tabTo('none', 20);
    await page.keyboard.press('Enter');
    await tabTo('hang', 12, value);
    await page.keyboard.press('Space');
    await tabTo('quick', 12, value);
    await page.keyboard.press('Space');
    await page.focus('#keywords');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelectorAll('#list .result').length === 6);
    await page.keyboard.press('Escape');
    await ended();
    assert.match(await headline(), /^Cancelled\. Partial: 6 results/);
    // From the skip link to the list, along it, and to the map.
    await page.focus('.skip');
    await page.keyboard.press('Enter');
    await tabTo('result', 3);
    await page.keyboard.press('ArrowDown');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.key), '1');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.event-popup .card');
    assert.equal(await page.getAttribute('.result.chosen', 'data-key'), '1');
    await page.keyboard.press('Escape');
    await becomes(() => page.locator('.event-popup').count(), 0);
  });

  step('takes what sources say for text, and follows only http and https', async () => {
    const id = `hostile-${process.pid}`;
    const schema = { type: 'object', properties: { title: { type: 'string' }, text: { type: 'string' }, link: { type: 'string' }, geometry: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' } } };
    const made = await fetch(`${server}/collections/${id}`, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify(schema) });
    assert.ok(made.ok, await made.text());
    try {
      const event = (title, link) => ({ type: 'Feature', geometry: { type: 'Point', coordinates: [1, 2] }, properties: { title, link, text: `xyzzyword${process.pid} <b>bold</b>` } });
      const list = [event('<img src=x onerror=alert(1)>', 'javascript:alert(1)'), event('Good', 'https://example.org/a')];
      const wrote = await fetch(`${server}/collections/${id}/items`, { method: 'POST', headers: { 'content-type': 'application/geo+json' }, body: JSON.stringify({ type: 'FeatureCollection', features: list }) });
      assert.ok(wrote.ok, await wrote.text());
      await show(`q=xyzzyword${process.pid}&p=meridian&d=60`);
      await ended();
      assert.equal(await rows(), 2);
      const bad = page.locator('#list .result', { hasText: 'onerror' });
      assert.equal(await bad.locator('h2').textContent(), '<img src=x onerror=alert(1)>');
      assert.equal(await bad.locator('a').count(), 0);
      assert.match(await bad.locator('.result-text').textContent(), /<b>bold<\/b>/);
      assert.equal(await page.locator('#list img, #list b').count(), 0);
      const link = page.locator('#list a');
      assert.deepEqual(await link.evaluateAll((found) => found.map((a) => [a.href, a.rel, a.target])), [['https://example.org/a', 'noopener noreferrer nofollow', '_blank']]);
      await bad.click();
      await page.waitForSelector('.event-popup .card');
      assert.equal(await page.locator('.event-popup img').count(), 0);
    } finally {
      await fetch(`${server}/collections/${id}`, { method: 'DELETE' });
    }
  });

  step('shows what a model takes a picture for, as the guess that it is', async () => {
    const properties = { title: 'A castle', images: ['https://example.org/a.jpg'], image_labels: [{ label: 'castle', score: 0.874 }, { label: '<b>moat</b>', score: 0.2 }], image_labels_from: 'mobilenet' };
    const told = [
      { kind: 'results', provider: 'quick', features: [{ type: 'Feature', id: 'a', geometry: { type: 'Point', coordinates: [1, 2] }, properties }] },
      { kind: 'provider', provider: 'quick', state: 'complete', detail: '', results: 1, ms: 5 },
      { kind: 'complete', state: 'complete', packets: 3, result_packets: 1, providers: { quick: 'complete' }, ttfp_ms: 4, ttlp_ms: 4 },
    ];
    const body = told.map((packet, seq) => `id: ${seq}\ndata: ${JSON.stringify({ search: 's', seq, ...packet })}\n\n`).join('');
    const address = /\/searches\/[^/]+\/packets$/;
    await page.route(address, (route) => route.fulfill({ contentType: 'text/event-stream', body }));
    try {
      await show('q=castle&p=quick');
      await ended();
      const said = 'Picture, as mobilenet guesses: castle 87%, <b>moat</b> 20%';
      assert.deepEqual(await page.locator('#list .result-guess').allTextContents(), [said]);
      await page.click('#list .result');
      assert.equal(await page.textContent('.event-popup .card .result-guess'), said);
    } finally {
      await page.unroute(address);
    }
  });

  it('says what is wrong with a question, in the words of the server, at its field', async () => {
    await show('');
    await page.click('#go');
    assert.match(await page.textContent('#question-problem'), /^The question is empty/);
    await page.fill('#keywords', '(flood');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#question-problem:not([hidden])');
    const refused = await fetch(`${server}/searches`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"keywords":"(flood"}' });
    await becomes(async () => page.textContent('#question-problem'), (await refused.json()).detail);
    assert.equal(await page.getAttribute('#keywords', 'aria-invalid'), 'true');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'keywords');
    assert.deepEqual(troubles.filter((text) => !text.startsWith('400: ') && !text.includes('status of 400')), []);
    troubles.length = 0;
  });

  step('says at once that no source accepts the question', async () => {
    await show('by=Ann&p=quick,hang');
    await ended();
    assert.equal(await headline(), 'No source was asked: none accepts this question.');
    assert.equal(await page.locator('#lacking li').count(), 2);
  });

  step('offers to save where the server keeps searches, and there only', async () => {
    const { paths } = await (await fetch(`${server}/openapi.json`)).json();
    await show('');
    await page.waitForLoadState('networkidle');
    assert.equal(await page.isVisible('#save'), paths['/saved-searches']?.post !== undefined);
  });

  step('saves a search, and says where it is kept', async () => {
    await show('');
    await page.waitForSelector('#save:not([hidden])');
    await page.fill('#keywords', 'flood');
    await page.click('#save');
    assert.equal(await page.inputValue('#save-name'), 'flood');
    await page.fill('#save-name', 'Floods');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#saved:not([hidden])');
    const [path, packets] = await page.locator('#saved a').evaluateAll((found) => found.map((a) => a.getAttribute('href')));
    try {
      assert.equal(packets, `${path}/packets`);
      const { name, question, poll_s } = await (await fetch(server + path)).json();
      assert.deepEqual({ name, question, poll_s }, { name: 'Floods', question: { keywords: 'flood' }, poll_s: 3600 });
      await page.keyboard.press('Escape');
      assert.equal(await page.isVisible('#save-dialog'), false);
    } finally {
      assert.equal((await fetch(server + path, { method: 'DELETE' })).status, 204);
    }
  });

  step('fits a phone, in the dark', async () => {
    const phone = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: 'dark' });
    const desk = page;
    page = await phone.newPage();
    try {
      page.setDefaultTimeout(PATIENCE);
      watch(page, url, troubles);
      await show('q=flood&p=quick,garbage');
      await ended();
      const { wide, background } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, background: getComputedStyle(document.documentElement).backgroundColor }));
      assert.ok(wide <= 390, `the page is ${wide} pixels wide`);
      for (const width of [360, 375]) {
        await page.setViewportSize({ width, height: 844 });
        const [brand, save, share] = await Promise.all(['.brand', '#save', '#share'].map((id) => page.locator(id).boundingBox()));
        for (const one of [save, share]) assert.ok(one && Math.abs(one.y + one.height / 2 - brand.y - brand.height / 2) < 4, `at ${width} pixels the header has one line: ${JSON.stringify({ brand, save, share })}`);
      }
      await page.setViewportSize({ width: 390, height: 844 });
      assert.ok(Number(background.match(/\d+/)[0]) < 60, background);
      // What it says of the search stays in sight while the list is read.
      await page.locator('#list .result >> nth=5').scrollIntoViewIfNeeded();
      const banner = await page.locator('#banner').boundingBox();
      assert.ok(banner.y >= -1 && banner.y < 844, `the banner is at ${banner.y}`);
      await page.tap('#list .result >> nth=5');
      await page.waitForSelector('.event-popup .card');
    } finally {
      await phone.close();
      page = desk;
    }
  });
});
