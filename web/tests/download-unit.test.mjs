// Downloads: their formats, the file that the page makes, and the commands beside them.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sources } from './sources.mjs';

const page = await sources(['hash', 'download', 'gather', 'saving', 'command', 'numbers']);
const { EMPTY_VIEW } = page.hash;

it('a download says what it has', () => {
  const schema = { geometry: 'geometry', times: ['time'] };
  const say = (change, of = schema) => page.download.saySelected({ ...EMPTY_VIEW, ...change }, of);
  assert.equal(say({}), 'on the map as it is, of all time');
  assert.equal(say({ shape: { kind: 'box' }, when: [0, 1], filter: 'a > 1' }), 'in the box that is drawn, in the chosen time, of the filter');
  assert.equal(say({}, { geometry: null, times: [] }), 'all of the collection');
});

it('downloads come in the formats that the server describes, but for pages', () => {
  const document = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));
  const formats = page.download.formatsOf(document);
  for (const format of ['json', 'csv', 'ndjson', 'geojsonseq', 'arrow', 'parquet', 'flatgeobuf', 'gpkg']) assert.ok(formats.includes(format), `${format} in ${formats}`);
  assert.ok(!formats.includes('html'));
});

describe('a download of GeoJSON', () => {
  const { asCollection, sayMissing } = page.gather;
  const feature = (n) => ({ type: 'Feature', id: `e${n}`, geometry: null, properties: { name: `né\n${n}` } });
  /** The text of a file made of these bytes, cut into pieces of some size. */
  const saved = async (text, piece, seen = () => {}, max = Infinity) => {
    const bytes = new TextEncoder().encode(text);
    const pieces = ReadableStream.from(Array.from({ length: Math.ceil(bytes.length / piece) }, (_, i) => bytes.slice(i * piece, (i + 1) * piece)));
    let blob = null;
    const file = page.saving.inMemory((made) => (blob = made), 'application/geo+json', max);
    await pieces.pipeThrough(asCollection(seen)).pipeTo(file.stream);
    file.keep();
    return blob.text();
  };

  it('has every event of the stream, wherever its pieces are cut', async () => {
    const features = Array.from({ length: 30 }, (_, n) => feature(n));
    const lines = features.map((one) => `${JSON.stringify(one)}\n`).join('');
    for (const piece of [1, 2, 7, 100, 1e6]) {
      const counts = [];
      assert.deepEqual(JSON.parse(await saved(lines, piece, (n) => counts.push(n))), { type: 'FeatureCollection', features });
      assert.equal(counts.at(-1), 30);
      assert.deepEqual(counts, [...counts].sort((a, b) => a - b));
    }
    assert.deepEqual(JSON.parse(await saved('', 1)), { type: 'FeatureCollection', features: [] });
  });

  it('is none if the stream ends in an event, or if memory does not hold it', async () => {
    const lines = `${JSON.stringify(feature(1))}\n${JSON.stringify(feature(2))}`;
    await assert.rejects(saved(lines, 9), /in the middle of an event/);
    await assert.rejects(saved(`${lines}\n`, 9, () => {}, 60), /too large/);
  });

  it('looks at every character twice at most, however long a line is', async (t) => {
    const { split } = String.prototype;
    let seen = 0;
    const long = { ...feature(1), properties: { text: 'x'.repeat(1e5) } };
    const text = `${JSON.stringify(long)}\n${JSON.stringify(feature(2))}\n`;
    t.mock.method(String.prototype, 'split', function (...of) {
      seen += this.length;
      return split.apply(this, of);
    });
    const made = await saved(text, 100);
    t.mock.reset();
    assert.deepEqual(JSON.parse(made).features, [long, feature(2)]);
    assert.ok(seen <= 2 * text.length, `${seen} characters were split`);
  });

  it('says how many events are missing', () => {
    assert.equal(sayMissing(5, 5), '');
    assert.match(sayMissing(3, 5), /^2 fewer .* deleted/);
    assert.match(sayMissing(6, 5), /^1 more .* written/);
  });
});

it('a download that the server makes first shows how much of it came', async () => {
  const [counts, parts] = [[], []];
  const pieces = ReadableStream.from([3, 0, 5].map((length) => new Uint8Array(length)));
  await pieces.pipeThrough(page.saving.counted((bytes) => counts.push(bytes))).pipeTo(new WritableStream({ write: (part) => void parts.push(part.length) }));
  assert.deepEqual([counts, parts], [[3, 3, 8], [3, 0, 5]]);
  assert.deepEqual([0, 40_960, 999_999, 12_345_678, 1_073_741_824].map(page.numbers.formatBytes), ['0 kB', '41 kB', '1,000 kB', '12.3 MB', '1,073.7 MB']);
});

