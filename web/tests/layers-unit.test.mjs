// Layers, legends, files, measures and frames, without a browser.
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sources } from './sources.mjs';

const page = await sources(['hash', 'legend', 'palette', 'eventstyle', 'measure', 'frame', 'embed', 'shapes', 'constrain']);
const { stack } = await sources(['stack'], 'layers/');
const files = await sources(['read', 'wkt', 'load', 'drawn', 'dates', 'notes'], 'files/');
const filter = await sources(['room'], 'filter/');
/** The same with objects as literals have them: those of a file inherit nothing. */
const plain = (value) => structuredClone(value);
const { EMPTY_LAYER, EMPTY_VIEW, fromHash, toHash, OTHERS_MAX } = page.hash;

const view = {
  ...EMPTY_VIEW,
  collection: 'b',
  filter: "name = 'x & y'",
  color: 3,
  opacity: 0.55,
  below: [{ ...EMPTY_LAYER, collection: 'a', filter: 'q > 1 AND r = 2', field: 'f', size: 'z', hidden: true }],
  above: [{ ...EMPTY_LAYER, collection: 'c', opacity: 0.2 }, { ...EMPTY_LAYER, collection: 'd' }],
  sort: '-mag',
  columns: ['mag', 'a,b', 'ü%'],
};
const names = (one) => stack.stackOf(one).layers.map(({ collection }) => collection).join('');
const after = (change) => ({ ...view, ...change });

describe('layers', () => {
  it('are restored from the link, with their order, filters and styles', () => {
    assert.deepEqual(fromHash(`#${toHash(view)}`), view);
  });

  it('keep to their max, whatever a link says', () => {
    const many = Array.from({ length: 20 }, (_, i) => `l=c%3Dx${i}&u=c%3Dy${i}`).join('&');
    const { below, above } = fromHash(`#c=z&${many}&o=900&k=77`);
    assert.equal(below.length + above.length, OTHERS_MAX);
    assert.deepEqual([fromHash('#o=900').opacity, fromHash('#k=77').color], [1, 0]);
  });

  it('are asked about one at a time, and each keeps its own style', () => {
    const other = after(stack.activate(view, 0));
    assert.deepEqual([names(other), other.collection, other.filter, other.hidden, other.sort, other.columns], ['abcd', 'a', 'q > 1 AND r = 2', true, '', null]);
    assert.deepEqual(other.above[0], stack.stackOf(view).layers[1]);
    const back = { ...other, ...stack.activate(other, 1) };
    assert.deepEqual([back.filter, back.color, back.opacity], [view.filter, 3, 0.55]);
  });

  it('move past each other, and the one that is asked about stays so', () => {
    const up = after(stack.move(view, 1, 1));
    assert.deepEqual([names(up), up.collection, up.below.length], ['acbd', 'b', 2]);
    const under = after(stack.move(view, 0, 1));
    assert.deepEqual([names(under), under.collection, under.below.length], ['bacd', 'b', 0]);
    assert.deepEqual(stack.move(view, 3, 1), {});
    assert.deepEqual(stack.move(view, 0, -1), {});
  });

  it('are removed and added; one always stays', () => {
    assert.equal(names(after(stack.remove(view, 0))), 'bcd');
    const gone = after(stack.remove(view, 1));
    assert.deepEqual([names(gone), gone.collection], ['acd', 'c']);
    assert.deepEqual(stack.remove({ ...EMPTY_VIEW, collection: 'a' }, 0), {});
    const more = after(stack.add(view, 'e'));
    assert.deepEqual([names(more), more.collection, more.below[1].collection], ['aebcd', 'b', 'e']);
    assert.ok(!stack.stackOf(view).layers.some(({ color }) => color === more.below[1].color));
  });
});

describe('the legend', () => {
  const { legendOf } = page.legend;
  const { LIGHT, DARK, layerPalette } = page.palette;
  const shown = { name: '', surface: null, averages: null, without: null, strength: 0, events: true, field: '', scale: null, values: null, valued: 0, lacking: 0, sized: '', size: null, zoom: 6, fades: '' };

  it('says what the marks of live mode are, and how many there are', () => {
    const said = (live, palette = LIGHT) => page.legend.livePart(live, palette);
    const events = said({ named: false, count: 1431, headed: 0, tracks: 0 });
    assert.deepEqual([events.kind, events.title], ['live', 'Newest events, at most 2,000']);
    assert.deepEqual(events.rows, [{ text: 'on the map now', count: '1,431' }, { color: LIGHT.point, text: 'event' }]);
    const ships = said({ named: true, count: 3, headed: 2, tracks: 2 }, DARK);
    assert.equal(ships.title, 'Last positions, at most 20,000');
    assert.deepEqual(ships.rows.slice(1).map(({ color, mark, text }) => [color, mark, text]), [[DARK.point, undefined, 'object'], [DARK.point, 'arrow', 'object and its heading'], [DARK.point, 'line', 'track']]);
    assert.deepEqual(said({ named: true, count: 2, headed: 2, tracks: 0 }).rows.map(({ text }) => text), ['on the map now', 'object and its heading'], 'no dot is drawn');
  });

  it('has a part for each thing that is shown, and none for nothing', () => {
    assert.deepEqual(legendOf(shown, LIGHT), []);
    const all = legendOf({ ...shown, name: 'Ships', surface: [1, 2, 3, 4, 5], strength: 0.4, field: 'speed', scale: { field: 'sog', stops: [1, 2, 3] }, valued: 3, lacking: 2, sized: 'draft', size: { field: 'd', low: 1, high: 9 } }, LIGHT);
    assert.deepEqual(all.map(({ kind }) => kind), ['layer', 'counts', 'field', 'size']);
    assert.equal(all[1].ramp.opacity, 0.4, 'the ramp is as faint as the surface');
    assert.deepEqual(all[2].ramp.labels, ['1', '2', '3']);
    assert.match(all[2].rows[0].text, /no value \(2\)/);
    assert.deepEqual(all[3].circles.map(({ text }) => text), ['1', '5', '9']);
  });

  it('explains no surface that is too faint to see, and no colour that is not drawn', () => {
    assert.deepEqual(legendOf({ ...shown, surface: [1, 2, 3, 4, 5], strength: 0.03 }, LIGHT), []);
    for (const [without, said] of [['many', /counts of events, not this field\. .*too many/], ['values', /counts of events, not this field\. No event in view has a value/]]) {
      const [counts, field] = legendOf({ ...shown, events: false, surface: [1, 2, 3, 4, 5], strength: 1, field: 'speed', without }, LIGHT);
      assert.deepEqual([counts.ramp.opacity, counts.rows], [1, []]);
      assert.equal(field.ramp, undefined);
      assert.match(field.rows[0].text, said);
    }
    const [, field] = legendOf({ ...shown, events: false, surface: [1, 2, 3, 4, 5], strength: 1, field: 'speed' }, LIGHT);
    assert.deepEqual(field.rows, [], 'nothing is said of averages that are not there yet');
    const [, text] = legendOf({ ...shown, events: false, surface: [1, 2, 3, 4, 5], strength: 1, field: 'type', scale: { field: 'type', values: ['a'] }, values: [{ value: 'a', count: 2 }] }, LIGHT);
    assert.match(text.rows.at(-1).text, /counts of events, not this field/);
  });

  it('says that a surface has the averages of a field, and no counts', () => {
    const averages = { kind: 'averages', stops: [1, 2, 3, 4, 5], lacking: true };
    const [field, ...more] = legendOf({ ...shown, events: false, averages, strength: 1, field: 'speed' }, LIGHT);
    assert.deepEqual(more, []);
    assert.deepEqual([field.kind, field.title, field.ramp.labels], ['field', 'Average speed', ['1', '2', '3', '4', '5']]);
    assert.deepEqual(field.ramp.colors, [...LIGHT.values]);
    assert.ok(field.circle > 0);
    assert.equal(field.rows[0].color, LIGHT.none, 'grey is explained');
    assert.match(field.rows[1].text, /where events are many/);
    const [both] = legendOf({ ...shown, averages, strength: 0.5, field: 'speed', scale: { field: 'sog', stops: [1, 2, 3, 4, 5] }, valued: 9 }, LIGHT);
    assert.equal(both.title, 'speed');
    assert.match(both.rows.at(-1).text, /Under the events is their average/);
    const [faint] = legendOf({ ...shown, averages, strength: 0.05, field: 'speed', scale: { field: 'sog', stops: [1, 2, 3, 4, 5] }, valued: 9 }, LIGHT);
    assert.deepEqual(faint.rows, [], 'a surface that is too faint to see');
  });

  it('gives each value of a text the colour that the map gives it, and says which have none of their own', () => {
    const scale = { field: 'type', values: ['quake', 'blast'] };
    const [part] = legendOf({ ...shown, field: 'type', scale, values: [{ value: 'blast', count: 1200 }, { value: 'other', count: 3 }], valued: 1203 }, LIGHT);
    assert.deepEqual(part.rows.map(({ color, value, count }) => [color, value, count]), [[LIGHT.categories[1], 'blast', '1,200'], [LIGHT.other, 'other', '3']]);
    const expression = page.eventstyle.eventColor(LIGHT, scale);
    assert.deepEqual(expression[2].slice(2), ['quake', LIGHT.categories[0], 'blast', LIGHT.categories[1], LIGHT.other]);
  });

  it('has circles of areas that grow evenly with the value', () => {
    const { sizeOf } = page.eventstyle;
    const size = { field: 'm', low: 0, high: 100 };
    const area = (value) => sizeOf(size, value) ** 2;
    const grown = [0, 25, 50, 100].map((value) => (area(value) - area(0)) / (area(100) - area(0)));
    assert.deepEqual(grown.map((share) => Math.round(share * 1e9) / 1e9), [0, 0.25, 0.5, 1]);
  });

  it('has a ramp of its own for each layer with a colour, which goes one way in lightness', () => {
    const light = (hex) => [0.2126, 0.7152, 0.0722].reduce((sum, share, i) => sum + share * (parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16) / 255) ** 2.2, 0);
    for (const palette of [LIGHT, DARK])
      palette.categories.forEach((point, i) => {
        const own = layerPalette(palette, i + 1);
        const lightness = own.counts.map(light);
        const rising = Math.sign(lightness[4] - lightness[0]);
        assert.equal(own.point, point);
        for (let at = 1; at < 5; at++) assert.ok((lightness[at] - lightness[at - 1]) * rising > 0, `${own.counts}`);
      });
    assert.equal(layerPalette(LIGHT, 0), LIGHT);
  });
});

