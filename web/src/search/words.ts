// Messages of the page about a search. A partial result must never look complete.
import { formatCount, formatWait } from '../numbers';
import type { Run, Source } from './run';

export type Tone = 'quiet' | 'busy' | 'good' | 'warn' | 'bad';

export interface StatusMessage {
  readonly tone: Tone;
  readonly headline: string;
  /** Sources that have not answered yet. */
  readonly awaited: string;
  /** A line for each source that is missing: its name, and why. */
  readonly lacking: readonly (readonly [name: string, why: string])[];
  readonly figures: string;
}

/** The title of a source. */
export type Titles = (name: string) => string;

const some = (n: number, one: string, many = `${one}s`): string => `${formatCount(n)} ${n === 1 ? one : many}`;

/** `A, B and C`; of many the first few. */
export function list(names: readonly string[], most = 6): string {
  if (names.length > most) return `${names.slice(0, most - 1).join(', ')} and ${names.length - most + 1} more`;
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`;
}

const REASONS: Partial<Record<Source['state'], string>> = {
  timeout: 'ran out of time',
  error: 'failed',
  refused: 'could not be asked now',
  asked: 'did not report its end',
};

/** Why a source is missing, and how many results it sent before. */
function why(source: Source): string {
  const before = source.results ? `; ${some(source.results, 'result')} came before that` : '';
  return `${REASONS[source.state] ?? source.state}${source.detail ? `: ${source.detail}` : ''}${before}`;
}

/** The messages for a search, `now` milliseconds after its request. */
export function say(run: Run, titles: Titles, now: number): StatusMessage {
  const asked = [...run.sources.values()].filter((source) => source.state !== 'skipped');
  const open = run.with('asked');
  const missing = run.with('timeout', 'error', 'refused');
  const found = some(run.results.length, 'result');
  const lines = (sources: readonly Source[]): StatusMessage['lacking'] => sources.map((source) => [titles(source.name), why(source)]);
  if (run.running)
    return {
      tone: 'busy',
      headline: `${found} so far. ${asked.length - open.length} of ${some(asked.length, 'source')} ${asked.length === 1 ? 'has' : 'have'} answered.`,
      awaited: open.length ? `Still waiting for ${list(open.map((source) => titles(source.name)))}.` : 'All sources have answered; the search is ending.',
      lacking: lines(missing),
      figures: figures(run, now),
    };
  const end = { awaited: '', lacking: lines([...missing, ...open]), figures: figures(run, run.totalMs ?? now) };
  if (!asked.length)
    return { ...end, tone: 'bad', headline: 'No source was asked: none accepts this question.', lacking: run.with('skipped').map((s) => [titles(s.name), s.detail]) };
  if (run.outcome === 'complete') {
    // Remarks of complete sources: there may be more results, or the answer is suspicious.
    const remarks = run.with('complete').filter((source) => source.detail);
    if (remarks.length) {
      const headline = `${run.results.length ? `Complete: ${found}` : 'Nothing found'}. All available results, but there may be more:`;
      return { ...end, tone: 'warn', headline, lacking: remarks.map((source) => [titles(source.name), source.detail] as const) };
    }
    const full = run.with('complete').filter((source) => source.results >= run.limit);
    if (full.length) {
      const names = list(full.map((source) => titles(source.name)));
      const headline = `The first ${found}. There may be more: ${names} gave ${formatCount(run.limit)}, as many as the question asks of a source. Ask for more under Limits.`;
      return { ...end, tone: 'warn', headline };
    }
    const [all, they] = asked.length === 1 ? ['the one source asked', 'it has'] : [`all ${asked.length} sources`, 'they have'];
    const headline = run.results.length ? `Complete: ${found}. From ${all}, everything ${they}.` : `Nothing found. The search is complete: ${all} answered without results.`;
    return { ...end, tone: 'good', headline };
  }
  const lacks = missing.length + open.length;
  const stopped = run.stopped ? 'Cancelled. ' : '';
  if (run.outcome === 'lost') return { ...end, tone: 'bad', headline: `Not complete: the connection was lost. ${found} were received; more may be missing.` };
  if (run.outcome === 'absent') return { ...end, tone: 'bad', headline: `${stopped}No answer: none of ${some(asked.length, 'source')} answered. There may be results all the same.` };
  return { ...end, tone: 'warn', headline: `${stopped}Partial: ${found}, but not everything. ${lacks} of ${some(asked.length, 'source')} ${lacks === 1 ? 'is' : 'are'} missing:` };
}

function figures(run: Run, total: number): string {
  const parts = [];
  if (run.firstMs !== null) parts.push(`first result after ${formatWait(run.firstMs)}`);
  if (!run.running && run.lastMs !== null && run.results.length > 1) parts.push(`last after ${formatWait(run.lastMs)}`);
  parts.push(run.running ? `${formatWait(total)} so far` : `ended after ${formatWait(total)}`);
  return `${parts.join(', ')}.`.replace(/^./, (letter) => letter.toUpperCase());
}

/** The note below the last result of a partial list, so that it does not look complete. */
export function ending(run: Run, titles: Titles): string {
  if (run.running || run.outcome === 'complete' || !run.results.length) return '';
  const names = [...run.with('timeout', 'error', 'refused'), ...run.with('asked')].map((source) => titles(source.name));
  return `The end of a partial list: ${list(names)} ${names.length === 1 ? 'is' : 'are'} missing.`;
}

/** The announcement for screen readers. */
export function announcement(run: Run, titles: Titles): string {
  if (run.running) return run.results.length ? 'The first results are here.' : 'Searching.';
  const said = say(run, titles, 0);
  return `${said.headline} ${said.lacking.map(([name, reason]) => `${name} ${reason}`).join('. ')}`.trim();
}
