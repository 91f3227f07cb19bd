// The HTTP API, as far as the page uses it. Every address is on the page's own origin.
import type { Feature, FeatureCollection } from 'geojson';
import type { Group } from './bars';
import type * as Contract from './contract';
import { signed, signInAgain } from './session';

/** An error: the server's problem (RFC 9457), or the page's own message if the server did not answer. */
export class Problem extends Error {
  constructor(
    readonly title: string,
    readonly detail: string,
    readonly status: number,
    /** The parameter or property at fault. */
    readonly field: string,
  ) {
    super(detail ? `${title}: ${detail}` : title);
  }
}

/** Max wait for an answer, in milliseconds. */
const PATIENCE = 60_000;

/** Reads the problem of an answer whose status is not 2xx. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '');
  const title = response.status === 429 || response.status === 503 ? 'The server is busy' : `The server answered ${response.status}`;
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const word = (key: string): string => (typeof body[key] === 'string' ? body[key] : '');
    return new Problem(word('title') || title, word('detail'), response.status, word('field'));
  } catch {
    return new Problem(title, text.length < 200 && !text.startsWith('<') ? text.trim() : '', response.status, '');
  }
}

/** Sends a request. Every failure is a `Problem`. `patience` bounds the whole answer, in milliseconds; a stream has none. */
export async function call(path: string, signal: AbortSignal, init: RequestInit = {}, patience = PATIENCE): Promise<Response> {
  const late = patience === Infinity ? null : AbortSignal.timeout(patience);
  let response: Response;
  try {
    response = await fetch(path, { ...(await signed(init)), signal: late ? AbortSignal.any([signal, late]) : signal });
  } catch (error) {
    if (signal.aborted) throw error;
    if (late?.aborted) throw new Problem('No answer', `The server did not answer within ${patience / 1000} seconds.`, 0, '');
    throw new Problem('The server cannot be reached', 'Check that it is running, then try again.', 0, '');
  }
  if (response.status === 401) void signInAgain();
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** One GET that answers JSON. */
export async function get<T>(path: string, signal: AbortSignal, accept = 'application/json'): Promise<T> {
  return (await (await call(path, signal, { headers: { accept } })).json()) as T;
}

export type FieldKind = 'text' | 'int' | 'float' | 'bool' | 'time' | 'list';

export interface Field {
  readonly name: string;
  readonly title: string;
  readonly kind: FieldKind;
}

export interface Collection {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  /** West, south, east, north of all events; null when none has a place. */
  readonly bbox: readonly [number, number, number, number] | null;
  /** First and last instant in milliseconds; null when no event has a time. */
  readonly interval: readonly [number, number] | null;
  /** Events in the collection, if the list gives the count. */
  readonly count: number | null;
}

export interface Schema {
  /** The properties, without geometry. */
  readonly fields: readonly Field[];
  /** Name of the geometry in filters; null when events have no place. */
  readonly geometry: string | null;
  /** Whether each place is one point. */
  readonly arePoints: boolean;
  /** Names of the time fields: one instant, or start and end; empty when events have no time. */
  readonly times: readonly string[];
  /** Name of the field that names a moving object; empty where there is none. */
  readonly object: string;
}

function collectionOf(json: Contract.Collection): Collection {
  const bbox = json.extent?.spatial?.bbox[0];
  const [start, last] = (json.extent?.temporal?.interval[0] ?? []).map((text) => (text ? Date.parse(text) : null));
  // Without a last instant the histogram ends today. Without a first one it begins a year before its end.
  const end = last === null ? Math.max(Date.now(), start ?? 0) : last;
  const from = start === null && end !== undefined ? end - 365 * 86_400_000 : start;
  return {
    id: json.id,
    title: json.title || json.id,
    description: json.description ?? '',
    bbox: bbox ?? null,
    interval: typeof from === 'number' && from <= end ? [from, end] : null,
    count: json.itemCount ?? null,
  };
}

interface PropertyJson {
  type?: string | string[];
  format?: string;
  title?: string;
  'x-ogc-role'?: string;
  'x-meridian-object'?: boolean;
  $ref?: string;
}

function fieldKind(property: PropertyJson): FieldKind {
  const type = Array.isArray(property.type) ? property.type.find((t) => t !== 'null') : property.type;
  if (property.format === 'date-time' || property.format === 'date') return 'time';
  switch (type) {
    case 'integer':
      return 'int';
    case 'number':
      return 'float';
    case 'boolean':
      return 'bool';
    case 'array':
      return 'list';
    default:
      return 'text';
  }
}

function schemaOf(json: { properties?: Record<string, PropertyJson> }): Schema {
  const fields: Field[] = [];
  let geometry: string | null = null;
  let arePoints = false;
  let instant = '';
  let object = '';
  const interval = ['', ''];
  for (const [name, property] of Object.entries(json.properties ?? {})) {
    const role = property['x-ogc-role'] ?? '';
    if (role === 'primary-geometry' || property.format?.startsWith('geometry-')) {
      if (geometry === null) [geometry, arePoints] = [name, property.format === 'geometry-point'];
      continue;
    }
    if (role === 'id') continue;
    if (property['x-meridian-object']) object = name;
    if (role === 'primary-instant') instant = name;
    if (role === 'primary-interval-start') interval[0] = name;
    if (role === 'primary-interval-end') interval[1] = name;
    fields.push({ name, title: property.title ?? name, kind: fieldKind(property) });
  }
  return { fields, geometry, arePoints, times: instant ? [instant] : interval.filter(Boolean), object };
}

export const collectionPath = (id: string): string => `/collections/${encodeURIComponent(id)}`;

/** Address pattern of the vector tiles with {z}, {y} and {x}. */
export const tilesPath = (id: string, query: URLSearchParams): string => `${collectionPath(id)}/tiles/WebMercatorQuad/{z}/{y}/{x}?${query}`;

/** The address of one tile. */
export const tileAt = (pattern: string, z: number, row: number, column: number): string => pattern.replace('{z}', String(z)).replace('{y}', String(row)).replace('{x}', String(column));

export async function collections(signal: AbortSignal): Promise<Collection[]> {
  const json = await get<Contract.CollectionList>('/collections?f=json', signal);
  return json.collections.map(collectionOf);
}

export async function collection(id: string, signal: AbortSignal): Promise<Collection> {
  return collectionOf(await get<Contract.Collection>(`${collectionPath(id)}?f=json`, signal));
}

export async function schema(id: string, signal: AbortSignal): Promise<Schema> {
  return schemaOf(await get(`${collectionPath(id)}/schema`, signal, 'application/schema+json, application/json'));
}

export async function aggregate(id: string, functions: readonly string[], query: URLSearchParams, signal: AbortSignal): Promise<Group[]> {
  const all = new URLSearchParams(query);
  all.set('function', functions.join(','));
  const json = await get<{ groups?: Group[] }>(`${collectionPath(id)}/aggregate?${all}`, signal);
  return json.groups ?? [];
}

/** One page of events, and the address of the next. */
export interface Page {
  readonly features: readonly Feature[];
  readonly next: string | null;
}

export function itemsPath(id: string, query: URLSearchParams, limit: number): string {
  const all = new URLSearchParams(query);
  all.set('limit', String(limit));
  all.set('f', 'json');
  return `${collectionPath(id)}/items?${all}`;
}

export async function page(path: string, signal: AbortSignal): Promise<Page> {
  const json = await get<Omit<Contract.FeatureCollection, 'features'> & FeatureCollection>(path, signal, 'application/geo+json');
  const href = json.links?.find((link) => link.rel === 'next')?.href;
  // Behind a proxy the server may not know its public name, and a link to another host must not be followed.
  // So only path and query are used.
  const next = href ? new URL(href, location.href) : null;
  return { features: json.features ?? [], next: next && next.pathname + next.search };
}

export async function item(id: string, event: string, signal: AbortSignal): Promise<Feature> {
  return get<Feature>(`${collectionPath(id)}/items/${encodeURIComponent(event)}?f=json`, signal, 'application/geo+json');
}
