// The pages that the server writes, in a real browser against a running server (MERIDIAN_URL) with earthquakes, ships and storms.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe } from 'node:test';
import * as shared from './browser.mjs';
import { serious } from './axe.mjs';

const { PATIENCE } = shared;
const url = new URL(process.env.MERIDIAN_URL ?? 'http://unset.invalid').origin;
/** A report of the lab, as a file. */
const report = process.env.MERIDIAN_REPORT;
const troubles = [];
let browser;
let context;
let page;

const step = (name, work) => shared.step(name, () => page, troubles, work);
/** Refusals that a step expects are no trouble. */
const expectRefusals = (status) => {
  for (let i = troubles.length - 1; i >= 0; i--) if (troubles[i].startsWith(`${status}: `) || troubles[i].includes(`status of ${status} `)) troubles.splice(i, 1);
};

describe('the pages of the server', { timeout: 900_000 }, () => {
  before(async () => {
    assert.ok(process.env.MERIDIAN_URL, 'MERIDIAN_URL is not set: scripts/browser_test.sh runs this test');
    browser = await shared.launch();
    context = await browser.newContext({ viewport: { width: 1280, height: 860 }, permissions: ['clipboard-read', 'clipboard-write'] });
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    shared.watch(page, url, troubles);
  });
  after(async () => {
    await browser?.close();
  });

  step('a wrong address shows a page in the house style, and a program a problem', async () => {
    const answer = await page.goto(`${url}/nowhere`);
    assert.equal(answer.status(), 404);
    assert.equal(await page.textContent('h1'), 'Not found');
    assert.match(await page.textContent('main'), /There is nothing at \/nowhere/);
    assert.ok((await page.evaluate(() => getComputedStyle(document.body).fontFamily)).includes('Inter'));
    await page.click('.brand');
    await page.waitForURL(`${url}/`);
    expectRefusals(404);
    const bare = await fetch(`${url}/nowhere`);
    assert.deepEqual([bare.status, bare.headers.get('content-type')], [404, 'application/problem+json']);
  });

  step('cards show where and when as the API answers it', async () => {
    await page.goto(`${url}/`);
    const card = page.locator('.collection[data-collection=earthquakes]');
    await card.scrollIntoViewIfNeeded();
    await card.locator('.places svg').waitFor();
    await card.locator('.times svg').waitFor();
    const [density, aggregate] = await page.evaluate(() => performance.getEntriesByType('resource').map((one) => one.name).filter((name) => name.includes('/earthquakes/')).sort().reverse());
    assert.match(density, /density/);
    const { counts } = await (await fetch(density)).json();
    // One square a cell that has events, in whatever shade.
    const drawn = await card.locator('.cell').evaluateAll((paths) => paths.map((path) => path.getAttribute('d')).join('').split('M').length - 1);
    assert.equal(drawn, counts.filter(Boolean).length);
    assert.ok(drawn > 100);
    const { groups } = await (await fetch(aggregate)).json();
    assert.equal(await card.locator('.times rect').count(), groups.length);
    const heights = await card.locator('.times rect').evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute('height'))));
    const largest = groups.map((group) => group.count).reduce((at, count, i, all) => (count > all[at] ? i : at), 0);
    assert.equal(heights.indexOf(1), largest);
    const shown = (await card.locator('.count').textContent()).replace(/\D/g, '');
    assert.equal(Number(shown), (await (await fetch(`${url}/collections/earthquakes`)).json()).itemCount);
  });

  step('a card that is out of view asks nothing', async () => {
    const small = await browser.newPage({ viewport: { width: 390, height: 300 } });
    const asked = [];
    small.on('request', (request) => asked.push(request.url()));
    await small.goto(`${url}/`);
    await small.waitForFunction(() => document.querySelectorAll('.collection').length > 3);
    await small.waitForTimeout(500);
    const of = (name) => asked.some((one) => one.includes(`/${name}/density`));
    const last = await small.locator('.collection').last().getAttribute('data-collection');
    assert.equal(of(last), false, last);
    await small.locator('.collection').last().scrollIntoViewIfNeeded();
    await small.locator('.collection').last().locator('svg').first().waitFor();
    assert.equal(of(last), true);
    await small.close();
  });

  step('a command is copied, and the shell gets what the page says', async () => {
    await page.goto(`${url}/collections/earthquakes`);
    await page.click('#ask-curl button[data-copy]');
    await shared.becomes(() => page.textContent('#ask-curl button[data-copy]'), 'Copied');
    const command = await page.evaluate(() => navigator.clipboard.readText());
    const answer = execFileSync('bash', ['-c', command.replace('curl ', 'curl -sfS ')], { encoding: 'utf8' });
    const events = answer.trim().split('\n').slice(1).reduce((sum, line) => sum + Number(line.split(',')[1]), 0);
    const { itemCount } = await (await fetch(`${url}/collections/earthquakes`)).json();
    assert.equal(events, itemCount);
  });

  step('languages are tabs for a keyboard', async () => {
    await page.focus('[role=tab][aria-selected=true]');
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Python');
    assert.ok(await page.isVisible('#ask-python'));
    assert.ok(!(await page.isVisible('#ask-curl')));
    await page.keyboard.press('End');
    assert.match(await page.textContent('[role=tabpanel]:not([hidden])'), /read_parquet/);
  });

  step('a list of events has a line for each, and on a phone a list of its cells', async () => {
    await page.goto(`${url}/collections/earthquakes/items?f=html`);
    const heights = await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
    assert.ok(Math.max(...heights) < 60, `rows of ${Math.max(...heights)} pixels`);
    // Numbers are rounded, and exact as titles; what is out of sight is counted.
    const texts = await page.locator('td.num').evaluateAll((cells) => cells.map((cell) => cell.textContent));
    assert.ok(texts.length > 10 && texts.every((text) => text.replace(/\D/g, '').replace(/^0+/, '').length <= 7), texts.join(' '));
    await page.setViewportSize({ width: 800, height: 860 });
    await shared.becomes(async () => /^\d+ of \d+ columns are to the right/.test(await page.textContent('.more')), true);
    await page.locator('.list').evaluate((room) => room.scrollTo(1e6, 0));
    await shared.becomes(() => page.textContent('.more'), 'This is the last column.');
    const cut = await page.locator('.list td').evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth && !cell.title).map((cell) => cell.textContent));
    assert.deepEqual(cut, [], 'a text that is cut is whole in its title');
    await page.setViewportSize({ width: 1280, height: 860 });
    const phone = await browser.newPage({ viewport: { width: 390, height: 844 } });
    await phone.goto(`${url}/collections/earthquakes/items?f=html`);
    const wide = await phone.locator('tbody tr').first().locator('td').evaluateAll((cells) => cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth || (cell.textContent && !cell.dataset.name)).length);
    assert.equal(wide, 0, 'every cell is named and on the screen');
    // Many columns to sort by are folded, so that the events are on the first screen.
    assert.equal(await phone.locator('th a:visible, .sorts a:visible').count(), 0);
    assert.ok((await phone.locator('tbody tr').first().boundingBox()).y < 844);
    await phone.click('.sorts summary');
    assert.equal(await phone.locator('.sorts a:visible').count(), await phone.locator('th a').count());
    await phone.click('.sorts a:text-is("mag")');
    await phone.waitForURL(/sortby=mag/);
    assert.equal(await phone.textContent('.sorts summary'), 'Sorted by mag, ascending');
    await phone.close();
  });

  step('a card without times, and the buttons of an error, keep their room', async () => {
    await page.goto(`${url}/`);
    await page.locator('.collection[data-collection=countries] .timeless').waitFor();
    await page.goto(`${url}/nowhere`);
    const [facts, actions] = [await page.locator('.facts').boundingBox(), await page.locator('.actions').boundingBox()];
    assert.ok(actions.y - facts.y - facts.height >= 12, 'buttons do not touch the rule');
    expectRefusals(404);
  });

  step('the API page has the font of the other pages, and no bands of its own', async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
    const target = await context.newPage();
    await target.goto(`${url}/api`);
    await target.waitForSelector('.opblock-tag');
    for (const part of ['.opblock-tag small p', '.btn.authorize span', '.operation-filter-input'])
      assert.match(await target.locator(part).first().evaluate((one) => getComputedStyle(one).fontFamily), /Inter/, part);
    assert.equal(await target.locator('.scheme-container').evaluate((one) => getComputedStyle(one).backgroundColor), 'rgba(0, 0, 0, 0)');
    assert.ok((await target.locator('.operation-filter-input').boundingBox()).width > 340, 'the filter has the width');
    await context.close();
  });

  step('the API page tries an operation', async () => {
    await page.goto(`${url}/api`);
    await page.waitForSelector('.opblock-tag');
    await page.click('.opblock-tag[data-tag=Analysis]');
    await page.click('#operations-Analysis-getAggregate .opblock-summary-control');
    const [answer] = await Promise.all([page.waitForResponse((r) => r.url().includes('/aggregate')), page.click('#operations-Analysis-getAggregate .execute')]);
    assert.equal(answer.status(), 200, answer.url());
    await page.waitForSelector('.live-responses-table .response-col_status');
    const { groups } = await answer.json();
    assert.match(await page.textContent('.live-responses-table'), new RegExp(`"count": ${groups[0].count}`));
    // What the viewer loads is not part of any other page.
    await page.goto(`${url}/`);
    assert.equal(await page.evaluate(() => performance.getEntriesByType('resource').some((one) => one.name.includes('swagger'))), false);
  });

  step('a phone needs no sideways scrolling', async () => {
    const phone = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true });
    const target = await phone.newPage();
    for (const path of ['/', '/api', '/collections', '/collections/ships', '/collections/ships/items', '/admin/load', '/admin/cluster', '/login', '/nowhere']) {
      await target.goto(url + path);
      if (path === '/api') await target.waitForSelector('.opblock-tag');
      assert.ok(await target.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path);
    }
    await phone.close();
  });

  for (const scheme of ['light', 'dark'])
    step(`has nothing serious that axe finds, in the ${scheme}`, async () => {
      const axed = await browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: scheme, bypassCSP: true });
      const item = (await (await fetch(`${url}/collections/ships/items?limit=1`)).json()).features[0].id;
      const paths = ['/', '/collections', '/collections/ships', '/collections/ships/items', `/collections/ships/items/${item}`, '/collections/ships/schema', '/collections/ships/tiles', '/api', '/conformance', '/tileMatrixSets', '/login', '/admin/load', '/admin/cluster', '/nowhere', '/collections/ships/items?bbox=7'];
      const found = [];
      for (const address of [...paths.map((path) => url + path), ...(report ? [`file://${report}`] : [])]) {
        const target = await axed.newPage();
        await target.goto(address);
        if (address === `${url}/`) await target.waitForSelector('.collection .times svg');
        if (address.endsWith('/api')) {
          await target.click('.opblock-tag[data-tag=Events]');
          await target.click('#operations-Events-getFeatures .opblock-summary-control');
          await target.click('#operations-Events-getFeatures .execute');
          await target.waitForSelector('.live-responses-table');
        }
        found.push(...(await serious(target, address)));
        await target.close();
      }
      assert.deepEqual(found, []);
      await axed.close();
    });
});