describe('a measure', () => {
  const { areaOf, lengthOf, pathOf, sayMeasure } = page.measure;

  it('is the length along great circles', () => {
    // A quarter of the equator, and of a meridian.
    const quarter = (Math.PI / 2) * 6_371_008.8;
    assert.ok(Math.abs(lengthOf([[0, 0], [90, 0]]) - quarter) < 1);
    assert.ok(Math.abs(lengthOf([[0, 0], [0, 45], [0, 90]]) - quarter) < 1);
    const path = pathOf([[-170, 60], [-190, 60]]);
    assert.ok(path.length > 3 && path.every(([lng]) => lng <= -169.9 && lng >= -190.1), 'it does not jump over the antimeridian');
    assert.ok(Math.max(...path.map(([, lat]) => lat)) > 60.2, 'a great circle bends to the pole');
  });

  it('is the area on the sphere', () => {
    // An eighth of the sphere.
    const eighth = (4 * Math.PI * 6_371_008.8 ** 2) / 8;
    assert.ok(Math.abs(areaOf([[0, 0], [90, 0], [90, 90], [0, 90]]) - eighth) < 1e-6 * eighth);
    assert.equal(areaOf([[0, 0], [1, 0], [1, 1], [0, 1]]), areaOf([[0, 1], [1, 1], [1, 0], [0, 0]]));
    assert.match(sayMeasure([[0, 0], [1, 0], [1, 1], [0, 1]], true), /^12,36\d km², 44\d km around$/);
    assert.equal(sayMeasure([[0, 0]], false), '');
  });
});

describe('the frame of a collection', () => {
  const { stretch } = page.frame;
  const counts = (...held) => Array.from({ length: 36 }, (_, i) => (held.includes(i) ? 5 : 0));

  it('spans the antimeridian where events lie on both sides of it', () => {
    assert.deepEqual(stretch(counts(0, 1, 34, 35)), [160, 200]);
    assert.deepEqual(stretch(counts(35)), [170, 180]);
    assert.deepEqual(stretch(counts(17, 18)), [-10, 10]);
  });

  it('is the world where events are all around it', () => {
    assert.equal(stretch(counts(0, 5, 11, 17, 23, 29, 35)), null);
    assert.equal(stretch(counts()), null);
  });
});

describe('the first view of a collection', () => {
  const { frameOf } = page.frame;
  const world = [-180, -10, 180, 20];

  it('leaves out the longitudes that no event is in or crosses', async (t) => {
    const asked = [];
    // Two events around the antimeridian, of which one ends at 170 degrees west.
    const isIn = ([west, , east]) => west <= -170 || east >= 175;
    t.mock.method(globalThis, 'fetch', (path) => {
      const url = new URL(path, 'http://h');
      asked.push(url.pathname);
      const box = url.searchParams.get('bbox').split(',').map(Number);
      const answer = url.pathname.endsWith('density') ? { counts: Array.from({ length: 144 }, (_, i) => Number(i < 4 || i > 141)) } : { groups: [{ count: Number(isIn(box)) }] };
      return Promise.resolve(new Response(JSON.stringify(answer)));
    });
    const { signal } = new AbortController();
    assert.deepEqual(await frameOf('a', world, true, signal), [175, -10, 190, 20]);
    assert.deepEqual(asked.splice(0), ['/collections/a/density']);
    assert.deepEqual(await frameOf('a', world, false, signal), [150, -10, 210, 20], 'lines count in one column of the density alone');
    assert.ok(asked.every((path) => path.endsWith('/aggregate')), asked.join());
    asked.length = 0;
    assert.deepEqual(await frameOf('a', [0, 0, 20, 20], false, signal), [0, 0, 20, 20]);
    assert.deepEqual(asked, []);
  });
});

