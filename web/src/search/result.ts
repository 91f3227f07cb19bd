// One result, as a row of the list and as a card on the map. Content of sources is shown as plain text only.
import type { Feature } from 'geojson';
import { make } from '../dom';
import { formatZonedTime } from '../time';
import type { Result } from './run';
import type { Titles } from './words';

/** Max characters of a result's text. */
const TEXT_MOST = 600;
/** Max labels of an image, and max characters of each. */
const LABELS_MOST = 5;
const LABEL_MOST = 80;

const texts = (feature: Feature, ...names: string[]): string[] =>
  names.map((name) => feature.properties?.[name] as unknown).filter((value): value is string => typeof value === 'string' && value.trim() !== '');

/** A link that may be followed: http or https only. */
export function safeLink(text: unknown): string | null {
  if (typeof text !== 'string') return null;
  try {
    const url = new URL(text);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null;
  } catch {
    return null;
  }
}

/** The title of a result. */
export function titleOf(feature: Feature): string {
  const [title] = texts(feature, 'title', 'name', 'place', 'label', 'text');
  return (title ?? String(feature.id ?? 'Without a title')).trim().slice(0, 200);
}

/** The note for a position that was found in the text, because the source gave none. */
export const placeNamed = (feature: Feature): string | null => (feature.properties?.['place_from'] === 'text' ? (texts(feature, 'place_name')[0] ?? 'a place') : null);

/** The labels of an image, marked as a guess of the named model; null without a model. */
export function guessOf(feature: Feature): string | null {
  const [model] = texts(feature, 'image_labels_from');
  const list: unknown = feature.properties?.['image_labels'];
  if (!model || !Array.isArray(list)) return null;
  const labels = list.slice(0, LABELS_MOST).flatMap((one: unknown) => {
    const { label, score } = (one ?? {}) as Record<string, unknown>;
    return typeof label === 'string' && typeof score === 'number' ? [`${label.slice(0, LABEL_MOST)} ${Math.round(score * 100)}%`] : [];
  });
  return labels.length ? `Picture, as ${model.slice(0, LABEL_MOST)} guesses: ${labels.join(', ')}` : null;
}

/** A link to another site, which gets no referrer. */
function anchor(href: string, text: string): HTMLElement {
  return make('a', '', text, { href, target: '_blank', rel: 'noopener noreferrer nofollow' });
}

function heading({ feature }: Result): HTMLElement {
  const link = safeLink(feature.properties?.['link']);
  const title = titleOf(feature);
  const out = make('h2', 'result-title');
  out.append(link ? anchor(link, title) : title);
  return out;
}

/** Source, time, author, language and other details, in one line. */
function facts(result: Result, titles: Titles): HTMLElement {
  const { feature, provider } = result;
  const out = make('p', 'result-facts');
  const add = (className: string, text: string): void => void out.append(make('span', className, text));
  add('result-source', titles(provider));
  const [time] = texts(feature, 'time');
  if (time) add('', formatZonedTime(time));
  for (const name of ['author', 'language', 'collection']) for (const text of texts(feature, name)) add('', text.slice(0, 80));
  const named = placeNamed(feature);
  if (named) add('result-named', `place from its text: ${named}`);
  else if (!feature.geometry) add('', 'no place');
  if (feature.properties?.['cut'] === true) add('', 'shortened');
  for (const [name, word] of [['images', 'picture'], ['videos', 'film']] as const) {
    const list: unknown = feature.properties?.[name];
    const first = Array.isArray(list) ? safeLink(list[0]) : null;
    if (first) out.append(anchor(first, word));
  }
  return out;
}

function body(feature: Feature): HTMLElement | null {
  const [text] = texts(feature, 'text');
  if (!text || text.trim().slice(0, 200) === titleOf(feature)) return null;
  return make('p', 'result-text', text.length > TEXT_MOST ? `${text.slice(0, TEXT_MOST)}…` : text);
}

/** The details of a result, line by line. */
function parts(result: Result, titles: Titles): HTMLElement[] {
  const guess = guessOf(result.feature);
  const text = body(result.feature);
  return [heading(result), facts(result, titles), ...(guess ? [make('p', 'result-guess', guess)] : []), ...(text ? [text] : [])];
}

/** A row of the list. */
export function row(result: Result, titles: Titles, firstAfter: string): HTMLLIElement {
  const item = make('li', 'result', '', { tabindex: '-1', 'data-key': result.key, 'data-source': result.provider });
  if (result.first) item.append(make('span', 'badge', `First, after ${firstAfter}`));
  item.append(...parts(result, titles));
  return item;
}

/** The popup of a result. */
export function card(result: Result, titles: Titles): HTMLElement {
  const out = make('div', 'card');
  out.append(...parts(result, titles));
  return out;
}
