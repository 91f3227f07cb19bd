// The filter's part of the page: conditions to pick, and the CQL2 that they are, which may also be typed.
import type { App } from '../app';
import { $ } from '../dom';
import { cqlName } from '../query';
import type { Builder } from './builder';

/** Says which name lacks its quotes; empty if none does. */
export function quoteHelp(filter: string, names: readonly string[]): string {
  const bare = filter.replace(/"[^"]*"|'[^']*'/g, '');
  const lacking = names.find((name) => cqlName(name) !== name && bare.toLowerCase().includes(name.toLowerCase()));
  return lacking === undefined ? '' : `A name with spaces or signs is quoted: ${cqlName(lacking)}`;
}

export class FilterRoom {
  private readonly input = $<HTMLInputElement>('filter');
  private builder: Promise<Builder> | null = null;

  constructor(private readonly app: App) {
    $('filter-form').addEventListener('submit', (e) => {
      e.preventDefault();
      this.apply();
    });
    this.input.addEventListener('change', () => this.apply());
    this.input.addEventListener('input', () => void this.builder?.then((builder) => builder.read(this.input.value)));
    $('add-condition').addEventListener('click', () => void this.build().then((builder) => builder.add()));
  }

  /** The part that picks conditions is loaded when it is first used, or when there is a filter. */
  private build(): Promise<Builder> {
    this.builder ??= import('./builder').then(({ Builder }) => {
      const builder = new Builder(this.app, (text, done) => {
        this.input.value = text;
        if (done) this.apply();
      });
      builder.read(this.input.value);
      return builder;
    });
    return this.builder;
  }

  /** Shows the filter of the view. */
  show(filter: string): void {
    this.input.value = filter;
    if (filter || this.builder) void this.build().then((builder) => builder.read(this.input.value));
  }

  problem(text: string): void {
    const names = this.app.open()?.schema.fields.map(({ name }) => name) ?? [];
    $('filter-problem').textContent = [text, text && quoteHelp(this.input.value, names)].filter(Boolean).join('. ');
    $('filter-problem').hidden = text === '';
    this.input.setAttribute('aria-invalid', String(text !== ''));
  }

  /** Applies a typed filter once it is accepted. A wrong one changes nothing. */
  private apply(): void {
    const { work } = this.app;
    const filter = this.input.value.trim();
    if (filter === this.app.view().filter) {
      work.cancel('filter');
      return this.problem('');
    }
    const open = this.app.open();
    if (!open || !filter) return this.app.update({ filter });
    work.run('filter', async (signal) => {
      const wrong = await open.source.check(filter, signal);
      if (wrong === null) this.app.update({ filter });
      else this.problem(wrong);
    });
  }
}
