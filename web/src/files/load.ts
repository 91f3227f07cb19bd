// Loads a file on the map into a collection of the server: an existing one, or a new one with a schema from the file.
import type { Feature } from 'geojson';
import * as api from '../api';
import type { App } from '../app';
import { $, make, toast } from '../dom';
import { formatCount } from '../numbers';
import { mayManage } from '../session';
import type { MapFile } from './files';
import { commandOf, sayNote } from './notes';
import { idColumn, recordOf, type FileContent, type Origin } from './read';

/** Max bytes of one request; the server takes more by default. */
const BATCH = 2_000_000;

/** A property of a schema. */
interface Property {
  type?: string;
  format?: string;
  items?: { readonly type: string };
  readOnly?: boolean;
  'x-ogc-role'?: string;
}

interface Schema {
  readonly properties: Record<string, Property | undefined>;
  /** The id, where a field has its name too. */
  readonly 'x-meridian-id'?: { readonly name: string; readonly given: boolean };
}

/** The geometry type that all events fit, by the name that the server has for it. */
function geometryFormat(features: readonly Feature[]): string {
  const types = [...new Set(features.map(({ geometry }) => geometry.type))];
  const one: Record<string, string> = { Point: 'point', LineString: 'linestring', Polygon: 'polygon', MultiPoint: 'multipoint', MultiLineString: 'multilinestring', MultiPolygon: 'multipolygon' };
  if (types.length === 1 && !types[0].startsWith('Multi')) return `geometry-${one[types[0]] ?? 'any'}`;
  for (const kind of ['point', 'linestring', 'polygon']) if (types.every((type) => one[type]?.endsWith(kind))) return `geometry-${kind}-or-multi${kind}`;
  return 'geometry-any';
}

const TYPES = { text: { type: 'string' }, int: { type: 'integer' }, float: { type: 'number' }, bool: { type: 'boolean' }, time: { type: 'string', format: 'date-time' }, list: { type: 'array', items: { type: 'string' } } } as const;
/** Roles of an instant, and of start and end. */
const ROLES = [['primary-instant'], ['primary-interval-start', 'primary-interval-end']] as const;

/** What keeps the ids of a file: ids of the collection if each event has a distinct one, else a text, as `meridian load` has them. */
function idsOf({ features, fields, id }: FileContent): Schema {
  if (!id) return { properties: features.some(({ id: own }) => typeof own === 'string' || typeof own === 'number') ? { feature_id: { type: 'string' } } : {} };
  if (id.member && fields.some(({ name }) => name === id.name)) return { properties: {}, 'x-meridian-id': { name: id.name, given: true } };
  return { properties: { [id.name]: { type: 'string', 'x-ogc-role': 'id' } } };
}

/** A schema that takes the events of a file. */
export function schemaOf(content: FileContent): Schema & Record<string, unknown> {
  const { features, fields, times } = content;
  const dates = (name: string): boolean => features.every(({ properties }) => ((properties?.[name] as string | undefined)?.length ?? 10) === 10);
  const { properties: ids, ...ofRoot } = idsOf(content);
  // The place has a name that no field has, as in crates/formats/src/infer/guess.rs. In an event it is the member `geometry`, whatever its name.
  const names = new Set([...Object.keys(ids), ...fields.map(({ name }) => name)]);
  const place = [content.place, 'geom', 'shape', 'place', '@geometry'].find((name) => !names.has(name)) ?? content.place;
  const ofFields = fields.filter((field) => field.name !== idColumn(content)).map(({ name, kind }): [string, Property] => {
    const format = kind === 'time' && dates(name) ? { type: 'string', format: 'date' } : TYPES[kind];
    const at = times.indexOf(name);
    return [name, { ...format, ...(at < 0 ? {} : { 'x-ogc-role': ROLES[times.length - 1][at] }) }];
  });
  const properties = recordOf<Property | undefined>([[place, { format: geometryFormat(features), 'x-ogc-role': 'primary-geometry' }], ...Object.entries(ids), ...ofFields]);
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', ...ofRoot, properties };
}

/** Whether a collection has all properties of a file as the file has them. The place may have another name. */
export function takes(there: Schema, schema: Schema): boolean {
  const isGiven = ({ 'x-meridian-id': id }: Schema): boolean => id?.given ?? false;
  const same = (a: Property | undefined, b: Property | undefined): boolean => (['type', 'format', 'readOnly', 'x-ogc-role'] as const).every((key) => a?.[key] === b?.[key]);
  const isPlace = (property: Property | undefined): boolean => property?.['x-ogc-role'] === 'primary-geometry';
  const place = Object.values(there.properties).find(isPlace);
  return isGiven(there) === isGiven(schema) && Object.entries(schema.properties).every(([name, property]) => same(isPlace(property) ? place : there.properties[name], property));
}

