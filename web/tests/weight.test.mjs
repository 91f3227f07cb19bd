// The weight of the first open of the map: every answer, as a server that compresses sends it (gzip, which browsers take without TLS).
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { it } from 'node:test';
import * as shared from './browser.mjs';

const url = new URL(process.env.MERIDIAN_URL ?? '').origin;
const MAX = 900_000;

it('the first open of the map weighs less than 900 KB', { timeout: 120_000 }, async () => {
  const browser = await shared.launch();
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    const answers = [];
    // What never changes comes from the browser's cache the second time: a map whose graphics context was lost asks for its coasts again.
    const cached = new Set();
    page.on('response', (response) => {
      if (cached.has(response.url())) return;
      if (response.headers()['cache-control']?.includes('immutable')) cached.add(response.url());
      answers.push(response);
    });
    await page.goto(`${url}/map#c=earthquakes`);
    await page.waitForSelector('#table tbody tr[data-id]', { timeout: shared.PATIENCE });
    await shared.rest(page);
    const parts = await Promise.all(answers.map(async (answer) => {
      const body = await answer.body().catch(() => Buffer.alloc(0));
      return [answer.url(), answer.url().endsWith('.woff2') ? body.length : gzipSync(body).length];
    }));
    const total = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
    const largest = parts.sort((a, b) => b[1] - a[1]).slice(0, 6);
    assert.ok(parts.length > 10, `${parts.length} answers`);
    assert.ok(total < MAX, `${total} bytes: ${JSON.stringify(largest)}`);
    console.log(`first open of the map: ${parts.length} answers, ${total} bytes`);
  } finally {
    await browser.close();
  }
});
