// The table of events, and the details of one event.
import type { Feature, Geometry, Position } from 'geojson';
import { collectionPath, type Schema } from './api';
import { make } from './dom';
import { formatValue } from './numbers';
import type { LngLat } from './shapes';
import { formatEventTime, parseInstant } from './time';

/** A property as text; `exact` keeps all digits of numbers. */
export function formatProperty(value: unknown, exact = false): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return exact ? String(value) : Number.isInteger(value) ? String(value) : formatValue(value);
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The position that marks an event: its point, or the middle of its line or first ring. */
export function anchorOf(geometry: Geometry | null): LngLat | null {
  if (!geometry) return null;
  if (geometry.type === 'GeometryCollection') return anchorOf(geometry.geometries[0] ?? null);
  if (geometry.type === 'Point') return [geometry.coordinates[0], geometry.coordinates[1]];
  const deep = geometry.coordinates as unknown[];
  const positions = deep.flat(4 as 1) as number[];
  const width = dimension(geometry.coordinates as never);
  if (geometry.type === 'LineString' || geometry.type === 'MultiLineString' || geometry.type === 'MultiPoint') {
    const at = Math.floor(positions.length / width / 2) * width;
    return [positions[at], positions[at + 1]];
  }
  let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i + 1 < positions.length; i += width) {
    west = Math.min(west, positions[i]);
    east = Math.max(east, positions[i]);
    south = Math.min(south, positions[i + 1]);
    north = Math.max(north, positions[i + 1]);
  }
  return west <= east ? [(west + east) / 2, (south + north) / 2] : null;
}

function dimension(coordinates: Position | Position[]): number {
  let part: unknown = coordinates;
  while (Array.isArray(part) && Array.isArray(part[0])) part = part[0];
  return Array.isArray(part) ? part.length : 2;
}

export const idOf = (feature: Feature): string => String(feature.id ?? '');

interface Column {
  readonly name: string;
  readonly title: string;
  readonly numeric: boolean;
  readonly time: boolean;
}

/** Fields that name an event. They come first, whatever their order in the schema. */
const NAMING = /^(name|title|label|place)$/i;

/** Times first, then the chosen field, then names, then the rest in the order of the schema. */
function columnsOf(schema: Schema, field: string): Column[] {
  const rank = (name: string): number => (schema.times.includes(name) ? 0 : name === field ? 1 : NAMING.test(name) ? 2 : 3);
  return schema.fields
    .slice()
    .sort((a, b) => rank(a.name) - rank(b.name))
    .map(({ name, title, kind }) => ({ name, title, numeric: kind === 'int' || kind === 'float', time: kind === 'time' }));
}

export class ResultsTable {
  private chosen = '';

  constructor(
    private readonly table: HTMLTableElement,
    /** Called with the event whose row was clicked. */
    private readonly clicked: (feature: Feature) => void,
  ) {}

  show(features: readonly Feature[], schema: Schema, field: string): void {
    if (!features.length) return this.table.replaceChildren();
    const columns = columnsOf(schema, field);
    const head = make('tr');
    for (const column of columns) head.append(make('th', column.numeric ? 'number' : '', column.title, { scope: 'col' }));
    head.append(make('th', '', 'id', { scope: 'col' }));
    const body = make('tbody');
    for (const feature of features) {
      const row = make('tr', '', '', { tabindex: '0', 'data-id': idOf(feature) });
      for (const column of columns) {
        const value: unknown = feature.properties?.[column.name];
        const text = column.time && typeof value === 'string' ? formatEventTime(value) : formatProperty(value);
        row.append(make('td', column.numeric ? 'number' : column.time ? 'time' : '', text, text.length > 24 ? { title: text } : {}));
      }
      row.append(make('td', 'id', idOf(feature)));
      row.addEventListener('click', () => this.clicked(feature));
      row.addEventListener('keydown', (e) => {
        if (e.key === 'Enter' || e.key === ' ') this.clicked(feature);
        else if (e.key === 'ArrowDown') (row.nextElementSibling as HTMLElement | null)?.focus();
        else if (e.key === 'ArrowUp') (row.previousElementSibling as HTMLElement | null)?.focus();
        else return;
        e.preventDefault();
      });
      body.append(row);
    }
    const header = make('thead');
    header.append(head);
    this.table.replaceChildren(header, body);
    this.mark(this.chosen);
  }

  /** Marks the row of an event, if it is on this page, and scrolls to it. */
  mark(id: string): void {
    this.chosen = id;
    for (const row of this.table.querySelectorAll<HTMLElement>('tbody tr')) {
      const is = id !== '' && row.dataset['id'] === id;
      row.classList.toggle('chosen', is);
      row.setAttribute('aria-selected', String(is));
      if (is) row.scrollIntoView({ block: 'nearest' });
    }
  }
}

/** The content of the popup of an event. */
export function eventCard(feature: Feature, schema: Schema, field: string, collection: string): HTMLElement {
  const card = make('div', 'card');
  const id = idOf(feature);
  const properties = feature.properties ?? {};
  const [time] = schema.times;
  const when: unknown = time && properties[time];
  if (typeof when === 'string') {
    const ms = parseInstant(when);
    card.append(make('p', 'card-time', Number.isNaN(ms) ? when : `${formatEventTime(when)} UTC`));
  }
  const list = make('dl');
  for (const { name, title, time: isTime } of columnsOf(schema, field)) {
    const value: unknown = properties[name];
    if (name === time || value === null || value === undefined || value === '') continue;
    const text = isTime && typeof value === 'string' ? formatEventTime(value) : formatProperty(value, true);
    list.append(make('dt', '', title), make('dd', '', text));
  }
  card.append(list);
  const foot = make('p', 'card-foot');
  foot.append(make('span', '', id), make('a', '', 'GeoJSON', { href: `${collectionPath(collection)}/items/${encodeURIComponent(id)}?f=json`, target: '_blank', rel: 'noopener' }));
  card.append(foot);
  return card;
}
