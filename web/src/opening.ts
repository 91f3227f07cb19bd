// Opening the map and a collection: what is known of it, where to look, and what to say if there is nothing to see.
import * as api from './api';
import { baseMapAddress, loadBaseMap, type BaseMap } from './basemap';
import { $, make } from './dom';
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

/** Shows in the list of collections what is asked about. A file is in it only meanwhile. */
export function showAsked(id: string, title: string): void {
  const select = $<HTMLSelectElement>('collection');
  select.querySelector('option[hidden]')?.remove();
  if (id && !Array.from(select.options).some(({ value }) => value === id)) select.prepend(make('option', '', title, { value: id, hidden: '' }));
  select.value = id;
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
