// The table's rows and the filter's conditions, without a browser.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sources } from './sources.mjs';

const { rows: paging, columns, room } = await sources(['rows', 'columns', 'room'], 'table/');
const { guide } = await sources(['guide']);
const { conditions } = await sources(['conditions'], 'filter/');
const { Rows, PAGE } = paging;

/** A server of `total` rows, each page of which gives a token; `expire` makes the tokens given so far unknown. */
function server(total) {
  let valid = 0;
  const asked = [];
  return {
    asked,
    expire: () => valid++,
    async page(token, limit, slim) {
      const [at, made] = token === null ? [0, valid] : token.split('.').map(Number);
      if (made !== valid) throw new Error('gone');
      asked.push({ at, limit, slim });
      const features = Array.from({ length: Math.min(limit, total - at) }, (_, i) => ({ type: 'Feature', id: at + i, geometry: null, properties: null }));
      return { features, next: at + limit < total ? `/items?token=${at + limit}.${valid}&limit=9` : null };
    },
  };
}

function open(total, thought = total) {
  const source = server(total);
  const waiting = [];
  const rows = new Rows({ page: source.page, changed: () => waiting.splice(0).forEach((go) => go()), failed: (error) => assert.fail(error), expired: (error) => error.message === 'gone' }, thought);
  /** Waits until a row is there. */
  const shown = async (index) => {
    while (!rows.row(index)) await new Promise((go) => waiting.push(go));
    return rows.row(index).id;
  };
  return { source, rows, shown };
}

describe('the rows of a table', () => {
  it('are each their own, wherever one looks, and few of a million are kept', async () => {
    const { source, rows, shown } = open(1_000_000);
    for (const at of [0, 250, 654_321, 12_345, 999_999]) {
      rows.want(at, at + 20);
      assert.equal(await shown(at), at);
    }
    for (let at = 0; at < 20_000; at += 100) {
      rows.want(at, at + 30);
      await shown(at);
    }
    assert.ok(rows.kept <= 30, `${rows.kept} pages`);
    // A far jump walks in long pages, and the same way is walked once.
    const walked = source.asked.filter(({ slim }) => slim).length;
    assert.ok(walked <= 105, `${walked} pages were walked over`);
  });

  it('are found again when the tokens are not known any more', async () => {
    const { source, rows, shown } = open(30_000);
    rows.want(20_000, 20_010);
    await shown(20_000);
    source.expire();
    rows.want(25_000, 25_010);
    assert.equal(await shown(25_000), 25_000);
  });

  it('end where the server ends, whatever was thought', async () => {
    const { rows, shown } = open(130, 5000);
    rows.want(0, 20);
    await shown(0);
    rows.want(100, 120);
    await shown(100);
    assert.equal(rows.total, 130);
  });

  it('that were passed by are not asked for', async () => {
    const { source, rows, shown } = open(100_000);
    rows.want(50_000, 50_020);
    rows.want(0, 20);
    await shown(0);
    await new Promise((go) => setTimeout(go, 20));
    assert.ok(!source.asked.some(({ at, slim }) => at === 50_000 && !slim), JSON.stringify(source.asked));
    assert.equal(PAGE, 100);
  });
});

describe('the order of a table', () => {
  const schema = { fields: [{ name: 'mag', title: 'mag', kind: 'float' }, { name: 't', title: 't', kind: 'time' }, { name: 'tags', title: 'tags', kind: 'list' }], geometry: 'g', times: ['t'], object: '' };

  it('is the newest first, unless something else is asked for that can be sorted', () => {
    const { sortOf } = columns;
    assert.equal(sortOf('', schema, false), '-t');
    assert.equal(sortOf('-mag', schema, false), '-mag');
    for (const wrong of ['nothing', '-tags']) assert.equal(sortOf(wrong, schema, false), '-t');
    assert.equal(sortOf('mag', schema, true), '', 'a circle has its own order');
    assert.equal(sortOf('', { ...schema, times: [] }, false), '');
  });

  it('turns with each click on a header', () => {
    const { turned } = columns;
    assert.deepEqual(['', '-mag', 'mag', '-t'].map((sort) => turned(sort, { name: 'mag' })), ['-mag', 'mag', '', '-mag']);
  });
});

describe('conditions', () => {
  const { conditionsOf, filterText, withValue } = conditions;
  const fields = [['mag', 'float'], ['place', 'text'], ['time', 'time'], ['ok', 'bool'], ['tags', 'list'], ['a "b"', 'text']].map(([name, kind]) => ({ name, title: name, kind }));
  const all = [
    { field: 'mag', operator: '>=', value: '-2.5' },
    { field: 'place', operator: 'contains', value: "100% _O'Neill\\_" },
    { field: 'place', operator: 'starts', value: 'AND (x)' },
    { field: 'a "b"', operator: '<>', value: '5' },
    { field: 'time', operator: '<', value: '2026-01-31' },
    { field: 'time', operator: '>=', value: '2026-01-31T10:00:00Z' },
    { field: 'ok', operator: '=', value: 'true' },
    { field: 'tags', operator: 'contains', value: 'x' },
    { field: 'mag', operator: 'null', value: '' },
    { field: 'place', operator: 'some', value: '' },
  ];

  it('are CQL2, and are read back from it', () => {
    for (const condition of all) assert.deepEqual(conditionsOf(filterText([condition], fields), fields), [condition]);
    assert.deepEqual(conditionsOf(filterText(all, fields), fields), all);
    assert.equal(filterText([all[0], all[4], all[6]], fields), `mag >= -2.5 AND time < DATE('2026-01-31') AND ok = TRUE`);
    assert.equal(filterText([{ field: 'mag', operator: '>', value: '' }], fields), '', 'what lacks a value says nothing yet');
  });

  it('do not take text that says more than they do', () => {
    for (const text of ['mag > 3 OR mag < 1', '(mag > 3)', 'nothing = 1', "place LIKE 'x%'", 'mag > 3 AND', 'NOT mag = 3', "CASEI(place) LIKE CASEI('a%b%')", 'mag > depth', 'mag BETWEEN 1 AND 2'])
      assert.equal(conditionsOf(text, fields), null, text);
    assert.deepEqual(conditionsOf('  ', fields), []);
  });

  it('take a value that is clicked, in place of another, and back', () => {
    assert.equal(withValue('mag > 3', 'place', 'x', fields), "mag > 3 AND place = 'x'");
    assert.equal(withValue("mag > 3 AND place = 'x'", 'place', "y'", fields), "mag > 3 AND place = 'y'''");
    assert.equal(withValue("mag > 3 AND place = 'x'", 'place', 'x', fields), 'mag > 3');
    assert.equal(withValue('mag > 3 OR mag < 1', 'ok', 'true', fields), '(mag > 3 OR mag < 1) AND ok = TRUE');
  });
});

describe('what is said where nothing is shown', () => {
  it('names a histogram only where there is one', () => {
    assert.match(guide.sayNoPlace('Storks', true), /a time but no place.*histogram/);
    assert.match(guide.sayNoPlace('Storks', false), /neither a place nor a time/);
    assert.doesNotMatch(guide.sayNoPlace('Storks', false), /histogram/);
  });

  it('names the collection that is asked about, and a file beside it', () => {
    assert.match(room.sayNone('Ships', false), /^No event of Ships matches\..*filter\.$/);
    assert.match(room.sayNone('Ships', true), /Files have tables of their own: click their names\.$/);
  });
});
