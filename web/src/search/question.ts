// The question: as the hash of the page's address, so that a link repeats it, and as the server's JSON.
import { escape } from '../hash';
import { parseShape, round6, shapeText, splitRing, wrapLng, type LngLat, type Shape } from '../shapes';

export interface Question {
  readonly keywords: string;
  /** A drawn area. It replaces the address. */
  readonly shape: Shape | null;
  readonly address: string;
  /** Kilometres around the address; null: the server's default. */
  readonly radius: number | null;
  readonly author: string;
  /** Dates such as 2026-01-31, or nothing. */
  readonly start: string;
  readonly end: string;
  /** ISO 639-1, or nothing. */
  readonly language: string;
  readonly media: '' | 'images' | 'videos';
  /** Names of the sources to ask; null: all. */
  readonly providers: readonly string[] | null;
  /** Max results of each source, and seconds for the whole search; null: the server's default. */
  readonly limit: number | null;
  readonly seconds: number | null;
}

export const EMPTY_QUESTION: Question = {
  keywords: '',
  shape: null,
  address: '',
  radius: null,
  author: '',
  start: '',
  end: '',
  language: '',
  media: '',
  providers: null,
  limit: null,
  seconds: null,
};

/** Whether the question has any condition. */
export const asksForSomething = (q: Question): boolean => Boolean(q.keywords || q.shape || q.address || q.author);

/** The hash of a question, without the `#`. Members with their default are left out. */
export function toHash(q: Question): string {
  const parts: string[] = [];
  const add = (key: string, value: string | number | null): void => {
    if (value !== '' && value !== null) parts.push(`${key}=${escape(String(value))}`);
  };
  add('q', q.keywords);
  add('s', q.shape && shapeText(q.shape));
  if (!q.shape) {
    add('a', q.address);
    if (q.address) add('r', q.radius);
  }
  add('by', q.author);
  add('from', q.start);
  add('to', q.end);
  add('l', q.language);
  add('k', q.media);
  add('p', q.providers && q.providers.join(','));
  add('n', q.limit);
  add('d', q.seconds);
  return parts.join('&');
}

const amount = (text: string | null): number | null => (text && Number(text) > 0 && Number.isFinite(Number(text)) ? Number(text) : null);
const date = (text: string | null): string => (text && /^\d{4}-\d\d-\d\d$/.test(text) ? text : '');

/** The question of a hash. What cannot be read is left at its default: a damaged link still opens. */
export function fromHash(hash: string): Question {
  const values = new URLSearchParams(hash.replace(/^#/, ''));
  const text = (key: string): string => (values.get(key) ?? '').trim();
  const [media, language] = [text('k'), text('l')];
  const names = text('p').split(',').filter(Boolean);
  return {
    keywords: text('q'),
    shape: parseShape(text('s')),
    address: text('a'),
    radius: amount(values.get('r')),
    author: text('by'),
    start: date(values.get('from')),
    end: date(values.get('to')),
    language: /^[a-z]{2}$/.test(language) ? language : '',
    media: media === 'images' || media === 'videos' ? media : '',
    providers: names.length ? names : null,
    limit: amount(values.get('n')),
    seconds: amount(values.get('d')),
  };
}

/** A ring that the server accepts: closed, between -180 and 180; null where it crosses the antimeridian. */
export function closedRing(ring: readonly LngLat[]): number[][] | null {
  const [only, second] = splitRing(ring);
  if (!only || second) return null;
  return [...only, only[0]].map(([lng, lat]) => [round6(lng), round6(lat)]);
}

function place(shape: Shape): Record<string, unknown> {
  switch (shape.kind) {
    case 'box': {
      const whole = shape.east - shape.west >= 360;
      const [west, east] = whole ? [-180, 180] : [wrapLng(shape.west), wrapLng(shape.east)];
      return { bbox: [west, Math.max(-90, shape.south), east, Math.min(90, shape.north)].map(round6) };
    }
    case 'circle':
      return { near: [round6(wrapLng(shape.center[0])), round6(shape.center[1])], radius: Math.round(shape.radius * 10) / 10 };
    case 'polygon':
      return { polygon: { type: 'Polygon', coordinates: [closedRing(shape.ring)] } };
  }
}

/** The body of `POST /searches`. */
export function body(q: Question): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const add = (key: string, value: unknown): void => {
    if (value !== '' && value !== null) out[key] = value;
  };
  add('keywords', q.keywords);
  if (q.shape) Object.assign(out, place(q.shape));
  else if (q.address) {
    out['address'] = q.address;
    add('radius', q.radius && q.radius * 1000);
  }
  add('author', q.author);
  add('start', q.start);
  add('end', q.end);
  add('language', q.language);
  add('media', q.media);
  add('providers', q.providers);
  add('limit', q.limit);
  add('timeout', q.seconds && Math.round(q.seconds * 1000));
  return out;
}
