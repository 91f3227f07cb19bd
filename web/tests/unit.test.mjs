// The page's pure parts, bundled from their TypeScript source.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readdirSync, readFileSync } from 'node:fs';
import { sources } from './sources.mjs';

let page;

before(async () => {
  page = await sources(['bars', 'hash', 'numbers', 'query', 'shapes', 'palette', 'time']);
});

const utc = (text) => Date.parse(text);
const range = (a, b) => [utc(a), utc(b)];

describe('time', () => {
  it('asks for a half-open range as a closed interval that ends a microsecond earlier', () => {
    const { datetimeParam } = page.time;
    assert.equal(datetimeParam(range('2024-02-01T00:00:00Z', '2024-03-01T00:00:00Z')), '2024-02-01T00:00:00Z/2024-02-29T23:59:59.999999Z');
    assert.equal(datetimeParam(range('2024-02-01T00:00:00.250Z', '2024-02-01T00:00:01Z')), '2024-02-01T00:00:00.250Z/2024-02-01T00:00:00.999999Z');
  });

  it('keeps instants inside the years that RFC 3339 has', () => {
    const { isoInstant, parseInstant } = page.time;
    assert.equal(isoInstant(9e15), '9999-12-31T23:59:59.999Z');
    assert.equal(isoInstant(-9e15), '0000-01-01T00:00:00Z');
    assert.equal(isoInstant(0), '1970-01-01T00:00:00Z');
    assert.equal(parseInstant('2020-01-01T00:00:00.123456Z'), utc('2020-01-01T00:00:00.123Z'));
    assert.equal(parseInstant('2020-01-01T02:00:00+02:00'), utc('2020-01-01T00:00:00Z'));
    assert.ok(Number.isNaN(parseInstant('yesterday')));
    assert.ok(Number.isNaN(parseInstant('')));
  });

  it('shows ranges as exactly as they need', () => {
    const { formatRange, resolutionOf } = page.time;
    const text = (a, b) => formatRange(range(a, b), resolutionOf(range(a, b)));
    assert.equal(text('2020-01-01T00:00:00Z', '2022-01-01T00:00:00Z'), '2020 – 2021');
    assert.equal(text('2024-02-01T00:00:00Z', '2024-03-01T00:00:00Z'), 'Feb 2024');
    assert.equal(text('2024-05-01T00:00:00Z', '2024-05-04T00:00:00Z'), '1 May 2024 – 3 May 2024');
    assert.equal(text('2024-05-01T06:00:00Z', '2024-05-01T09:30:00Z'), '1 May 2024, 06:00 – 09:30');
    assert.equal(text('2024-05-01T06:00:00Z', '2024-05-01T06:00:05Z'), '1 May 2024, 06:00:00 – 06:00:05');
  });

  it('shows the time of an event to the second, and what is no time as it is', () => {
    assert.equal(page.time.formatEventTime('2017-01-21T12:39:41.740Z'), '2017-01-21 12:39:41');
    assert.equal(page.time.formatEventTime('soon'), 'soon');
    assert.equal(page.time.formatZonedTime('2017-01-21T12:39:41.740Z'), '2017-01-21 12:39:41 UTC');
    assert.equal(page.time.formatZonedTime('soon'), 'soon');
  });

  it('shows a date without a time of day, and without a zone', () => {
    for (const format of [page.time.formatEventTime, page.time.formatZonedTime]) assert.equal(format('2026-02-01'), '2026-02-01');
  });

  it('chooses the shortest window that is not too fine', () => {
    const { windowFor } = page.time;
    const day = 86_400_000;
    assert.equal(windowFor(day, 100).iso, 'PT30M');
    assert.equal(windowFor(365 * day, 100).iso, 'P1W');
    assert.equal(windowFor(9 * 365 * day, 120).iso, 'P1M');
    assert.equal(windowFor(1000, 100).iso, 'PT1S');
    assert.equal(windowFor(1e17, 100).iso, 'P100Y');
    for (let span = 1000; span < 1e13; span *= 1.7) {
      const { ms } = windowFor(span, 150);
      assert.ok(span / ms <= 150, `${span} ms gives ${span / ms} windows`);
    }
  });

  it('marks the axis at round instants inside the span, no more than asked for', () => {
    const { ticks } = page.time;
    const years = ticks(range('2017-01-21T00:00:00Z', '2026-03-21T00:00:00Z'), 10);
    assert.deepEqual(years.map((t) => t.label), ['2018', '2019', '2020', '2021', '2022', '2023', '2024', '2025', '2026']);
    const months = ticks(range('2023-11-15T00:00:00Z', '2024-03-02T00:00:00Z'), 6);
    assert.deepEqual(months.map((t) => t.label), ['Dec', '2024', 'Feb', 'Mar']);
    assert.deepEqual(months.map((t) => t.major), [false, true, false, false]);
    const weeks = ticks(range('2024-05-01T00:00:00Z', '2024-05-30T00:00:00Z'), 6);
    assert.ok(weeks.every((t) => new Date(t.ms).getUTCDay() === 1));
    for (let span = 2000; span < 1e14; span *= 2.3) {
      const marks = ticks([utc('2001-03-04T05:06:07Z'), utc('2001-03-04T05:06:07Z') + span], 8);
      assert.ok(marks.length <= 9, `${span}: ${marks.length}`);
      assert.ok(marks.every((t, i) => i === 0 || t.ms > marks[i - 1].ms));
    }
  });
});

