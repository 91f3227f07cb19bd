// Opening the map and a collection: what is known of it, where to look, and what to say if there is nothing to see.
import * as api from './api';
import { baseMapAddress, loadBaseMap, type BaseMap } from './basemap';
import { $, make } from './dom';
import { checkFilter } from './filter/room';
import { frameOf } from './frame';
import * as guide from './guide';
import type { View } from './hash';
import { MapView, type MapEvents } from './mapview';
import { formatShort } from './numbers';

export function showOverlay(content: HTMLElement | null): void {
  $('overlay').replaceChildren(...(content ? [content] : []));
  $('overlay').hidden = content === null;
}

/** Shows the collections to choose from. */
export function listCollections(list: readonly api.Collection[]): void {
  const select = $<HTMLSelectElement>('collection');
  select.replaceChildren(...list.map((c) => make('option', '', c.count === null ? c.title : `${c.title} (${formatShort(c.count)})`, { value: c.id })));
  select.disabled = list.length === 0;
  if (!list.length) select.append(make('option', '', 'No collections'));
}

/** The collection that shows the most: the first with events in space and time. */
export const best = (list: readonly api.Collection[]): api.Collection =>
  list.find((c) => c.bbox && c.interval && c.count !== 0) ?? list.find((c) => c.bbox && c.count !== 0) ?? list[0];

export interface LoadedCollection {
  readonly collection: api.Collection;
  readonly schema: api.Schema;
  readonly total: number;
  /** Why the server rejects the view's filter; null if it accepts it. */
  readonly wrong: string | null;
  /** Where to look if the view does not say; east may pass 180. */
  readonly frame: api.Collection['bbox'];
}

/** Loads what is known of the collection that a view names. */
export async function load({ collection: id, filter }: View, signal: AbortSignal): Promise<LoadedCollection> {
  const [collection, schema, groups, wrong] = await Promise.all([
    api.collection(id, signal),
    api.schema(id, signal),
    api.aggregate(id, ['count'], new URLSearchParams(), signal),
    filter ? checkFilter(id, filter, signal) : null,
  ]);
  // With a camera too: what the map shows of all events is said of every view.
  const frame = collection.bbox && (await frameOf(id, collection.bbox, signal));
  return { collection, schema, total: groups[0]?.count ?? 0, wrong, frame };
}

/** Offers a collection that the link names and the server does not have. */
export function showUnknown(id: string): void {
  const select = $<HTMLSelectElement>('collection');
  select.prepend(make('option', '', id, { value: id }));
  select.value = id;
  showOverlay(guide.unknownCollection(id));
}

/** The map over the operator's base map or that of the bundle; null without WebGL. */
export async function createMap(camera: View['camera'], failed: (error: unknown) => void, events: MapEvents): Promise<MapView | null> {
  const address = baseMapAddress();
  let base: BaseMap | null = null;
  // Without the operator's base map there is still that of the bundle.
  if (address) base = await loadBaseMap(address).catch((error: unknown) => (failed(error), null));
  try {
    return new MapView($('map'), camera ?? { center: [10, 25], zoom: 1.4 }, events, base);
  } catch {
    return null;
  }
}
