// The table and the filter of the map page, in a real browser against a running server (MERIDIAN_URL) with the demo's earthquakes.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import * as shared from './browser.mjs';
import * as map from './map.mjs';

const { becomes, PATIENCE } = shared;
const url = new URL(process.env.MERIDIAN_URL ?? '').origin;
const english = new Intl.NumberFormat('en');
const troubles = [];
let browser;
let page;

const api = (path) => map.api(url, path);
const countOf = async (query) => (await api(`/collections/earthquakes/aggregate?${new URLSearchParams({ function: 'count', ...query })}`)).groups[0].count;
const rest = () => shared.rest(page);

async function show(hash) {
  await page.goto('about:blank');
  await page.goto(`${url}/map#${hash}`);
  await page.waitForSelector('#table tbody tr[data-id]');
  await rest();
}

/** The rows that are drawn: their numbers and ids. */
const rows = () => page.locator('#table tbody tr[data-id]').evaluateAll((list) => list.map((row) => ({ at: Number(row.dataset.row), id: row.dataset.id })));
const sight = () => map.sight(page);
const heads = () => page.locator('#table th').allTextContents();
const hashValue = (key) => map.hashValue(page, key);

/** All ids of a question in an order, as the server pages through them. */
async function idsOf(query) {
  const ids = [];
  for (let path = `/collections/earthquakes/items?${new URLSearchParams({ limit: '10000', properties: 'mag', ...query })}`; path; ) {
    const { features, links } = await api(path);
    ids.push(...features.map(({ id }) => String(id)));
    const next = links.find(({ rel }) => rel === 'next');
    path = next && features.length ? new URL(next.href).pathname + new URL(next.href).search : null;
  }
  return ids;
}

