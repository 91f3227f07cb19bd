// The view in the hash of the address, so that a link restores it.
import { parseShape, shapeText, type LngLat, type Shape } from './shapes';
import { isoInstant, parseInstant, type Range } from './time';

export type Measure = 'avg' | 'min' | 'max' | 'sum';
export const MEASURES: readonly Measure[] = ['avg', 'min', 'max', 'sum'];

export interface View {
  readonly collection: string;
  /** Position of the map. Null until it has moved: the collection's extent is shown. */
  readonly camera: { readonly center: LngLat; readonly zoom: number } | null;
  /** The brushed time. */
  readonly when: Range | null;
  /** The time range of the histogram; null means all. */
  readonly span: Range | null;
  readonly shape: Shape | null;
  /** Numeric field whose aggregate is shown. */
  readonly field: string;
  readonly measure: Measure;
  /** CQL2 text. */
  readonly filter: string;
}

export const EMPTY_VIEW: View = {
  collection: '',
  camera: null,
  when: null,
  span: null,
  shape: null,
  field: '',
  measure: 'avg',
  filter: '',
};

const rangeText = ([from, to]: Range): string => `${isoInstant(from)}/${isoInstant(to)}`;

function parseRange(text: string): Range | null {
  const [from, to] = text.split('/').map(parseInstant);
  return from < to ? [from, to] : null;
}

/** Keeps the characters that a hash may hold as they are, so that links stay readable. */
export const escape = (text: string): string => encodeURIComponent(text).replace(/%(3A|2F|2C|3B|20|40|27|28|29)/gi, (code) => (code === '%20' ? '+' : decodeURIComponent(code)));

/** The hash of a view, without the `#`. Parts with their default value are left out. */
export function toHash(view: View): string {
  const parts: string[] = [];
  const add = (key: string, value: string): void => {
    if (value) parts.push(`${key}=${escape(value)}`);
  };
  add('c', view.collection);
  if (view.camera) add('m', `${+view.camera.zoom.toFixed(2)}/${+view.camera.center[1].toFixed(4)}/${+view.camera.center[0].toFixed(4)}`);
  if (view.when) add('t', rangeText(view.when));
  if (view.span) add('r', rangeText(view.span));
  if (view.shape) add('s', shapeText(view.shape));
  add('f', view.field);
  if (view.measure !== 'avg') add('fn', view.measure);
  add('q', view.filter);
  return parts.join('&');
}

/** The view of a hash. What cannot be read is left at its default: a damaged link still opens. */
export function fromHash(hash: string): View {
  const values = new URLSearchParams(hash.replace(/^#/, ''));
  const [zoom, lat, lng] = (values.get('m') ?? '').split('/').map((part) => (part ? Number(part) : NaN));
  const measure = values.get('fn') as Measure;
  return {
    collection: values.get('c') ?? '',
    camera: [zoom, lat, lng].every(Number.isFinite) && Math.abs(lat) <= 90 ? { center: [lng, lat], zoom } : null,
    when: parseRange(values.get('t') ?? ''),
    span: parseRange(values.get('r') ?? ''),
    shape: parseShape(values.get('s') ?? ''),
    field: values.get('f') ?? '',
    measure: MEASURES.includes(measure) ? measure : 'avg',
    filter: values.get('q') ?? '',
  };
}
