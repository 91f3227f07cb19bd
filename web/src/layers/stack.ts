// The layers of a view, from the lowest to the uppermost, and the changes of their order.
import { EMPTY_LAYER, OTHERS_MAX, type LayerView, type View } from '../hash';

export interface Stack {
  readonly layers: readonly LayerView[];
  /** Which of them is asked about. */
  readonly active: number;
}

const layerOf = ({ collection, filter, field, size, color, opacity, hidden }: LayerView): LayerView => ({ collection, filter, field, size, color, opacity, hidden });

export const stackOf = (view: View): Stack => ({ layers: [...view.below, layerOf(view), ...view.above], active: view.below.length });

/** The change of the view that makes it show a stack. */
export const viewOf = ({ layers, active }: Stack): Partial<View> => ({ ...layers[active], below: layers.slice(0, active), above: layers.slice(active + 1) });

/** Names a file where a view names a collection. No collection has a name that begins so. */
export const fileName = (id: string): string => `:${id}`;
const isFile = (collection: string): boolean => collection.startsWith(':');

/** The layers of collections, of which none may be asked about. */
export const collectionsOf = (view: View): readonly LayerView[] => stackOf(view).layers.filter(({ collection }) => collection && !isFile(collection));

/** Asks about a file, over all collections. It draws itself: as a layer of the view it is hidden. */
export function askFile(view: View, id: string, filter: string): Partial<View> {
  const layers = [...collectionsOf(view), { ...EMPTY_LAYER, collection: fileName(id), filter, hidden: true }];
  return { ...viewOf({ layers, active: layers.length - 1 }), sort: '', columns: null };
}

/** The change that ends asking about a file: the uppermost collection is asked about, if there is one. */
export function leaveFile(view: View): Partial<View> {
  if (!isFile(view.collection)) return {};
  const layers = collectionsOf(view);
  return { ...viewOf({ layers: layers.length ? layers : [EMPTY_LAYER], active: Math.max(0, layers.length - 1) }), sort: '', columns: null };
}

/** Asks about another layer. A file that was asked about is in the view only meanwhile. */
export function activate(view: View, index: number): Partial<View> {
  const { layers: all, active } = stackOf(view);
  const layers = all.filter(({ collection }, i) => i === index || !isFile(collection));
  // Order and columns of the table belong to the collection.
  return index === active ? {} : { ...viewOf({ layers, active: index }), sort: '', columns: null };
}

/** Moves a layer up (1) or down (-1). */
export function move(view: View, index: number, by: 1 | -1): Partial<View> {
  const { layers, active } = stackOf(view);
  const to = index + by;
  if (to < 0 || to >= layers.length) return {};
  const moved = layers.slice();
  [moved[index], moved[to]] = [moved[to], moved[index]];
  return viewOf({ layers: moved, active: active === index ? to : active === to ? index : active });
}

/** Changes how a layer is drawn. */
export function change(view: View, index: number, to: Partial<LayerView>): Partial<View> {
  const { layers, active } = stackOf(view);
  return viewOf({ layers: layers.map((layer, i) => (i === index ? { ...layer, ...to } : layer)), active });
}

/** Removes a layer. The one that is asked about gives way to its neighbour; the last one stays. */
export function remove(view: View, index: number): Partial<View> {
  const { layers, active } = stackOf(view);
  if (layers.length < 2) return {};
  const left = layers.filter((_, i) => i !== index);
  const now = index < active ? active - 1 : Math.min(active, left.length - 1);
  return { ...viewOf({ layers: left, active: now }), ...(index === active ? { sort: '', columns: null } : {}) };
}

/** Adds a collection under the one that is asked about, in a colour that no other layer has. */
export function add(view: View, collection: string): Partial<View> {
  const { layers, active } = stackOf(view);
  if (layers.length > OTHERS_MAX) return {};
  const used = new Set(layers.map(({ color }) => color));
  const color = [1, 3, 4, 6, 7, 8, 5, 2].find((one) => !used.has(one)) ?? 1;
  const added: LayerView = { ...EMPTY_LAYER, collection, color };
  return viewOf({ layers: [...layers.slice(0, active), added, ...layers.slice(active)], active: active + 1 });
}