describe('a file that the user chooses', () => {
  /** What a browser does that asks for a file, and the names of the calls. */
  const choose = async (t, { createWritable, remove }) => {
    const calls = [];
    const handle = {
      createWritable: async () => (calls.push('createWritable'), createWritable()),
      ...(remove && { remove: async () => (calls.push('remove'), remove()) }),
    };
    globalThis.window = { showSaveFilePicker: async () => handle };
    t.after(() => delete globalThis.window);
    return { calls, file: page.saving.destination('a.geojson', 'application/geo+json', 'GeoJSON') };
  };
  const sink = (calls) => new WritableStream({ write: () => calls.push('write'), close: () => calls.push('close'), abort: () => calls.push('abort') });

  it('is kept where all of it was written', async (t) => {
    const written = [];
    const { calls, file } = await choose(t, { createWritable: () => sink(written), remove: () => {} });
    const made = await file;
    await ReadableStream.from([new Uint8Array(3)]).pipeTo(made.stream);
    made.keep();
    assert.deepEqual([made.chosen, calls, written], [true, ['createWritable'], ['write', 'close']]);
  });

  it('is removed if it is given up, after the browser let go of it', async (t) => {
    for (const remove of [() => {}, () => Promise.reject(new Error('gone'))]) {
      let order = [];
      const { calls, file } = await choose(t, { createWritable: () => sink(order), remove: () => (order.push('remove'), remove()) });
      const made = await file;
      const broken = new ReadableStream({ pull: (out) => out.error(new Error('broken')) });
      await assert.rejects(broken.pipeTo(made.stream), /broken/);
      await made.discard();
      assert.deepEqual([calls, order], [['createWritable', 'remove'], ['abort', 'remove']]);
      order = [];
      const unused = await (await choose(t, { createWritable: () => sink(order), remove: () => order.push('remove') })).file;
      await unused.discard();
      assert.deepEqual(order, ['abort', 'remove'], 'nobody began to fill it');
    }
    const { file } = await choose(t, { createWritable: () => sink([]) });
    await (await file).discard();
  });

  it('is removed if it cannot be written, and the message says what is lost', async (t) => {
    const { calls, file } = await choose(t, { createWritable: () => Promise.reject(new Error('It is locked.')), remove: () => {} });
    await assert.rejects(file, /cannot be written: It is locked\. A file that was replaced is lost\./);
    assert.deepEqual(calls, ['createWritable', 'remove']);
  });

  it('is none if the user chooses none, and memory where the browser asks for none', async (t) => {
    t.after(() => delete globalThis.window);
    const refusing = (name) => ({ showSaveFilePicker: () => Promise.reject(new DOMException('no', name)) });
    globalThis.window = refusing('AbortError');
    assert.equal(await page.saving.destination('a.geojson', 'application/geo+json', 'GeoJSON'), null);
    assert.equal(await page.saving.chosen('a.gpkg', 'application/geopackage+sqlite3', 'GeoPackage'), null);
    for (const window of [refusing('SecurityError'), {}]) {
      globalThis.window = window;
      assert.equal(await page.saving.chosen('a.gpkg', 'application/geopackage+sqlite3', 'GeoPackage'), undefined, 'a link does it');
      assert.equal((await page.saving.destination('a.geojson', 'application/geo+json', 'GeoJSON')).chosen, false);
    }
  });
});

it('commands export what is selected, and a shell takes them as they are', () => {
  const query = new URLSearchParams({ bbox: '-122,35,-116,39', datetime: '2026-01-01T00:00:00Z/..', filter: "name = 'it''s $HOME' AND \"a b\" > 4", 'filter-lang': 'cql2-text' });
  const text = page.command.exportCommand('quakes', 'quakes.gpkg', query, 'https://events.example');
  const words = execFileSync('sh', ['-c', `for word in ${text}; do printf '%s\\n' "$word"; done`], { encoding: 'utf8' }).trim().split('\n');
  assert.deepEqual(words, [
    'meridian', 'export', 'quakes', 'quakes.gpkg', '--bbox=-122,35,-116,39', '--datetime=2026-01-01T00:00:00Z/..',
    `--filter=${query.get('filter')}`, '--url', 'https://events.example',
  ]);
  const circle = new URLSearchParams({ near: '-1.5,2', radius: '300' });
  assert.equal(page.command.exportCommand('q', 'q.pmtiles', circle, 'http://h:1'), 'meridian export q q.pmtiles --near=-1.5,2,300 --url http://h:1');
});
