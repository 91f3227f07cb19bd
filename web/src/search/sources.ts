// The sources: which are asked, what each accepts, and its state during a search.
import { make, say } from '../dom';
import { formatCount, formatWait } from '../numbers';
import type { Run, Source } from './run';
import type { Provider, ProviderCapabilities } from './server';
import { list } from './words';

const PARTS: Readonly<Record<string, string>> = { place: 'a place', time: 'a time', author: 'an author', media: 'a kind of media', language: 'a language' };
const part = (name: string): string => PARTS[name] ?? name;

/** The questions that a source accepts, as text. */
export function takesText(takes: ProviderCapabilities | undefined): string {
  const needs = (takes?.needs ?? []).map(part);
  const one = (takes?.needs_one_of ?? []).map(part).join(' or ');
  const not = (takes?.not ?? []).map(part);
  const wanted = list([...needs, ...(one ? [one] : [])]) || 'anything';
  const without = [...not, ...(takes?.keywords === 'all' ? ['OR'] : [])];
  return `takes ${wanted}${without.length ? `, not ${without.join(' or ')}` : ''}`;
}

/** The state of a source outside a search. */
function restText(provider: Provider): string {
  if (!provider.ready) return provider.detail ?? 'not ready';
  if (provider.breaker === 'open') return 'failed of late: it rests';
  if (provider.budget && (provider.spent ?? 0) >= provider.budget) return 'its budget for today is spent';
  return takesText(provider.takes);
}

const WORDS: Readonly<Record<Source['state'], string>> = {
  asked: 'waiting',
  complete: 'complete',
  skipped: 'not asked',
  timeout: 'timeout',
  error: 'error',
  refused: 'refused',
};

/** The state of a source as text, `now` milliseconds after the request. */
export function stateText(source: Source, now: number): string {
  if (source.state === 'skipped') return WORDS.skipped;
  const found = source.results || source.state === 'complete' ? `${formatCount(source.results)} · ` : '';
  return `${found}${WORDS[source.state]} · ${formatWait(source.ms ?? now)}`;
}

interface Row {
  readonly provider: Provider;
  readonly item: HTMLElement;
  readonly box: HTMLInputElement;
  readonly state: HTMLElement;
  readonly detail: HTMLElement;
}

export class Sources {
  private rows = new Map<string, Row>();
  /** A choice made before the list was loaded, or one that names no known source. */
  private wanted: readonly string[] | null = null;

  constructor(
    private readonly place: HTMLElement,
    /** Called when the user changes the choice. */
    private readonly changed: () => void,
  ) {}

  show(providers: readonly Provider[]): void {
    this.rows = new Map(providers.map((provider) => [provider.name, this.row(provider)]));
    this.place.replaceChildren(...[...this.rows.values()].map((row) => row.item));
    this.choose(this.wanted);
    this.states(null, 0);
  }

  private row(provider: Provider): Row {
    const id = `source-${provider.name}`;
    const item = make('li', 'source', '', { 'data-source': provider.name });
    const label = make('label');
    const box = make('input', '', '', { type: 'checkbox', value: provider.name, 'aria-describedby': `${id}-state ${id}-detail` });
    label.append(box, make('span', 'source-title', provider.title || provider.name));
    const state = make('span', 'source-state', '', { id: `${id}-state` });
    const detail = make('span', 'source-detail', '', { id: `${id}-detail` });
    box.addEventListener('change', () => {
      this.wanted = this.chosen();
      this.changed();
    });
    item.append(label, state, detail);
    return { provider, item, box, state, detail };
  }

  title(name: string): string {
    return this.rows.get(name)?.provider.title || name;
  }

  get count(): number {
    return this.rows.size;
  }

  /** Names of the ticked sources; null means all. Before the list is loaded: those of the link. */
  chosen(): readonly string[] | null {
    if (!this.rows.size) return this.wanted;
    const ticked = [...this.rows.values()].filter((row) => row.box.checked).map((row) => row.provider.name);
    return ticked.length === this.rows.size ? null : ticked;
  }

  choose(names: readonly string[] | null): void {
    this.wanted = names;
    for (const [name, row] of this.rows) row.box.checked = names === null || names.includes(name);
  }

  /** Shows the state of each source in a search, or outside one. */
  states(run: Run | null, now: number): void {
    for (const [name, row] of this.rows) {
      const source = run?.sources.get(name);
      row.item.dataset['state'] = source?.state ?? (row.provider.ready ? 'rest' : 'off');
      say(row.state, source ? stateText(source, now) : '');
      say(row.detail, source ? source.detail : restText(row.provider));
    }
  }
}
