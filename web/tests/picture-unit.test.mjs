// How events are drawn: as a surface or one by one, in which colours, and what is said of the rest.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GeoJSONVT } from '@maplibre/geojson-vt';
import { fromGeojsonVt } from '@maplibre/vt-pbf';
import { sources } from './sources.mjs';

const page = await sources(['drawing', 'beyond', 'eventstyle', 'palette', 'legend']);
const { cells, cover, density, layer, scale } = await sources(['cells', 'cover', 'density', 'layer', 'scale'], 'surface/');

describe('a drawing', () => {
  it('is one of a kind for the view, and turns over without an edge', () => {
    const { drawingOf, EVENTS_MAX, SURFACE_MIN } = page.drawing;
    assert.deepEqual(drawingOf(EVENTS_MAX + 1), { events: 0, surface: 1 });
    // Where events begin to show, the surface is still whole.
    assert.equal(drawingOf(EVENTS_MAX).surface, 1);
    assert.ok(drawingOf(EVENTS_MAX).events > 0 && drawingOf(EVENTS_MAX).events < 0.5);
    assert.deepEqual(drawingOf(SURFACE_MIN), { events: 1, surface: 0 });
    assert.deepEqual(drawingOf(0), { events: 1, surface: 0 });
    let last = drawingOf(EVENTS_MAX);
    for (let n = EVENTS_MAX; n > SURFACE_MIN; n = Math.floor(n * 0.97)) {
      const next = drawingOf(n);
      assert.ok(next.surface <= last.surface && last.surface - next.surface < 0.03 && next.events - last.events < 0.03, `${n}`);
      last = next;
    }
  });
});

describe('tiles of counts', () => {
  const tile = (features) => {
    const made = new GeoJSONVT({ type: 'FeatureCollection', features }, { maxZoom: 0, indexMaxZoom: 0, buffer: 64 }).getTile(0, 0, 0);
    return Uint8Array.from(fromGeojsonVt({ any: made }, { version: 2 })).buffer;
  };
  const point = (column, row, properties) => ({ type: 'Feature', properties, geometry: { type: 'Point', coordinates: [cover.lngOf((column + 0.5) / 64), cover.latOf((row + 0.5) / 64)] } });

  it('are read into cells', () => {
    const read = cells.readCells(tile([point(0, 63, { count: 7, density: true }), point(40, 12, { density: true, count: 1_000_000 }), point(3, 4, { id: 'one' })]));
    assert.deepEqual(read, { columns: [0, 40, 3], rows: [63, 12, 4], counts: [7, 1_000_000, 1], values: [0, 0, 0], averages: [0, 0, 0] });
    assert.deepEqual(cells.readCells(new ArrayBuffer(0)), cells.NO_CELLS);
  });

  it('have the average of a field where one was asked', () => {
    const read = cells.readCells(tile([point(1, 2, { count: 7, density: true, values: 3, avg: -2.5 }), point(5, 6, { count: 4, density: true }), point(8, 9, { count: 2, values: 2, avg: 40 })]));
    assert.deepEqual([read.counts, read.values, read.averages], [[7, 4, 2], [3, 0, 2], [-2.5, 0, 40]]);
  });

  it('cover the view and its edge, on every copy of the world, with cells of 4 to 8 pixels', () => {
    const { countTiles, cellWidth, tilesOf } = cover;
    for (const zoom of [0.6, 1, 3.4, 7.99, 12.01]) {
      const { z } = countTiles(zoom, [10, 10, 10.1, 10.1], 20);
      assert.ok(cellWidth(z, zoom) > 4 - 1e-4 && cellWidth(z, zoom) <= 8 + 1e-4, `${zoom}`);
    }
    assert.deepEqual(countTiles(1, [170, -10, 190, 10], 0), { z: 1, west: 1, east: 2, north: 0, south: 1 });
    assert.deepEqual(countTiles(0.6, [-200, -89, 200, 89], 0), { z: 1, west: -1, east: 2, north: 0, south: 1 });
    // A wall of screens asks for coarser cells, and not for thousands of tiles.
    assert.ok(tilesOf(countTiles(5, [-100, -60, 100, 60], 20)) <= 60);
  });

  it('of the map itself are known with the edge that the server draws around them', () => {
    const [one, ...more] = cover.eventTileBoxes(2.9, [1, 1, 2, 2]);
    assert.equal(more.length, 0);
    const [west, south, east, north] = one;
    assert.ok(west < 0 && west > -2 && east > 90 && east < 92 && south < 0 && south > -2 && north > 66.5 && north < 68, one.join());
    assert.equal(cover.eventTileBoxes(1, [-540, -80, 540, 80]).length, 4);
  });
});

