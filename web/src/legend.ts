// The legend of the map: one part for each thing that is shown. A part is data, so that the page and a saved picture show the same.
import { make } from './dom';
import { isValues, radiusAt, rampOf, sizeOf, type ColorScale, type SizeScale } from './eventstyle';
import { EVENTS_MAX, OBJECTS_MAX } from './live/objects';
import { formatCount, formatMark, formatShort } from './numbers';
import type { Palette } from './palette';
import { RADIUS } from './surface/density';
import type { AverageScale, Stops } from './surface/scale';

/** A value with its count, as `top` of an aggregate gives it. */
export interface ValueCount {
  readonly value: string;
  readonly count: number;
}

/** What the map shows of a layer. */
export interface LegendInput {
  /** Name of the layer; empty where there is one alone. */
  readonly name: string;
  /** Stops of the surface of density; null where none is shown. */
  readonly surface: Stops | null;
  /** Scale of the surface of averages; null where none is shown. */
  readonly averages: AverageScale | null;
  /** Why a surface has counts although the field could be averaged: too many events, or none with a value. */
  readonly without: 'many' | 'values' | null;
  /** Opacity of the surface under single events, 0 to 1. */
  readonly strength: number;
  /** Whether events are drawn one by one. */
  readonly events: boolean;
  /** Title of the field that is to colour the events; empty for none. */
  readonly field: string;
  readonly scale: ColorScale | null;
  /** The most frequent values of the field, where it is a text; null for a number. */
  readonly values: readonly ValueCount[] | null;
  /** Events in view with and without a value of the field. */
  readonly valued: number;
  readonly lacking: number;
  /** Title of the field that sizes the events; empty for none. */
  readonly sized: string;
  readonly size: SizeScale | null;
  readonly zoom: number;
  /** How long an event of the trail takes to fade, as text; empty where no trail plays. */
  readonly fades: string;
}

/** What live mode has on the map. */
export interface LiveInput {
  /** Whether a field names an object, whose last position is shown. */
  readonly named: boolean;
  /** Events or objects, those of them with a heading, and tracks. */
  readonly count: number;
  readonly headed: number;
  readonly tracks: number;
}

export interface LegendPart {
  readonly kind: 'layer' | 'live' | 'counts' | 'trail' | 'field' | 'size';
  readonly title: string;
  /** Diameter of the circle beside the title, in pixels. */
  readonly circle?: number;
  readonly ramp?: { readonly colors: readonly string[]; readonly labels: readonly string[]; readonly opacity?: number };
  readonly rows: readonly {
    readonly color?: string;
    /** Shape of the swatch; a dot without one. */
    readonly mark?: 'arrow' | 'line';
    readonly text: string;
    readonly count?: string;
    /** The value that a click asks for. */
    readonly value?: string;
  }[];
  /** Circles of increasing size with their values. */
  readonly circles?: readonly { readonly diameter: number; readonly text: string }[];
  readonly color?: string;
}

/** Of a size where a surface is drawn. */
const MANY = 'Not on the map: the events are too many to draw one by one. Zoom in.';
/** Of a field that colours, where a surface of counts is drawn. */
const COUNTS = 'The surface shows counts of events, not this field.';
const WITHOUT = { many: 'There are too many in view to average: zoom in.', values: 'No event in view has a value.' };
/** Diameter of the circle that a surface stands for, in pixels. */
const CIRCLE = Math.round(2 * RADIUS);
/** A surface that is fainter than this is not seen, and not explained. */
const UNSEEN = 0.1;

function fieldPart(shown: LegendInput, palette: Palette): LegendPart {
  const { events, field, scale, values, valued, lacking } = shown;
  const part = { kind: 'field', title: field } as const;
  const none = (): LegendPart['rows'] => (lacking ? [{ color: palette.none, text: valued ? `no value (${formatCount(lacking)})` : 'no event in view has a value' }] : valued ? [] : [{ text: 'no event in view' }]);
  const { averages, without, strength } = shown;
  if (values && scale && isValues(scale)) {
    const rows = values.map(({ value, count }) => {
      const at = scale.values.indexOf(value);
      return { color: at < 0 ? palette.other : palette.categories[at % palette.categories.length], text: value, count: formatShort(count), value };
    });
    return { ...part, rows: [...rows, ...(events ? none() : [{ text: `${COUNTS} Zoom in to see the field on each event.` }])] };
  }
  const ramp = (stops: readonly number[]): LegendPart['ramp'] => ({ colors: rampOf(palette.values, stops.length), labels: stops.map(formatMark) });
  if (!events && averages) {
    const grey = averages.lacking ? [{ color: palette.none, text: 'no value' }] : [];
    return { ...part, title: `Average ${field}`, circle: CIRCLE, ramp: ramp(averages.stops), rows: [...grey, { text: 'In a circle this wide, where events are many. Zoom in to see each.' }] };
  }
  if (!events) return { ...part, rows: without ? [{ text: `${COUNTS} ${WITHOUT[without]}` }] : [] };
  // Grey events without an explanation would look like an error of the map.
  if (!scale || isValues(scale) || !valued) return { ...part, rows: none() };
  const below = averages && strength >= UNSEEN ? [{ text: 'Under the events is their average. It fades as you zoom in.' }] : [];
  return { ...part, ramp: ramp(scale.stops), rows: [...none(), ...below] };
}