describe('the box of places', () => {
  const { partsOf } = page.frame;
  const boxOf = (positions) => page.frame.boxOf(partsOf({ type: 'MultiPoint', coordinates: positions }));

  it('goes over the antimeridian where they are on both sides of it', () => {
    assert.deepEqual(boxOf([[179, 51], [-179.5, 52], [-134, 58]]), [179, 51, 226, 58]);
  });

  it('is as small as they are, wherever they are', () => {
    assert.deepEqual(boxOf([[11.2, 47.1], [11.25, 47.12]]), [11.2, 47.1, 11.25, 47.12]);
    assert.deepEqual(boxOf([[180, 5]]), [180, 5, 180, 5]);
    const around = Array.from({ length: 12 }, (_, i) => [-175 + 30 * i, 0]);
    assert.deepEqual(boxOf(around), [-175, 0, 155, 0]);
  });

  it('has all that lines and areas cross', () => {
    const boxOf = (...geometries) => page.frame.boxOf(geometries.flatMap((geometry) => partsOf(geometry)));
    const line = (...coordinates) => ({ type: 'LineString', coordinates });
    assert.deepEqual(boxOf(line([-170, 10], [170, 10]), { type: 'Point', coordinates: [0, 50] }), [-170, 10, 170, 50]);
    assert.deepEqual(boxOf(line([170, 0], [-170, 5])), [-170, 0, 170, 5]);
    assert.deepEqual(boxOf({ type: 'Polygon', coordinates: [[[-170, 0], [0, 80], [170, 0], [-170, 0]]] }), [-170, 0, 170, 80]);
    const cut = { type: 'MultiLineString', coordinates: [[[170, 0], [180, 2]], [[-180, 2], [-165, 5]]] };
    assert.deepEqual(boxOf(cut, line([150, 1], [160, 3])), [150, 0, 195, 5], 'a line that is cut there');
    assert.deepEqual(boxOf({ type: 'GeometryCollection', geometries: [line([175, 1], [178, 1]), { type: 'Point', coordinates: [-178, 3] }] }), [175, 1, 182, 3]);
  });
});

describe('how far the map is zoomed out', () => {
  const { minZoomOf, constrainedLat } = page.constrain;

  it('holds the whole world from west to east, on a phone too', () => {
    for (const width of [320, 390, 540, 700]) assert.ok(512 * 2 ** minZoomOf(width) <= width + 1e-6, `${width}`);
    assert.equal(minZoomOf(1600), 0.6);
  });

  it('has the world in the middle where the map is taller, else the edge of the world at its edge', () => {
    assert.ok(Math.abs(constrainedLat(60, -0.4, 470)) < 1e-9);
    assert.ok(Math.abs(constrainedLat(40, 4, 600) - 40) < 1e-9);
    assert.ok(constrainedLat(89, 2, 600) < 80);
  });
});

describe('points that are close together', () => {
  it('have the rims of all below the points of all', () => {
    const { LIGHT } = page.palette;
    const drawn = { slot: 'event', collection: 'c', url: '', scale: null, size: null, presence: 1 };
    const lists = [page.eventstyle.eventLayers(LIGHT, drawn), files.drawn.fileLayers(LIGHT, { id: 'event', data: {}, color: 1, opacity: 1, hidden: false })];
    for (const layers of lists) {
      const [rim, point] = ['event-rim', 'event-point'].map((id) => layers.findIndex((layer) => layer.id === id));
      assert.ok(rim >= 0 && rim < point);
      assert.equal(layers[point].paint['circle-stroke-width'], undefined);
      assert.equal(layers[rim].paint['circle-opacity'], 0);
      assert.deepEqual(layers[rim].paint['circle-radius'], layers[point].paint['circle-radius']);
    }
  });
});

it('a filter that lacks the quotes of a name is told so', () => {
  const { quoteHelp } = filter.room;
  const names = ['Wingspan cm', 'Ring no.', 'mag'];
  assert.match(quoteHelp('wingspan cm > 5', names), /"Wingspan cm"$/);
  for (const good of ['"Wingspan cm" > ', "mag = 'Ring no.'", 'mag >']) assert.equal(quoteHelp(good, names), '', good);
});