/** The events as lines of NDJSON for a collection of this schema, in bodies of limited size. */
export function* bodiesOf(content: FileContent, bytes = BATCH, there: Schema = schemaOf(content)): Generator<string> {
  // A collection may have a field of the name of the ids.
  const ids = idColumn(content);
  const property = there.properties[ids];
  const areIds = ids !== '' && (property === undefined || property['x-ogc-role'] === 'id');
  let body: string[] = [];
  let size = 0;
  for (const { id, geometry, properties } of content.features) {
    const own = areIds ? { id: String(properties?.[ids]), geometry, properties: { ...properties, [ids]: undefined } } : { id, geometry, properties };
    const line = JSON.stringify({ type: 'Feature', ...own });
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

/** Odd numbers, one for each word of a digest. */
const PRIMES = [0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f] as const;

/**
 * Names the batches of a load, each by all that is sent up to its end, as crates/cli/src/load/digest.rs does: the same file has
 * the same names, so that no event is stored twice. The server refuses a name with other events, and pages without TLS have no
 * digest of the browser.
 */
export class Digest {
  private words: number[] = [...PRIMES];
  private count = 0;

  /** The idempotency key of the next batch. */
  key(body: string): string {
    let [a, b, c, d] = this.words;
    for (let i = 0; i <= body.length; i++) {
      // A 0 ends a batch.
      const code = i < body.length ? body.charCodeAt(i) : 0;
      a = Math.imul(((a ^ code) << 13) | ((a ^ code) >>> 19), PRIMES[0]);
      b = Math.imul(((b ^ code) << 13) | ((b ^ code) >>> 19), PRIMES[1]);
      c = Math.imul(((c ^ code) << 13) | ((c ^ code) >>> 19), PRIMES[2]);
      d = Math.imul(((d ^ code) << 13) | ((d ^ code) >>> 19), PRIMES[3]);
    }
    this.words = [a, b, c, d];
    return `map:${this.words.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')}:${this.count++}`;
  }
}

/** What a batch was refused for, with the places that its events have in the file; `before` events were in earlier batches. */
export function inFile(refusal: string, { unit, numbers }: Origin, before: number): string {
  const placed = (all: string, n: string): string => {
    const at = numbers.at(before + Number(n) - 1);
    return at === undefined ? all : `${unit} ${at}`;
  };
  return refusal
    .replace(/^(\d+ mistakes), nothing was written; /, '$1 in this batch; ')
    .replace(/(?<=^|^\d+ mistakes in this batch; the first: )(?:line|feature) (\d+)(?=: )/, placed)
    .replace(/event (\d+)(?=: an id may stand once$)/, placed);
}

const schemaAt = (path: string, signal: AbortSignal): Promise<Schema> => api.get<Schema>(`${path}/schema`, signal, 'application/schema+json, application/json');

/** Makes the collection of a file. Returns its tag, or null if the name has one already, which takes the file. */
async function makeFor(content: FileContent, path: string, signal: AbortSignal): Promise<string | null> {
  const schema = schemaOf(content);
  try {
    // Only a new one: without the condition, an empty collection of someone else would get this schema.
    await api.call(path, signal, { method: 'PUT', headers: { 'content-type': 'application/schema+json', 'if-none-match': '*' }, body: JSON.stringify(schema) });
    // Without its tag it stays with a refused file.
    const answer = await api.call(path, signal, { headers: { accept: 'application/json' } }).catch(() => null);
    return answer?.headers.get('etag') ?? '';
  } catch (error) {
    if (!(error instanceof api.Problem) || error.status !== 412) throw error;
  }
  if (!takes(await schemaAt(path, signal), schema)) throw new api.Problem('The name is taken', 'its collection lacks fields of the file, or has them with other types; choose another name, or load into that collection', 412, 'name');
  return null;
}

/** Removes the collections that were made for a refused file, where nobody has written to them. */
async function removeEmpty(empty: Map<string, string>, signal: AbortSignal): Promise<void> {
  for (const [name, tag] of [...empty].filter(([, tag]) => tag !== '')) {
    await api.call(api.collectionPath(name), signal, { method: 'DELETE', headers: { 'if-match': tag } }).then(
      () => empty.delete(name),
      () => false,
    );
  }
}

/** Without a refusal it is not known whether the events were written. */
const isRefusal = (error: unknown): boolean => error instanceof api.Problem && error.status >= 400 && error.status < 500;

/** Events of a load that are in the collection. */
interface Loaded {
  readonly written: number;
  /** Those of them that an earlier load wrote. */
  readonly before: number;
}

/** Loads a file. It may be repeated: what is there already is not written again. `empty` has the collections that were made for it and hold nothing, with their tags. */
async function load(file: MapFile, name: string, fresh: boolean, empty: Map<string, string>, said: (done: number) => void, signal: AbortSignal): Promise<Loaded> {
  const path = api.collectionPath(name);
  const tag = fresh ? await makeFor(file.content, path, signal) : null;
  if (tag !== null) empty.set(name, tag);
  let [written, before, sent] = [0, 0, 0];
  const digest = new Digest();
  const schema = fresh ? schemaOf(file.content) : await schemaAt(path, signal);
  for (const body of bodiesOf(file.content, BATCH, schema)) {
    const headers = { 'content-type': 'application/x-ndjson', 'idempotency-key': digest.key(body) };
    const answered = api.call(`${path}/items`, signal, { method: 'POST', headers, body }).catch((error: unknown) => {
      if (!(error instanceof api.Problem)) throw error;
      throw new api.Problem(error.title, inFile(error.detail, file.content.origin, sent), error.status, error.field);
    });
    const answer = (await (await answered).json()) as { written: number; duplicates: number };
    empty.delete(name);
    written += answer.written + answer.duplicates;
    before += answer.duplicates;
    sent += body.split('\n').length;
    said(written);
  }
  return { written, before };
}

/** What a load has done. */
export const sayLoaded = ({ written, before }: Loaded, into: string): string =>
  before < written ? `${formatCount(written - before)} events written to ${into}${before ? `; ${formatCount(before)} were in already` : ''}` : `Already loaded: ${into} has got these events, and none is written again`;

/** Why a file was not loaded, with the events of it that are in the collection `into`, and the collections that were made for it and stay. */
export function sayFailure(error: unknown, made: ReadonlyMap<string, string>, origin: string, written: number, into: string): string {
  const why = error instanceof Error ? error.message : String(error);
  const kept = written ? [`${formatCount(written)} events are in ${into} already, and stay: Load does not write them again, also if the file is corrected after them`] : [];
  const left = isRefusal(error) ? [...made.keys()].map((name) => `The collection ${name} is made, and stays: meridian drop ${name} --url ${origin} removes it`) : [];
  return [why, ...kept, ...left].join('. ');
}

/** Why a file is not loaded from here; empty where it may be. What the browser has read differs from the file, or the loader refuses it too. */
export function refusalOf({ inexact, misshapen, unkept }: FileContent): string {
  if (misshapen) return `A place cannot be read, also by meridian load: ${misshapen}.`;
  return unkept ? `A field holds values of one kind, and lists hold texts only, also for meridian load. The first value that does not fit is ${unkept}. As text, or as fields of its own, it is loaded.` : inexact && `The browser would change whole numbers beyond 2^53, the first of which is ${inexact}. The command above, meridian load, keeps them.`;
}

/** Asks where to load a file, and loads it there. */
export async function askToLoad(app: App, file: MapFile): Promise<void> {
  const dialog = $<HTMLDialogElement>('load-dialog');
  const [target, name, state, go] = [$<HTMLSelectElement>('load-target'), $<HTMLInputElement>('load-name'), $('load-state'), $<HTMLButtonElement>('load-go')];
  const manages = await mayManage();
  target.replaceChildren(...(manages ? [make('option', '', 'a new collection', { value: '' })] : []), ...app.list().map((c) => make('option', '', c.title, { value: c.id })));
  name.value = nameOf(file.name);
  const total = file.content.features.length;
  const { notes, placeless, misplaced, misshapen, unkept } = file.content;
  state.textContent = `${formatCount(total)} events, ${file.content.fields.length} fields${placeless ? `; not loaded: ${formatCount(placeless)} without a place${misplaced && `, ${misplaced}`}` : ''}`;
  const refusal = refusalOf(file.content);
  if (refusal) state.textContent = refusal;
  // No command loads a value that is refused.
  const hasCommand = !unkept && !misshapen && (refusal !== '' || notes.some(({ options }) => options));
  $('load-notes').hidden = !notes.length && !hasCommand;
  $('load-notes-list').replaceChildren(...notes.map((note) => make('li', '', sayNote(note))));
  const draw = (): void => {
    $('load-name-room').hidden = target.value !== '';
    const into = target.value || name.value.trim() || 'COLLECTION';
    $('load-command').textContent = commandOf(notes, into, file.name, location.origin);
    $('load-command').hidden = !hasCommand;
  };
  name.oninput = draw;
  target.onchange = draw;
  draw();
  const stop = new AbortController();
  const empty = new Map<string, string>();
  $('load-cancel').onclick = () => dialog.close();
  dialog.onclose = () => stop.abort();
  go.disabled = refusal !== '';
  $<HTMLFormElement>('load-form').onsubmit = (e) => {
    e.preventDefault();
    const fresh = target.value === '';
    const into = fresh ? name.value.trim() : target.value;
    if (!into) return name.focus();
    go.disabled = true;
    let done = 0;
    const said = (written: number): void => {
      done = written;
      state.textContent = `${formatCount(done)} of ${formatCount(total)} written`;
    };
    load(file, into, fresh, empty, said, stop.signal).then(
      (loaded) => {
        if (loaded.before === loaded.written) {
          go.disabled = false;
          state.textContent = sayLoaded(loaded, into);
          return;
        }
        dialog.close();
        toast(sayLoaded(loaded, into));
        location.hash = `c=${encodeURIComponent(into)}`;
        location.reload();
      },
      async (error: unknown) => {
        if (isRefusal(error)) await removeEmpty(empty, stop.signal);
        go.disabled = false;
        if (!stop.signal.aborted) state.textContent = sayFailure(error, empty, location.origin, done, into);
      },
    );
  };
  dialog.showModal();
}
