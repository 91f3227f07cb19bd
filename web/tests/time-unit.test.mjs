// Time under the map: axes, the line of averages, playing, and the events of a trail.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sources } from './sources.mjs';

const page = await sources(['axis', 'bars', 'csv', 'player', 'time']);
const { events } = await sources(['events'], 'trail/');

const bar = (from, to, count, value = null) => ({ from, to, count, value });

describe('an axis', () => {
  it('of counts has whole numbers up to the highest bar', () => {
    const { countMarks } = page.axis;
    for (const max of [0, 1, 2, 3, 5, 7, 24, 101, 999, 19_000, 1e9]) {
      const marks = countMarks(max);
      assert.ok(marks.every(Number.isInteger) && marks.length <= 5, `${max}: ${marks}`);
      assert.ok(marks.at(-1) >= max && (marks.length === 1 || marks.at(-2) < max), `${max}: ${marks}`);
    }
    assert.deepEqual(countMarks(24), [10, 20, 30]);
    assert.deepEqual(countMarks(3), [1, 2, 3]);
  });

  it('of values has round numbers around them', () => {
    const { valueMarks } = page.axis;
    assert.deepEqual(valueMarks(0.74, 1.36), [0.5, 1, 1.5]);
    assert.deepEqual(valueMarks(-3, 171), [-100, 0, 100, 200]);
    assert.deepEqual(valueMarks(4, 4).length > 1, true);
    assert.deepEqual(valueMarks(0.0012, 0.0017), [0.0012, 0.0014, 0.0016, 0.0018]);
  });
});

describe('the line of averages', () => {
  it('breaks where a window has no events, or none with a value', () => {
    const bars = [bar(0, 10, 1, 5), bar(10, 20, 2, 6), bar(20, 30, 4, null), bar(30, 40, 1, 7), bar(80, 90, 1, 8), bar(90, 100, 3, 9)];
    assert.deepEqual(page.bars.pieces(bars, 10).map((piece) => piece.map(({ value }) => value)), [[5, 6], [7], [8, 9]]);
  });
});

describe('playing', () => {
  const bars = [bar(0, 10, 3), bar(10, 20, 0), bar(60, 70, 1)];
  const played = { span: [0, 100], bars };

  it('moves the window on, and ends with the time shown', () => {
    assert.deepEqual(page.player.advance([0, 20], 5, played, false), [5, 25]);
    assert.deepEqual(page.player.advance([30, 50], 50, played, false), [50, 70]);
    // Where the map has moved, nothing may follow.
    assert.deepEqual(page.player.advance([70, 90], 50, played, false), [70, 90]);
  });

  it('follows the events in view, and not all of time', () => {
    const { advance, paceOf, reachOf, startOf } = page.player;
    const minute = 60_000;
    // A day, and in view events of half an hour in the night.
    const day = { span: [0, 1440 * minute], bars: [bar(0, 10 * minute, 0), bar(120 * minute, 130 * minute, 40), bar(130 * minute, 140 * minute, 0), bar(140 * minute, 150 * minute, 9), bar(600 * minute, 610 * minute, 0)] };
    assert.deepEqual(reachOf(day), [120 * minute, 150 * minute]);
    const window = [120 * minute, 125 * minute];
    assert.deepEqual(startOf({ ...day, when: window }), window);
    const pass = (30 * minute) / paceOf(window, day);
    assert.ok(pass >= 30_000 && pass <= 60_000, `${pass} ms`);
    // A chosen time without events goes to the first one, and from the end it begins again.
    assert.deepEqual(advance([0, 5 * minute], 1, day, false), [115 * minute, 120 * minute]);
    assert.deepEqual(startOf({ ...day, when: [145 * minute, 150 * minute] }), window);
    assert.deepEqual(startOf({ ...day, when: [0, 5 * minute] }), window);
    assert.deepEqual(startOf({ ...day, when: null }), [120 * minute, 122.5 * minute]);
    // A window that is longer than all events does not end at once.
    assert.deepEqual(startOf({ ...day, when: [200 * minute, 260 * minute] }), [60 * minute, 120 * minute]);
    // A window that is short beside them passes over none within a step.
    assert.ok(paceOf([0, 1000], day) * 240 < 1000);
    // Without events there is all of the time shown.
    assert.deepEqual(reachOf({ span: [0, 100], bars: [] }), [0, 100]);
  });

  it('goes from event to event if asked, once the last ones have faded', () => {
    const { advance } = page.player;
    assert.deepEqual(advance([4, 24], 1, played, true), [5, 25]);
    const [from, to] = advance([9.5, 29.5], 1, played, true);
    assert.ok(to > 60 && to <= 61 && Math.abs(to - from - 20) < 1e-9, `${from} to ${to}`);
    assert.deepEqual(advance([9.5, 29.5], 1, played, false), [10.5, 30.5]);
    // At the last event nothing is skipped.
    assert.deepEqual(advance([45, 65], 1, played, true), [46, 66]);
  });
});