describe('a file', () => {
  const { readFile } = files.read;

  it('of CSV has typed fields, and says how many rows have no place', () => {
    const { features, fields, placeless } = readFile('\ufeffname;lon;lat;n;when;ok\nA;1,5;2;3;2020-01-01 10:00;true\n"B;b";10;20;4;2020-01-02 10:00Z;false\nC;;;5;;\n'.replace('1,5', '1.5'));
    assert.deepEqual(fields.map(({ name, kind }) => `${name}:${kind}`), ['name:text', 'n:int', 'when:time', 'ok:bool']);
    assert.deepEqual(plain(features[0]), { type: 'Feature', geometry: { type: 'Point', coordinates: [1.5, 2] }, properties: { name: 'A', n: 3, when: '2020-01-01T10:00Z', ok: true } });
    assert.equal(features[1].properties.name, 'B;b');
    assert.equal(placeless, 1);
  });

  it('of GeoJSON, NDJSON or a text sequence has the same events', () => {
    const list = [1, 2].map((n) => ({ type: 'Feature', geometry: { type: 'Point', coordinates: [n, n] }, properties: { n } }));
    const forms = [JSON.stringify({ type: 'FeatureCollection', features: list }), list.map((one) => JSON.stringify(one)).join('\n'), list.map((one) => `\u001e${JSON.stringify(one)}\n`).join(''), '{"lon":1,"lat":1,"n":1}\n{"lon":2,"lat":2,"n":2}\n'];
    forms.push(list.map((one) => `\u001e${JSON.stringify(one, null, 1)}\n`).join(''));
    for (const form of forms) assert.deepEqual(plain(readFile(form).features), list, form);
  });

  it('keeps the texts that JSON has, as meridian load does', () => {
    const texts = { version: '1.10', code: '12E1', sure: 'true', n: '0', none: '' };
    const { features } = readFile(JSON.stringify({ type: 'Feature', geometry: { type: 'Point', coordinates: [1, 2] }, properties: texts }));
    assert.deepEqual(plain(features[0].properties), texts);
  });

  it('of CSV has values without the blanks around them, but texts with them', () => {
    const { features } = readFile('lon,lat,n,sure,part,time,text,none\n 1 ,2, 3 , TRUE ,.5, 2026-01-01T00:00:60Z , a , \n1,2,1,False,1,2026-01-01T00:00:00Z,b,4\n1, ,,,,,,\n');
    const [first, ...more] = features.map(({ geometry, properties }) => [geometry.coordinates, properties]);
    assert.deepEqual(plain(first), [[1, 2], { n: 3, sure: true, part: 0.5, time: '2026-01-01T00:00:59Z', text: ' a ' }]);
    assert.equal(more.length, 1, 'blanks are no latitude of 0');
  });

  it('of GeoJSON has its id beside a field of the name', () => {
    const [{ id, properties }] = readFile(JSON.stringify({ type: 'Feature', id: 'a', geometry: { type: 'Point', coordinates: [1, 2] }, properties: { id: 'a' } })).features;
    assert.deepEqual([id, plain(properties)], ['a', { id: 'a' }]);
  });

  it('that cannot be read is refused in a sentence that says why', () => {
    assert.throws(() => readFile('a,b\n1,2\n'), /no column for a place.*found a, b/);
    assert.throws(() => readFile('{"type":"Feature"'), /Line 1 is not a JSON object/);
    assert.throws(() => readFile('\u001e{\n"lon":1,"lat":2}\n\u001e\n\u001e{\n'), /Record 2, on line 4, is not a JSON object/);
    assert.throws(() => readFile('lon,lat\n\n999,0\n'), /no event with a place: line 3: lon: "999" where a number from -180 to 180 was expected/);
    assert.throws(() => readFile('wkt\nCIRCLE(1 2)\n'), /line 2: wkt: "CIRCLE\(1 2\)" where well-known text was expected/);
    for (const empty of ['', '\ufeff\n \n']) assert.throws(() => readFile(empty), /The file is empty/);
    assert.throws(() => readFile('name;lon;lat\na;11,5;47,25\n'), /decimal comma.*meridian load COLLECTION FILE --decimal-comma/);
  });

  it('of CSV that would lose a value is refused with its line', () => {
    const cases = [
      ['lon,lat,a\n1,2,x\n3,4,"unclosed\n5,6,y\n', /^Line 3: field 3: the quote is not closed/],
      ['lon,lat,a\n1,2,"x\ny"\n3,4,"x"y\n', /^Line 4: field 3: something follows the closing quote/],
      ['lon,lat,a,a\n1,2,3,4\n', /^Line 1: a: two columns have this name/],
      ['lon,lat,v\n1,2,7\n3,4\n', /^Line 3: a row of 2 fields where the header has 3; was the row cut off\?/],
      ['lon,lat,v\n1,2,7\n5,6,8,9\n', /^Line 3: a row of 4 fields where the header has 3$/],
      [',lon,lat\n,1,2\n7,3,4\n', /^Line 3: a value in column 1, which has no name/],
    ];
    for (const [text, message] of cases) assert.throws(() => readFile(text), { message }, text);
    assert.deepEqual(readFile('lon,lat,v,,\n1,2,7,,\n').fields.map(({ name }) => name), ['v'], 'empty columns without a name are left out');
    assert.equal(readFile('lon\tlat\tv\n1\t2\t"5\n').features[0].properties.v, '"5', 'tabs separate values without quotes');
    assert.equal(readFile('lon|lat\n1|2\n').features.length, 1);
    const { placeless, misplaced } = readFile('lon,lat\n1,2\n,\n3,\n1,91\n');
    assert.deepEqual([placeless, misplaced], [3, 'line 4: lat has no value']);
    const shape = (coordinates) => `{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":${coordinates}}}`;
    const geojson = readFile(`[${['[1,2]', '[3,95]', '[-181,0]'].map(shape).join()}]`);
    assert.deepEqual([geojson.features.length, geojson.placeless], [1, 2]);
    assert.equal(geojson.misplaced, 'event 2: geometry: [3,95] where a longitude and a latitude were expected');
  });

  it('in another encoding than UTF-8 is refused with the command that converts it', () => {
    const { textOf } = files.read;
    assert.equal(textOf(Buffer.from('lon,lat\n1,2\nMünchen'), 'a.csv'), 'lon,lat\n1,2\nMünchen');
    assert.throws(() => textOf(Buffer.from('lon,lat,n\n1,2,München\n', 'latin1'), 'a.csv'), /^Error: Line 2 is not UTF-8; .*iconv -f latin1 -t utf-8 a\.csv/);
    assert.throws(() => textOf(Buffer.from('\ufefflon,lat\n', 'utf16le'), 'a.csv'), /UTF-16.*iconv -f utf-16 -t utf-8 a\.csv/);
  });

  it('of a kind that only the loader reads is refused with the command, by its ending or by its first characters', () => {
    const { refuseKind } = files.read;
    const kinds = [['w.gpx', '', 'GPX'], ['w', '<?xml version="1.0"?>\n<gpx version="1.1">', 'GPX'], ['w.xml', '\ufeff<kml xmlns="x">', 'KML'], ['w.bin', 'SQLite format 3\0', 'GeoPackage'], ['w.SHP', '', 'Shapefile'], ['a', 'PAR1', 'GeoParquet'], ['a.txt', '!AIVDM,1,1,,A,x', 'NMEA'], ['a', 'fgb\u0003', 'FlatGeobuf']];
    for (const [name, head, kind] of kinds) assert.throws(() => refuseKind(name, head), new RegExp(`does not read ${kind};.*meridian load COLLECTION ${name}`), kind);
    assert.throws(() => refuseKind('page', '<!doctype html>'), /XML: expected GeoJSON/);
    for (const [name, head] of [['a.csv', 'lon,lat\n'], ['a.geojson', '{"type"'], ['a.txt', '']]) refuseKind(name, head);
  });

  it('may hold geometries of GeoJSON in flat JSON, and one that is wrong is named with its line and not loaded', () => {
    const [point, line] = [{ type: 'Point', coordinates: [4, 45] }, { type: 'LineString', coordinates: [[4, 45], [5, 46]] }];
    const rows = (...shapes) => readFile(shapes.map((geom, i) => JSON.stringify({ n: i, geom })).join('\n'));
    const content = rows(point, line, null);
    assert.deepEqual(plain(content.features), [point, line].map((geometry, n) => ({ type: 'Feature', geometry, properties: { n } })));
    assert.deepEqual([content.placeless, content.misplaced, files.load.refusalOf(content)], [1, '', '']);
    for (const [wrong, words] of [
      [{ type: 'Point' }, 'geom: {"type":"Point"} where a geometry of GeoJSON was expected'],
      [{ type: 'constructor', coordinates: [1, 2] }, 'a geometry of GeoJSON'],
      [{ type: 'LineString', coordinates: [1, 2] }, 'a geometry of GeoJSON'],
      [{ type: 'Point', coordinates: [4, 95] }, 'geom: [4,95] where a longitude and a latitude were expected'],
      ['round', 'geom: "round" where a geometry of GeoJSON was expected'],
    ]) {
      const content = rows(point, wrong);
      assert.equal(content.features.length, 1);
      assert.ok(content.misplaced.startsWith('line 2: geom: ') && content.misplaced.includes(words), content.misplaced);
      assert.ok(files.load.refusalOf(content).includes(content.misplaced), words);
    }
    assert.throws(() => rows({ type: 'Point' }, null), /no event with a place: line 1: geom: /);
    assert.deepEqual(rows(point, 'LINESTRING (4 45, 5 46)').features.map(({ geometry }) => geometry), [point, line], 'well-known text beside it');
  });

  it('may hold shapes as well-known text', () => {
    const { parseWkt } = files.wkt;
    assert.deepEqual(parseWkt('POINT (1 2)'), { type: 'Point', coordinates: [1, 2] });
    assert.deepEqual(parseWkt('SRID=4326;POLYGON Z ((0 0 5, 1 0 5, 1 1 5, 0 0 5))'), { type: 'Polygon', coordinates: [[[0, 0, 5], [1, 0, 5], [1, 1, 5], [0, 0, 5]]] });
    assert.match([...files.load.bodiesOf(readFile('wkt\nPOINT Z (1 2 5)\n'))][0], /\[1,2,5\]/, 'the server decides on heights');
    assert.deepEqual(parseWkt('MULTIPOINT((1 2),(3 4))'), { type: 'MultiPoint', coordinates: [[1, 2], [3, 4]] });
    for (const wrong of ['POINT EMPTY', 'POLYGON((0 0)', 'CIRCLE(1 2)', 'POLYGON(0 0, 1 1)', 'POINT(alert(1) 2)']) assert.equal(parseWkt(wrong), null, wrong);
  });

  it('becomes a schema and bodies of limited size that hold every event once', () => {
    const content = readFile(`name,lon,lat,day\n${Array.from({ length: 50 }, (_, i) => `p${i},${i},1,2020-01-01`).join('\n')}`);
    const { properties } = files.load.schemaOf(content);
    assert.deepEqual(properties.geometry, { format: 'geometry-point', 'x-ogc-role': 'primary-geometry' });
    assert.deepEqual(properties.day, { type: 'string', format: 'date', 'x-ogc-role': 'primary-instant' });
    const bodies = [...files.load.bodiesOf(content, 1000)];
    assert.ok(bodies.length > 3 && bodies.every((body) => body.length <= 1000));
    assert.deepEqual(bodies.flatMap((body) => body.split('\n').map((line) => JSON.parse(line).properties.name)), Array.from({ length: 50 }, (_, i) => `p${i}`));
  });
});

