// The columns of the table, and their values as text.
import type { Feature } from 'geojson';
import type { Field, Schema } from '../api';
import { formatValue } from '../numbers';
import { formatEventTime } from '../time';

export interface Column {
  readonly name: string;
  readonly title: string;
  readonly numeric: boolean;
  readonly time: boolean;
  readonly sortable: boolean;
}

/** Fields that name an event. They come first, whatever their order in the schema. */
const NAMING = /^(name|title|label|place)$/i;

/** Times first, then the chosen field, then names, then the rest in the order of the schema. */
export function columnsOf(schema: Schema, field: string): Column[] {
  const rank = (name: string): number => (schema.times.includes(name) ? 0 : name === field ? 1 : NAMING.test(name) ? 2 : 3);
  return schema.fields
    .slice()
    .sort((a, b) => rank(a.name) - rank(b.name))
    .map(({ name, title, kind }: Field) => ({ name, title, numeric: kind === 'int' || kind === 'float', time: kind === 'time', sortable: kind !== 'list' }));
}

/** A property as text; `exact` keeps all digits of numbers. */
export function formatProperty(value: unknown, exact = false): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return exact ? String(value) : Number.isInteger(value) ? String(value) : formatValue(value);
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The text of a cell. */
export function cellText(feature: Feature, { name, time }: Column): string {
  const value: unknown = feature.properties?.[name];
  return time && typeof value === 'string' ? formatEventTime(value) : formatProperty(value);
}

/** What the server is asked to sort by: what was chosen, else the newest first. Empty where neither is possible. */
export function sortOf(sort: string, schema: Schema, near: boolean): string {
  // A circle has an order of its own: the nearest first.
  if (near) return '';
  const name = sort.replace(/^-/, '');
  if (schema.fields.some((field) => field.name === name && field.kind !== 'list')) return sort;
  return schema.times[0] ? `-${schema.times[0]}` : '';
}

/** The next order of a column that is clicked: largest first, smallest first, then as it was. */
export function turned(sort: string, { name }: Column): string {
  return sort === `-${name}` ? name : sort === name ? '' : `-${name}`;
}
