// Moving objects as their events arrive.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sources } from './sources.mjs';

const { objects, follow } = await sources(['objects', 'follow'], 'live/');
const names = { time: 'time', object: 'ship', heading: 'cog' };
const event = (id, ship, second, at, cog = null) => ({ type: 'Feature', id, geometry: { type: 'Point', coordinates: at }, properties: { ship, cog, time: `2026-01-01T00:00:${String(second).padStart(2, '0')}Z` } });

describe('objects that are followed', () => {
  it('have their newest position, and a track in the order of time', () => {
    const live = new objects.LiveObjects(names);
    for (const one of [event('1', 'a', 1, [0, 0]), event('3', 'a', 3, [2, 0]), event('2', 'a', 2, [1, 0]), event('3', 'a', 3, [2, 0]), event('4', 'b', 1, [9, 9], 45)]) live.take(one);
    assert.deepEqual([live.count, live.taken], [2, 4]);
    const { points, lines } = live.drawing();
    assert.deepEqual(points.features.map(({ properties, geometry }) => [properties.object, properties['@id'], geometry.coordinates, Math.round(properties.heading)]), [['a', '3', [2, 0], 90], ['b', '4', [9, 9], 45]]);
    assert.deepEqual(lines.features.map(({ geometry }) => geometry.coordinates), [[[0, 0], [1, 0], [2, 0]]]);
  });

  it('cross the antimeridian without a jump, and have no heading that is not known', () => {
    const live = new objects.LiveObjects(names);
    for (const one of [event('1', 'a', 1, [179, 0], 511), event('2', 'a', 2, [-179, 0], 511)]) live.take(one);
    const { points, lines } = live.drawing();
    assert.deepEqual(lines.features[0].geometry.coordinates, [[179, 0], [181, 0]]);
    assert.equal(Math.round(points.features[0].properties.heading), 90);
    assert.equal(objects.bearing([5, 5], [5, 5]), null);
  });

  it('say how many there are, and of which only the newest are shown', () => {
    assert.equal(objects.sayObjects(10_421, null, true), '10,421 objects');
    assert.equal(objects.sayObjects(1, null, true), '1 object');
    assert.equal(objects.sayObjects(2000, 156_288, false), 'the newest 2,000 of 156,288 events');
    assert.equal(objects.sayObjects(20_000, Infinity, true), 'the newest 20,000 objects, and there are more');
    assert.equal(objects.sayObjects(3, 2, true), '3 objects', 'new ones have come');
  });

  it('are the newest 2,000 events where no field names an object', () => {
    const live = new objects.LiveObjects({ ...names, object: '' });
    const take = (n) => live.take({ ...event(String(n), 'a', 0, [0, 0]), properties: { time: new Date(n * 1000).toISOString() } });
    for (let n = 0; n < 2000; n++) take(n);
    assert.deepEqual([live.count, live.dropped], [2000, false]);
    for (let n = 2000; n < 2003; n++) take(n);
    assert.deepEqual([live.count, live.dropped], [2000, true]);
    const ids = live.drawing().points.features.map(({ properties }) => properties['@id']);
    assert.deepEqual([ids[0], ids.at(-1)], ['3', '2002']);
  });

  it('find the field that says where they head', () => {
    assert.equal(objects.headingField(['speed', 'cog_deg', 'heading_deg']), 'cog_deg');
    assert.equal(objects.headingField(['magnitude', 'tracking']), '');
  });
});

it('events of the stream come after the older ones that are loaded', () => {
  const seen = [];
  const held = new follow.Held((events) => seen.push(events.map(({ id }) => id)));
  const [old, early, late] = ['old', 'early', 'late'].map((id) => event(id, 'a', 1, [0, 0]));
  held.take(early);
  assert.deepEqual(seen, []);
  held.release([old]);
  held.take(late);
  assert.deepEqual(seen, [['old', 'early'], ['late']]);
});

describe('the last positions', () => {
  /** Pages of two events, the newest first: ships a, b, a, c, d. */
  const ships = ['a', 'b', 'a', 'c', 'd'].map((ship, i) => event(String(i), ship, 50 - i, [i, 0]));
  const reading = () => {
    const read = [];
    return { read, page: (path) => (read.push(path), Promise.resolve({ features: ships.slice(2 * path, 2 * path + 2), next: 2 * path + 2 < ships.length ? String(Number(path) + 1) : null })) };
  };

  it('are read page by page until each object has one, the newest last', async () => {
    const { read, page } = reading();
    const { events, all } = await follow.newest(page, '0', 'ship', () => 3, 100);
    assert.deepEqual([read.length, all, events.map(({ id }) => id)], [2, true, ['3', '2', '1', '0']]);
  });

  it('are all there at the last page, however many objects were expected', async () => {
    const { events, all } = await follow.newest(reading().page, '0', 'ship', () => Infinity, 100);
    assert.deepEqual([events.length, all], [5, true]);
  });

  it('are not all there where reading ends before', async () => {
    const { events, all } = await follow.newest(reading().page, '0', 'ship', () => 4, 2);
    assert.deepEqual([events.length, all], [2, false]);
  });
});
