// The look of the map: the base map from the bundle, and the events above it, in a light and a dark palette.
import type { FeatureCollection } from 'geojson';
import type { ExpressionSpecification, LayerSpecification, StyleSpecification } from 'maplibre-gl';

export interface Palette {
  readonly sea: string;
  readonly land: string;
  readonly coast: string;
  readonly border: string;
  readonly country: string;
  readonly city: string;
  readonly halo: string;
  /** From few events to many. */
  readonly ramp: readonly [string, string, string, string, string];
  readonly point: string;
  /** Events without a value of the field that colours the others. */
  readonly none: string;
  readonly rim: string;
  readonly shape: string;
  readonly veil: string;
  readonly veilOpacity: number;
}

export const LIGHT: Palette = {
  sea: '#dbe4ea',
  land: '#f7f6f2',
  coast: '#b4c2cc',
  border: '#cfcdc6',
  country: '#4b5560',
  city: '#545d67',
  halo: '#f7f6f2',
  ramp: ['#f6b35c', '#ee8245', '#dc4f4c', '#a72e63', '#5e1e66'],
  point: '#dd5a3c',
  none: '#8b939d',
  rim: '#ffffff',
  shape: '#2f54c8',
  veil: '#33475b',
  veilOpacity: 0.07,
};

export const DARK: Palette = {
  sea: '#0e151c',
  land: '#1b242d',
  coast: '#33424f',
  border: '#33404b',
  country: '#b3bfca',
  city: '#98a5b2',
  halo: '#141c24',
  ramp: ['#7d3269', '#b63a62', '#e3604f', '#f39a4f', '#fbdc8c'],
  point: '#f08a52',
  none: '#75828f',
  rim: '#12181f',
  shape: '#86a5ff',
  veil: '#000000',
  veilOpacity: 0.38,
};

/** The browser draws names on the map in the page's font, so the style needs no `glyphs` address. */
const FONT = ['Inter Variable'];

export const EMPTY: FeatureCollection = { type: 'FeatureCollection', features: [] };

/** Sources above the events: the drawn shape, the shade around it, the chosen event. */
export interface Overlays {
  readonly shape: FeatureCollection;
  readonly veil: FeatureCollection;
  readonly chosen: FeatureCollection;
  /** Results of a search. */
  readonly results: FeatureCollection;
}

/** Clickable layers of search results, uppermost first. */
export const RESULT_LAYERS = ['result-point', 'result-line', 'result-fill'] as const;

/** A cell of the density tiles has a count and no id; an event has an id, under `@id` if a property is called `id`. */
const IS_CELL: ExpressionSpecification = ['all', ['has', 'count'], ['!', ['has', 'id']], ['!', ['has', '@id']]];
const IS_EVENT: ExpressionSpecification = ['!', IS_CELL];

/** Radius in pixels of a density cell by its count, on a logarithmic scale. */
const CELL_RADIUS: ExpressionSpecification = [
  'interpolate',
  ['linear'],
  ['log10', ['max', 1, ['to-number', ['get', 'count'], 1]]],
  0, 2.4,
  1, 3.8,
  2, 5.8,
  3, 8.4,
  4, 11.5,
  5, 15,
  6, 19,
];

function cellColor({ ramp }: Palette): ExpressionSpecification {
  return [
    'interpolate',
    ['linear'],
    ['log10', ['max', 1, ['to-number', ['get', 'count'], 1]]],
    0, ramp[0],
    1, ramp[1],
    2, ramp[2],
    3, ramp[3],
    4.5, ramp[4],
  ];
}

/** The values of a field at the five colours of the ramp. */
export interface FieldScale {
  readonly field: string;
  readonly stops: readonly [number, number, number, number, number];
}

/** Exponent of the colour scale of a skewed field: more colours for its many small values. */
const BEND = 400;

/**
 * The scale of a field from its min to its max: even, or bent where few values are far above the rest (such
 * as populations), as the average tells; null when there is nothing to tell apart.
 */
export function fieldScale(field: string, low: number, average: number, high: number): FieldScale | null {
  if (!(low < high)) return null;
  const skewed = low >= 0 && average - low < (high - low) / 8;
  const at = (t: number): number => low + (high - low) * (skewed ? (BEND ** t - 1) / (BEND - 1) : t);
  return { field, stops: [low, at(0.25), at(0.5), at(0.75), high] };
}

/** Colour of single events: by the chosen field (`none` where an event lacks it), or one colour. */
export function eventColor(palette: Palette, scale: FieldScale | null): ExpressionSpecification | string {
  if (!scale) return palette.point;
  const { field, stops } = scale;
  const pairs = stops.flatMap((stop, i) => [stop, palette.ramp[i]]);
  const value: ExpressionSpecification = ['to-number', ['get', field], stops[0]];
  const ramp = ['interpolate', ['linear'], value, ...pairs] as unknown as ExpressionSpecification;
  return ['case', ['has', field], ramp, palette.none];
}

