// The count of events, the aggregates of the field, and what the map cannot show.
import { asksOf, sayMissing, type Missing } from './beyond';
import type { OpenCollection } from './controls';
import { $, make } from './dom';
import { MEASURES, type Measure } from './hash';
import { topOf, valuesOf } from './layers/schemacache';
import type { ValueCount } from './legend';
import { formatCount, formatValue } from './numbers';
import type { Question } from './query';
import type { Source } from './source';
import type { Work } from './work';

export const MEASURE_NAMES: Record<Measure, string> = { avg: 'average', min: 'min', max: 'max', sum: 'sum' };

const countOf = async (source: Source, question: Question, signal: AbortSignal): Promise<number> => (await source.aggregate(['count'], question, signal))[0]?.count ?? 0;

/** The field that colours: its aggregates are shown if it is a number, its frequent values are counted if it is a text. */
export interface ColorField {
  readonly field: string;
  readonly kind: 'number' | 'value' | null;
}

/** Shows the count of a question, and what the field says of it; `values` gets the frequent values, null for a number. */
export function loadTotals(work: Work, source: Source, question: Question, { field, kind }: ColorField, values: (list: readonly ValueCount[] | null) => void): void {
  $('count').classList.add('stale');
  work.run('totals', async (signal) => {
    const more = kind === 'number' ? MEASURES.map((m) => `${m}(${field})`) : kind === 'value' ? [topOf(field)] : [];
    const [group = { count: 0 }] = await source.aggregate(['count', ...more], question, signal);
    $('count').textContent = formatCount(group.count);
    $('count').classList.remove('stale');
    $('count-word').textContent = group.count === 1 ? 'event' : 'events';
    values(kind === 'value' ? valuesOf(group, field) : null);
    const stats = $('stats');
    stats.hidden = kind !== 'number';
    stats.replaceChildren(
      ...(kind === 'number' ? MEASURES : []).map((measure) => {
        const cell = make('div');
        const value = group[`${measure}(${field})`] as number | string | null | undefined;
        cell.append(make('dt', '', MEASURE_NAMES[measure]), make('dd', '', formatValue(value), { 'data-measure': measure, title: String(value ?? '') }));
        return cell;
      }),
    );
  });
}

/** Says what the map does not show of a question; `drawn` is whether its place is what the map shows, and not a drawn shape. */
export function loadBeyond(work: Work, { source, collection, schema, frame }: OpenCollection, question: Question, drawn: boolean): void {
  const asks = asksOf(question, drawn, { ...collection, stretch: frame && [frame[0], frame[2]] }, schema.geometry !== null);
  work.run('beyond', async (signal) => {
    const counts = await Promise.all(
      asks.map(async ({ what, plus, minus }): Promise<[Missing, number]> => {
        const all = await Promise.all([...plus, ...minus].map((one) => countOf(source, one, signal)));
        return [what, all.reduce((sum, n, i) => sum + (i < plus.length ? n : -n), 0)];
      }),
    );
    const lines = counts.map(([what, count]) => sayMissing(what, count)).filter(Boolean);
    $('beyond').replaceChildren(...lines.map((line) => make('li', '', line)));
    $('beyond').hidden = !lines.length;
  });
}