describe('the ids of a file', () => {
  const at = { type: 'Point', coordinates: [1, 2] };
  const contentOf = (...features) => files.read.readFile(JSON.stringify({ type: 'FeatureCollection', features: features.map(([id, properties]) => ({ type: 'Feature', id, geometry: at, properties })) }));
  const schema = (content) => files.load.schemaOf(content).properties;

  it('are the ids of a new collection if all are distinct, else texts; none is lost', () => {
    const own = contentOf(['a', { n: 1 }], [7, { n: 2 }]);
    assert.deepEqual(schema(own).id, { type: 'string', 'x-ogc-role': 'id' });
    assert.deepEqual([...files.load.bodiesOf(own)].join('\n').split('\n').map((line) => JSON.parse(line).id), ['a', 7]);
    for (const content of [contentOf(['a', {}], ['a', {}]), contentOf(['a', {}], [undefined, {}])]) {
      assert.deepEqual(schema(content).feature_id, { type: 'string' });
      assert.equal(schema(content).id?.['x-ogc-role'], undefined);
    }
    assert.deepEqual(Object.keys(schema(contentOf([undefined, { n: 1 }]))), ['geometry', 'n']);
  });

  it('and fields are taken by a collection that has them all as the file has them', () => {
    const [file, none] = [contentOf(['a', { n: 1 }]), contentOf([undefined, { n: 1 }])].map((content) => files.load.schemaOf(content));
    const { id, geometry, n } = file.properties;
    const takes = (properties) => files.load.takes({ properties }, file);
    assert.ok(takes({ more: { type: 'string' }, id, geometry, n: { title: 'N', ...n } }));
    const renamed = { id, n, geom: geometry };
    assert.ok(takes(renamed), 'the place by another name');
    for (const other of [{ id, geometry }, { id, geometry, n: { type: 'number' } }, { id: { ...id, readOnly: true }, geometry, n }, { id, geometry: { ...geometry, format: 'geometry-any' }, n }]) assert.ok(!takes(other), JSON.stringify(other));
    assert.ok(files.load.takes({ properties: { geometry, n } }, none), 'generated ids');
  });

  it('in a column are the ids of the events, but values of a collection that has them as a field', () => {
    const content = files.read.readFile('fid,lon,lat,n\n1.50,1,2,5\n007,1,3,6\n');
    const events = (there) => [...files.load.bodiesOf(content, 1000, there)].join('\n').split('\n').map((line) => JSON.parse(line)).map(({ id, properties }) => [id, properties]);
    assert.deepEqual(events(), [['1.50', { n: 5 }], ['007', { n: 6 }]]);
    assert.deepEqual(events({ properties: { key: { type: 'string', 'x-ogc-role': 'id' } } }), events(), 'by another name');
    assert.deepEqual(events({ properties: { fid: { type: 'string' } } }), [[undefined, { fid: '1.50', n: 5 }], [undefined, { fid: '007', n: 6 }]]);
  });

  it('are taken beside a field of the name by a collection that has them so', () => {
    const schemaOf = files.load.schemaOf(contentOf(['a', { id: 'x' }]));
    const there = { properties: { geometry: schemaOf.properties.geometry, id: { type: 'string' } } };
    const beside = (given) => ({ ...there, 'x-meridian-id': { name: 'id', given } });
    assert.deepEqual([beside(true), beside(false), there].map((one) => files.load.takes(one, schemaOf)), [true, false, false]);
  });

  it('in a column of more digits than numbers have stay texts', () => {
    const { fields, features } = files.read.readFile('lon,lat,mmsi,key\n1,2,211234567,1234567890123456789\n1,3,211234568,12\n');
    assert.deepEqual(fields.map(({ name, kind }) => `${name}:${kind}`), ['mmsi:int', 'key:text']);
    assert.equal(features[0].properties.key, '1234567890123456789');
  });

  it('and other whole numbers of cells are not loaded from here, if meridian load has them as integers', () => {
    const inexact = (...cells) => files.read.readFile(['lon,lat,key', ...cells.map((cell) => `1,2,${cell}`)].join('\n')).inexact;
    assert.equal(inexact('12', '1234567890123456789', '9007199254740993'), '1234567890123456789');
    assert.equal(inexact('-9223372036854775808'), '-9223372036854775808');
    for (const cells of [['9007199254740991'], ['9007199254740993', 'a'], ['9223372036854775808'], ['9007199254740993.5']]) assert.equal(inexact(...cells), '', cells.join());
    assert.equal(files.read.readFile('id,lon,lat\n9007199254740993,1,2\n').inexact, '', 'ids are texts');
  });

  it('and other whole numbers of too many digits beside fractions stay texts, which a note says', () => {
    const { features, notes } = files.read.readFile('lon,lat,key\n1,2,1.50\n1,3,9007199254740992\n\n1,4, 9007199254740993\n');
    assert.deepEqual(features.map(({ properties }) => properties.key), ['1.50', '9007199254740992', ' 9007199254740993']);
    assert.deepEqual(notes.map(files.notes.sayNote), ['Column key has fractions beside integers of too many digits such as 9007199254740993 on line 5. It was kept as text: a schema with numbers in this column rounds them.']);
    const floats = files.read.readFile('lon,lat,key\n1,2,1.50\n1,3,9007199254740994\n');
    assert.deepEqual(floats.features.map(({ properties }) => properties.key), [1.5, 9007199254740994]);
    assert.deepEqual(floats.notes, []);
  });

  it('and other whole numbers beyond 2^53 in JSON are not loaded from here, and the first is named', () => {
    const json = (id, rest) => `{"type":"Feature","id":${id},"geometry":{"type":"Point","coordinates":[1,2]},"properties":{${rest}}}`;
    const inexact = (...lines) => files.read.readFile(lines.join('\n')).inexact;
    assert.equal(inexact(json(1, '"n":1'), json('9007199254740993', '"n":9007199254740995')), '9007199254740993');
    assert.equal(inexact(json(1, '"n":[-1234567890123456789]')), '-1234567890123456789');
    assert.equal(inexact('{"lon":1,"lat":2,"n":9007199254740992}'), '9007199254740992');
    const exact = '"n":9007199254740991,"m":0.12345678901234567,"e":1e22,"x":12345678901234567.5,"s":"a \\" 9007199254740993"';
    assert.equal(inexact(json('"9007199254740993"', exact)), '');
    const { refusalOf } = files.load;
    assert.match(refusalOf({ inexact: '9007199254740993' }), /beyond 2\^53, the first of which is 9007199254740993/);
    assert.equal(refusalOf({ inexact: '' }), '');
  });

  it('and a time that some events lack is none of the collection', () => {
    const { seen } = schema(files.read.readFile('lon,lat,seen\n1,2,2024-05-01T10:00:00Z\n1,3,\n'));
    assert.deepEqual(seen, { type: 'string', format: 'date-time' });
  });
});

