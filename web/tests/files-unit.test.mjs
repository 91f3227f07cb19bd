// A file that answers questions in the browser: conditions, windows of time, places, rows. Without a browser.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sources } from './sources.mjs';

const { read, asked, test, within } = await sources(['read', 'asked', 'test', 'within'], 'files/');
const { conditions } = await sources(['conditions'], 'filter/');
const { hash } = await sources(['hash']);
const { stack } = await sources(['stack'], 'layers/');

const FIELDS = [['name', 'text'], ['n', 'int'], ['seen', 'time'], ['ok', 'bool'], ['tags', 'list'], ['a b', 'float']].map(([name, kind]) => ({ name, title: name, kind }));
const matches = (filter, properties) => test.testOf(filter, FIELDS)({ type: 'Feature', geometry: null, properties });
const ALL = { where: null, when: null, filter: '', geometry: 'geometry' };
const open = (csv) => new asked.FileSource('x.csv', read.readFile(csv));
const ids = async (file, question = {}, paging = {}) => (await file.page({ ...ALL, ...question }, { sort: '', token: null, limit: 100, slim: '', ...paging })).features.map(({ id }) => id);

describe('the conditions of a file', () => {
  it('hold for no event without a value, except that it has none', () => {
    for (const { name, kind } of FIELDS)
      for (const operator of conditions.operatorsOf(kind)) {
        const value = { text: 'x', int: '1', float: '1', time: '2024-01-01', bool: 'true', list: 'x' }[kind];
        const filter = conditions.filterText([{ field: name, operator, value }], FIELDS);
        for (const properties of [{}, { [name]: null }, null]) assert.equal(matches(filter, properties), operator === 'null', `${filter} of ${JSON.stringify(properties)}`);
      }
    assert.deepEqual([matches('n IS NOT NULL', { n: 0 }), matches("name = ''", { name: '' })], [true, true], '0 and an empty text are values');
  });

  it('compare numbers, and all of them hold together', () => {
    for (const [filter, wanted] of [['n < 5', false], ['n <= 5', true], ['n = 5.0', true], ['n <> 5', false], ['n >= 5 AND n > 4.5', true], ['n > 4 AND "a b" = 1', false], ['n > -1e1', true]])
      assert.equal(matches(filter, { n: 5 }), wanted, filter);
  });

  it('compare texts sign by sign, unless they look for a part, which ignores case and composition', () => {
    assert.deepEqual([matches("name = 'Alpha'", { name: 'alpha' }), matches("name <> 'Alpha'", { name: 'alpha' })], [false, true]);
    const has = (operator, value, name) => matches(conditions.conditionText({ field: 'name', operator, value }, 'text'), { name });
    for (const [value, name] of [['LPH', 'alpha'], ['CAFE\u0301', 'un café'], ['strasse', 'Hauptstraße'], ['ΣΑΣ', 'σας'], ['50%', 'at 50% of'], ['a_b', 'xA_B'], ["o'", "O'Neil"]]) assert.equal(has('contains', value, name), true, `${value} in ${name}`);
    for (const [value, name] of [['50%', '500'], ['a_b', 'axb'], ['i', 'ı'], ['e', 'é']]) assert.equal(has('contains', value, name), false, `${value} in ${name}`);
    assert.deepEqual([has('starts', 'al', 'ALPHA'), has('starts', 'l', 'Alpha')], [true, false]);
  });

  it('take a date for all of its day, and instants in every form that a file may have', () => {
    const holds = (text) => (seen) => matches(`seen ${text}`, { seen });
    const [before, morning, last, after] = ['2024-01-30T23:59:59.999Z', '2024-01-31T00:00:00Z', '2024-01-31T23:59:59.999999Z', '2024-02-01T00:00:00Z'];
    for (const [operator, wanted] of [['=', '0110'], ['<>', '1001'], ['<', '1000'], ['<=', '1110'], ['>', '0001'], ['>=', '0111']])
      assert.equal([before, morning, last, after].map((seen) => Number(holds(`${operator} DATE('2024-01-31')`)(seen))).join(''), wanted, operator);
    for (const seen of ['2024-01-31T12:30Z', '2024-01-31T14:30:00.000+02:00', '2024-01-31T1230+0000', '2024-01-31T12:30:00,0Z', '2024-01-31T13:30+01'])
      assert.equal(holds("= TIMESTAMP('2024-01-31T12:30:00Z')")(seen), true, seen);
    assert.equal(holds("= TIMESTAMP('2024-01-31T12:30:00.000001Z')")('2024-01-31T12:30:00Z'), false, 'to the microsecond');
  });

  it('know booleans, and members of lists', () => {
    assert.deepEqual([matches('ok = FALSE', { ok: false }), matches('ok = TRUE', { ok: false })], [true, false]);
    assert.deepEqual([matches("A_CONTAINS(tags, ('a'))", { tags: ['b', 'a'] }), matches("A_CONTAINS(tags, ('a'))", { tags: ['A', 'ab'] })], [true, false]);
  });

  it('refuse what they are not', async () => {
    for (const [filter, why] of [["n = 'five'", /^n: 'five' where a number was expected/], ["seen > 'soon'", /^seen: 'soon' where a time/], ["seen > DATE('2024-02-30')", /where a time/], ['n > 1 OR n < 0', /joined by AND/], ['unknown = 1', /joined by AND/]]) {
      assert.throws(() => test.testOf(filter, FIELDS), (error) => why.test(error.message), filter);
    }
    const file = open('lon,lat,n\n1,2,3\n');
    assert.match(await file.check("n = 'x'"), /a number was expected/);
    assert.equal(await file.check('n = 3'), null);
  });
});