describe('the view in the address', () => {
  const views = [
    {},
    { collection: 'earthquakes', camera: { center: [-119.5, 37.25], zoom: 5.5 } },
    { collection: 'a b/ü&=', filter: "mag >= 5 AND place LIKE '%Alaska+%' & x = \"y\"" },
    { when: range('2024-02-01T00:00:00Z', '2024-03-01T00:00:00.500Z'), span: range('2020-01-01T00:00:00Z', '2025-01-01T00:00:00Z') },
    { shape: { kind: 'box', west: 170, south: -10.5, east: 190, north: 4.25 } },
    { shape: { kind: 'circle', center: [-0.127758, 51.507351], radius: 25000.5 }, field: 'mag', measure: 'max' },
    { shape: { kind: 'polygon', ring: [[0, 0], [10, 0.5], [5, 8]] } },
  ];

  it('is restored from its link, whatever it holds', () => {
    const { EMPTY_VIEW, fromHash, toHash } = page.hash;
    for (const view of views) {
      const whole = { ...EMPTY_VIEW, ...view };
      assert.deepEqual(fromHash(`#${toHash(whole)}`), whole);
      assert.equal(new URL(`http://h/map#${toHash(whole)}`).hash.slice(1), toHash(whole), 'nothing is left for the browser to escape');
    }
  });

  it('is empty for an empty link and survives a damaged one', () => {
    const { EMPTY_VIEW, fromHash, toHash } = page.hash;
    assert.equal(toHash(EMPTY_VIEW), '');
    assert.deepEqual(fromHash(''), EMPTY_VIEW);
    const broken = fromHash('#c=x&m=1/2&t=never/ever&r=2024-01-01/2023-01-01&s=box:1,2,3&fn=median');
    assert.deepEqual(broken, { ...EMPTY_VIEW, collection: 'x' });
    for (const s of ['circle:0,0,0', 'circle:0,95,10', 'polygon:1,2;3,4', 'box:5,0,1,1', 'box:a,b,c,d', 'star:1,2'])
      assert.equal(fromHash(`#s=${s}`).shape, null, s);
  });
});

