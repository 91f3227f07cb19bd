// Downloads of what is selected, in every format that the server offers, and the commands for formats that it does not.
import * as api from './api';
import type { App } from './app';
import { exportCommand } from './command';
import { $, copyText, make, say, toast } from './dom';
import { asCollection, sayMissing } from './gather';
import type { View } from './hash';
import { formatBytes, formatCount } from './numbers';
import { params } from './query';
import { asks, chosen, counted, destination, LOST, type Destination } from './saving';

const NAMES: Record<string, readonly [title: string, extension: string]> = {
  json: ['GeoJSON', 'geojson'],
  csv: ['CSV', 'csv'],
  ndjson: ['NDJSON', 'ndjson'],
  geojsonseq: ['GeoJSON text sequence', 'geojsons'],
  arrow: ['Arrow stream', 'arrows'],
  parquet: ['GeoParquet', 'parquet'],
  flatgeobuf: ['FlatGeobuf', 'fgb'],
  gpkg: ['GeoPackage', 'gpkg'],
};

/** Max bytes that are read ahead while the user chooses a file. */
const AHEAD = 64e6;

/** What `meridian export` writes and the server does not, of collections whose events have places. */
const COMMANDS = [
  ['GeoPackage of any size', 'gpkg'],
  ['PMTiles', 'pmtiles'],
] as const;

interface Api {
  paths: Record<string, { get?: { parameters?: ({ name?: string; schema?: { enum?: string[] } } & { $ref?: string })[] } } | undefined>;
  components?: { parameters?: Record<string, { name?: string; schema?: { enum?: string[] } }> };
}

/** The formats that `items` names in the server's description of itself. */
export function formatsOf(document: Api): string[] {
  const path = Object.entries(document.paths).find(([name]) => /^\/collections\/[^/]+\/items$/.test(name))?.[1];
  for (const one of path?.get?.parameters ?? []) {
    const parameter = one.$ref ? document.components?.parameters?.[one.$ref.split('/').pop() ?? ''] : one;
    if (parameter?.name === 'f') return (parameter.schema?.enum ?? []).filter((format) => format !== 'html');
  }
  return [];
}

/** What is downloaded of a view. */
export function saySelected({ shape, when, filter }: Pick<View, 'shape' | 'when' | 'filter'>, { geometry, times }: Pick<api.Schema, 'geometry' | 'times'>): string {
  const parts = [];
  if (geometry !== null) parts.push(shape ? `in the ${shape.kind} that is drawn` : 'on the map as it is');
  if (times.length) parts.push(when ? 'in the chosen time' : 'of all time');
  if (filter) parts.push('of the filter');
  return parts.join(', ') || 'all of the collection';
}

const itemsPath = (id: string, query: URLSearchParams, format: string): string => `${api.collectionPath(id)}/items?${new URLSearchParams([...query, ['f', format]])}`;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A file that the page saves itself, since a link would cut it or show no progress. */
interface Download {
  readonly type: string;
  readonly address: string;
  readonly init: RequestInit;
  /** Whether a browser that does not ask for a place fetches it by a link, as memory may not hold it. */
  readonly byLink: boolean;
  /** What is said until the answer comes. */
  readonly begins: string;
  /** Fills the file with an answer of so many bytes, where the server knows. Returns what to say of it. */
  readonly fill: (body: ReadableStream<Uint8Array>, bytes: number, to: WritableStream<Uint8Array>, signal: AbortSignal) => Promise<string>;
  /** How far it is; empty while nothing came. */
  readonly far: () => string;
}

