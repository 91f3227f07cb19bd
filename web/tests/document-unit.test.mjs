// The geometry of cards: boxes, cells and bars.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { sources } from './sources.mjs';

const { minimap, rows, spark } = await sources(['minimap', 'rows', 'spark'], 'document/');
const WORLD = [-180, -90, 180, 90];

it('a box holds its extent, and is twice as wide as high on the ground', () => {
  for (const extent of [[-125, 25, -66, 50], [139.5, 35, 139.5, 35], [-0.1, -0.2, 3, 9], [178, -20, 180, -10]]) {
    const [west, south, east, north] = minimap.boxOf(extent);
    assert.ok(west <= extent[0] && south <= extent[1] && east >= extent[2] && north >= extent[3], String(extent));
    assert.ok(west >= -180 && east <= 180 && south >= -90 && north <= 90, String(extent));
    const ground = (east - west) * Math.cos((((extent[1] + extent[3]) / 2) * Math.PI) / 180);
    assert.ok(Math.abs(ground / (north - south) - 2) < 1e-9, String(extent));
  }
});

it('what is too large or crosses the antimeridian is shown on the world', () => {
  for (const extent of [[-180, -84, 180, 86], [170, -20, -170, 10], [-170, 0, 170, 1]]) assert.deepEqual(minimap.boxOf(extent), WORLD);
});

it('each cell with events is drawn once where it is, the fullest the darkest', () => {
  const paths = minimap.cellPaths([0, 1, 1000, 0], 2, 2, WORLD);
  assert.deepEqual(paths.map(({ d }) => d), ['M0 -90h180v90h-180z', 'M-180 0h180v90h-180z']);
  assert.ok(paths[0].opacity < paths[1].opacity);
  assert.equal(paths[1].opacity, 1);
  assert.deepEqual(minimap.cellPaths([0, 0], 2, 1, WORLD), []);
});

it('bars lie at their times, and one event can be seen', () => {
  const bar = (from, to, count) => ({ from, to, count, value: null });
  const bars = spark.sparkBars([bar(-10, 10, 1), bar(50, 60, 1000), bar(60, 70, 0), bar(90, 110, 500)], [0, 100]);
  assert.deepEqual(bars.map(({ x }) => x), [0, 0.5, 0.9]);
  assert.deepEqual(bars.map(({ height }) => height), [0.04, 1, 0.5]);
  assert.ok(bars.every(({ x, width }) => width > 0 && x + width <= 1));
});

it('an event on the edge of its window has a bar', () => {
  const bar = (from, to) => ({ from, to, count: 1, value: null });
  // The last event at the begin of a window, and the first one at the end of one.
  for (const span of [[0, 40], [9.99, 40]]) {
    const bars = spark.sparkBars([bar(0, 10), bar(20, 30), bar(40, 50)], span);
    assert.equal(bars.length, 3);
    assert.ok(bars.every(({ x, width }) => width > 0.08 && x + width <= 1), JSON.stringify(bars));
    assert.ok(bars.every(({ x }, i) => !i || x > bars[i - 1].x + bars[i - 1].width), 'none covers another');
  }
  assert.deepEqual(spark.sparkBars([bar(0, 10)], [20, 30]), []);
});

it('columns that are out of sight are counted', () => {
  assert.equal(rows.sayColumns([100, 200, 300, 400], 250), '2 of 4 columns are to the right: scroll the table sideways.');
  assert.equal(rows.sayColumns([100, 200, 300, 400], 399.5), '');
  assert.equal(rows.sayColumns([100, 200, 300, 400], 300), '1 of 4 columns is to the right: scroll the table sideways.');
});