describe('the load of a file', () => {
  const { Digest, inFile, sayFailure, sayLoaded } = files.load;
  const originOf = (...lines) => files.read.readFile(lines.join('\n')).origin;

  it('names a refused event by its line, or by its number in the file', () => {
    const csv = originOf('lon,lat,name', '1,2,"a', 'b"', ',,', '1,3,c', '1,4,d');
    assert.equal(inFile('line 1: name: wrong', csv, 1), 'line 5: name: wrong');
    assert.equal(inFile('9 mistakes, nothing was written; the first: line 2: name: wrong', csv, 1), '9 mistakes in this batch; the first: line 6: name: wrong');
    assert.equal(inFile('feature 2: id: the id "line 1: x" is also that of event 1: an id may stand once', csv, 1), 'line 6: id: the id "line 1: x" is also that of line 5: an id may stand once');
    for (const other of ['line 9: name: wrong', 'the body is too large', 'name: line 1: wrong']) assert.equal(inFile(other, csv, 1), other);
    const shape = (lon) => `{"type":"Feature","geometry":{"type":"Point","coordinates":[${lon},2]},"properties":{}}`;
    assert.deepEqual(originOf('', shape(1), shape(500), shape(3)), { unit: 'line', numbers: [2, 4] });
    assert.deepEqual(originOf('[', [shape(1), shape(500), shape(3)].join(',\n'), ']'), { unit: 'event', numbers: [1, 3] });
    assert.deepEqual(originOf('\u001e{"lon":1,', '"lat":2}', '\u001e{"lon":1,"lat":2}'), { unit: 'line', numbers: [1, 3] });
  });

  it('names batches by all that is sent up to their end, so that it may be repeated', () => {
    const keysOf = (...bodies) => {
      const digest = new Digest();
      return bodies.map((body) => digest.key(body));
    };
    const contentOf = (last) => files.read.readFile(`lon,lat,n\n${Array.from({ length: 50 }, (_, i) => `${i},2,1\n`).join('')}1,2,${last}\n`);
    const [first, again, corrected] = [2, 2, 3].map((last) => keysOf(...files.load.bodiesOf(contentOf(last), 1000)));
    assert.deepEqual(again, first);
    assert.deepEqual([corrected.slice(0, -1), corrected.at(-1) === first.at(-1)], [first.slice(0, -1), false], 'a corrected file goes on where it was refused');
    const all = [['a', 'b'], ['b', 'a'], ['a', 'a'], ['ab', ''], ['', 'ab']].flatMap((bodies) => keysOf(...bodies));
    assert.equal(new Set(all).size, 9, 'only the first a is the same');
    const near = Array.from({ length: 20_000 }, (_, i) => keysOf(`{"n":${i}}`)[0]);
    assert.equal(new Set(near).size, 20_000);
  });

  it('says what was in already', () => {
    assert.equal(sayLoaded({ written: 2000, before: 0 }, 'x'), '2,000 events written to x');
    assert.equal(sayLoaded({ written: 2000, before: 500 }, 'x'), '1,500 events written to x; 500 were in already');
    assert.equal(sayLoaded({ written: 2, before: 2 }, 'x'), 'Already loaded: x has got these events, and none is written again');
  });

  it('takes fields of any name', () => {
    for (const text of ['lon,lat,__proto__,constructor\n1,2,5,a\n3,4,,\n', '{"lon":1,"lat":2,"__proto__":5,"constructor":"a"}\n{"lon":3,"lat":4}\n']) {
      const content = files.read.readFile(text);
      assert.deepEqual(content.fields, [{ name: '__proto__', kind: 'int' }, { name: 'constructor', kind: 'text' }]);
      assert.deepEqual(Object.entries(JSON.parse(JSON.stringify(files.load.schemaOf(content))).properties).map(([name, { type }]) => [name, type]), [['geometry', undefined], ['__proto__', 'integer'], ['constructor', 'string']]);
      assert.deepEqual(files.load.bodiesOf(content).next().value.split('\n').map((line) => /"properties":(.*)\}$/.exec(line)[1]), ['{"__proto__":5,"constructor":"a"}', '{}']);
      assert.ok(files.load.takes(JSON.parse(JSON.stringify(files.load.schemaOf(content))), files.load.schemaOf(content)));
    }
  });

  it('says how many events of a refused file are in already', () => {
    assert.equal(sayFailure(new Error('line 5: wrong'), new Map(), 'http://h', 2000, 'x'), 'line 5: wrong. 2,000 events are in x already, and stay: Load does not write them again, also if the file is corrected after them');
    assert.equal(sayFailure(new Error('line 5: wrong'), new Map(), 'http://h', 0, 'x'), 'line 5: wrong');
  });
});

