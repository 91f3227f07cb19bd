// What the tests in a real browser share. CHROMIUM names it; MERIDIAN_SCREENSHOTS a folder for pictures of failures;
// MERIDIAN_PATIENCE is the longest wait in milliseconds, for a machine that is busy with other work.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { chromium } from 'playwright-core';

const executablePath = process.env.CHROMIUM || '/usr/bin/chromium';
const PICTURES = process.env.MERIDIAN_SCREENSHOTS;
/** Longest wait for anything on a slow machine that draws with the processor. */
export const PATIENCE = Number(process.env.MERIDIAN_PATIENCE ?? 45_000);

export const launch = () =>
  chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-quic', '--no-first-run'],
  });

/** Notes everything that must not happen: errors on the console, failed requests, requests to elsewhere than `url`. */
export function watch(target, url, troubles) {
  target.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') troubles.push(`console ${message.type()}: ${message.text()}`);
  });
  target.on('pageerror', (error) => troubles.push(`uncaught: ${error.message}`));
  target.on('request', (request) => {
    const address = new URL(request.url());
    if (!['data:', 'blob:'].includes(address.protocol) && address.origin !== url) troubles.push(`foreign request: ${request.url()}`);
  });
  target.on('requestfailed', (request) => {
    // A question that was overtaken by the next one is cancelled on purpose.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') troubles.push(`failed: ${request.url()} ${request.failure()?.errorText}`);
  });
  target.on('response', (response) => {
    if (response.status() >= 400) troubles.push(`${response.status()}: ${response.url()}`);
  });
}

/** One step on its own, after which nothing bad may have happened; a picture is kept of a failure. */
export function step(name, page, troubles, work) {
  it(name, async () => {
    try {
      await work();
      assert.deepEqual(troubles, []);
    } catch (error) {
      if (PICTURES) {
        mkdirSync(PICTURES, { recursive: true });
        // A page that cannot be drawn must not hide what went wrong.
        await page().screenshot({ path: join(PICTURES, `${name.replace(/\W+/g, '-').slice(0, 60)}.png`) }).catch(() => {});
      }
      throw error;
    } finally {
      troubles.length = 0;
    }
  });
}

/** Waits until `read` answers `wanted`. */
export async function becomes(read, wanted, what) {
  const end = Date.now() + PATIENCE;
  let last;
  do {
    last = await read();
    if (last === wanted) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  } while (Date.now() < end);
  assert.equal(last, wanted, what);
}

/** Waits until the page has been idle for a while: nothing loads, no question waits, the map is drawn. */
export async function rest(target) {
  // Idleness before the last act does not count: a question waits a moment before it is sent.
  await target.evaluate(() => (window.calmSince = undefined));
  await target.waitForFunction(
    () => {
      const map = window.meridianMap;
      const calm = document.body.getAttribute('aria-busy') === 'false' && (!map || (map.loaded() && !map.isMoving()));
      window.calmSince = calm ? (window.calmSince ?? performance.now()) : undefined;
      return calm && performance.now() - window.calmSince > 600;
    },
    undefined,
    { timeout: PATIENCE, polling: 50 },
  );
}

/** Where a place lies in the window. */
export const onScreen = (page, lng, lat) =>
  page.evaluate(
    ([x, y]) => {
      const at = window.meridianMap.project([x, y]);
      const box = window.meridianMap.getContainer().getBoundingClientRect();
      return { x: box.left + at.x, y: box.top + at.y };
    },
    [lng, lat],
  );

export async function drag(page, from, to) {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  for (let i = 1; i <= 6; i++) await page.mouse.move(from.x + ((to.x - from.x) * i) / 6, from.y + ((to.y - from.y) * i) / 6);
  await page.mouse.up();
}