describe('the table and the filter', { timeout: 3_600_000 }, () => {
  before(async () => {
    browser = await shared.launch();
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(PATIENCE);
    shared.watch(page, url, troubles);
  });
  after(() => browser?.close());

  const step = (name, work) => shared.step(name, () => page, troubles, work);

  step('shows the right rows wherever it is scrolled, with few of them in the page', async () => {
    await show('c=earthquakes&m=5/37/-119');
    const cut = await page.locator('#table td.number').evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent));
    assert.deepEqual(cut, [], 'no number is cut');
    const bbox = await sight();
    const ids = await idsOf({ bbox, sortby: '-time' });
    assert.ok(ids.length > 20_000, `${ids.length} events`);
    for (const share of [0, 0.5, 0.93, 0.2, 1]) {
      await page.evaluate((to) => {
        const room = document.querySelector('#table-scroll');
        room.scrollTop = to * (room.scrollHeight - room.clientHeight);
      }, share);
      await page.waitForFunction((count) => {
        const shown = [...document.querySelectorAll('#table tbody tr[data-row]')];
        const first = Number(shown[0]?.dataset.row);
        return shown.length > 0 && shown.every((row) => row.dataset.id) && Math.abs(first / count - document.querySelector('#table-scroll').scrollTop / document.querySelector('#table-scroll').scrollHeight) < 0.01;
      }, ids.length, { timeout: PATIENCE });
      const shown = await rows();
      assert.ok(shown.length < 80, `${shown.length} rows in the page`);
      assert.deepEqual(shown.map(({ id }) => id), shown.map(({ at }) => ids[at]), `at ${share}`);
    }
    assert.equal((await rows()).at(-1).at, ids.length - 1, 'the end is reached');
    assert.match(await page.textContent('#rows'), new RegExp(`of ${english.format(ids.length)}$`));
  });

  step('goes from row to row by keyboard', async () => {
    await show('c=earthquakes&m=5/37/-119');
    await page.focus('#table tbody tr[data-row="0"]');
    for (let i = 0; i < 15; i++) await page.keyboard.press('ArrowDown');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.row), '15');
    await page.keyboard.press('Home');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.row), '0');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.event-popup .card');
    await page.click('.maplibregl-popup-close-button');
  });

  step('sorts by a header, the largest first, then the smallest, then as it was', async () => {
    await show('c=earthquakes&m=5/37/-119');
    const bbox = await sight();
    for (const [sort, way] of [['-mag', 'descending'], ['mag', 'ascending'], ['-time', 'none']]) {
      await page.click('[data-sort=mag]');
      await page.waitForFunction((wanted) => document.querySelector('[data-sort=mag]').closest('th').getAttribute('aria-sort') === wanted, way);
      await rest();
      const { features } = await api(`/collections/earthquakes/items?${new URLSearchParams({ bbox, sortby: sort, limit: '10' })}`);
      assert.deepEqual((await rows()).slice(0, 10).map(({ id }) => id), features.map(({ id }) => String(id)), sort);
    }
  });

  step('sorts by a click beside the word of a header too', async () => {
    await show('c=earthquakes&m=5/37/-119');
    const header = page.locator('#table th', { has: page.locator('[data-sort=mag]') });
    const [cell, word] = [await header.boundingBox(), await page.locator('[data-sort=mag]').boundingBox()];
    assert.ok(word.x > cell.x + 2, 'there is room beside the word');
    await header.click({ position: { x: 1, y: 14 } });
    await becomes(() => header.getAttribute('aria-sort'), 'descending');
    await rest();
    await page.focus('[data-sort=mag]');
    await page.keyboard.press('Enter');
    await becomes(() => header.getAttribute('aria-sort'), 'ascending');
    await rest();
  });

  step('shows the columns that are chosen, and keeps them in the link', async () => {
    await page.click('#columns');
    await page.uncheck('#column-list [value=place]');
    await page.click('#column-dialog [value=ok]');
    await page.waitForFunction(() => /cols=/.test(location.hash));
    await rest();
    assert.ok(!(await heads()).some((text) => /place/.test(text)));
    const link = page.url();
    await page.goto('about:blank');
    await page.goto(link);
    await page.waitForSelector('#table tbody tr[data-id]');
    assert.ok(!(await heads()).some((text) => /place/.test(text)) && (await heads()).some((text) => /mag/.test(text)));
  });

  step('builds a filter of conditions, and shows it as CQL2', async () => {
    await show('c=earthquakes&m=5/37/-119');
    const bbox = await sight();
    await page.click('#add-condition');
    const row = page.locator('#conditions li').nth(0);
    await row.locator('select').nth(0).selectOption('mag');
    await page.locator('#conditions li select').nth(1).selectOption('>=');
    await page.locator('#conditions li input').nth(0).fill('3.5');
    assert.equal(await page.inputValue('#filter'), 'mag >= 3.5');
    await page.keyboard.press('Enter');
    await becomes(() => page.textContent('#count'), english.format(await countOf({ bbox, filter: 'mag >= 3.5' })));
    await page.click('#add-condition');
    await page.locator('#conditions li').nth(1).locator('select').nth(0).selectOption('place');
    await page.locator('#conditions li').nth(1).locator('select').nth(1).selectOption('contains');
    await page.locator('#conditions li').nth(1).locator('input').fill('ridge');
    const filter = "mag >= 3.5 AND CASEI(place) LIKE CASEI('%ridge%')";
    assert.equal(await page.inputValue('#filter'), filter);
    await page.keyboard.press('Enter');
    await becomes(() => page.textContent('#count'), english.format(await countOf({ bbox, filter })));
    await page.click('[aria-label="Remove condition 1"]');
    await becomes(() => hashValue('q'), "CASEI(place) LIKE CASEI('%ridge%')");
  });

  step('completes a value from those that there are', async () => {
    await show('c=earthquakes&m=5/37/-119');
    await page.click('#add-condition');
    await page.locator('#conditions li select').nth(0).selectOption('type');
    await page.locator('#conditions li select').nth(1).selectOption('=');
    await page.locator('#conditions li input').fill('bla');
    const filter = "CASEI(type) LIKE CASEI('%bla%')";
    const { groups } = await api(`/collections/earthquakes/aggregate?${new URLSearchParams({ function: 'top(type,12)', filter })}`);
    const wanted = groups[0]['top(type,12)'].map(({ value }) => value);
    assert.ok(wanted.includes('quarry blast'));
    await becomes(async () => (await page.locator('#conditions datalist option').evaluateAll((list) => list.map((one) => one.value))).join(), wanted.join());
  });

  step('takes text that no condition says, and conditions from text', async () => {
    await show('c=earthquakes&m=5/37/-119');
    const bbox = await sight();
    const filter = 'mag > 4 OR depth > 30';
    await page.fill('#filter', filter);
    await page.keyboard.press('Enter');
    await becomes(() => page.textContent('#count'), english.format(await countOf({ bbox, filter })));
    await becomes(() => page.isVisible('#by-hand'), true);
    assert.ok(await page.isDisabled('#add-condition'));
    await page.fill('#filter', 'mag > 4 AND depth < 10');
    await page.keyboard.press('Enter');
    await becomes(() => page.locator('#conditions li').count(), 2);
    assert.ok(await page.isHidden('#by-hand'));
    await rest();
  });
});
