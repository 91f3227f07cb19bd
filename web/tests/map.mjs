// What the tests of the map page share: the server, its answers, and what the page and its map show.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PATIENCE, rest } from './browser.mjs';
import { startMock } from './mock.mjs';

const web = dirname(dirname(fileURLToPath(import.meta.url)));

/** The running server (MERIDIAN_URL) or, without one, the stand-in of mock.mjs over pages that are built if they are not there. */
export async function serverOrMock() {
  if (process.env.MERIDIAN_URL) return { url: new URL(process.env.MERIDIAN_URL).origin, stop: () => undefined };
  if (!existsSync(join(web, 'dist', 'map.html'))) execFileSync(process.execPath, [join(web, 'scripts', 'build.mjs')], { stdio: 'inherit' });
  return startMock();
}

/** The JSON of an answer that is no refusal. */
export async function api(url, path, init) {
  const response = await fetch(url + path, { headers: { accept: 'application/json' }, ...init });
  assert.ok(response.ok, `${response.status} ${path}: ${await response.clone().text()}`);
  return response.status === 204 ? null : response.json();
}

/** Opens an address as a link would, and waits for the rows of its table or for what stands in their place. */
export async function show(page, address) {
  await page.goto('about:blank');
  await page.goto(address);
  await page.waitForFunction(() => window.meridianMap && (document.querySelectorAll('#table tbody tr[data-id]').length > 0 || !document.querySelector('#overlay').hidden), undefined, { timeout: PATIENCE });
  await rest(page);
}

/** What the map has in sight, as the test reads it off MapLibre: west, south, east, north. */
export const sight = (page) => page.evaluate(() => window.meridianMap.getBounds().toArray().flat().map((v) => Math.round(v * 1e6) / 1e6).join(','));

/** How many features of a layer are drawn; -1 if there is no such layer. */
export const drawn = (page, layer) => page.evaluate((id) => (window.meridianMap.getLayer(id) ? window.meridianMap.queryRenderedFeatures({ layers: [id] }).length : -1), layer);

/** A value of the view in the page's address. */
export const hashValue = async (page, key) => new URLSearchParams(new URL(page.url()).hash.slice(1)).get(key);
