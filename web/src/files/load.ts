// Loads a file on the map into a collection of the server: an existing one, or a new one with a schema from the file.
import type { Feature } from 'geojson';
import * as api from '../api';
import type { App } from '../app';
import { $, make, toast } from '../dom';
import { formatCount } from '../numbers';
import { mayManage } from '../session';
import type { MapFile } from './files';
import { commandOf, sayNote } from './notes';
import type { FileContent } from './read';

/** Max bytes of one request; the server takes more by default. */
const BATCH = 2_000_000;

/** The geometry type that all events fit. */
function geometryFormat(features: readonly Feature[]): string {
  const types = [...new Set(features.map(({ geometry }) => geometry.type))];
  const one: Record<string, string> = { Point: 'point', LineString: 'linestring', Polygon: 'polygon', MultiPoint: 'multipoint', MultiLineString: 'multilinestring', MultiPolygon: 'multipolygon' };
  if (types.length === 1) return `geometry-${one[types[0]] ?? 'any'}`;
  for (const kind of ['point', 'linestring', 'polygon']) if (types.every((type) => one[type]?.endsWith(kind))) return `geometry-${kind}-or-multi${kind}`;
  return 'geometry-any';
}

const TYPES = { text: { type: 'string' }, int: { type: 'integer' }, float: { type: 'number' }, bool: { type: 'boolean' }, time: { type: 'string', format: 'date-time' } } as const;

/** The property that keeps the ids of a file: its own ids if each event has a distinct one, else a text, as `meridian load` has them. */
function idProperty({ features, fields }: FileContent): Record<string, object> {
  const ids = features.flatMap(({ id }) => (typeof id === 'string' || typeof id === 'number' ? [String(id)] : []));
  if (!ids.length) return {};
  const own = new Set(ids).size === features.length && !fields.some(({ name }) => name === 'id');
  return own ? { id: { type: 'string', 'x-ogc-role': 'id' } } : { feature_id: { type: 'string' } };
}

/** A schema that takes the events of a file. */
export function schemaOf(content: FileContent): object {
  const { features, fields } = content;
  const dates = (name: string): boolean => features.every(({ properties }) => ((properties?.[name] as string | undefined)?.length ?? 10) === 10);
  const properties: Record<string, object> = { geometry: { format: geometryFormat(features), 'x-ogc-role': 'primary-geometry' }, ...idProperty(content) };
  // Each event must have the time of a collection.
  const time = fields.find(({ name, kind }) => kind === 'time' && features.every((feature) => feature.properties?.[name] !== undefined))?.name;
  for (const { name, kind } of fields) {
    const format = kind === 'time' && dates(name) ? { type: 'string', format: 'date' } : TYPES[kind];
    properties[name] = { ...format, ...(name === time ? { 'x-ogc-role': 'primary-instant' } : {}) };
  }
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties };
}

/** The events as lines of NDJSON, in bodies of limited size. */
export function* bodiesOf({ features }: FileContent, bytes = BATCH): Generator<string> {
  let body: string[] = [];
  let size = 0;
  for (const { id, geometry, properties } of features) {
    const line = JSON.stringify({ type: 'Feature', id, geometry, properties });
    if (size + line.length > bytes && body.length) {
      yield body.join('\n');
      [body, size] = [[], 0];
    }
    body.push(line);
    size += line.length + 1;
  }
  if (body.length) yield body.join('\n');
}

const nameOf = (file: string): string => file.replace(/(\.(geo)?jsonl?|\.ndjson|\.csv|\.tsv|\.geojsons)+$/i, '').replace(/[^A-Za-z0-9_.-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '').slice(0, 100) || 'events';

/** A name for a load. `randomUUID` is not there on pages without TLS. */
const newKey = (): string => Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(16)).join('');

/** Loads a file. With the same key it may be repeated: what is there already is not written again. */
async function load(file: MapFile, name: string, fresh: boolean, key: string, said: (done: number) => void, signal: AbortSignal): Promise<number> {
  const path = api.collectionPath(name);
  if (fresh) await api.call(path, signal, { method: 'PUT', headers: { 'content-type': 'application/schema+json' }, body: JSON.stringify(schemaOf(file.content)) });
  let [written, n] = [0, 0];
  for (const body of bodiesOf(file.content)) {
    const headers = { 'content-type': 'application/x-ndjson', 'idempotency-key': `${key}-${n++}` };
    const answer = (await (await api.call(`${path}/items`, signal, { method: 'POST', headers, body })).json()) as { written: number; duplicates: number };
    written += answer.written + answer.duplicates;
    said(written);
  }
  return written;
}

/** Asks where to load a file, and loads it there. */
export async function askToLoad(app: App, file: MapFile): Promise<void> {
  const dialog = $<HTMLDialogElement>('load-dialog');
  const [target, name, state, go] = [$<HTMLSelectElement>('load-target'), $<HTMLInputElement>('load-name'), $('load-state'), $<HTMLButtonElement>('load-go')];
  const manages = await mayManage();
  target.replaceChildren(...(manages ? [make('option', '', 'a new collection', { value: '' })] : []), ...app.list().map((c) => make('option', '', c.title, { value: c.id })));
  name.value = nameOf(file.name);
  const total = file.content.features.length;
  const { notes, placeless, misplaced } = file.content;
  state.textContent = `${formatCount(total)} events, ${file.content.fields.length} fields${placeless ? `; not loaded: ${formatCount(placeless)} without a place${misplaced && `, ${misplaced}`}` : ''}`;
  $('load-notes').hidden = !notes.length;
  $('load-notes-list').replaceChildren(...notes.map((note) => make('li', '', sayNote(note))));
  const draw = (): void => {
    $('load-name-room').hidden = target.value !== '';
    const into = target.value || name.value.trim() || 'COLLECTION';
    $('load-command').textContent = commandOf(notes, into, file.name, location.origin);
    $('load-command').hidden = !notes.some(({ options }) => options);
  };
  name.oninput = draw;
  target.onchange = draw;
  draw();
  const stop = new AbortController();
  const key = newKey();
  $('load-cancel').onclick = () => dialog.close();
  dialog.onclose = () => stop.abort();
  go.disabled = false;
  $<HTMLFormElement>('load-form').onsubmit = (e) => {
    e.preventDefault();
    const fresh = target.value === '';
    const into = fresh ? name.value.trim() : target.value;
    if (!into) return name.focus();
    go.disabled = true;
    load(file, into, fresh, key, (done) => (state.textContent = `${formatCount(done)} of ${formatCount(total)} written`), stop.signal).then(
      (written) => {
        dialog.close();
        toast(`${formatCount(written)} events written to ${into}`);
        location.hash = `c=${encodeURIComponent(into)}`;
        location.reload();
      },
      (error: unknown) => {
        go.disabled = false;
        if (!stop.signal.aborted) state.textContent = error instanceof Error ? error.message : String(error);
      },
    );
  };
  dialog.showModal();
}
