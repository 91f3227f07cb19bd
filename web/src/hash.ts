// The view in the hash of the address, so that a link restores it.
import { parseShape, shapeText, type LngLat, type Shape } from './shapes';
import { isoInstant, parseInstant, type Range } from './time';

export type Measure = 'avg' | 'min' | 'max' | 'sum';
export const MEASURES: readonly Measure[] = ['avg', 'min', 'max', 'sum'];

/** How a collection is drawn. */
export interface LayerView {
  readonly collection: string;
  /** CQL2 text. */
  readonly filter: string;
  /** Field that colours the events. */
  readonly field: string;
  /** Numeric field that sizes the events. */
  readonly size: string;
  /** Colour of what no field colours: a number of `CATEGORIES`, from 1; 0 is the map's own. */
  readonly color: number;
  /** 0.1 to 1. */
  readonly opacity: number;
  readonly hidden: boolean;
}

export interface View extends LayerView {
  /** Other collections on the map, under and over the one that is asked about; each from the lowest to the uppermost. */
  readonly below: readonly LayerView[];
  readonly above: readonly LayerView[];
  /** Position of the map. Null until it has moved: the collection's extent is shown. */
  readonly camera: { readonly center: LngLat; readonly zoom: number } | null;
  /** The brushed time. */
  readonly when: Range | null;
  /** The time range of the histogram; null means all. */
  readonly span: Range | null;
  readonly shape: Shape | null;
  /** What the histogram's line is of the field, where that is numeric. */
  readonly measure: Measure;
  /** Order of the table: a field, with `-` before it for descending; empty for the newest first. */
  readonly sort: string;
  /** Columns of the table; null for all. */
  readonly columns: readonly string[] | null;
}

export const EMPTY_LAYER: LayerView = { collection: '', filter: '', field: '', size: '', color: 0, opacity: 1, hidden: false };

export const EMPTY_VIEW: View = {
  ...EMPTY_LAYER,
  below: [],
  above: [],
  camera: null,
  when: null,
  span: null,
  shape: null,
  measure: 'avg',
  sort: '',
  columns: null,
};

/** Max layers of other collections: each asks the server for its own picture. */
export const OTHERS_MAX = 7;
/** Number of colours that a layer may have, see `CATEGORIES`. */
const COLORS = 8;

const rangeText = ([from, to]: Range): string => `${isoInstant(from)}/${isoInstant(to)}`;

function parseRange(text: string): Range | null {
  const [from, to] = text.split('/').map(parseInstant);
  return from < to ? [from, to] : null;
}

/** Keeps the characters that a hash may hold as they are, so that links stay readable. */
export const escape = (text: string): string => encodeURIComponent(text).replace(/%(3A|2F|2C|3B|20|40|27|28|29)/gi, (code) => (code === '%20' ? '+' : decodeURIComponent(code)));

type Add = (key: string, value: string) => void;

/** The parts of a layer that are not at their default. */
function writeLayer(layer: LayerView, add: Add): void {
  add('c', layer.collection);
  add('f', layer.field);
  add('z', layer.size);
  if (layer.color) add('k', String(layer.color));
  if (layer.opacity !== 1) add('o', String(Math.round(layer.opacity * 100)));
  if (layer.hidden) add('h', '1');
  add('q', layer.filter);
}

function readLayer(values: URLSearchParams): LayerView {
  const [color, opacity] = [Number(values.get('k') ?? 0), Number(values.get('o') ?? 100) / 100];
  return {
    collection: values.get('c') ?? '',
    filter: values.get('q') ?? '',
    field: values.get('f') ?? '',
    size: values.get('z') ?? '',
    color: Number.isInteger(color) && color >= 0 && color <= COLORS ? color : 0,
    opacity: opacity >= 0.1 && opacity <= 1 ? opacity : 1,
    hidden: values.get('h') === '1',
  };
}

function layerText(layer: LayerView): string {
  const parts = new URLSearchParams();
  writeLayer(layer, (key, value) => value && parts.set(key, value));
  return String(parts);
}

/** The hash of a view, without the `#`. Parts with their default value are left out. */
export function toHash(view: View): string {
  const parts: string[] = [];
  const add: Add = (key, value) => {
    if (value) parts.push(`${key}=${escape(value)}`);
  };
  writeLayer(view, add);
  if (view.camera) add('m', `${+view.camera.zoom.toFixed(2)}/${+view.camera.center[1].toFixed(4)}/${+view.camera.center[0].toFixed(4)}`);
  if (view.when) add('t', rangeText(view.when));
  if (view.span) add('r', rangeText(view.span));
  if (view.shape) add('s', shapeText(view.shape));
  if (view.measure !== 'avg') add('fn', view.measure);
  add('sort', view.sort);
  if (view.columns) add('cols', view.columns.map(encodeURIComponent).join(','));
  for (const layer of view.below) add('l', layerText(layer));
  for (const layer of view.above) add('u', layerText(layer));
  return parts.join('&');
}

/** The view of a hash. What cannot be read is left at its default: a damaged link still opens. */
export function fromHash(hash: string): View {
  const values = new URLSearchParams(hash.replace(/^#/, ''));
  const [zoom, lat, lng] = (values.get('m') ?? '').split('/').map((part) => (part ? Number(part) : NaN));
  const measure = values.get('fn') as Measure;
  const layers = (key: string): LayerView[] => values.getAll(key).map((text) => readLayer(new URLSearchParams(text))).filter(({ collection }) => collection);
  const below = layers('l').slice(0, OTHERS_MAX);
  return {
    ...readLayer(values),
    below,
    above: layers('u').slice(0, OTHERS_MAX - below.length),
    camera: [zoom, lat, lng].every(Number.isFinite) && Math.abs(lat) <= 90 ? { center: [lng, lat], zoom } : null,
    when: parseRange(values.get('t') ?? ''),
    span: parseRange(values.get('r') ?? ''),
    shape: parseShape(values.get('s') ?? ''),
    measure: MEASURES.includes(measure) ? measure : 'avg',
    sort: values.get('sort') ?? '',
    columns: values.get('cols')?.split(',').filter(Boolean).map(decodeName) ?? null,
  };
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
