// Downloads of what is selected, in every format that the server offers.
import * as api from './api';
import type { App } from './app';
import { $, make } from './dom';
import type { View } from './hash';
import { formatCount } from './numbers';
import { params } from './query';

/** Most events of a page, which GeoJSON is. */
const PAGE_MAX = 10_000;

const NAMES: Record<string, readonly [title: string, extension: string]> = {
  json: ['GeoJSON', 'geojson'],
  csv: ['CSV', 'csv'],
  ndjson: ['NDJSON', 'ndjson'],
  geojsonseq: ['GeoJSON text sequence', 'geojsons'],
  arrow: ['Arrow stream', 'arrows'],
  parquet: ['GeoParquet', 'parquet'],
};

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
  $('download-list').replaceChildren();
  dialog.showModal();
  try {
    const [document, [group]] = await Promise.all([api.get<Api>('/openapi.json', stop.signal), api.aggregate(id, ['count'], query, stop.signal)]);
    const count = group?.count ?? 0;
    $('download-note').textContent = `${formatCount(count)} ${count === 1 ? 'event' : 'events'}: ${saySelected(app.view(), open.schema)}.`;
    $('download-list').replaceChildren(
      ...formatsOf(document).map((format) => {
        const [title, extension] = NAMES[format] ?? [format, format];
        const all = new URLSearchParams(query);
        all.set('f', format);
        if (format === 'json') all.set('limit', String(PAGE_MAX));
        const item = make('li');
        item.append(make('a', 'button', title, { href: `${api.collectionPath(id)}/items?${all}`, download: `${id}.${extension}`, 'data-format': format }));
        if (format === 'json' && count > PAGE_MAX) item.append(make('span', 'muted', ` the first ${formatCount(PAGE_MAX)}`));
        return item;
      }),
    );
  } catch (error) {
    if (stop.signal.aborted) return;
    dialog.close();
    app.failed(error);
  }
}
