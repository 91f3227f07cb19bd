// A view of the page as parameters of the HTTP API.
import { bboxParam, polygonText, round6, wrapLng, type Shape } from './shapes';
import { datetimeParam, type Range } from './time';

/** What is asked: where, when, and which. */
export interface Question {
  /** A drawn shape, or else the bounds of the map, or else everywhere. */
  readonly where: Shape | null;
  readonly when: Range | null;
  /** CQL2 text as typed. */
  readonly filter: string;
  /** Name of the geometry in filters, see the collection's queryables. */
  readonly geometry: string;
}

/** All events of a filter, wherever and whenever they are. */
export const anywhere = (filter = ''): Question => ({ where: null, when: null, filter, geometry: 'geometry' });

/** A CQL2 property name: bare where the grammar takes it bare, else in double quotes. */
export function cqlName(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** The CQL2 text of a question: the typed filter, and the polygon if there is one. */
export function cqlText(question: Pick<Question, 'where' | 'filter' | 'geometry'>): string {
  const parts: string[] = [];
  const typed = question.filter.trim();
  if (typed) parts.push(typed);
  if (question.where?.kind === 'polygon') parts.push(`S_INTERSECTS(${cqlName(question.geometry)},${polygonText(question.where.ring)})`);
  return parts.length > 1 ? parts.map((p, i) => (i === 0 ? `(${p})` : p)).join(' AND ') : (parts[0] ?? '');
}

/** The parameters that `items` and `aggregate` share. */
export function params(question: Question): URLSearchParams {
  const out = new URLSearchParams();
  const { where, when } = question;
  if (where?.kind === 'box') out.set('bbox', bboxParam(where.west, where.south, where.east, where.north));
  if (where?.kind === 'circle') {
    out.set('near', `${round6(wrapLng(where.center[0]))},${round6(where.center[1])}`);
    out.set('radius', String(Math.round(where.radius * 10) / 10));
  }
  if (when) out.set('datetime', datetimeParam(when));
  const filter = cqlText(question);
  if (filter) {
    out.set('filter', filter);
    out.set('filter-lang', 'cql2-text');
  }
  return out;
}

/** The parameters of the picture. The shape does not filter the map, so that its surroundings stay visible. */
export function pictureParams(question: Question): URLSearchParams {
  return params({ ...question, where: null });
}