/** Any number of events as one GeoJSON document, which the server has in pages only. */
function gathered(id: string, query: URLSearchParams, count: number): Download {
  let features = 0;
  return {
    type: 'application/geo+json',
    address: itemsPath(id, query, 'ndjson'),
    init: { headers: { accept: 'application/x-ndjson' } },
    byLink: false,
    begins: 'Saving GeoJSON…',
    fill: async (body, _bytes, to, signal) => {
      const bar = $<HTMLProgressElement>('download-progress');
      [bar.max, bar.value] = [count, 0];
      const lines = asCollection((seen) => (bar.value = features = seen));
      await body.pipeThrough(lines, { signal }).pipeTo(to, { signal });
      return `${formatCount(features)} ${features === 1 ? 'event is' : 'events are'} saved. ${sayMissing(features, count)}`.trim();
    },
    far: () => `after ${formatCount(features)} of ${formatCount(count)} events`,
  };
}

/** A file that the server makes whole before it sends any of it: it takes a while, and may be refused. */
function madeFirst(format: string, type: string, id: string, query: URLSearchParams): Download {
  let [bytes, total] = [0, 0];
  return {
    type,
    address: itemsPath(id, query, format),
    init: {},
    byLink: true,
    begins: `The server makes the ${NAMES[format][0]}…`,
    fill: async (body, length, to, signal) => {
      const bar = $<HTMLProgressElement>('download-progress');
      total = length;
      [bar.max, bar.value] = [total, 0];
      say($('download-state'), `Saving ${formatBytes(total)}…`);
      await body.pipeThrough(counted((seen) => (bar.value = bytes = seen)), { signal }).pipeTo(to, { signal });
      return `${formatBytes(bytes)} are saved.`;
    },
    far: () => (bytes ? `after ${formatBytes(bytes)} of ${formatBytes(total)}` : ''),
  };
}

/** Waits until the browser may ask for a file, which it does only within seconds of a click: after a slow answer it takes another one. */
async function untilClicked(signal: AbortSignal): Promise<void> {
  if (!asks() || navigator.userActivation?.isActive !== false) return;
  const button = make('button', 'small', 'Choose the file…', { type: 'button' });
  $('download-cancel').before(button);
  button.focus();
  await new Promise<void>((resolve) => {
    button.addEventListener('click', () => resolve());
    signal.addEventListener('abort', () => resolve());
  });
  button.remove();
  signal.throwIfAborted();
}

/** Saves a file, with progress and a way to give it up. What breaks off leaves no file. */
async function save(format: string, id: string, { type, address, init, byLink, begins, fill, far }: Download, signal: AbortSignal): Promise<void> {
  const [title, extension] = NAMES[format];
  const name = `${id}.${extension}`;
  const state = $('download-state');
  const follow = (): void => {
    say(state, `The server makes the ${title}; the browser downloads it then.`);
    make('a', '', '', { href: address, download: name }).click();
  };
  if (byLink && !asks()) return follow();
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  let file: Destination | null | undefined;
  $('download-run').hidden = false;
  $('download-cancel').onclick = () => stop.abort();
  $('download-progress').removeAttribute('value');
  say(state, begins);
  try {
    const answer = await api.call(address, either, init, Infinity);
    if (!answer.body) throw new Error('the answer is empty');
    // Read ahead while the user chooses: the server disconnects a client that reads nothing.
    const ahead = new TransformStream<Uint8Array, Uint8Array>({}, undefined, new ByteLengthQueuingStrategy({ highWaterMark: AHEAD }));
    const body = answer.body.pipeThrough(ahead, { signal: either });
    await untilClicked(either);
    // Only now that the server has agreed: a browser empties the file that is replaced as soon as it is chosen.
    file = await (byLink ? chosen : destination)(name, type, title);
    if (!file) {
      if (file === undefined) follow();
      else say(state, '');
      return;
    }
    const saved = await fill(body, Number(answer.headers.get('content-length')), file.stream, either);
    file.keep();
    say(state, saved);
  } catch (error) {
    await file?.discard();
    const cancelled = file?.chosen ? `Cancelled. ${LOST}` : 'Cancelled: nothing is saved.';
    if (signal.aborted) {
      // The dialog is closed, and nobody sees its text.
      toast(`Download of ${id}: ${cancelled}`);
      return;
    }
    const begun = far() ? `The download broke off ${far()}, and nothing is saved` : 'Nothing is saved';
    const failed = `${begun}: ${messageOf(error)}`;
    say(state, stop.signal.aborted ? cancelled : file?.chosen ? `${failed} ${LOST}` : failed);
    // What the server refuses to make, the command beside it does.
    if (error instanceof api.Problem && error.field === 'f') $<HTMLDetailsElement>('download-more').open = true;
  } finally {
    // What is left of the answer, which nobody reads.
    stop.abort();
    // The progress of a closed dialog may be that of the next download.
    if (!signal.aborted) $('download-run').hidden = true;
  }
}