describe('the surface', () => {
  const at = (counts) => (column, row) => (column === 0 && row === 0 ? counts : cells.NO_CELLS);
  const one = { z: 4, west: 0, east: 0, north: 0, south: 0 };
  const most = ({ values }) => values.reduce((a, b) => Math.max(a, b), 0);

  it('is 1 at a lone event, and as many as there are at a place', () => {
    for (const width of [4.1, 6, 8]) {
      const lone = density.surfaceOf(one, width, at({ columns: [30], rows: [20], counts: [1] }));
      assert.ok(Math.abs(most(lone) - 1) < 0.06, `${most(lone)}`);
      assert.ok(Math.abs(most(density.surfaceOf(one, width, at({ columns: [30], rows: [20], counts: [250] }))) - 250) < 15);
      const [lng, lat] = [cover.lngOf(30.5 / 64 / 16), cover.latOf(20.5 / 64 / 16)];
      assert.ok(Math.abs(density.valueAt(lone, lng + 360, lat) - 1) < 0.1);
    }
  });

  it('counts the events of its circle where they are even', () => {
    const all = { columns: [], rows: [], counts: [] };
    for (let i = 0; i < 64; i++) for (let j = 0; j < 64; j++) (all.columns.push(i), all.rows.push(j), all.counts.push(3));
    const surface = density.surfaceOf(one, 6, at(all));
    const wanted = (3 * Math.PI * density.RADIUS ** 2) / 36;
    const middle = surface.values[(surface.height / 2) * surface.width + surface.width / 2];
    assert.ok(Math.abs(middle / wanted - 1) < 0.05, `${middle}, not ${wanted}`);
  });

  it('has no seam between tiles', () => {
    const two = { z: 4, west: 0, east: 1, north: 0, south: 0 };
    const split = density.surfaceOf(two, 8, (column) => (column === 0 ? { columns: [63], rows: [32], counts: [5] } : { columns: [0], rows: [32], counts: [5] }));
    const { width, values } = split;
    const row = Math.floor(split.height / 2 + 1) * width;
    for (let i = 1; i < 10; i++) assert.ok(Math.abs(values[row + width / 2 - i] - values[row + width / 2 - 1 + i]) < 1e-3);
  });
});