describe('the histogram', () => {
  const groups = [
    { window: '2024-01-02T00:00:00Z/2024-01-03T00:00:00Z', count: 3, 'avg(mag)': null },
    { window: '2024-01-01T00:00:00Z/2024-01-02T00:00:00Z', count: 5, 'avg(mag)': 2.5 },
    { window: 'nonsense', count: 9 },
    { count: 7 },
  ];

  it('reads the windows of an answer in time order', () => {
    const bars = page.bars.barsOf(groups, 'avg', 'mag');
    assert.deepEqual(bars.map((b) => [b.count, b.value]), [[5, 2.5], [3, null]]);
    assert.equal(page.bars.barsOf(groups, 'avg', 'depth')[0].value, null);
  });

  it('finds the bar at an instant; windows are half open', () => {
    const { barAt, barsOf } = page.bars;
    const bars = barsOf(groups, 'avg', 'mag');
    assert.equal(barAt(bars, utc('2024-01-01T00:00:00Z')).count, 5);
    assert.equal(barAt(bars, utc('2024-01-02T00:00:00Z')).count, 3);
    assert.equal(barAt(bars, utc('2024-01-03T00:00:00Z')), null);
    assert.equal(barAt([], 0), null);
  });

  it('snaps a brush to the edges of windows, also where no events are', () => {
    const { barsOf, snap } = page.bars;
    const bars = barsOf(groups, 'avg', 'mag');
    const day = 86_400_000;
    assert.equal(snap(utc('2024-01-01T05:00:00Z'), bars, day), utc('2024-01-01T00:00:00Z'));
    assert.equal(snap(utc('2024-01-01T15:00:00Z'), bars, day), utc('2024-01-02T00:00:00Z'));
    assert.equal(snap(utc('2024-01-09T15:00:00Z'), bars, day), utc('2024-01-10T00:00:00Z'));
    assert.equal(snap(utc('2023-12-09T05:00:00Z'), bars, day), utc('2023-12-09T00:00:00Z'));
  });

  it('counts the bars of a brush', () => {
    const { barsOf, countIn } = page.bars;
    assert.equal(countIn(barsOf(groups, 'avg', 'mag'), range('2024-01-01T00:00:00Z', '2024-01-02T00:00:00Z')), 5);
  });

  it('places instants on the axis and reads them back', () => {
    const { toTime, toX } = page.bars;
    const frame = { left: 40, right: 840, span: [1000, 9000] };
    assert.equal(toX(frame, 5000), 440);
    assert.equal(toTime(frame, 440), 5000);
    assert.equal(toTime(frame, -50), 1000);
    assert.equal(toTime(frame, 9999), 9000);
  });

  it('has the extent of what is known', () => {
    assert.equal(page.bars.valueExtent([{ value: null }]), null);
    assert.deepEqual(page.bars.valueExtent([{ value: 4 }, { value: null }, { value: 2 }]), [2, 4]);
  });
});

describe('questions', () => {
  const ask = (more) => Object.fromEntries(page.query.params({ where: null, when: null, filter: '', geometry: 'geometry', ...more }));

  it('ask for everything with no parameter at all', () => assert.deepEqual(ask({}), {}));

  it('ask for a box with bbox, also across the antimeridian and around the world', () => {
    assert.deepEqual(ask({ where: { kind: 'box', west: -10, south: -5, east: 10, north: 5 } }), { bbox: '-10,-5,10,5' });
    assert.deepEqual(ask({ where: { kind: 'box', west: 170, south: -5, east: 190, north: 5 } }), { bbox: '170,-5,-170,5' });
    assert.deepEqual(ask({ where: { kind: 'box', west: -200, south: -95, east: 250, north: 95 } }), { bbox: '-180,-90,180,90' });
    assert.deepEqual(ask({ where: { kind: 'box', west: -180, south: 0, east: 180, north: 1 } }), { bbox: '-180,0,180,1' });
  });

  it('ask for a circle with near and radius', () => {
    assert.deepEqual(ask({ where: { kind: 'circle', center: [190, 10], radius: 1234.567 } }), { near: '-170,10', radius: '1234.6' });
  });

  it('ask for a polygon with CQL2, counter-clockwise and closed', () => {
    const where = { kind: 'polygon', ring: [[0, 0], [0, 2], [2, 2], [2, 0]] };
    assert.deepEqual(ask({ where }), { filter: 'S_INTERSECTS(geometry,POLYGON((2 0,2 2,0 2,0 0,2 0)))', 'filter-lang': 'cql2-text' });
  });

  it('cut a polygon at the antimeridian', () => {
    const where = { kind: 'polygon', ring: [[170, 0], [190, 0], [190, 10], [170, 10]] };
    const { filter } = ask({ where });
    assert.match(filter, /^S_INTERSECTS\(geometry,MULTIPOLYGON\(\(\(.*\)\),\(\(.*\)\)\)\)$/);
    const numbers = filter.match(/-?\d+(\.\d+)? -?\d+(\.\d+)?/g).map((pair) => Number(pair.split(' ')[0]));
    assert.ok(numbers.every((x) => Math.abs(x) >= 170 && Math.abs(x) <= 180), filter);
  });

  it('join what is typed with the polygon, in brackets so that OR keeps its reach', () => {
    const where = { kind: 'polygon', ring: [[0, 0], [2, 0], [2, 2]] };
    const { filter } = ask({ where, filter: ' mag > 5 OR depth < 1 ', geometry: 'the geom' });
    assert.equal(filter, '(mag > 5 OR depth < 1) AND S_INTERSECTS("the geom",POLYGON((0 0,2 0,2 2,0 0)))');
    assert.equal(page.query.cqlName('a"b'), '"a""b"');
  });

  it('leave the shape out of the picture', () => {
    const where = { kind: 'circle', center: [0, 0], radius: 5 };
    assert.equal(page.query.pictureParams({ where, when: null, filter: 'mag > 5', geometry: 'geometry' }).toString(), 'filter=mag+%3E+5&filter-lang=cql2-text');
  });
});