describe('a length of time', () => {
  it('has its largest unit', () => {
    const { formatLength } = page.time;
    assert.equal(formatLength(1000), '1 second');
    assert.equal(formatLength(90 * 60_000), '1.5 hours');
    assert.equal(formatLength(61 * 86_400_000), '2 months');
    assert.equal(formatLength(40 * 365.2425 * 86_400_000), '40 years');
  });
});

describe('comma-separated values', () => {
  const read = (text) => {
    const rows = [];
    page.csv.readCsv(text, (row) => rows.push(row));
    return rows;
  };
  it('are read with quotes, line ends and commas in them', () => {
    assert.deepEqual(read('a,b\r\n1,"x, ""y""\nz"\r\n,\r\n'), [['a', 'b'], ['1', 'x, "y"\nz'], ['', '']]);
    assert.deepEqual(read('a,b\n1,"2"'), [['a', 'b'], ['1', '2']]);
    assert.deepEqual(read('a,b\n1,5" pipe\n"x",'), [['a', 'b'], ['1', '5" pipe'], ['x', '']]);
    assert.deepEqual(read(''), []);
  });
});

describe('the events of a trail', () => {
  it('have place, time and value, on the copy of the world that is in view', () => {
    const text = 'id,lon,lat,time,mag\r\na,170,0,1970-01-01T00:00:00.500Z,3\r\nb,-170,0,1970-01-01T00:00:00.250Z,\r\n"c,",,,1970-01-01T00:00:00Z,1\r\n';
    const trail = events.readTrail(text, 'time', 'mag', null, [160, -10, 200, 10], [0, 1000]);
    assert.equal(trail.count, 2);
    assert.deepEqual([...trail.places].map((v) => Math.round(v * 1e4) / 1e4 + 0), [-0.0278, 0, 0.5, 0.0278, 0, 0.25]);
    assert.deepEqual([...trail.values], [3, NaN]);
  });

  it('are points, as the header says: shapes have one column, whatever is asked of them', () => {
    const read = (header, values, field) => events.readTrail(`${header}\r\n${values}\r\n`, 'start', field, null, [0, 0, 2, 2], [0, 1000]);
    const [time, shape] = ['1970-01-01T00:00:00Z', '"LINESTRING(1 1,2 2)"'];
    assert.equal(read('id,geometry,start,wind', `a,${shape},${time},5`, 'wind'), null);
    assert.equal(read('id,geometry,wind,start', `a,${shape},5,${time}`, 'wind'), null, 'fields are in the order of the schema');
    assert.equal(read('id,geometry,start', `a,${shape},${time}`, ''), null);
    assert.deepEqual([...read('id,longitude,latitude,lon,start', `a,1,1,5,${time}`, 'lon').values], [5]);
    assert.equal(read('"a,b",lon,lat,start', `a,1,1,${time}`, '').count, 1);
  });

  it('have the number of a text among those with a colour, and -1 for another', () => {
    const text = 'id,lon,lat,time,net\na,1,1,1970-01-01T00:00:00Z,us\nb,1,1,1970-01-01T00:00:00Z,\nc,1,1,1970-01-01T00:00:00Z,xx\n';
    assert.deepEqual([...events.readTrail(text, 'time', 'net', ['ci', 'us'], [0, 0, 2, 2], [0, 1000]).values], [1, NaN, -1]);
  });
});