describe('a surface of averages', () => {
  const two = { z: 4, west: 0, east: 1, north: 0, south: 0 };
  const cell = (column, count, values, average) => ({ columns: [column], rows: [32], counts: [count], values: [values], averages: [average] });
  const at = ({ width, height }, x) => Math.floor(height / 2 + 1) * width + x;

  it('weighs each value alike, and has no seam between tiles', () => {
    const made = density.surfaceOf(two, 8, (column) => (column === 0 ? cell(63, 10, 10, 2) : cell(0, 30, 30, 6)), true);
    const { values, shares } = made.averages;
    const middle = at(made, made.width / 2);
    // Halfway between both cells: 10 values of 2 and 30 of 6.
    assert.ok(Math.abs((values[middle - 1] + values[middle]) / 2 - 5) < 0.1, `${values[middle]}`);
    assert.ok(Math.abs(shares[middle] - 1) < 1e-6);
    for (let i = -6; i < 6; i++) assert.ok(values[middle + i] >= values[middle + i - 1] - 1e-4, 'rises from the lower to the higher');
    assert.ok(Number.isNaN(values[0]) && shares[0] === 0, 'nothing has no average');
    const counted = density.surfaceOf(two, 8, (column) => (column === 0 ? cell(63, 10, 10, 2) : cell(0, 30, 30, 6)));
    assert.deepEqual(counted.values, made.values, 'the events are as many');
    assert.equal(counted.averages, null);
  });

  it('ranges over what is in view, and is grey where events have no value', () => {
    const made = density.surfaceOf(two, 8, (column) => (column === 0 ? cell(20, 9, 9, 3) : cell(40, 9, 0, 0)), true);
    const found = scale.averageScale(made.averages.values, made.averages.shares, made.values);
    assert.deepEqual(found, { kind: 'averages', stops: [3], lacking: true });
    const pixels = layer.surfacePixels(made, found);
    const [west, east] = [20.5, 104.5].map((column) => 3 * at(made, Math.floor((column * made.width) / 128)));
    assert.deepEqual([...pixels.slice(west, west + 3)], [128, 255, 255], 'one value has the middle of the ramp');
    assert.deepEqual([...pixels.slice(east, east + 3)], [0, 255, 0], 'as opaque, and of no colour of the ramp');
    const none = new Float64Array(3);
    assert.equal(scale.averageScale(none.map(() => NaN), none, none.map(() => 5)), null);
  });

  it('gives a value the colour that an event of it has', () => {
    for (const stops of [[4], [1, 9], [1, 2, 9], [1, 2, 5, 9], [1, 2, 5, 9, 30]])
      stops.forEach((stop, i) => {
        const colors = page.eventstyle.rampOf(page.palette.LIGHT.values, stops.length);
        const row = layer.rampPixels(colors);
        const colorAt = (value) => {
          const pixel = Math.round(scale.onValueRamp(stops, value) * (row.length / 4 - 1));
          return [...row.slice(4 * pixel, 4 * pixel + 3)];
        };
        const of = (color) => [1, 3, 5].map((c) => parseInt(color.slice(c, c + 2), 16));
        assert.deepEqual(colorAt(stop), of(colors[i]), `${stop} of ${stops}`);
        // Between two stops the colour of events goes evenly from one to the other.
        if (!i) return;
        const [low, high] = [of(colors[i - 1]), of(colors[i])];
        const found = colorAt((stops[i - 1] + stop) / 2);
        assert.ok(found.every((c, k) => Math.abs(c - (low[k] + high[k]) / 2) <= 2), `below ${stop} of ${stops}: ${found}`);
      });
    assert.deepEqual([-5, 99].map((value) => scale.onValueRamp([1, 2, 5, 9, 30], value)), [0, 1]);
    assert.equal(scale.onValueRamp([0, 1, 2, 3, 4], 2.5), 0.625);
  });
});

