// Signing in and out in a real browser, against a running server (MERIDIAN_URL) with a user whose name and password stand here.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { serious } from './axe.mjs';
import { launch, PATIENCE, step as stepOf, watch } from './browser.mjs';

const url = new URL(process.env.MERIDIAN_URL ?? 'http://unset.invalid').origin;
const [NAME, PASSWORD] = ['anna', 'correct horse battery'];
const troubles = [];
let browser;
let context;
let page;

const step = (name, work) => stepOf(name, () => page, troubles, work);
const at = (path) => page.waitForURL(`${url}${path}`, { timeout: PATIENCE });
/** Refusals that a step expects are no trouble. */
const expectRefusals = (...statuses) => {
  const told = statuses.map((status) => new RegExp(`^${status}: |status of ${status} `));
  for (let i = troubles.length - 1; i >= 0; i--) if (told.some((one) => one.test(troubles[i]))) troubles.splice(i, 1);
};

/** Looks at a page with axe, in both schemes, with the cookies of this session. */
async function axed(address) {
  for (const colorScheme of ['light', 'dark']) {
    const bare = await browser.newContext({ bypassCSP: true, colorScheme, storageState: await context.storageState() });
    const target = await bare.newPage();
    await target.goto(address);
    assert.deepEqual(await serious(target, `${colorScheme} ${address}`), []);
    await bare.close();
  }
}

async function signIn(password = PASSWORD) {
  await page.fill('input[name=name]', NAME);
  await page.fill('input[name=password]', password);
  await page.click('button[type=submit]');
}

describe('signing in', { timeout: 600_000 }, () => {
  before(async () => {
    assert.ok(process.env.MERIDIAN_URL, 'MERIDIAN_URL is not set: scripts/browser_test.sh runs this test');
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
  });

  step('a page that needs a credential leads to the form', async () => {
    await page.goto(`${url}/collections?f=html`);
    await at('/login?next=/collections%3Ff%3Dhtml');
    await page.waitForFunction(() => document.activeElement?.getAttribute('name') === 'name');
    await axed(page.url());
  });

  step('a wrong password shows the form again', async () => {
    await signIn('wrong horse battery');
    await page.waitForSelector('[role=alert]');
    assert.equal(await page.textContent('[role=alert]'), 'The name or the password is wrong.');
    assert.equal(await page.inputValue('input[name=name]'), NAME);
    assert.equal(await page.inputValue('input[name=password]'), '');
    expectRefusals(401);
  });

  step('the right one leads to where it was wanted', async () => {
    await signIn();
    await at('/collections?f=html');
    const [cookie, ...others] = await context.cookies();
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, others.length], ['meridian-session', true, 'Lax', 0]);
  });

  step('the API page tries what changes something, with the token of the session', async () => {
    await axed(`${url}/login`);
    await page.goto(`${url}/api`);
    await page.click('.opblock-tag[data-tag=Collections]');
    await page.click('#operations-Collections-updateCollection .opblock-summary-control');
    await page.fill('#operations-Collections-updateCollection textarea', '{"title":"Strong and weak"}');
    await page.fill('#operations-Collections-updateCollection [data-param-name=c] input', 'storms');
    const [answer] = await Promise.all([page.waitForResponse((r) => r.request().method() === 'PATCH'), page.click('#operations-Collections-updateCollection .execute')]);
    assert.equal(answer.status(), 403, 'a writer does not manage');
    assert.match(await answer.text(), /the role writer/);
    expectRefusals(403);
    await page.click('#operations-Collections-updateCollection .opblock-summary-control');
    await page.click('.opblock-tag[data-tag=Searches]');
    await page.click('#operations-Searches-startSearch .opblock-summary-control');
    await page.fill('#operations-Searches-startSearch textarea', '{"keywords":"reef"}');
    const [started] = await Promise.all([page.waitForResponse((r) => r.request().method() === 'POST'), page.click('#operations-Searches-startSearch .execute')]);
    assert.equal(started.status(), 202, await started.text());
  });

  step('the search page says who is signed in and saves a search', async () => {
    await page.goto(`${url}/search`);
    await page.waitForFunction((name) => document.querySelector('#account b')?.textContent === name, NAME);
    const shown = await page.innerText('#account');
    await page.goto(url);
    assert.equal(await page.innerText('.account'), shown, 'as on the pages of the server');
    await page.goto(`${url}/search`);
    await page.waitForSelector('#save:not([hidden])');
    await page.fill('#keywords', 'reef');
    await page.click('#save');
    await page.fill('#save-name', 'Reefs');
    // Where there are outside sources: none of them is polled.
    if (await page.isVisible('#save-poll')) await page.selectOption('#save-poll', '');
    const [answer] = await Promise.all([page.waitForResponse((r) => r.url().endsWith('/saved-searches')), page.click('#save-go')]);
    assert.equal(answer.status(), 201);
    await page.waitForSelector('#saved:not([hidden])');
    // The same request without the page's token changes nothing.
    const bare = await page.evaluate(() => fetch('/saved-searches', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"keywords":"reef"}' }).then((r) => r.status));
    assert.equal(bare, 403);
    expectRefusals(403);
    await page.click('#save-cancel');
  });

  step('signing out ends the session, and the page asks again', async () => {
    await page.click('#account a');
    await page.waitForURL(/\/login\?next=%2Fsearch/, { timeout: PATIENCE });
    await page.click('form[action="/logout"] button');
    await at('/login');
    assert.equal((await page.request.get(`${url}/collections`)).status(), 401);
    await page.goto(`${url}/map`);
    await page.waitForURL(/\/login\?next=%2Fmap/, { timeout: PATIENCE });
    expectRefusals(401);
  });

  step('after the form the map is back as it was', async () => {
    await page.goto('about:blank');
    await page.goto(`${url}/map#c=earthquakes`);
    await page.waitForURL(/\/login\?next=/, { timeout: PATIENCE });
    await signIn();
    await page.waitForURL(/\/map#.*c=earthquakes/, { timeout: PATIENCE });
    await page.waitForFunction(() => document.querySelectorAll('#table tbody tr[data-id]').length > 0);
    expectRefusals(401);
  });
});
