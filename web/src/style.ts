// The look of the map: the base map from the bundle, and the events above it, in a light and a dark palette.
import type { FeatureCollection } from 'geojson';
import type { ExpressionSpecification, LayerSpecification, StyleSpecification } from 'maplibre-gl';
import { ROUGH_ZOOM, type BaseMap } from './basemap';
import { eventLayers, rimPaint, sourceOf, type EventLayer } from './eventstyle';
import { fileLayers, type FileLayer } from './files/drawn';
import { liveLayers } from './live/layers';
import type { Palette } from './palette';

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
  /** Last positions and tracks of objects that are followed. */
  readonly livePoints: FeatureCollection;
  readonly liveLines: FeatureCollection;
  /** A line or an area that is measured. */
  readonly ruler: FeatureCollection;
}

export const NO_OVERLAYS: Overlays = { shape: EMPTY, veil: EMPTY, chosen: EMPTY, results: EMPTY, livePoints: EMPTY, liveLines: EMPTY, ruler: EMPTY };

/** Clickable layers of search results, uppermost first. */
export const RESULT_LAYERS = ['result-point', 'result-line', 'result-fill'] as const;

/** Opacity of a part of the built-in map: from where it is rough, it fades. */
const fading = (rest: number): ExpressionSpecification => ['interpolate', ['linear'], ['zoom'], ROUGH_ZOOM, 1, ROUGH_ZOOM + 3, rest];

function baseLayers(p: Palette): LayerSpecification[] {
  return [
    { id: 'sea', type: 'background', paint: { 'background-color': p.sea } },
    // Without antialiasing no seams show between neighbours; the coast line above softens the edge.
    { id: 'land', type: 'fill', source: 'land', paint: { 'fill-color': p.land, 'fill-antialias': false, 'fill-opacity': fading(0.45) } },
    { id: 'coast', type: 'line', source: 'land', paint: { 'line-color': p.coast, 'line-width': ['interpolate', ['linear'], ['zoom'], 0, 0.4, 6, 0.9], 'line-opacity': fading(0.3) } },
    // Land again in its own colour hides the coast line where two countries meet; the border is drawn on top.
    { id: 'border-cover', type: 'line', source: 'borders', paint: { 'line-color': p.land, 'line-width': ['interpolate', ['linear'], ['zoom'], 0, 1, 6, 2], 'line-opacity': fading(0) } },
    {
      id: 'border',
      type: 'line',
      source: 'borders',
      layout: { 'line-join': 'round' },
      paint: { 'line-color': p.border, 'line-width': ['interpolate', ['linear'], ['zoom'], 0, 0.5, 4, 0.9, 8, 1.4], 'line-opacity': fading(0.3) },
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
  const points: ExpressionSpecification = ['in', ['geometry-type'], ['literal', ['Point', 'MultiPoint']]];
  const radius: ExpressionSpecification = ['interpolate', ['linear'], ['zoom'], 1, 4, 6, 5.5, 12, 7.5];
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
    // The rims of all are below the points of all, see `eventLayers`.
    { id: 'result-rim', type: 'circle', source, filter: points, paint: { 'circle-radius': radius, ...rimPaint(p, 1.2) } },
    {
      id: 'result-point',
      type: 'circle',
      source,
      filter: points,
      layout: { 'circle-sort-key': ['case', first, 1, 0] },
      paint: {
        'circle-color': p.point,
        'circle-radius': radius,
        'circle-opacity': ['case', ['boolean', ['get', 'named'], false], 0.25, 0.88],
        'circle-stroke-color': ['case', first, p.shape, p.point],
        'circle-stroke-width': ['case', first, 3, ['boolean', ['get', 'named'], false], 1.2, 0],
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
    { id: 'ruler-fill', type: 'fill', source: 'ruler', filter: ['==', ['geometry-type'], 'Polygon'], paint: { 'fill-color': p.shape, 'fill-opacity': 0.1 } },
    { id: 'ruler-line', type: 'line', source: 'ruler', filter: ['!=', ['geometry-type'], 'Point'], layout: { 'line-join': 'round' }, paint: { 'line-color': p.shape, 'line-width': 2, 'line-dasharray': [2, 1.5] } },
    { id: 'ruler-corner', type: 'circle', source: 'ruler', filter: ['==', ['geometry-type'], 'Point'], paint: { 'circle-radius': 3.5, 'circle-color': p.rim, 'circle-stroke-color': p.shape, 'circle-stroke-width': 2 } },
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

/** How much of the base map is loaded: the coasts of far views, or all that the source has. */
export type Detail = 'coarse' | 'fine';

/** The zoom from which the coarse coasts would show their corners. */
export const FINE_ZOOM = 3.5;

/** What is drawn between the base map and the overlays, from the lowest to the uppermost. */
export interface MapContent {
  readonly events: readonly { readonly drawn: EventLayer; readonly palette: Palette }[];
  /** Files that were dropped on the map. */
  readonly files: readonly FileLayer[];
  /** The operator's base map; null for the one of the bundle. */
  readonly base: BaseMap | null;
}

/** The whole style. */
export function mapStyle(palette: Palette, { events, files, base }: MapContent, overlays: Overlays, detail: Detail, origin: string): StyleSpecification {
  const sources: StyleSpecification['sources'] = {
    ...(base?.sources ?? {
      land: { type: 'geojson', data: origin + __LAND__[detail], tolerance: 0.5, maxzoom: 8 },
      borders: { type: 'geojson', data: origin + __BORDERS__[detail], tolerance: 0.5, maxzoom: 8 },
      places: { type: 'geojson', data: origin + __PLACES_URL__, maxzoom: 6 },
    }),
    shape: { type: 'geojson', data: overlays.shape },
    veil: { type: 'geojson', data: overlays.veil },
    chosen: { type: 'geojson', data: overlays.chosen },
    results: { type: 'geojson', data: overlays.results },
    livePoints: { type: 'geojson', data: overlays.livePoints },
    liveLines: { type: 'geojson', data: overlays.liveLines },
    ruler: { type: 'geojson', data: overlays.ruler },
  };
  for (const { drawn } of events) sources[sourceOf(drawn.slot)] = { type: 'vector', tiles: [drawn.url], minzoom: 0, maxzoom: 18 };
  for (const { id, data } of files) sources[id] = { type: 'geojson', data };
  return {
    version: 8,
    name: 'Meridian',
    ...(base?.sprite ? { sprite: base.sprite } : {}),
    ...(base?.glyphs ? { glyphs: base.glyphs } : {}),
    sources,
    layers: [
      ...(base ? base.layers(palette) : baseLayers(palette)),
      ...events.flatMap(({ drawn, palette: own }) => eventLayers(own, drawn)),
      ...files.flatMap((file) => fileLayers(palette, file)),
      ...(base ? [] : labelLayers(palette)),
      ...liveLayers(palette),
      ...resultLayers(palette),
      ...shapeLayers(palette),
    ],
  };
}
