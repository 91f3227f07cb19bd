// The legend of the map: one part for each thing that is shown.
import { make } from './dom';
import { rampOf, type FieldScale } from './eventstyle';
import { formatCount, formatMark } from './numbers';
import type { Palette } from './palette';
import { RADIUS } from './surface/density';
import type { Stops } from './surface/scale';

/** What the map shows. */
export interface Shown {
  /** Stops of the surface of density; null where none is shown. */
  readonly surface: Stops | null;
  /** Whether events are drawn one by one. */
  readonly events: boolean;
  /** Title of the field that is to colour the events; empty for none. */
  readonly field: string;
  readonly scale: FieldScale | null;
  /** Events in view with and without a value of the field. */
  readonly valued: number;
  readonly lacking: number;
  /** How long an event of the trail takes to fade, as text; empty where no trail plays. */
  readonly fades: string;
}

function rampBar(colors: readonly string[], labels: readonly string[]): HTMLElement[] {
  const bar = make('i');
  bar.style.background = colors.length === 1 ? colors[0] : `linear-gradient(90deg, ${colors.join(',')})`;
  const ends = make('span');
  ends.append(...labels.map((text) => make('span', '', text)));
  return [bar, ends];
}

function swatch(color: string, text: string): HTMLElement {
  const note = make('p');
  const dot = make('em');
  dot.style.background = color;
  note.append(dot, text);
  return note;
}

function surfacePart(stops: Stops, { counts }: Palette): HTMLElement {
  const part = make('div', '', '', { 'data-legend': 'counts' });
  const title = make('b', '', 'Events in a circle this wide');
  const circle = make('em', 'measure-circle', '', { 'aria-hidden': 'true' });
  circle.style.width = circle.style.height = `${Math.round(2 * RADIUS)}px`;
  title.append(circle);
  part.append(title, ...rampBar(counts, stops.map(formatMark)));
  return part;
}

function trailPart(fades: string): HTMLElement {
  const part = make('div', '', '', { 'data-legend': 'trail' });
  part.append(make('b', '', 'Events fade'), make('p', '', `within ${fades}`));
  return part;
}

function fieldPart({ events, field, scale, valued, lacking }: Shown, palette: Palette): HTMLElement {
  const part = make('div', '', '', { 'data-legend': 'field' });
  part.append(make('b', '', field));
  if (!events) {
    part.append(make('p', '', 'Zoom in: single events show it.'));
    return part;
  }
  if (scale && valued) part.append(...rampBar(rampOf(palette.values, scale.stops.length), scale.stops.map(formatMark)));
  // Grey events without an explanation would look like an error of the map.
  if (lacking) part.append(swatch(palette.none, valued ? `no value (${formatCount(lacking)})` : 'no event in view has a value'));
  else if (!valued) part.append(make('p', '', 'no event in view'));
  return part;
}

/** The parts of the legend; none where nothing needs one. */
export function legendOf(shown: Shown, palette: Palette): HTMLElement[] {
  const parts: HTMLElement[] = [];
  if (shown.surface) parts.push(surfacePart(shown.surface, palette));
  if (shown.fades) parts.push(trailPart(shown.fades));
  if (shown.field) parts.push(fieldPart(shown, palette));
  return parts;
}
