// Moving objects as their events arrive.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sources } from './sources.mjs';

const { objects } = await sources(['objects'], 'live/');
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

  it('find the field that says where they head', () => {
    assert.equal(objects.headingField(['speed', 'cog_deg', 'heading_deg']), 'cog_deg');
    assert.equal(objects.headingField(['magnitude', 'tracking']), '');
  });
});
