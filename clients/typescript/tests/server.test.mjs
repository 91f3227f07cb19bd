// The client against a real server with mock sources; plain JavaScript over the same events is the oracle. MERIDIAN_URL, MERIDIAN_TOKEN.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect, Problem } from '../dist/index.js';

const url = process.env.MERIDIAN_URL;
const db = connect(url, { token: process.env.MERIDIAN_TOKEN });
const SCHEMA = {
  properties: {
    id: { type: 'string', 'x-ogc-role': 'id' },
    place: { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' },
    seen: { type: 'string', format: 'date-time', 'x-ogc-role': 'primary-instant' },
    ship: { type: 'string', 'x-meridian-object': true },
    speed: { type: 'number' },
  },
};
const COUNT = 25_000;
const START = Date.UTC(2026, 0, 1);
const made = (n) => ({
  type: 'Feature',
  id: `e${n}`,
  geometry: { type: 'Point', coordinates: [((n * 7919) % 36_000) / 100 - 180, ((n * 104_729) % 17_000) / 100 - 85] },
  properties: { seen: new Date(START + n * 60_000).toISOString(), ship: `s${String(n % 40).padStart(2, '0')}`, speed: (n % 300) / 10 },
});
const all = Array.from({ length: COUNT }, (_, n) => made(n));
const spots = db.collection('ts-spots');
const ids = (events) => events.map((event) => event.id).sort();
const collect = async (items) => {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
};

before(async () => {
  await db.drop('ts-spots');
  await db.create('ts-spots', SCHEMA);
  // An async iterator, in three parts.
  const written = await spots.append((async function* () { yield* all; })(), { key: 'spots' });
  assert.equal(written.written, COUNT);
});
after(() => db.drop('ts-spots'));

test('collections, schema and version', async () => {
  assert.ok((await db.collections()).some(({ id }) => id === 'ts-spots'));
  assert.equal((await spots.describe()).itemCount, COUNT);
  assert.equal((await spots.schema()).properties.ship['x-meridian-object'], true);
  assert.equal(await db.collection('ts-none').exists(), false);
  assert.equal((await db.version()).name, 'meridian');
  assert.deepEqual(await db.request('get', '/healthz', {}), await (await fetch(`${url}/healthz`)).json());
});

test('conditions choose the events that they should', async () => {
  const inBox = ([w, s, e, n], [x, y]) => w <= x && x <= e && s <= y && y <= n;
  const expected = (keep) => ids(all.filter(keep));
  const cases = [
    [{ bbox: [10, 20, 30, 40] }, (f) => inBox([10, 20, 30, 40], f.geometry.coordinates)],
    [{ bbox: [170, -10, -170, 10] }, ({ geometry: { coordinates: [x, y] } }) => (x >= 170 || x <= -170) && Math.abs(y) <= 10],
    [{ filter: 'speed > 29.5' }, (f) => f.properties.speed > 29.5],
    [{ filter: { op: '<', args: [{ property: 'speed' }, 0.2] } }, (f) => f.properties.speed < 0.2],
    [{ datetime: [new Date(START), new Date(START + 3_600_000)] }, (f) => Date.parse(f.properties.seen) <= START + 3_600_000],
    [{ datetime: ['2026-01-18T00:00:00Z', null] }, (f) => Date.parse(f.properties.seen) >= Date.UTC(2026, 0, 18)],
    [{ datetime: '2026-01-02' }, (f) => f.properties.seen.startsWith('2026-01-02')],
    [{ equals: { ship: 's07' }, filter: 'speed < 10' }, (f) => f.properties.ship === 's07' && f.properties.speed < 10],
  ];
  for (const [conditions, keep] of cases) {
    const found = await collect(spots.items(conditions));
    assert.ok(found.length > 20, JSON.stringify(conditions));
    assert.deepEqual(ids(found), expected(keep), JSON.stringify(conditions));
    assert.equal(await spots.count(conditions), found.length);
  }
  const [one] = await collect(spots.items({ equals: { id: 'e77' }, properties: ['speed'] }));
  assert.deepEqual(one.properties, { speed: 7.7 });
  assert.deepEqual(one.geometry, made(77).geometry);
});

test('near gives distances in order, nearest the k nearest', async () => {
  const distance = ([x, y]) => {
    const [a, b, c, d] = [x, y, 4.5, 52].map((degrees) => (degrees * Math.PI) / 180);
    const h = Math.sin((b - d) / 2) ** 2 + Math.cos(b) * Math.cos(d) * Math.sin((a - c) / 2) ** 2;
    return 2 * 6_371_008.8 * Math.asin(Math.sqrt(h));
  };
  const order = all.map((event) => [distance(event.geometry.coordinates), event.id]).sort(([a], [b]) => a - b);
  const within = await collect(spots.near([4.5, 52], { radius: 1_000_000 }));
  assert.deepEqual(within.map(({ id }) => id), order.filter(([d]) => d <= 1_000_000).map(([, id]) => id));
  const nearest = await collect(spots.near([4.5, 52], { nearest: 5 }));
  assert.deepEqual(nearest.map(({ id }) => id), order.slice(0, 5).map(([, id]) => id));
  nearest.forEach((event, n) => assert.ok(Math.abs(event.distance - order[n][0]) < 1));
});

test('pages are of one snapshot, and stop at a limit', async () => {
  const sizes = [];
  const seen = [];
  for await (const page of spots.pages({ size: 9_000 })) {
    if (sizes.push(page.features.length) === 1) await spots.append([{ ...made(0), id: 'late' }]);
    seen.push(...page.features);
  }
  assert.deepEqual(sizes, [9_000, 9_000, 7_000]);
  assert.deepEqual(ids(seen), ids(all));
  assert.equal(await spots.deleteOne('late'), true);
  const limited = await collect(spots.pages({ size: 4, limit: 10, sortby: ['-speed', 'seen'] }));
  assert.deepEqual(limited.map((page) => page.features.length), [4, 4, 2]);
  assert.equal(limited[0].features[0].properties.speed, 29.9);
  assert.deepEqual((await collect(spots.pages({ filter: 'speed < 0' }))).map((page) => page.features), [[]]);
});

test('aggregates, by window and value; a grid', async () => {
  const sum = (events) => events.reduce((total, event) => total + event.properties.speed, 0);
  const [whole] = await spots.aggregate(['count', 'sum(speed)', 'max(speed)', 'distinct(ship)', 'top(ship,2)']);
  assert.equal(whole.count, COUNT);
  assert.ok(Math.abs(whole['sum(speed)'] - sum(all)) < 1e-6);
  assert.equal(whole['max(speed)'], 29.9);
  assert.equal(whole['distinct(ship)'], 40);
  assert.equal(whole['error(distinct(ship))'], 0);
  assert.equal(whole['top(ship,2)'][0].count, COUNT / 40);
  const days = await spots.aggregate(['count'], { window: 'P1D', by: 'ship', filter: "ship IN ('s01', 's02')" });
  assert.equal(days[0].window, '2026-01-01T00:00:00Z/2026-01-02T00:00:00Z');
  assert.equal(days.filter(({ by }) => by === 's01').reduce((total, group) => total + group.count, 0), COUNT / 40);
  const grid = await spots.density({ width: 4, height: 2 });
  const west = all.filter(({ geometry: { coordinates: [x, y] } }) => x < -90 && y >= 0).length;
  assert.equal(grid.counts.length, 8);
  assert.equal(grid.counts.reduce((a, b) => a + b), COUNT);
  assert.ok(Math.abs(grid.counts[0] - west) < 100, `${grid.counts[0]} and ${west}`);
});

test('each function has its value, and its error, under the text that was given', async () => {
  const functions = ['median(speed)', 'percentile(speed,99.90)', 'top(ship, 2)', 'max(speed)', 'distinct(seen)', 'count'];
  const [whole] = await spots.aggregate(functions);
  const estimates = ['median(speed)', 'percentile(speed,99.90)', 'top(ship, 2)', 'distinct(seen)'];
  assert.deepEqual(Object.keys(whole).sort(), [...functions, ...estimates.map((text) => `error(${text})`)].sort());
  const speeds = all.map(({ properties: { speed } }) => speed).sort((a, b) => a - b);
  const rank = (percent) => speeds[Math.ceil((COUNT * percent) / 100) - 1];
  assert.deepEqual([whole['median(speed)'], whole['percentile(speed,99.90)'], whole['max(speed)']], [rank(50), rank(99.9), 29.9]);
  assert.deepEqual([whole['error(median(speed))'], whole['error(percentile(speed,99.90))'], whole['error(top(ship, 2))']], [0, 0, 0]);
  assert.deepEqual(whole['top(ship, 2)'].map(({ count }) => count), [COUNT / 40, COUNT / 40]);
  const error = whole['error(distinct(seen))'];
  assert.ok(error > 0 && error < 0.05 && Math.abs(whole['distinct(seen)'] - COUNT) <= error * COUNT);
  const pairs = await db.collection('earthquakes').aggregate(['median(mag)'], { by: ['net', 'type'], filter: 'mag > 7.5' });
  assert.deepEqual(pairs, [{ by: { net: 'us', type: 'earthquake' }, count: 1, 'median(mag)': 7.9, 'error(median(mag))': 0 }]);
  await assert.rejects(spots.aggregate(['max(speed),median(speed)']), { name: 'TypeError', message: /one function in each text/ });
});

test('tracks: who passed, and the line of one', async () => {
  const objects = await collect(spots.tracks());
  assert.deepEqual(objects.map(({ object }) => object), Array.from({ length: 40 }, (_, n) => `s${String(n).padStart(2, '0')}`));
  assert.deepEqual(objects[3], { object: 's03', count: COUNT / 40, first: '2026-01-01T00:03:00Z', last: '2026-01-18T08:03:00Z' });
  const line = await spots.track('s03', { datetime: ['2026-01-01T00:00:00Z', '2026-01-01T02:00:00Z'] });
  assert.deepEqual(line.geometry.coordinates, [3, 43, 83].map((n) => made(n).geometry.coordinates));
});

test('a collection that another client makes meanwhile keeps its types', async () => {
  const schema = { properties: { crew: { type: 'integer' } } };
  await db.create('ts-meanwhile', schema);
  // Another client has made it since this one found none.
  const none = { type: 'urn:meridian:problem:not-found', title: 'Not found', status: 404, detail: 'there is none' };
  const late = connect(url, {
    token: process.env.MERIDIAN_TOKEN,
    fetch: (address, init) => (init.method === 'GET' && new URL(address).pathname === '/collections/ts-meanwhile' ? Promise.resolve(Response.json(none, { status: 404 })) : fetch(address, init)),
  });
  try {
    const more = { properties: { ...schema.properties, note: { type: 'string' } } };
    for (const other of [{ properties: { crew: { type: 'number' } } }, more, 'crew:Integer']) await assert.rejects(late.create('ts-meanwhile', other), { status: 412 });
    assert.equal((await db.collection('ts-meanwhile').schema()).properties.crew.type, 'integer');
    assert.equal((await late.create('ts-meanwhile', schema)).name, 'ts-meanwhile');
  } finally {
    await db.drop('ts-meanwhile');
  }
});

test('one event is read, replaced, changed and deleted', async () => {
  const place = db.collection('ts-one');
  await db.create('ts-one', SCHEMA);
  await place.append([made(1), made(2)]);
  assert.equal((await place.get('e1')).properties.speed, 0.1);
  assert.equal(await place.get('none'), undefined);
  await assert.rejects(db.collection('ts-none').get('e1'), { status: 404 });
  await place.replace('e1', { ...made(1), properties: { ...made(1).properties, speed: 5 } });
  await place.update('e2', { speed: 6, ship: null });
  const { speed, ship } = (await place.get('e2')).properties;
  assert.deepEqual([(await place.get('e1')).properties.speed, speed, ship], [5, 6, null]);
  assert.equal(await place.deleteOne('e1'), true);
  assert.equal(await place.deleteOne('e1'), false);
  assert.equal((await place.delete({ filter: 'TRUE' })).deleted, 1);
  await place.change({ properties: { note: { type: 'string' } } });
  assert.ok('note' in (await place.schema()).properties);
  assert.equal(await db.drop('ts-one'), true);
  assert.equal(await db.drop('ts-one'), false);
});

test('a repeated append stores nothing twice; a bad event is named, and nothing of its part is stored', async () => {
  assert.deepEqual(await spots.append(all.slice(0, 10_000), { key: 'spots' }).then(({ written, duplicates }) => [written, duplicates]), [0, 10_000]);
  const bad = [{ ...made(0), id: 'b1' }, { ...made(0), id: 'b2', properties: { ...made(0).properties, speed: 'fast' } }];
  await assert.rejects(spots.append(bad), (problem) => {
    assert.ok(problem instanceof Problem);
    assert.deepEqual([problem.status, problem.kind, problem.line, problem.field], [400, 'invalid-body', 2, 'speed']);
    assert.equal(problem.errors.length, 1);
    assert.ok(problem.requestId);
    return true;
  });
  assert.equal(await spots.get('b1'), undefined);
  const csv = 'id,lon,lat,seen,ship,speed\ncsv1,1,2,2026-03-01T00:00:00Z,s1,3\n';
  assert.equal((await spots.appendBody(csv, 'text/csv')).written, 1);
  await spots.deleteOne('csv1');
  assert.equal((await spots.appendBody(new Blob([csv]).stream(), 'text/csv')).written, 1);
  await spots.deleteOne('csv1');
});

test('leaving a loop and an abort end the request', async () => {
  let n = 0;
  for await (const event of spots.items()) if (event.type === 'Feature' && ++n === 10) break;
  assert.equal(n, 10);
  const controller = new AbortController();
  await assert.rejects(async () => {
    for await (const event of spots.items({ signal: controller.signal })) if (event) controller.abort(new Error('enough'));
  }, { message: 'enough' });
  await assert.rejects(spots.count({ signal: AbortSignal.abort(new Error('before')) }), { message: 'before' });
});

for (const transport of ['sse', 'websocket']) {
  test(`a stream over ${transport}: what is written after it, from a position, and transitions`, async () => {
    const name = `ts-live-${transport}`;
    const live = await db.create(name, SCHEMA);
    const stream = await live.stream({ transport, filter: 'speed < 5' });
    await live.append([made(1), { ...made(60), id: 'fast' }, made(2)]);
    const first = (await stream.next()).value;
    assert.deepEqual([first.id, first.properties.speed], ['e1', 0.1]);
    assert.equal((await stream.next()).value.id, 'e2');
    stream.close();
    assert.equal((await stream.next()).done, true);

    const again = await live.stream({ transport, after: first.position });
    assert.deepEqual([(await again.next()).value.id, (await again.next()).value.id], ['fast', 'e2']);
    await again.return();

    const controller = new AbortController();
    const fence = await live.stream({ transport, bbox: [0, 0, 10, 10], when: ['enter', 'exit'], signal: controller.signal });
    const at = (id, minute, x) => ({ ...made(0), id, geometry: { type: 'Point', coordinates: [x, 5] }, properties: { seen: `2026-05-01T00:0${minute}:00Z`, ship: 'mover', speed: 1 } });
    await live.append([at('m1', 1, -5)]);
    await live.append([at('m2', 2, 5)]);
    await live.append([at('m3', 3, 15)]);
    const moves = [(await fence.next()).value, (await fence.next()).value];
    assert.deepEqual(moves.map(({ id, when }) => [id, when]), [['m2', 'enter'], ['m3', 'exit']]);
    const waiting = fence.next();
    controller.abort(new Error('enough'));
    await assert.rejects(waiting, { message: 'enough' });

    // The end of the collection ends its streams.
    const last = await live.stream({ transport });
    const gone = last.next();
    await db.drop(name);
    await assert.rejects(gone, { status: 410, kind: 'gone' });
    await assert.rejects(db.collection(name).stream({ transport, patience: 0 }), transport === 'sse' ? { status: 404 } : { name: 'Unreachable' });
  });

  test(`a search over ${transport} says how complete it is`, async () => {
    const search = await db.search({ keywords: 'flood', providers: ['quick', 'garbage'], timeout: 20_000 }, { transport });
    assert.deepEqual([...search.asked].sort(), ['garbage', 'quick']);
    assert.equal(search.state, 'running');
    const found = await collect(search);
    assert.equal(found.length, 6);
    assert.ok(found.every(({ provider, properties }) => provider === 'quick' && properties.text));
    assert.equal(search.state, 'partial');
    assert.deepEqual([search.providers.quick.state, search.providers.quick.results, search.providers.garbage.state], ['complete', 6, 'error']);
    assert.deepEqual(search.last.providers, { quick: 'complete', garbage: 'error' });
  });
}

test('the packets of a search have no gap; leaving the loop ends it on the server', async () => {
  const search = await db.search({ keywords: 'storm', providers: ['quick', 'paged'] });
  const packets = await collect(search.packets());
  assert.deepEqual(packets.map(({ seq }) => seq), packets.map((_, n) => n));
  assert.equal(packets.at(-1).kind, 'complete');
  assert.equal(packets.at(-1).packets, packets.length);

  const left = await db.search({ keywords: 'hurricane', providers: ['quick', 'hang'], timeout: 60_000 });
  for await (const result of left) if (result.provider === 'quick') break;
  const status = await db.request('get', '/searches/{id}', { path: { id: left.id } }).catch((error) => error);
  assert.notEqual(status.state, 'running');
});

test('a saved search reports what is written, and resumes', async () => {
  const saved = await db.saveSearch({ name: 'ts', question: { bbox: [0, 0, 10, 10], providers: ['meridian'] } });
  assert.equal((await saved.status()).name, 'ts');
  assert.ok((await collect(db.savedSearches())).some(({ id }) => id === saved.id));
  await spots.append([{ ...made(0), id: 'r1', geometry: { type: 'Point', coordinates: [5, 5] } }]);
  for await (const result of saved.results()) {
    assert.deepEqual([result.id.endsWith('r1'), result.provider], [true, 'meridian']);
    break;
  }
  const packets = saved.packets({ after: 0 });
  await spots.append([{ ...made(0), id: 'r2', geometry: { type: 'Point', coordinates: [6, 6] } }]);
  const next = (await packets.next()).value;
  assert.equal(next.seq, 1);
  packets.close();
  assert.equal(await saved.delete(), true);
  assert.equal(await saved.delete(), false);
  await spots.delete({ equals: { id: 'r1' } });
  await spots.delete({ equals: { id: 'r2' } });
});

test('tokens are created, listed and revoked; rights are refused as problems', async () => {
  const { id, token } = await db.createToken({ role: 'reader', tenant: 'default', collections: 'ts-sp*' });
  assert.ok((await db.tokens()).some((known) => known.id === id && known.role === 'reader'));
  const reader = connect(url, { token: () => token });
  assert.deepEqual((await reader.collections()).map((known) => known.id), ['ts-spots']);
  await assert.rejects(reader.collection('ts-spots').append([made(1)]), { status: 403 });
  assert.equal(await db.revokeToken(id), true);
  await assert.rejects(reader.version().then(() => reader.collections()), { status: 401 });
  await assert.rejects(connect(url).collections(), { status: 401 });
});