describe('the fields of a file', () => {
  const at = { type: 'Point', coordinates: [1, 2] };
  const contentOf = (...list) => files.read.readFile(JSON.stringify({ type: 'FeatureCollection', features: list.map((properties) => ({ type: 'Feature', geometry: at, properties })) }));
  const schemaOf = (...list) => files.load.schemaOf(contentOf(...list)).properties;
  const rolesOf = (...list) => Object.fromEntries(Object.entries(schemaOf(...list)).flatMap(([name, property]) => (name !== 'geometry' && property['x-ogc-role'] ? [[name, property['x-ogc-role']]] : [])));

  it('are lists where all values are lists of texts, and texts of JSON where some are not', () => {
    const lists = contentOf({ tags: ['a', 'b'] }, { tags: [] }, { tags: null });
    assert.deepEqual(files.load.schemaOf(lists).properties.tags, { type: 'array', items: { type: 'string' } });
    assert.deepEqual([...files.load.bodiesOf(lists)].join('\n').split('\n').map((line) => JSON.parse(line).properties.tags), [['a', 'b'], [], undefined]);
    const others = contentOf({ tags: ['a'], sizes: [1, 2] }, { tags: 'b' });
    assert.deepEqual(others.fields.map(({ kind }) => kind), ['text', 'text']);
    assert.deepEqual(plain(others.features.map(({ properties }) => properties)), [{ tags: '["a"]', sizes: '[1,2]' }, { tags: 'b' }]);
    assert.match(files.load.refusalOf(others), /texts only, also for meridian load.*tags: \["a"\]/);
    assert.match(files.load.refusalOf(contentOf({ sizes: [1, 2] })), /sizes: \[1,2\]/);
    assert.equal(files.load.refusalOf(lists), '');
  });

  it('are lists where all cells of a table are lists of texts', () => {
    const { features } = files.read.readFile('lon,lat,tags,sizes\n1,2,"[""a"",""b""]","[1,2]"\n1,3,[],\n');
    assert.deepEqual(plain(features.map(({ properties }) => properties)), [{ tags: ['a', 'b'], sizes: '[1,2]' }, { tags: [] }]);
  });

  it('have the time that meridian load takes: by its name, else the only one that is surely a time, else an interval', () => {
    const [date, other, zoned, later] = ['2026-02-01', '2026-02-02', '2026-02-01T10:00:00Z', '2026-02-01T12:00:00+01:00'];
    assert.deepEqual(rolesOf({ created: zoned, Date: date }), { Date: 'primary-instant' });
    assert.deepEqual(rolesOf({ day: date, time: other }), { time: 'primary-instant' }, 'the likeliest name');
    assert.deepEqual(rolesOf({ created: zoned }), { created: 'primary-instant' });
    assert.deepEqual(rolesOf({ time: '2026-02-01 10:00', created_at: zoned }), { created_at: 'primary-instant' }, 'a time with a zone goes before');
    assert.deepEqual(rolesOf({ time: '2026-02-01 10:00' }), { time: 'primary-instant' });
    for (const properties of [{ created: date }, { seen: '2026-02-01 10:00' }, { a: zoned, b: later }]) assert.deepEqual(rolesOf(properties), {}, Object.keys(properties).join());
    assert.deepEqual(rolesOf({ end: later, start: zoned }), { start: 'primary-interval-start', end: 'primary-interval-end' });
    assert.deepEqual(rolesOf({ time: zoned }, { time: null }), {}, 'each event has an instant');
    assert.deepEqual(rolesOf({ start_date: date, end_date: other }), {}, 'dates are texts');
  });

  it('that are times are named where none is the time of the events', () => {
    const notes = (...list) => contentOf(...list).notes;
    const [note, ...more] = notes({ date: '2026-02-01' }, { date: null });
    assert.deepEqual([note.options, more.length], ["--time 'date' --invalid skip", 0]);
    assert.equal(files.notes.sayNote(note), "Column date looks like the time of the events such as 2026-02-01 (but 1 of 2 events has none). It was not taken: meridian load takes it with --time 'date' --invalid skip.");
    assert.deepEqual(notes({ created: '2026-02-01' }).map(({ options }) => options), ["--time 'created'"]);
    assert.deepEqual(notes({ seen: '2026-02-01T10:00' }).map(({ options }) => options), ["--time 'seen' --zone UTC"]);
    const [day, seen, ...none] = notes({ time: '2026-02-01T10:00:00Z', created: '2026-02-01', seen: '2026-02-02' }, { time: '2026-02-01T10:00:00Z', seen: '2026-02-01T10:00:00Z' });
    assert.equal(files.notes.sayNote(day), 'Column created has dates such as 2026-02-01. It was kept as text: a schema with the format date keeps them as days.');
    assert.equal(files.notes.sayNote(seen), 'Column seen has dates such as 2026-02-02. It was kept as text: meridian load takes it with --zone UTC.');
    assert.deepEqual(none, []);
  });

  it('that are times without a zone are read as UTC, which a note says', () => {
    const { notes, features } = contentOf({ time: '2026-02-01T10:00:00Z' }, { time: '2026-02-01 10:00' });
    assert.equal(features[1].properties.time, '2026-02-01T10:00Z');
    assert.deepEqual(notes.map(files.notes.sayNote), ['Column time has times without a time zone such as 2026-02-01 10:00. It was read as UTC: meridian load takes them with --zone UTC, or another zone.']);
    assert.equal(files.notes.commandOf(notes, 'a', 'f.json', 'http://h'), 'meridian load a f.json --url http://h --zone UTC');
    assert.deepEqual(plain(contentOf({ time: '2026-02-01 10:00', day: '2026-02-01' }).features[0].properties), { time: '2026-02-01T10:00Z', day: '2026-02-01T00:00:00Z' }, 'dates too');
    assert.match(contentOf({ seen: '2026-02-01T10:00' }).notes.map(files.notes.sayNote).join(), /^Column seen .*read as UTC where it has no time zone\. It was not taken: meridian load takes it with --time 'seen' --zone UTC\.$/);
  });
});

it('a file has the schema that meridian load guesses', () => {
  // crates/formats/tests/formats/guesses.rs holds the loader against the same cases.
  const cases = JSON.parse(readFileSync(new URL('../../crates/formats/tests/formats/files/guesses.json', import.meta.url), 'utf8'));
  for (const { name, lines, refused, properties: expected, place = 'geometry', id_is_a_field_too: both = false, note = '', no_note: unwanted } of cases) {
    const content = files.read.readFile(lines.join('\n'));
    const refusal = files.load.refusalOf(content);
    if (refused) {
      assert.ok(refusal.includes(` ${refused}: `), `${name}: ${refusal}`);
      continue;
    }
    assert.equal(refusal, '', name);
    const notes = content.notes.map(files.notes.sayNote).join();
    assert.ok(notes.includes(note), `${name}: ${notes}`);
    assert.ok(!unwanted || !notes.includes(unwanted), `${name}: ${notes}`);
    const schema = files.load.schemaOf(content);
    const [places, others] = [true, false].map((is) => Object.entries(schema.properties).filter(([, property]) => (property['x-ogc-role'] === 'primary-geometry') === is));
    assert.deepEqual(Object.fromEntries(others), expected, name);
    assert.deepEqual(places.map(([own]) => own), [place], name);
    assert.equal(schema['x-meridian-id']?.given ?? false, both, name);
  }
});

it('the frame of another page shows this view', () => {
  const text = page.embed.frameText(new URL('https://events.example/map#c=x&m=1/2/3'));
  assert.match(text, /src="https:\/\/events\.example\/map\?embed#c=x&amp;m=1\/2\/3"/);
});