describe('scales', () => {
  const { countStops, onRamp, twoDigits, valueStops } = scale;

  it('of counts follow what is in view, from one event on', () => {
    const skewed = Array.from({ length: 1000 }, (_, i) => 1 + (i / 1000) ** 8 * 5000);
    const stops = countStops(skewed);
    assert.equal(stops[0], 1);
    assert.ok(stops.every((v, i) => i === 0 || v > stops[i - 1]), stops.join());
    assert.ok(stops[4] > 3000 && stops[2] < 1000, stops.join());
    assert.deepEqual(stops.map(twoDigits), [...stops]);
    assert.deepEqual(countStops([1, 1, 1, 1]), [1, 2, 3, 4, 5]);
    assert.equal(countStops([0, 0.01]), null);
    // The surface between two events has parts of counts; the legend has none.
    for (const values of [[1.1, 1.4, 2.3, 2.6, 3.1, 7.7], [0.8, 1.12], [1.1, 44.4, 812.3]]) assert.ok(countStops(values).every((stop, i, all) => Number.isInteger(stop) && (i === 0 || stop > all[i - 1])), countStops(values).join());
  });

  it('put each stop at its colour', () => {
    const stops = [1, 10, 100, 1000, 10_000];
    assert.deepEqual(stops.map((v) => Math.round(onRamp(stops, v) * 100)), [0, 25, 50, 75, 100]);
    assert.equal(onRamp(stops, 0.1), 0);
    assert.equal(onRamp(stops, 1e9), 1);
    assert.ok(Math.abs(onRamp(stops, 31.62) - 0.375) < 1e-3);
  });

  it('of a field are quantiles, as many as differ', () => {
    assert.deepEqual(valueStops([1, 2, 3, 4, 5, 6, 7, 8, 9, 1e9].concat(NaN)).slice(1, 4), [3.25, 5.5, 7.75]);
    assert.deepEqual(valueStops([4, 4, 4]), [4]);
    assert.equal(valueStops([]), null);
    assert.deepEqual(page.eventstyle.rampOf(page.palette.LIGHT.values, 2), [page.palette.LIGHT.values[0], page.palette.LIGHT.values[4]]);
    assert.equal(page.eventstyle.eventColor(page.palette.LIGHT, null), page.palette.LIGHT.point);
  });
});

describe('the palettes', () => {
  const linear = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  // Machado, Oliveira and Fernandes 2009, severity 1.
  const SEEN_AS = {
    all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
  };
  /** OKLab of a colour as an eye sees it. */
  const lab = (hex, matrix) => {
    const [r, g, b] = matrix.map((row) => Math.max(0, row.reduce((sum, m, i) => sum + m * linear(hex)[i], 0)));
    const [l, m, s] = [0.4122 * r + 0.5363 * g + 0.0514 * b, 0.2119 * r + 0.6807 * g + 0.1074 * b, 0.0883 * r + 0.2817 * g + 0.63 * b].map(Math.cbrt);
    return [0.2105 * l + 0.7936 * m - 0.0041 * s, 1.978 * l - 2.4286 * m + 0.4506 * s, 0.0259 * l + 0.7828 * m - 0.8087 * s];
  };
  const apart = (a, b, eye) => Math.hypot(...lab(a, eye).map((v, i) => v - lab(b, eye)[i]));

  for (const [name, matrix] of Object.entries(SEEN_AS))
    it(`tell categories apart for ${name}`, () => {
      for (const { categories, counts } of [page.palette.LIGHT, page.palette.DARK]) {
        categories.forEach((one, i) => categories.slice(0, i).forEach((other) => assert.ok(apart(one, other, matrix) > (name === 'all' ? 0.1 : 0.05), `${one} and ${other}`)));
        // Eight hues beside a warm ramp are too many for two kinds of cones: only the first categories are apart from it for every eye.
        const ramp = counts.flatMap((color, i) => (i ? [page.palette.mix(counts[i - 1], color, 0.5), color] : [color]));
        for (const one of name === 'all' ? categories : categories.slice(0, 4)) for (const color of ramp) assert.ok(apart(one, color, matrix) > (name === 'all' ? 0.1 : 0.05), `${one} and ${color} of counts`);
      }
    });

  for (const [name, matrix] of Object.entries(SEEN_AS))
    it(`tell values, and counts from values, apart for ${name}`, () => {
      for (const palette of [page.palette.LIGHT, page.palette.DARK])
        for (const ramp of [palette.counts, palette.values]) {
          const lightness = ramp.map((hex) => lab(hex, matrix)[0]);
          const rising = Math.sign(lightness[4] - lightness[0]);
          for (let i = 1; i < 5; i++) {
            assert.ok((lightness[i] - lightness[i - 1]) * rising > 0.04, `${ramp[i - 1]} and ${ramp[i]}: ${lightness.map((l) => l.toFixed(2))}`);
            assert.ok(apart(ramp[i], ramp[i - 1], matrix) > 0.08, `${ramp[i - 1]} and ${ramp[i]}`);
          }
          for (let i = 0; i < 5; i++) assert.ok(apart(palette.counts[i], palette.values[i], matrix) > 0.08, `${palette.counts[i]} and ${palette.values[i]}`);
        }
    });
});