function sizePart({ sized, size, events, zoom }: LegendInput): LegendPart {
  if (!events || !size) return { kind: 'size', title: sized, rows: [{ text: events ? 'no event in view has a value' : MANY }] };
  const values = size.high > size.low ? [size.low, (size.low + size.high) / 2, size.high] : [size.low];
  return { kind: 'size', title: sized, rows: [], circles: values.map((value) => ({ diameter: 2 * radiusAt(zoom, sizeOf(size, value)), text: formatMark(value) })) };
}

/** The parts of the legend of a layer; none where nothing needs one. */
export function legendOf(shown: LegendInput, palette: Palette): LegendPart[] {
  const parts: LegendPart[] = [];
  if (shown.name) parts.push({ kind: 'layer', title: shown.name, color: palette.point, rows: [] });
  if (shown.surface && shown.strength >= UNSEEN) {
    const ramp = { colors: palette.counts, labels: shown.surface.map(formatMark), opacity: shown.strength };
    const rows = shown.strength < 1 && shown.events ? [{ text: 'Fades as you zoom in: each point is an event.' }] : [];
    parts.push({ kind: 'counts', title: 'Events in a circle this wide', circle: CIRCLE, ramp, rows });
  }
  if (shown.fades) parts.push({ kind: 'trail', title: 'Events fade', rows: [{ text: `within ${shown.fades}` }] });
  if (shown.field) parts.push(fieldPart(shown, palette));
  if (shown.sized) parts.push(sizePart(shown));
  return parts;
}

/** The part of live mode: its marks, as far as they are drawn, and how many events or objects there are. */
export function livePart({ named, count, headed, tracks }: LiveInput, palette: Palette): LegendPart {
  const color = palette.point;
  const what = named ? 'object' : 'event';
  const rows: LegendPart['rows'] = [
    { text: 'on the map now', count: formatCount(count) },
    ...(count > headed ? [{ color, text: what }] : []),
    ...(headed ? [{ color, mark: 'arrow' as const, text: `${what} and its heading` }] : []),
    ...(tracks ? [{ color, mark: 'line' as const, text: 'track' }] : []),
  ];
  const title = named ? `Last positions, at most ${formatCount(OBJECTS_MAX)}` : `Newest events, at most ${formatCount(EVENTS_MAX)}`;
  return { kind: 'live', title, rows };
}

function swatch(color: string, mark?: LegendPart['rows'][number]['mark']): HTMLElement {
  const dot = make('em', mark ? `mark-${mark}` : '', '', { 'aria-hidden': 'true' });
  dot.style.background = color;
  return dot;
}

/** A part as an element; `ask` is called with the value of a row that is clicked. */
export function legendElement(part: LegendPart, ask: (value: string) => void): HTMLElement {
  const element = make('div', '', '', { 'data-legend': part.kind });
  const title = make('b');
  if (part.color) title.append(swatch(part.color));
  title.append(make('span', '', part.title));
  if (part.circle) {
    const circle = make('em', 'measure-circle', '', { 'aria-hidden': 'true' });
    circle.style.width = circle.style.height = `${part.circle}px`;
    title.append(circle);
  }
  element.append(title);
  if (part.ramp) {
    const { colors, labels, opacity = 1 } = part.ramp;
    const [bar, ends] = [make('i'), make('p', 'ends')];
    bar.style.background = colors.length === 1 ? colors[0] : `linear-gradient(90deg, ${colors.join(',')})`;
    bar.style.opacity = String(opacity);
    ends.append(...labels.map((text) => make('span', '', text)));
    element.append(bar, ends);
  }
  if (part.circles) {
    const row = make('p', 'circles');
    for (const { diameter, text } of part.circles) {
      const one = make('span');
      const circle = make('em', 'measure-circle', '', { 'aria-hidden': 'true' });
      circle.style.width = circle.style.height = `${diameter}px`;
      one.append(circle, text);
      row.append(one);
    }
    element.append(row);
  }
  for (const { color, mark, text, count, value } of part.rows) {
    const row = value === undefined ? make('p') : make('button', 'value', '', { type: 'button', title: `Only ${text}`, 'data-value': value });
    if (color) row.append(swatch(color, mark));
    row.append(make('span', '', text));
    if (count) row.append(make('span', 'value-count', count));
    if (value !== undefined) row.addEventListener('click', () => ask(value));
    element.append(row);
  }
  return element;
}