/** Content of the events layer. */
export interface EventTiles {
  readonly collection: string;
  /** Address pattern with {z}, {y} and {x}. */
  readonly url: string;
}

/** Clickable layers, uppermost first. */
export const EVENT_LAYERS = ['event-point', 'event-line', 'event-fill'] as const;
export const CELL_LAYER = 'event-cell';

function baseLayers(p: Palette): LayerSpecification[] {
  return [
    { id: 'sea', type: 'background', paint: { 'background-color': p.sea } },
    // Without antialiasing no seams show between neighbours; the coast line above softens the edge.
    { id: 'land', type: 'fill', source: 'land', paint: { 'fill-color': p.land, 'fill-antialias': false } },
    { id: 'coast', type: 'line', source: 'land', paint: { 'line-color': p.coast, 'line-width': ['interpolate', ['linear'], ['zoom'], 0, 0.4, 6, 0.9] } },
    // Land again in its own colour hides the coast line where two countries meet; the border is drawn on top.
    { id: 'border-cover', type: 'line', source: 'borders', paint: { 'line-color': p.land, 'line-width': ['interpolate', ['linear'], ['zoom'], 0, 1, 6, 2] } },
    {
      id: 'border',
      type: 'line',
      source: 'borders',
      layout: { 'line-join': 'round' },
      paint: { 'line-color': p.border, 'line-width': ['interpolate', ['linear'], ['zoom'], 0, 0.5, 4, 0.9, 8, 1.4] },
    },
  ];
}

function eventLayers(p: Palette, tiles: EventTiles, scale: FieldScale | null): LayerSpecification[] {
  const from = { source: 'events', 'source-layer': tiles.collection } as const;
  const color = eventColor(p, scale);
  return [
    { id: 'event-fill', type: 'fill', ...from, filter: ['all', IS_EVENT, ['==', ['geometry-type'], 'Polygon']], paint: { 'fill-color': color, 'fill-opacity': scale ? 0.6 : 0.28 } },
    {
      id: 'event-edge',
      type: 'line',
      ...from,
      filter: ['all', IS_EVENT, ['==', ['geometry-type'], 'Polygon']],
      paint: { 'line-color': color, 'line-width': 1, 'line-opacity': 0.8 },
    },
    {
      id: 'event-line',
      type: 'line',
      ...from,
      filter: ['all', IS_EVENT, ['==', ['geometry-type'], 'LineString']],
      layout: { 'line-join': 'round', 'line-cap': 'round' },
      paint: { 'line-color': color, 'line-width': ['interpolate', ['linear'], ['zoom'], 1, 1, 8, 2.6], 'line-opacity': 0.72 },
    },
    {
      id: CELL_LAYER,
      type: 'circle',
      ...from,
      filter: IS_CELL,
      layout: { 'circle-sort-key': ['get', 'count'] },
      paint: { 'circle-color': cellColor(p), 'circle-radius': CELL_RADIUS, 'circle-opacity': 0.78, 'circle-blur': 0.12 },
    },
    {
      id: 'event-point',
      type: 'circle',
      ...from,
      filter: ['all', IS_EVENT, ['==', ['geometry-type'], 'Point']],
      paint: {
        'circle-color': color,
        'circle-radius': ['interpolate', ['linear'], ['zoom'], 1, 2.6, 6, 4, 12, 6.5],
        'circle-opacity': 0.85,
        'circle-stroke-color': p.rim,
        'circle-stroke-width': ['interpolate', ['linear'], ['zoom'], 2, 0.4, 8, 1.2],
      },
    },
  ];
}

function labelLayers(p: Palette): LayerSpecification[] {
  const halo = { 'text-halo-color': p.halo, 'text-halo-width': 1.3 } as const;
  return [
    {
      id: 'city-dot',
      type: 'circle',
      source: 'places',
      minzoom: 4,
      filter: ['==', ['get', 'kind'], 'city'],
      paint: { 'circle-radius': 1.8, 'circle-color': p.city },
    },
    {
      id: 'city-name',
      type: 'symbol',
      source: 'places',
      minzoom: 4,
      filter: ['==', ['get', 'kind'], 'city'],
      layout: {
        'text-field': ['get', 'name'],
        'text-font': FONT,
        'text-size': 11,
        'text-variable-anchor': ['left', 'right', 'top', 'bottom'],
        'text-radial-offset': 0.5,
        'text-justify': 'auto',
      },
      paint: { 'text-color': p.city, ...halo },
    },
    {
      id: 'country-name',
      type: 'symbol',
      source: 'places',
      // Large countries first. Small ones appear as the zoom makes room.
      filter: [
        'all',
        ['==', ['get', 'kind'], 'country'],
        ['>=', ['get', 'area'], ['step', ['zoom'], 500, 1.5, 120, 2.5, 30, 3.5, 6, 4.5, 1, 5.5, 0]],
      ],
      layout: {
        'text-field': ['get', 'name'],
        'text-font': FONT,
        'text-size': ['interpolate', ['linear'], ['zoom'], 1, 10.5, 4, 12.5, 7, 16],
        'text-max-width': 7,
        'text-letter-spacing': 0.04,
        'text-padding': 6,
        'symbol-sort-key': ['-', 0, ['get', 'area']],
      },
      paint: { 'text-color': p.country, ...halo },
    },
  ];
}