describe('shapes', () => {
  it('measure on the great circle', () => {
    const { circleOf, distance } = page.shapes;
    assert.ok(Math.abs(distance([0, 0], [0, 1]) - 111_195) < 1);
    assert.ok(Math.abs(distance([179.5, 0], [-179.5, 0]) - 111_195) < 1);
    assert.ok(Math.abs(circleOf([0, 60], [1, 60]).radius - 55_597) < 20);
  });

  it('draw a circle whose rim is as far as its radius', () => {
    const { distance, outline } = page.shapes;
    const circle = { kind: 'circle', center: [-119, 37], radius: 300_000 };
    for (const point of outline(circle)) assert.ok(Math.abs(distance([-119, 37], point) - 300_000) < 1);
  });

  it('see that sides cross', () => {
    const { selfCrossing } = page.shapes;
    assert.equal(selfCrossing([[0, 0], [2, 2], [2, 0], [0, 2]]), true);
    assert.equal(selfCrossing([[0, 0], [2, 0], [2, 2], [0, 2]]), false);
    assert.equal(selfCrossing([[0, 0], [4, 0], [4, 4], [2, 1], [0, 4]]), false);
  });
});

describe('numbers', () => {
  it('are short where there is little room and keep four digits', () => {
    const { formatCount, formatShort, formatValue } = page.numbers;
    assert.equal(formatCount(1234567), '1,234,567');
    assert.equal(formatShort(156288), '156.3K');
    assert.equal(formatShort(9999), '9,999');
    assert.equal(formatValue(1.20214), '1.202');
    assert.equal(formatValue(43243123), '43.24M');
    assert.equal(formatValue(null), '–');
    assert.equal(formatValue(0.00001), '1.00e-5');
  });
});

describe('the base map', () => {
  it('reads against land, sea and halo in light and dark', () => {
    const luminance = (hex) => {
      const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
      const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
      return (high + 0.05) / (low + 0.05);
    };
    for (const palette of [page.palette.LIGHT, page.palette.DARK])
      for (const name of ['country', 'city'])
        for (const ground of ['land', 'sea', 'halo'])
          assert.ok(contrast(palette[name], palette[ground]) >= 4.5, `${name} ${palette[name]} on ${ground} ${palette[ground]}: ${contrast(palette[name], palette[ground]).toFixed(2)}`);
  });

  it('has every name with all of its letters', () => {
    const assets = join(dirname(dirname(fileURLToPath(import.meta.url))), 'dist', 'assets');
    const places = readdirSync(assets).filter((name) => /^places-.*\.json$/.test(name));
    assert.equal(places.length, 1, 'build the pages first: npm run build');
    const names = JSON.parse(readFileSync(join(assets, places[0]), 'utf8')).features.map(({ properties }) => properties.name);
    assert.ok(names.includes('Ōsaka') && names.includes('Chișinău'));
    assert.deepEqual(names.filter((name) => /[?\ufffd]/.test(name)), []);
  });
});