function linkOf(format: string, id: string, query: URLSearchParams): HTMLElement {
  const [title, extension] = NAMES[format] ?? [format, format];
  return make('a', 'button', title, { href: itemsPath(id, query, format), download: `${id}.${extension}`, 'data-format': format });
}

function buttonOf(format: string, run: () => Promise<void>): HTMLElement {
  const button = make('button', 'button', NAMES[format][0], { type: 'button', 'data-format': format });
  button.addEventListener('click', () => {
    // One at a time: there is one progress.
    const all = [...document.querySelectorAll<HTMLButtonElement>('#download-list button')];
    const disable = (disabled: boolean): void => all.forEach((one) => (one.disabled = disabled));
    disable(true);
    void run()
      .catch((error: unknown) => say($('download-state'), messageOf(error)))
      .finally(() => disable(false));
  });
  return button;
}

function commandOf(title: string, extension: string, id: string, query: URLSearchParams): HTMLElement {
  const item = make('li');
  const text = exportCommand(id, `${id}.${extension}`, query, location.origin);
  const copy = make('button', 'small', 'Copy', { type: 'button', 'aria-label': `Copy the command for ${title}` });
  copy.addEventListener('click', () => copyText(text, 'Command copied', 'Select the command and copy it'));
  item.append(make('b', '', title), copy, make('pre', '', text, { 'data-extension': extension }));
  return item;
}

/** Shows what can be downloaded. */
export async function askToDownload(app: App): Promise<void> {
  const open = app.open();
  if (!open) return;
  const { id } = open.collection;
  const query = params(app.question());
  const stop = new AbortController();
  const dialog = $<HTMLDialogElement>('download-dialog');
  dialog.onclose = () => stop.abort();
  $('download-note').textContent = 'Counting…';
  $('download-state').textContent = '';
  $('download-run').hidden = true;
  $('download-list').replaceChildren();
  $('download-more').hidden = open.schema.geometry === null;
  $('download-commands').replaceChildren(...COMMANDS.map(([title, extension]) => commandOf(title, extension, id, query)));
  dialog.showModal();
  try {
    const [document, [group]] = await Promise.all([api.get<Api>('/openapi.json', stop.signal), api.aggregate(id, ['count'], query, stop.signal)]);
    const count = group?.count ?? 0;
    $('download-note').textContent = `${formatCount(count)} ${count === 1 ? 'event' : 'events'}: ${saySelected(app.view(), open.schema)}.`;
    const saved = new Map<string, () => Download>([
      // A page of GeoJSON has a max, at which a link would cut the file without a word: the page gathers a stream instead.
      ['json', () => gathered(id, query, count)],
      ['gpkg', () => madeFirst('gpkg', 'application/geopackage+sqlite3', id, query)],
    ]);
    $('download-list').replaceChildren(
      ...formatsOf(document).map((format) => {
        const item = make('li');
        const download = saved.get(format);
        item.append(download ? buttonOf(format, () => save(format, id, download(), stop.signal)) : linkOf(format, id, query));
        return item;
      }),
    );
  } catch (error) {
    if (stop.signal.aborted) return;
    dialog.close();
    app.failed(error);
  }
}
