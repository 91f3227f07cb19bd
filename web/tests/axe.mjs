// What axe-core finds on a page; its context lets scripts of tests in (`bypassCSP`).
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Its script, which makes `window.axe`. */
export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Milder findings that no page has. */
const NONE = new Set(['heading-order', 'landmark-unique', 'empty-table-header']);

/** The serious and critical violations of a page, and those of `NONE`, as texts that begin with `name`. */
export async function serious(page, name) {
  // Values that are being replaced are pale, for a moment.
  await page.waitForFunction(() => !document.querySelector('.stale'));
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const grave = violations.filter(({ id, impact }) => NONE.has(id) || impact === 'serious' || impact === 'critical');
  return grave.map(({ id, nodes }) => `${name} ${id}: ${nodes.map((n) => n.target).join(' ')}`);
}