describe('a file that is asked about', () => {
  const csv = ['lon,lat,time,mag,place', '10,50,2024-01-01T00:00:00Z,2,b', '11,51,2024-01-07T23:59:59.999Z,,a', '-179,0,2024-01-08T00:00:00Z,10,c', '179,0,2024-03-31T12:00:00Z,9,a'].join('\n');

  it('counts the events of each window', async () => {
    const bars = async (iso, question = {}) => (await open(csv).aggregate(['count'], { ...ALL, ...question }, undefined, iso)).map(({ window, count }) => [window.replaceAll('T00:00:00.000Z', ''), count]);
    assert.deepEqual(await bars('P1W'), [['2024-01-01/2024-01-08', 2], ['2024-01-08/2024-01-15', 1], ['2024-03-25/2024-04-01', 1]], 'weeks begin on Mondays');
    assert.deepEqual(await bars('P3M'), [['2024-01-01/2024-04-01', 4]]);
    assert.deepEqual(await bars('P1M', { filter: 'mag > 1' }), [['2024-01-01/2024-02-01', 2], ['2024-03-01/2024-04-01', 1]]);
    assert.deepEqual(await bars('P1D', { when: [Date.UTC(2024, 0, 2), Date.UTC(2024, 0, 8)] }), [['2024-01-07/2024-01-08', 1]], 'a range ends before its end');
    for (const [iso, ms, wanted] of [['P100Y', Date.UTC(1970, 5), '1900-01-01/2000-01-01'], ['P1W', Date.UTC(1969, 11, 31), '1969-12-29/1970-01-05'], ['P1M', Date.UTC(1969, 11, 31), '1969-12-01/1970-01-01'], ['PT6H', Date.UTC(1969, 11, 31, 23), '1969-12-31T18:00/1970-01-01']])
      assert.equal(asked.windowOf(iso, ms).map((at) => new Date(at).toISOString().replace('T00:00:00.000Z', '').replace(':00.000Z', '')).join('/'), wanted, iso);
  });

  it('is sorted by a field either way, events without a value last, and comes in pages', async () => {
    const file = open(csv);
    assert.deepEqual(await ids(file, {}, { sort: '-time' }), ['line 5', 'line 4', 'line 3', 'line 2']);
    assert.deepEqual(await ids(file, {}, { sort: 'mag' }), ['line 2', 'line 5', 'line 4', 'line 3'], 'numbers are no texts');
    assert.deepEqual(await ids(file, {}, { sort: '-mag' }), ['line 4', 'line 5', 'line 2', 'line 3']);
    assert.deepEqual(await ids(file, {}, { sort: 'place' }), ['line 3', 'line 5', 'line 2', 'line 4'], 'equals stay in order');
    const first = await file.page(ALL, { sort: '', token: null, limit: 3, slim: '' });
    assert.equal(first.next, '?token=3');
    assert.deepEqual(await ids(file, {}, { token: '3', limit: 3 }), ['line 5']);
    assert.equal((await file.page(ALL, { sort: '', token: '3', limit: 3, slim: '' })).next, null);
  });

  it('is asked about places, on whatever copy of the world, the nearest first in a circle', async () => {
    const file = open(csv);
    assert.deepEqual(await ids(file, { where: { kind: 'box', west: 178, south: -1, east: 182, north: 1 } }), ['line 4', 'line 5']);
    assert.deepEqual(await ids(file, { where: { kind: 'box', west: 10, south: 50, east: 10.5, north: 51 } }), ['line 2'], 'edges are included');
    assert.deepEqual(await ids(file, { where: { kind: 'box', west: -400, south: -90, east: 400, north: 90 } }), ['line 2', 'line 3', 'line 4', 'line 5']);
    assert.deepEqual(await ids(file, { where: { kind: 'circle', center: [371, 51], radius: 150_000 } }), ['line 3', 'line 2']);
    assert.deepEqual(await ids(file, { where: { kind: 'polygon', ring: [[9, 49], [12, 49], [10, 51]] } }), ['line 2'], 'in the box of the polygon is not in it');
    const square = { kind: 'box', west: 0, south: 0, east: 2, north: 2 };
    const at = (geometry, box) => within.touches(square)({ geometry, box });
    assert.equal(at({ type: 'LineString', coordinates: [[-1, 1], [3, 1]] }, [-1, 1, 3, 1]), true, 'a line across');
    assert.equal(at({ type: 'LineString', coordinates: [[-1, 1], [1, 4]] }, [-1, 1, 1, 4]), false, 'a line past a corner');
    const around = [[-5, -5], [5, -5], [5, 5], [-5, 5], [-5, -5]];
    assert.equal(at({ type: 'Polygon', coordinates: [around] }, [-5, -5, 5, 5]), true, 'an area around');
    const hole = [[-1, -1], [3, -1], [3, 3], [-1, 3], [-1, -1]];
    assert.equal(at({ type: 'Polygon', coordinates: [around, hole] }, [-5, -5, 5, 5]), false, 'an area with a hole there');
  });

  it('takes intervals with open ends, which count in the window of their start', async () => {
    const rows = [['2024-01-01T00:00:00Z', '2024-01-05T00:00:00Z'], ['2024-01-03T00:00:00Z', ''], ['', '2024-01-02T00:00:00Z'], ['', '']];
    const file = open(['lon,lat,start,end', ...rows.map((ends) => ['1', '2', ...ends].join(','))].join('\n'));
    const day = (n) => [Date.UTC(2024, 0, n), Date.UTC(2024, 0, n + 1)];
    assert.deepEqual(await ids(file, { when: day(4) }), ['line 2', 'line 3']);
    assert.deepEqual(await ids(file, { when: day(1) }), ['line 2', 'line 4']);
    assert.deepEqual(await ids(file, { when: day(5) }), ['line 2', 'line 3'], 'an end is inclusive');
    const groups = await file.aggregate(['count'], ALL, undefined, 'P1D');
    assert.deepEqual(groups.map(({ count }) => count), [1, 1]);
    assert.deepEqual((await file.open('')).collection.interval, [Date.UTC(2024, 0, 1), Date.UTC(2024, 0, 5)]);
    for (const time of ['2016-12-31T23:59:60Z', '2016-12-31T235960Z']) {
      assert.equal((await open(`lon,lat,time\n1,2,${time}\n`).open('')).collection.interval?.[0], Date.UTC(2016, 11, 31, 23, 59, 59), time);
    }
  });

  it('completes values, and draws the same events once', async () => {
    const file = open(csv);
    const [group] = await file.aggregate(['count', 'top(place,2)', 'min(mag)', 'max(mag)'], ALL);
    assert.deepEqual(group, { count: 4, 'top(place,2)': [{ value: 'a', count: 2 }, { value: 'b', count: 1 }], 'min(mag)': 2, 'max(mag)': 10 });
    assert.deepEqual(await open('lon,lat,"a,1"\n1,2,3\n').aggregate(['max(a,1)', 'top(a,1,5)'], ALL), [{ count: 1, 'max(a,1)': 3, 'top(a,1,5)': [{ value: 3, count: 1 }] }], 'a name may have a comma');
    const drawn = file.drawn('mag > 5', null);
    assert.deepEqual(drawn.features.map(({ properties }) => properties['@at']), [2, 3]);
    assert.equal(file.drawn('mag > 4', null), drawn);
    assert.equal(file.drawn('', [0, 1]).features.length, 0);
    assert.equal(open('lon,lat\n1,2\n').drawn('', [0, 1]).features.length, 1, 'without times a time leaves out none');
  });

  it('is over the collections of the view, and in no link', () => {
    const view = { ...hash.EMPTY_VIEW, collection: 'b', filter: 'n > 1', below: [{ ...hash.EMPTY_LAYER, collection: 'a' }], sort: '-n' };
    const there = { ...view, ...stack.askFile(view, 'file1', 'x = 1') };
    assert.deepEqual([there.collection, there.filter, there.sort, there.below.map(({ collection }) => collection)], [':file1', 'x = 1', '', ['a', 'b']]);
    const other = { ...there, ...stack.askFile(there, 'file2', '') };
    assert.deepEqual([other.collection, other.below.map(({ collection }) => collection)], [':file2', ['a', 'b']]);
    const left = { ...there, ...stack.leaveFile(there) };
    assert.deepEqual([left.collection, left.filter, left.hidden, hash.toHash(left).includes('file1')], ['b', 'n > 1', false, false]);
    const back = { ...there, ...stack.activate(there, 0) };
    assert.deepEqual([back.collection, back.above.map(({ collection }) => collection)], ['a', ['b']]);
    const alone = { ...hash.EMPTY_VIEW, ...stack.askFile(hash.EMPTY_VIEW, 'file1', '') };
    assert.deepEqual({ ...alone, ...stack.leaveFile(alone) }, hash.EMPTY_VIEW);
    assert.deepEqual(stack.leaveFile(view), {});
  });
});
