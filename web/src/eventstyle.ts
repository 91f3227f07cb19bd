// The look of single events: layers over the events' vector tiles, coloured by a field or in one colour, sized by a field or alike.
import type { ExpressionSpecification, LayerSpecification } from 'maplibre-gl';
import type { Palette, Ramp } from './palette';

/** Which values of a numeric field the colours of the ramp stand for: one to five, ascending. */
export interface FieldScale {
  readonly field: string;
  readonly stops: readonly number[];
}

/** Which values of a text, or of a boolean, have a colour of their own: the first ones of `Palette.categories`. */
export interface ValueScale {
  readonly field: string;
  readonly values: readonly string[];
}

export type ColorScale = FieldScale | ValueScale;

export const isValues = (scale: ColorScale): scale is ValueScale => 'values' in scale;

/** Which values of a numeric field have the smallest and the largest circle. */
export interface SizeScale {
  readonly field: string;
  readonly low: number;
  readonly high: number;
}

/** The layers of single events, as they are now. */
export interface EventLayer {
  /** Names the layers of one collection: `event` for the one that is asked about. */
  readonly slot: string;
  readonly collection: string;
  /** Address pattern of the tiles with {z}, {y} and {x}. */
  readonly url: string;
  readonly scale: ColorScale | null;
  readonly size: SizeScale | null;
  /** 0 to 1; at 0 the layers are off, and no tile is loaded. */
  readonly presence: number;
}

/** Name of the source of a slot's tiles. */
export const sourceOf = (slot: string): string => `${slot}s`;

/** A cell of the density tiles has a count and no id; an event has an id, under `@id` if a property is called `id`. */
export const IS_CELL: ExpressionSpecification = ['all', ['has', 'count'], ['!', ['has', 'id']], ['!', ['has', '@id']]];
const IS_EVENT: ExpressionSpecification = ['!', IS_CELL];

/** Clickable layers of a slot, uppermost first. */
export const eventLayerIds = (slot: string): string[] => ['point', 'line', 'fill'].map((kind) => `${slot}-${kind}`);

/** The colours of a ramp for as many stops: both ends, and what lies evenly between. */
export const rampOf = (ramp: Ramp, stops: number): readonly string[] =>
  stops === 1 ? [ramp[2]] : Array.from({ length: stops }, (_, i) => ramp[Math.round((i * 4) / (stops - 1))]);

/** Colour of single events: by the chosen field (`none` where an event lacks it), or one colour. */
export function eventColor(palette: Palette, scale: ColorScale | null): ExpressionSpecification | string {
  if (!scale) return palette.point;
  const { field } = scale;
  if (isValues(scale)) {
    const { values } = scale;
    if (!values.length) return ['case', ['has', field], palette.other, palette.none];
    const named = values.flatMap((value, i) => [value, palette.categories[i % palette.categories.length]]);
    const [first, color, ...more] = named;
    const match: ExpressionSpecification = ['match', ['to-string', ['get', field]], first, color, ...more, palette.other];
    return ['case', ['has', field], match, palette.none];
  }
  const { stops } = scale;
  if (!stops.length) return palette.point;
  const colors = rampOf(palette.values, stops.length);
  const value: ExpressionSpecification = ['to-number', ['get', field], stops[0]];
  const color = stops.length === 1 ? colors[0] : (['interpolate', ['linear'], value, ...stops.flatMap((stop, i) => [stop, colors[i]])] as unknown as ExpressionSpecification);
  return ['case', ['has', field], color, palette.none];
}

/** Radius of a circle of medium size, in pixels, by zoom. */
const RADIUS: readonly (readonly [zoom: number, pixels: number])[] = [[1, 2.6], [6, 4], [12, 6.5]];
/** Radius of the smallest and of the largest circle, in proportion to the medium one. */
const SMALLEST = 0.7;
const LARGEST = 4;

/** The share of a circle's radius for a value: its area grows evenly with the value. */
export function sizeOf({ low, high }: SizeScale, value: number): number {
  const share = high > low ? Math.max(0, Math.min(1, (value - low) / (high - low))) : 0.25;
  return Math.sqrt(SMALLEST ** 2 + (LARGEST ** 2 - SMALLEST ** 2) * share);
}

