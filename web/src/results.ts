// One event: where it is, its id, and its details in a popup.
import type { Feature, Geometry, Position } from 'geojson';
import { collectionPath, type Schema } from './api';
import { make } from './dom';
import type { LngLat } from './shapes';
import { columnsOf, formatProperty } from './table/columns';
import { formatEventTime, formatZonedTime } from './time';

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

/** The content of the popup of an event. */
export function eventCard(feature: Feature, schema: Schema, field: string, collection: string): HTMLElement {
  const card = make('div', 'card');
  const id = idOf(feature);
  const properties = feature.properties ?? {};
  const [time] = schema.times;
  const when: unknown = time && properties[time];
  if (typeof when === 'string') card.append(make('p', 'card-time', formatZonedTime(when)));
  const list = make('dl');
  for (const { name, title, time: isTime } of columnsOf(schema, field)) {
    const value: unknown = properties[name];
    if (name === time || value === null || value === undefined || value === '') continue;
    const dated = isTime && typeof value === 'string';
    list.append(make('dt', '', title), make('dd', dated ? 'time' : '', dated ? formatEventTime(value) : formatProperty(value, true)));
  }
  card.append(list);
  const foot = make('p', 'card-foot');
  foot.append(make('span', '', id));
  // An event of a file has no address.
  if (collection) foot.append(make('a', '', 'GeoJSON', { href: `${collectionPath(collection)}/items/${encodeURIComponent(id)}?f=json`, target: '_blank', rel: 'noopener' }));
  card.append(foot);
  return card;
}