describe('columns of a file that look like times or places', () => {
  const { fits, fitting } = files.dates;
  const notesOf = (rows, head = 'lon,lat,when') => files.read.readFile([head, ...rows.map((row) => `1,2,${row}`)].join('\n')).notes;

  it('have the patterns of meridian load', () => {
    for (const [pattern, text, is] of [
      ['%d.%m.%Y %H:%M', '31.01.2026 12:05', true],
      ['%d.%m.%Y', '31.02.2026', false],
      ['%d.%m.%Y', '31.01.2026 12:05', false],
      ['%m/%d/%Y %I:%M %p', '1/31/2026 1:05 PM', true],
      ['%m/%d/%Y %I:%M %p', '1/31/2026 13:05 PM', false],
      ['%Y%m%dT%H%M%S%z', '20260131T120500+0530', true],
      ['%Y%m%d%H%M%S', '20260131120500', true],
      ['%a, %d %b %Y %H:%M:%S %z', 'Sat, 31 Jan 2026 12:05:00 +0000', true],
      ['%d %b %Y', '3 Feb 2026', true],
    ])
      assert.equal(fits(pattern, text), is, `${pattern} ${text}`);
    assert.deepEqual(fitting(['01/02/2026', '03/04/2026'], 0), ['%d/%m/%Y', '%m/%d/%Y']);
    assert.deepEqual(fitting(['a', 'b'], 0), []);
  });

  it('are named, with the option that takes them', () => {
    const [note, ...more] = notesOf(['1/31/2026 1:05 PM', '2/1/2026 11:00 AM']);
    assert.deepEqual([note.column, note.options, more.length], ['when', "--date-format '%m/%d/%Y %I:%M %p' --zone UTC", 0]);
    assert.match(files.notes.sayNote(note), /Column when looks like times such as 1\/31\/2026 1:05 PM.*not taken: meridian load takes it with --date-format/);
    assert.equal(files.notes.commandOf([note], 'a', 'my file.csv', 'http://h'), "meridian load a 'my file.csv' --url http://h --date-format '%m/%d/%Y %I:%M %p' --zone UTC");
    assert.match(notesOf(['01/02/2026', '03/04/2026'])[0].text, /may be '%m\/%d\/%Y' too/);
    assert.equal(notesOf(['1767225600', '1767225700'])[0].options, '--epoch s');
    assert.match(notesOf(['"48.25, 16.5"', '"47.0, 8.5"'])[0].text, /positions/);
    assert.equal(notesOf([...Array(20).fill('2026-01-31'), 'n/a'])[0].options, "--null='n/a'");
  });

  it('are numbers too, with what comes before the options', () => {
    const { commandOf, sayNote } = files.notes;
    const [date] = notesOf(['20260131', '20260201']);
    assert.deepEqual([date.text, date.options], ['looks like dates such as 20260131', "--date-format '%Y%m%d' --time 'when'"]);
    assert.equal(notesOf(['202601311205'])[0].options, "--date-format '%Y%m%d%H%M' --zone UTC --time 'when'");
    const says = (rows, head) => notesOf(rows, head).map(sayNote).join();
    assert.match(says(['2026-01-31,20260131'], 'lon,lat,time,day'), /not taken: meridian load takes it with --date-format '%Y%m%d' and a schema with the format date\./);
    const days = /days of a spreadsheet such as 45123\.25.*not taken: as round\(\(days - 25569\) \* 86400\), meridian load takes it with --epoch s --time 'orderTime'/;
    assert.match(says(['45123.25', '45124.5'], 'lon,lat,orderTime'), days);
    assert.match(says(['1767225600.5']), /not taken: rounded to integers, meridian load takes it with --epoch s\./);
    const json = (date) => files.read.readFile(JSON.stringify({ lon: 1, lat: 2, date })).notes;
    assert.match(sayNote(json(20260131)[0]), /not taken: written as text, meridian load/);
    assert.match(sayNote(json('20260131')[0]), /not taken: meridian load/);
    // A command without what comes before it would load other times.
    assert.equal(commandOf(notesOf(['45123.25'], 'lon,lat,time'), 'a', 'f.csv', 'http://h'), 'meridian load a f.csv --url http://h');
    // One column is the time.
    const two = notesOf(['20260131,20260201'], 'lon,lat,begin,end');
    assert.equal(commandOf(two, 'a', 'f.csv', 'http://h'), "meridian load a f.csv --url http://h --date-format '%Y%m%d' --time 'begin'");
  });

  it('have one command for all, which repeats no option but --null', () => {
    const command = (rows, head) => files.notes.commandOf(notesOf(rows, head), 'a', 'f.csv', 'http://h').split(' http://h')[1];
    // The second would be read in the pattern of the first.
    assert.equal(command(['31.01.2026 10:00,20260131'], 'lon,lat,seen,told'), " --date-format '%d.%m.%Y %H:%M' --zone UTC");
    assert.equal(command(['1767225600,31.01.2026'], 'lon,lat,time,day'), ' --epoch s');
    assert.equal(command(['31.01.2026,31.12.2025'], 'lon,lat,seen,told'), " --date-format '%d.%m.%Y'");
    const rows = [...Array(20).fill('2026-01-31,2026-01-31'), "it's,none"];
    assert.equal(command(rows, 'lon,lat,seen,told'), " --null='it'\\''s' --null='none'");
  });

  it('are places in texts, known by how they begin', () => {
    const says = (text, head = 'lon,lat,way') => notesOf(Array(3).fill(`"${text.replaceAll('"', '""')}"`), head).map(files.notes.sayNote).join();
    for (const text of [`48°12'30"N`, `48° 12' 30.5" N`, `N48°12.5'`, '48.2°N', `3º41'O`]) assert.match(says(text), /coordinates in degrees.*decimals such as -48\.25/, text);
    assert.match(says(`-48°12'`, 'lon,lat,startLat'), /coordinates in degrees/);
    for (const text of [`48°72'30"N`, '200°N', '20°C', `-48°12'`, 'N']) assert.equal(says(text), '', text);
    assert.match(says(`48°12'30"N, 16°22'00"E`), /positions/);
    const point = '0101000020E61000000000000000002A400000000000004A40';
    assert.match(says(point), /hexadecimal WKB such as 0101000020E6.*ogr2ogr .*GEOM_POSSIBLE_NAMES='way'.*-s_srs EPSG:CODE -t_srs EPSG:4326 converted\.fgb/);
    for (const text of [`0108000000${point.slice(10)}`, `da39a3ee${point}`, point.slice(0, 40)]) assert.equal(says(text), '', text);
    for (const text of ['{"type":"Point","coordinates":[13,52]}', '{ "type": "MultiPolygon", "coordinates": [[[[', '{"coordinates":[13,52],"type":"Point"}'])
      assert.match(says(text), /GeoJSON.*-a_srs EPSG:4326/, text);
    assert.equal(says('{"type":"Point of sale"}'), '');
    assert.equal(notesOf(['POINT (13 52)'])[0].options, "--geometry 'when'");
    assert.equal(notesOf([...Array(20).fill('POINT (13 52)'), 'none'])[0].options, "--geometry 'when' --invalid skip");
    const { notes } = files.read.readFile(JSON.stringify({ lon: 1, lat: 2, way: point }));
    assert.match(files.notes.sayNote(notes[0]), /objects of GeoJSON in JSON are read as places/);
  });

  it('are none where all was taken, or where it is only text', () => {
    for (const rows of [['2026-01-31', '2026-02-01'], ['red', 'green'], ['5', '7'], ['12.5', '13']]) assert.deepEqual(notesOf(rows), [], rows[0]);
    for (const [value, name] of [['1767225600', 'serial'], ['45123.25', 'price'], ['45123.25', 'runtime'], ['45123', 'time'], ['20269901', 'date']])
      assert.deepEqual(notesOf([value], `lon,lat,${name}`), [], name);
  });
});

it('knows the patterns of times of the loader, in its order', () => {
  const patterns = (file, start) => {
    const text = readFileSync(new URL(file, import.meta.url), 'utf8');
    const [, list] = text.slice(text.indexOf(start)).match(/= &?\[([^\]]*)\]/);
    return [...list.matchAll(/["'](%[^"']*)["']/g)].map(([, pattern]) => pattern);
  };
  const loader = patterns('../../crates/formats/src/date_format.rs', 'const CUSTOMARY');
  assert.ok(loader.length > 20);
  assert.deepEqual(patterns('../src/files/dates.ts', 'const CUSTOMARY'), loader);
});

it('knows the names of times of the loader, in its order', () => {
  const names = (file, list) => {
    const text = readFileSync(new URL(file, import.meta.url), 'utf8');
    const from = text.search(new RegExp(`const ${list}\\b`));
    return [...text.slice(from, text.indexOf('];', from)).matchAll(/["'](\w+)["']/g)].map(([, name]) => name);
  };
  for (const list of ['TIME', 'INTERVALS']) {
    const loader = names('../../crates/formats/src/roles.rs', list);
    assert.ok(loader.length > 10, list);
    assert.deepEqual(names('../src/files/times.ts', list), loader);
  }
});
