// The count of events, the aggregates of the field, and what the map cannot show.
import * as api from './api';
import { asksOf, sayMissing, type Missing } from './beyond';
import { $, make } from './dom';
import { MEASURES, type Measure } from './hash';
import { formatCount, formatValue } from './numbers';
import { params, type Question } from './query';
import type { Work } from './work';

export const MEASURE_NAMES: Record<Measure, string> = { avg: 'average', min: 'min', max: 'max', sum: 'sum' };

const countOf = async (id: string, question: Question, signal: AbortSignal): Promise<number> =>
  (await api.aggregate(id, ['count'], params(question), signal))[0]?.count ?? 0;

/** Shows the count and the field's aggregates of a question. */
export function loadTotals(work: Work, id: string, question: Question, field: string): void {
  $('count').classList.add('stale');
  work.run('totals', async (signal) => {
    const functions = field ? ['count', ...MEASURES.map((m) => `${m}(${field})`)] : ['count'];
    const [group = { count: 0 }] = await api.aggregate(id, functions, params(question), signal);
    $('count').textContent = formatCount(group.count);
    $('count').classList.remove('stale');
    $('count-word').textContent = group.count === 1 ? 'event' : 'events';
    const stats = $('stats');
    stats.hidden = !field;
    stats.replaceChildren(
      ...MEASURES.map((measure) => {
        const cell = make('div');
        const value = group[`${measure}(${field})`] as number | string | null | undefined;
        cell.append(make('dt', '', MEASURE_NAMES[measure]), make('dd', '', formatValue(value), { 'data-measure': measure, title: String(value ?? '') }));
        return cell;
      }),
    );
  });
}

/** Says what the map does not show of a question; `drawn` is whether its place is what the map shows, and not a drawn shape. */
export function loadBeyond(work: Work, { collection, schema }: { collection: api.Collection; schema: api.Schema }, question: Question, drawn: boolean): void {
  const asks = asksOf(question, drawn, collection, schema.geometry !== null);
  work.run('beyond', async (signal) => {
    const counts = await Promise.all(
      asks.map(async ({ what, plus, minus }): Promise<[Missing, number]> => {
        const all = await Promise.all([...plus, ...minus].map((one) => countOf(collection.id, one, signal)));
        return [what, all.reduce((sum, n, i) => sum + (i < plus.length ? n : -n), 0)];
      }),
    );
    const lines = counts.map(([what, count]) => sayMissing(what, count)).filter(Boolean);
    $('beyond').replaceChildren(...lines.map((line) => make('li', '', line)));
    $('beyond').hidden = !lines.length;
  });
}