describe('what a map cannot show', () => {
  const { asksOf, sayMissing } = page.beyond;
  const whole = { where: null, when: null, filter: '', geometry: 'geometry' };
  const extent = { bbox: [-180, -70, 180, 89], stretch: [-180, 180], interval: [0, 1000] };
  const kinds = (...args) => asksOf(...args).map(({ what }) => what);

  it('is asked only where it can be', () => {
    assert.deepEqual(kinds(whole, true, extent, true), ['poles', 'placeless']);
    assert.deepEqual(kinds({ ...whole, when: [0, 10] }, true, { ...extent, bbox: [0, 0, 1, 1] }, true), ['placeless', 'outside']);
    assert.deepEqual(kinds({ ...whole, when: [0, 10] }, false, extent, true), ['outside']);
    assert.deepEqual(kinds(whole, true, extent, false), []);
    const near = { kind: 'box', west: 0, south: 0, east: 10, north: 60 };
    assert.deepEqual(kinds({ ...whole, where: near }, true, extent, true), ['placeless']);
  });

  it('is counted beyond the edge of the projection, within the view from west to east', () => {
    const view = { kind: 'box', west: -20, south: 30, east: 60, north: 90 };
    const [{ plus, minus }] = asksOf({ ...whole, where: view }, true, extent, true);
    assert.deepEqual(plus.map(({ where }) => [where.west, where.east, where.north]), [[-20, 60, 90]]);
    assert.ok(plus[0].where.south > 85.05 && minus.length === 0);
  });

  it('is counted north and south of a map that shows all from west to east', () => {
    const view = (west, east, south, north) => ({ ...whole, where: { kind: 'box', west, east, south, north } });
    const [{ what, plus, minus }] = asksOf(view(-190, 190, -80, 80), true, extent, true);
    assert.deepEqual([what, plus[0].where.south, plus[0].where.north, minus[0].where.north], ['frame', -90, 90, 80]);
    assert.deepEqual(kinds(view(-190, 190, -80, 90), true, extent, true), ['poles', 'placeless'], 'nothing is south of it');
    const fiji = { ...extent, bbox: [170, -70, 178, 84], stretch: [170, 178] };
    assert.deepEqual(kinds(view(-195, -160, -75, 78), true, fiji, true), ['frame', 'placeless'], 'on another copy of the world');
    assert.deepEqual(kinds(view(172, 179, -75, 78), true, fiji, true), ['placeless'], 'a closer look leaves out on purpose');
  });

  it('is counted north and south of a first view around the antimeridian', () => {
    const view = (west, east) => ({ ...whole, where: { kind: 'box', west, east, south: -60, north: 70 } });
    // The box of such events is that of the world; the first view shows a stretch of it.
    const aleutians = { ...extent, bbox: [-180, -70, 180, 84], stretch: [165, 205] };
    for (const [west, east] of [[160, 210], [-200, -150]]) {
      const [{ what, plus, minus }] = asksOf(view(west, east), true, aleutians, true);
      assert.deepEqual([what, plus[0].where, minus[0].where.north], ['frame', { kind: 'box', west, east, south: -90, north: 90 }, 70]);
    }
    assert.deepEqual(kinds(view(170, 210), true, aleutians, true), ['placeless'], 'a part of it leaves out on purpose');
    assert.deepEqual(kinds(view(160, 210), true, { ...aleutians, stretch: [165, -155] }, true), ['frame', 'placeless'], 'west beyond east');
    assert.deepEqual(kinds(view(160, 210), true, extent, true), ['placeless'], 'events all around the world');
  });

  it('is said in words, and nothing of nothing', () => {
    assert.equal(sayMissing('poles', 0), '');
    assert.match(sayMissing('poles', 1234), /^1,234 beyond 85°/);
    assert.match(sayMissing('outside', 3), /^3 more here outside of the chosen time/);
  });
});