/** The radius in pixels at a zoom, of a circle of the share that `sizeOf` gives. */
export function radiusAt(zoom: number, share: number): number {
  const at = RADIUS.findIndex(([z]) => zoom <= z);
  if (at <= 0) return share * (at === 0 ? RADIUS[0] : RADIUS[RADIUS.length - 1])[1];
  const [[z0, r0], [z1, r1]] = [RADIUS[at - 1], RADIUS[at]];
  return share * (r0 + ((r1 - r0) * (zoom - z0)) / (z1 - z0));
}

function eventRadius(size: SizeScale | null): ExpressionSpecification {
  if (!size) return ['interpolate', ['linear'], ['zoom'], ...RADIUS.flat()] as unknown as ExpressionSpecification;
  const { field, low, high } = size;
  const value: ExpressionSpecification = ['to-number', ['get', field], low];
  const share: ExpressionSpecification = high > low ? ['max', 0, ['min', 1, ['/', ['-', value, low], high - low]]] : (['literal', 0.25] as unknown as ExpressionSpecification);
  const factor: ExpressionSpecification = ['case', ['has', field], ['sqrt', ['+', SMALLEST ** 2, ['*', LARGEST ** 2 - SMALLEST ** 2, share]]], SMALLEST];
  return ['interpolate', ['linear'], ['zoom'], ...RADIUS.flatMap(([zoom, pixels]) => [zoom, ['*', pixels, factor]])] as unknown as ExpressionSpecification;
}

type Paint = Record<string, unknown>;

/** The rim around a point, without the point. */
export const rimPaint = (p: Palette, width: ExpressionSpecification | number): { readonly 'circle-opacity': 0; readonly 'circle-stroke-color': string; readonly 'circle-stroke-width': ExpressionSpecification | number } => ({
  'circle-opacity': 0,
  'circle-stroke-color': p.rim,
  'circle-stroke-width': width,
});

/** The paint of each layer that depends on scales and presence. */
export function eventPaint(p: Palette, { slot, scale, size, presence }: EventLayer): Record<string, Paint> {
  const color = eventColor(p, scale);
  return {
    [`${slot}-fill`]: { 'fill-color': color, 'fill-opacity': (scale ? 0.6 : 0.28) * presence },
    [`${slot}-edge`]: { 'line-color': color, 'line-opacity': 0.8 * presence },
    [`${slot}-line`]: { 'line-color': color, 'line-opacity': 0.72 * presence },
    [`${slot}-rim`]: { 'circle-radius': eventRadius(size), 'circle-stroke-opacity': presence },
    [`${slot}-point`]: { 'circle-color': color, 'circle-radius': eventRadius(size), 'circle-opacity': 0.85 * presence },
  };
}

export function eventLayers(p: Palette, events: EventLayer): LayerSpecification[] {
  const { slot } = events;
  const from = { source: sourceOf(slot), 'source-layer': events.collection } as const;
  const visibility = events.presence > 0 ? 'visible' : 'none';
  const only = (type: string): ExpressionSpecification => ['all', IS_EVENT, ['==', ['geometry-type'], type]];
  const paint = eventPaint(p, events);
  return [
    { id: `${slot}-fill`, type: 'fill', ...from, filter: only('Polygon'), layout: { visibility }, paint: paint[`${slot}-fill`] },
    { id: `${slot}-edge`, type: 'line', ...from, filter: only('Polygon'), layout: { visibility }, paint: { ...paint[`${slot}-edge`], 'line-width': 1 } },
    {
      id: `${slot}-line`,
      type: 'line',
      ...from,
      filter: only('LineString'),
      layout: { visibility, 'line-join': 'round', 'line-cap': 'round' },
      paint: { ...paint[`${slot}-line`], 'line-width': ['interpolate', ['linear'], ['zoom'], 1, 1, 8, 2.6] },
    },
    // The rims of all are below the points of all: in a crowd a rim would cover its neighbour.
    { id: `${slot}-rim`, type: 'circle', ...from, filter: only('Point'), layout: { visibility }, paint: { ...paint[`${slot}-rim`], ...rimPaint(p, ['interpolate', ['linear'], ['zoom'], 2, 0.4, 8, 1.2]) } },
    {
      id: `${slot}-point`,
      type: 'circle',
      ...from,
      filter: only('Point'),
      // A large circle must not hide a small one.
      layout: { visibility, ...(events.size ? { 'circle-sort-key': ['-', 0, ['to-number', ['get', events.size.field], 0]] } : {}) },
      paint: paint[`${slot}-point`],
    },
  ];
}