/** Layers of search results. A place that was only named in a text is hollow; the first result has a ring. */
function resultLayers(p: Palette): LayerSpecification[] {
  const source = 'results';
  const first: ExpressionSpecification = ['boolean', ['get', 'first'], false];
  return [
    { id: 'result-fill', type: 'fill', source, filter: ['in', ['geometry-type'], ['literal', ['Polygon', 'MultiPolygon']]], paint: { 'fill-color': p.point, 'fill-opacity': 0.28 } },
    {
      id: 'result-line',
      type: 'line',
      source,
      filter: ['!', ['in', ['geometry-type'], ['literal', ['Point', 'MultiPoint']]]],
      layout: { 'line-join': 'round', 'line-cap': 'round' },
      paint: { 'line-color': p.point, 'line-width': ['interpolate', ['linear'], ['zoom'], 1, 1.2, 8, 2.6], 'line-opacity': 0.8 },
    },
    {
      id: 'result-point',
      type: 'circle',
      source,
      filter: ['in', ['geometry-type'], ['literal', ['Point', 'MultiPoint']]],
      layout: { 'circle-sort-key': ['case', first, 1, 0] },
      paint: {
        'circle-color': p.point,
        'circle-radius': ['interpolate', ['linear'], ['zoom'], 1, 4, 6, 5.5, 12, 7.5],
        'circle-opacity': ['case', ['boolean', ['get', 'named'], false], 0.25, 0.88],
        'circle-stroke-color': ['case', first, p.shape, ['boolean', ['get', 'named'], false], p.point, p.rim],
        'circle-stroke-width': ['case', first, 3, 1.2],
      },
    },
  ];
}

function shapeLayers(p: Palette): LayerSpecification[] {
  return [
    { id: 'veil', type: 'fill', source: 'veil', paint: { 'fill-color': p.veil, 'fill-opacity': p.veilOpacity, 'fill-antialias': false } },
    { id: 'shape-fill', type: 'fill', source: 'shape', filter: ['==', ['geometry-type'], 'Polygon'], paint: { 'fill-color': p.shape, 'fill-opacity': 0.05 } },
    { id: 'shape-line', type: 'line', source: 'shape', layout: { 'line-join': 'round' }, paint: { 'line-color': p.shape, 'line-width': 2 } },
    {
      id: 'shape-corner',
      type: 'circle',
      source: 'shape',
      filter: ['==', ['geometry-type'], 'Point'],
      paint: { 'circle-radius': 4.5, 'circle-color': p.rim, 'circle-stroke-color': p.shape, 'circle-stroke-width': 2 },
    },
    {
      id: 'chosen-fill',
      type: 'fill',
      source: 'chosen',
      filter: ['==', ['geometry-type'], 'Polygon'],
      paint: { 'fill-color': p.shape, 'fill-opacity': 0.22 },
    },
    {
      id: 'chosen-line',
      type: 'line',
      source: 'chosen',
      filter: ['!=', ['geometry-type'], 'Point'],
      layout: { 'line-join': 'round', 'line-cap': 'round' },
      paint: { 'line-color': p.shape, 'line-width': 3 },
    },
    {
      id: 'chosen-point',
      type: 'circle',
      source: 'chosen',
      filter: ['==', ['geometry-type'], 'Point'],
      paint: { 'circle-radius': 8, 'circle-color': p.shape, 'circle-opacity': 0.25, 'circle-stroke-color': p.shape, 'circle-stroke-width': 2.5 },
    },
  ];
}

/** The whole style. */
export function mapStyle(palette: Palette, tiles: EventTiles | null, scale: FieldScale | null, overlays: Overlays, origin: string): StyleSpecification {
  const sources: StyleSpecification['sources'] = {
    land: { type: 'geojson', data: origin + __LAND_URL__, tolerance: 0.5, maxzoom: 8 },
    borders: { type: 'geojson', data: origin + __BORDERS_URL__, tolerance: 0.5, maxzoom: 8 },
    places: { type: 'geojson', data: origin + __PLACES_URL__, maxzoom: 6 },
    shape: { type: 'geojson', data: overlays.shape },
    veil: { type: 'geojson', data: overlays.veil },
    chosen: { type: 'geojson', data: overlays.chosen },
    results: { type: 'geojson', data: overlays.results },
  };
  if (tiles) sources.events = { type: 'vector', tiles: [tiles.url], minzoom: 0, maxzoom: 18 };
  return {
    version: 8,
    name: 'Meridian',
    sources,
    layers: [...baseLayers(palette), ...(tiles ? eventLayers(palette, tiles, scale) : []), ...labelLayers(palette), ...resultLayers(palette), ...shapeLayers(palette)],
  };
}
