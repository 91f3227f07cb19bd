// The question as a form.
import { $, make } from '../dom';
import { describe, type Shape } from '../shapes';
import type { Question } from './question';
import type { Sources } from './sources';

/** Languages to choose from; a link may name any other. */
const LANGUAGES = 'ar bn cs da de el en es fa fi fr he hi hu id it ja ko nl no pl pt ro ru sv th tr uk ur vi zh'.split(' ');

/** The members of a question and their inputs, where errors are shown. */
const FIELDS: Readonly<Record<string, string>> = {
  keywords: 'keywords',
  address: 'address',
  radius: 'radius',
  author: 'author',
  start: 'start',
  end: 'end',
  language: 'language',
  media: 'media',
  limit: 'limit',
  timeout: 'seconds',
};
/** The inputs under "more". */
const FOLDED = ['author', 'start', 'end', 'language', 'media', 'limit', 'seconds'];

const input = (id: string): HTMLInputElement | HTMLSelectElement => $<HTMLInputElement>(id);
const text = (id: string): string => input(id).value.trim();
const amount = (id: string): number | null => (Number(text(id)) > 0 ? Number(text(id)) : null);

export class Form {
  private shape: Shape | null = null;

  constructor(
    private readonly sources: Sources,
    /** Called when the drawn area changed. */
    private readonly shown: (shape: Shape | null) => void,
  ) {
    const names = new Intl.DisplayNames(['en'], { type: 'language' });
    const options = LANGUAGES.map((code) => ({ code, name: names.of(code) ?? code })).sort((a, b) => a.name.localeCompare(b.name));
    $('language').append(...options.map(({ code, name }) => make('option', '', name, { value: code })));
    $('clear-drawn').addEventListener('click', () => {
      this.draw(null);
      $('address').focus();
    });
    $('question').addEventListener('input', () => this.problem(null));
    for (const id of FOLDED) input(id).addEventListener('change', () => this.folded());
  }

  /** The drawn area. It replaces the address. */
  draw(shape: Shape | null): void {
    this.shape = shape;
    $('drawn').hidden = shape === null;
    $('address-row').hidden = shape !== null;
    $('drawn-text').textContent = shape ? describe(shape) : '';
    this.shown(shape);
  }

  read(): Question {
    const media = text('media');
    return {
      keywords: text('keywords'),
      shape: this.shape,
      address: this.shape ? '' : text('address'),
      radius: this.shape || !text('address') ? null : amount('radius'),
      author: text('author'),
      start: text('start'),
      end: text('end'),
      language: text('language'),
      media: media === 'images' || media === 'videos' ? media : '',
      providers: this.sources.chosen(),
      limit: amount('limit'),
      seconds: amount('seconds'),
    };
  }

  write(q: Question): void {
    const set = (id: string, value: string | number | null): void => {
      input(id).value = String(value ?? '');
    };
    set('keywords', q.keywords);
    set('address', q.address);
    set('radius', q.radius);
    set('author', q.author);
    set('start', q.start);
    set('end', q.end);
    if (q.language && !$('language').querySelector(`[value="${q.language}"]`)) $('language').append(make('option', '', q.language, { value: q.language }));
    set('language', q.language);
    set('media', q.media);
    set('limit', q.limit);
    set('seconds', q.seconds);
    this.sources.choose(q.providers);
    this.draw(q.shape);
    this.problem(null);
    if (this.folded()) $<HTMLDetailsElement>('more').open = true;
  }

  /** Shows how many inputs under "more" are set. */
  private folded(): number {
    const set = FOLDED.filter((id) => text(id)).length;
    $('more-set').textContent = set ? `· ${set} set` : '';
    return set;
  }

  /** Shows an error at its input; null clears it. */
  problem(wrong: { text: string; field: string } | null): void {
    for (const id of Object.values(FIELDS)) input(id).removeAttribute('aria-invalid');
    $('question-problem').hidden = wrong === null;
    $('question-problem').textContent = wrong?.text ?? '';
    const id = wrong && FIELDS[wrong.field];
    if (!id || (this.shape && id === 'address')) return;
    if (FOLDED.includes(id)) $<HTMLDetailsElement>('more').open = true;
    input(id).setAttribute('aria-invalid', 'true');
    input(id).focus();
  }
}
