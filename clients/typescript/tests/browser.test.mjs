// The modules as they are, in a browser, on a page of another origin that the server lists.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';

const { chromium } = createRequire(new URL('../../../web/package.json', import.meta.url))('playwright-core');
const PAGE = Number(process.env.MERIDIAN_PAGE);
let browser, page, server;

before(async () => {
  server = createServer(async (request, response) => {
    if (!/^\/[a-z]+\.js$/.test(request.url)) return response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Page</title>');
    response.writeHead(200, { 'content-type': 'text/javascript' }).end(await readFile(new URL(`../dist${request.url}`, import.meta.url)));
  });
  await new Promise((resolve) => server.listen(PAGE, '127.0.0.1', resolve));
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${PAGE}/`);
});
after(async () => {
  await browser?.close();
  server?.close();
});

test('events, counts, writes, streams and refusals', async () => {
  const found = await page.evaluate(
    async ([url, token]) => {
      const { connect } = await import('/index.js');
      const db = connect(url, { token });
      const c = await db.create('ts-browser', { properties: { place: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' }, n: { type: 'integer' } } });
      const stream = await c.stream();
      const { written } = await c.append(Array.from({ length: 500 }, (_, n) => ({ lon: n / 10, lat: 1, n })));
      const streamed = [];
      for await (const event of stream) if (streamed.push(event.properties.n) === 500) break;
      let items = 0;
      for await (const _ of c.items()) items++;
      const kind = await c.count({ filter: 'nothing = 1' }).catch((error) => [error.name, error.kind, error.field]);
      const socket = await c.stream({ transport: 'websocket' }).catch((error) => error.message);
      const count = await c.count({ bbox: [0, 0, 10, 10] });
      await db.drop('ts-browser');
      return { written, streamed: streamed.at(-1), items, kind, socket, count };
    },
    [process.env.MERIDIAN_URL, process.env.MERIDIAN_TOKEN],
  );
  assert.deepEqual(found, {
    written: 500,
    streamed: 499,
    items: 500,
    kind: ['Problem', 'invalid-parameter', 'filter'],
    socket: "a browser cannot send a token over a WebSocket: use the transport 'sse'",
    count: 101,
  });
});
