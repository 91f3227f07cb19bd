// The look of single events: layers over the events' vector tiles, coloured by a field or in one colour.
import type { ExpressionSpecification, LayerSpecification } from 'maplibre-gl';
import type { Palette, Ramp } from './palette';

/** Which values of a field the colours of the ramp stand for: one to five, ascending. */
export interface FieldScale {
  readonly field: string;
  readonly stops: readonly number[];
}

/** The layers of single events, as they are now. */
export interface EventsDrawn {
  readonly collection: string;
  /** Address pattern of the tiles with {z}, {y} and {x}. */
  readonly url: string;
  readonly scale: FieldScale | null;
  /** 0 to 1; at 0 the layers are off, and no tile is loaded. */
  readonly presence: number;
}

/** A cell of the density tiles has a count and no id; an event has an id, under `@id` if a property is called `id`. */
export const IS_CELL: ExpressionSpecification = ['all', ['has', 'count'], ['!', ['has', 'id']], ['!', ['has', '@id']]];
const IS_EVENT: ExpressionSpecification = ['!', IS_CELL];

/** Clickable layers, uppermost first. */
export const EVENT_LAYERS = ['event-point', 'event-line', 'event-fill'] as const;

/** The colours of a ramp for as many stops: both ends, and what lies evenly between. */
export const rampOf = (ramp: Ramp, stops: number): readonly string[] =>
  stops === 1 ? [ramp[2]] : Array.from({ length: stops }, (_, i) => ramp[Math.round((i * 4) / (stops - 1))]);

/** Colour of single events: by the chosen field (`none` where an event lacks it), or one colour. */
export function eventColor(palette: Palette, scale: FieldScale | null): ExpressionSpecification | string {
  if (!scale?.stops.length) return palette.point;
  const { field, stops } = scale;
  const colors = rampOf(palette.values, stops.length);
  const value: ExpressionSpecification = ['to-number', ['get', field], stops[0]];
  const color = stops.length === 1 ? colors[0] : (['interpolate', ['linear'], value, ...stops.flatMap((stop, i) => [stop, colors[i]])] as unknown as ExpressionSpecification);
  return ['case', ['has', field], color, palette.none];
}

type Paint = Record<string, unknown>;

/** The paint of each layer that depends on the scale and the presence. */
export function eventPaint(p: Palette, { scale, presence }: EventsDrawn): Record<string, Paint> {
  const color = eventColor(p, scale);
  return {
    'event-fill': { 'fill-color': color, 'fill-opacity': (scale ? 0.6 : 0.28) * presence },
    'event-edge': { 'line-color': color, 'line-opacity': 0.8 * presence },
    'event-line': { 'line-color': color, 'line-opacity': 0.72 * presence },
    'event-point': { 'circle-color': color, 'circle-opacity': 0.85 * presence, 'circle-stroke-opacity': presence },
  };
}

export function eventLayers(p: Palette, events: EventsDrawn): LayerSpecification[] {
  const from = { source: 'events', 'source-layer': events.collection } as const;
  const visibility = events.presence > 0 ? 'visible' : 'none';
  const only = (type: string): ExpressionSpecification => ['all', IS_EVENT, ['==', ['geometry-type'], type]];
  const paint = eventPaint(p, events);
  return [
    { id: 'event-fill', type: 'fill', ...from, filter: only('Polygon'), layout: { visibility }, paint: paint['event-fill'] },
    { id: 'event-edge', type: 'line', ...from, filter: only('Polygon'), layout: { visibility }, paint: { ...paint['event-edge'], 'line-width': 1 } },
    {
      id: 'event-line',
      type: 'line',
      ...from,
      filter: only('LineString'),
      layout: { visibility, 'line-join': 'round', 'line-cap': 'round' },
      paint: { ...paint['event-line'], 'line-width': ['interpolate', ['linear'], ['zoom'], 1, 1, 8, 2.6] },
    },
    {
      id: 'event-point',
      type: 'circle',
      ...from,
      filter: only('Point'),
      layout: { visibility },
      paint: {
        ...paint['event-point'],
        'circle-radius': ['interpolate', ['linear'], ['zoom'], 1, 2.6, 6, 4, 12, 6.5],
        'circle-stroke-color': p.rim,
        'circle-stroke-width': ['interpolate', ['linear'], ['zoom'], 2, 0.4, 8, 1.2],
      },
    },
  ];
}
