// Takes the pictures of the README and of the guide to the map: node screenshots.mjs URL FOLDER. `scripts/screenshots.sh` starts
// the server with its data. The strip holds the README's beside each other.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, PATIENCE, rest } from '../tests/browser.mjs';

const [url, folder] = process.argv.slice(2);
if (!url || !folder) throw new Error('expected: node screenshots.mjs URL FOLDER');

const onMap = async (page) => {
  await page.waitForSelector('#table tbody tr[data-id]', { timeout: PATIENCE });
  await rest(page);
};
/** What is shown, by the name of its file: an address, its scheme, and what to wait for or to do before. */
const PICTURES = [
  { name: 'start', path: '/', ready: (page) => page.waitForFunction(() => document.querySelectorAll('.collection[data-drawn]').length >= 6, undefined, { timeout: PATIENCE }) },
  // 900 km around a point in Japan.
  { name: 'map', path: '/map#c=earthquakes&m=4.3/36.5/140&s=circle:140,36.5,900000&f=mag', ready: onMap },
  { name: 'map-dark', path: '/map#c=ships&m=10.4/37.8/-122.4', scheme: 'dark', ready: onMap },
  {
    name: 'api',
    path: '/api',
    ready: async (page) => {
      await page.click('.opblock-tag[data-tag=Analysis]');
      await page.click('#operations-Analysis-getAggregate .opblock-summary-control');
      await page.fill('#operations-Analysis-getAggregate [data-param-name=c] input', 'earthquakes');
      await page.fill('#operations-Analysis-getAggregate [data-param-name=window] input', 'P1Y');
      await page.click('#operations-Analysis-getAggregate .execute');
      await page.waitForSelector('.live-responses-table');
      await page.locator('.responses-wrapper .curl-command, .responses-wrapper .curl').first().evaluate((part) => part.scrollIntoView({ block: 'start' }));
    },
  },
];
/** Layers, a filter, and colour and size by fields: the picture of the guide. */
const GUIDE = '/map#c=earthquakes&q=mag+%3E%3D+2.5&f=type&z=mag&m=5.4/36.6/-119&l=c%3Dstorms%26k%3D1&u=c%3Dships%26k%3D3';
const SIZE = { width: 1280, height: 800 };

mkdirSync(folder, { recursive: true });
const browser = await launch();
try {
  const images = [];
  for (const { name, path, scheme = 'light', ready } of PICTURES) {
    const context = await browser.newContext({ viewport: SIZE, colorScheme: scheme });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    await page.goto(url + path);
    await ready(page);
    images.push(await page.screenshot());
    console.log(`taken: ${name}`);
    await context.close();
  }
  const guide = await browser.newPage({ viewport: SIZE });
  await guide.goto(url + GUIDE);
  await onMap(guide);
  await guide.screenshot({ path: join(folder, 'map.png') });
  console.log(join(folder, 'map.png'));
  const context = await browser.newContext({ viewport: { width: 1640, height: 250 } });
  const page = await context.newPage();
  const shown = images.map((image) => `<img src="data:image/png;base64,${image.toString('base64')}">`);
  await page.setContent(`<style>body{margin:0;display:flex;gap:10px;width:max-content;background:transparent}img{width:400px;height:250px;border-radius:6px;border:1px solid #8886;box-sizing:border-box}</style>${shown.join('')}`);
  await page.evaluate(() => Promise.all([...document.images].map((image) => image.decode())));
  await page.locator('body').screenshot({ path: join(folder, 'strip.png'), omitBackground: true });
  console.log(join(folder, 'strip.png'));
} finally {
  await browser.close();
}
