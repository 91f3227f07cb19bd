// Files that were dropped on the map: the list of them, and what can be done with each. Reading and loading are fetched when used.
import { Problem } from '../api';
import type { App } from '../app';
import { $, make } from '../dom';
import { formatCount, formatShort } from '../numbers';
import type { View } from '../hash';
import { eventCard, anchorOf } from '../results';
import { eye, icon } from '../layers/icon';
import { askFile, fileName, leaveFile } from '../layers/stack';
import type { LegendPart } from '../legend';
import { mayWrite } from '../session';
import type { LngLat } from '../shapes';
import type { FileSource } from './asked';
import type { FileLayer } from './drawn';
import type { Note } from './notes';
import type { FileContent } from './read';

export interface MapFile extends FileLayer {
  readonly name: string;
  readonly content: FileContent;
  readonly source: FileSource;
  /** The filter of what is drawn, and of what is asked where the file is asked about. */
  readonly filter: string;
}

/** In short, what was not taken as what it seems to be; the dialog that loads the file says more. */
const sayNotes = ([{ column, text, taken = 'not taken' }, ...more]: readonly Note[]): string => `${column} ${text}: ${taken}${more.length ? `; ${more.length} more to note` : ''}`;

/** Max files on the map. */
const FILES_MAX = 6;

export class Files {
  private list: readonly MapFile[] = [];
  private made = 0;

  constructor(
    private readonly app: App,
    private readonly changed: () => void,
    /** An event of a file was clicked. */
    private readonly choose: (card: HTMLElement, at: LngLat) => void,
  ) {
    const input = $<HTMLInputElement>('file');
    $('open-file').addEventListener('click', () => input.click());
    input.addEventListener('change', () => {
      // It is emptied last, so that a refused file stays chosen until that is shown, and may then be chosen again.
      void this.open(Array.from(input.files ?? [])).finally(() => (input.value = ''));
    });
    const over = (on: boolean): void => void document.body.classList.toggle('dropping', on);
    const holds = (e: DragEvent): boolean => e.dataTransfer?.types.includes('Files') ?? false;
    window.addEventListener('dragover', (e) => {
      if (!holds(e)) return;
      e.preventDefault();
      over(true);
    });
    window.addEventListener('dragleave', (e) => e.relatedTarget === null && over(false));
    window.addEventListener('drop', (e) => {
      if (!holds(e)) return;
      e.preventDefault();
      over(false);
      void this.open(Array.from(e.dataTransfer?.files ?? []));
    });
  }

  private set(list: readonly MapFile[]): void {
    this.list = list;
    this.app.map()?.setFiles(list);
    this.changed();
  }

  async open(files: readonly File[]): Promise<void> {
    for (const file of files) {
      try {
        const { BYTES_MAX, readFile, refuseKind, textOf } = await import('./read');
        if (this.list.length >= FILES_MAX) throw new Error(`There are ${FILES_MAX} files on the map already: remove one.`);
        refuseKind(file.name, await file.slice(0, 512).text());
        if (file.size > BYTES_MAX) throw new Error(`The file has more than ${BYTES_MAX / 1e6} MB: load it into a collection with meridian load COLLECTION ${file.name}`);
        const content = readFile(textOf(new Uint8Array(await file.arrayBuffer()), file.name));
        const { FileSource } = await import('./asked');
        this.add(file.name, content, new FileSource(file.name, content));
      } catch (error) {
        this.app.failed(new Problem(`${file.name} is not shown`, error instanceof Error ? error.message : String(error), 0, 'file'));
      }
    }
  }

  private add(name: string, content: FileContent, source: FileSource): void {
    const id = `file${++this.made}`;
    this.set([...this.list, { id, name, content, source, filter: '', data: source.drawn('', this.app.view().when), color: 1 + ((this.made + 2) % 8), opacity: 1, hidden: false }]);
    this.app.map()?.fit(source.frame, false);
  }

  /** What answers for a file, by its name in a view; undefined for a collection. */
  source(collection: string): FileSource | undefined {
    return this.list.find(({ id }) => fileName(id) === collection)?.source;
  }

  /** The file that is asked about, as its layers on the map are named. */
  asked(): string | undefined {
    return this.list.find(({ id }) => fileName(id) === this.app.view().collection)?.id;
  }

  /** Draws of each file what its filter leaves in the chosen time, which holds for all layers. */
  show({ collection, filter: asked, when }: View): void {
    this.app.work.run('files', () => {
      const list = this.list.map((file): MapFile => {
        const filter = fileName(file.id) === collection ? asked : file.filter;
        return { ...file, filter, data: file.source.drawn(filter, when) };
      });
      const changed = list.some(({ data }, i) => data !== this.list[i].data);
      this.list = list;
      if (changed) {
        this.app.map()?.fillFiles(list);
        this.changed();
      }
      return Promise.resolve();
    });
  }

  /** Asks about a file and goes to it. */
  private ask({ id, filter, source }: MapFile): void {
    if (this.app.view().collection === fileName(id)) this.app.map()?.fit(source.frame, false);
    else this.app.update({ ...askFile(this.app.view(), id, filter), camera: null });
  }

  private remove(id: string): void {
    const view = this.app.view();
    this.set(this.list.filter((one) => one.id !== id));
    if (view.collection === fileName(id)) this.app.update(leaveFile(view));
  }

  /** Shows an event of a file that was clicked. */
  clicked(id: string, at: string, place: LngLat): boolean {
    const file = this.list.find((one) => one.id === id);
    if (!file) return false;
    void file.source.item(at).then((feature) => {
      this.choose(eventCard(feature, file.source.schema, '', ''), feature.geometry.type === 'Point' ? (anchorOf(feature.geometry) ?? place) : place);
    });
    return true;
  }

  /** The parts of the legend: a name each, the uppermost first. */
  legend(): LegendPart[] {
    const palette = this.app.map()?.palette();
    const shown = [...this.list].reverse().filter(({ hidden }) => !hidden);
    return shown.map(({ name, color }) => ({ kind: 'layer', title: name, color: palette?.categories[color - 1], rows: [] }));
  }

  /** The rows of the list of layers. */
  rows(): HTMLElement[] {
    const palette = this.app.map()?.palette();
    return [...this.list].reverse().map((file) => {
      const { id, name, content, data, color, hidden } = file;
      const asked = this.app.view().collection === fileName(id);
      const row = make('li', ['file', asked ? 'active' : '', hidden ? 'off' : ''].filter(Boolean).join(' '), '', { 'data-file': name });
      const button = make('button', 'layer-name', '', { type: 'button', 'aria-pressed': String(asked), title: asked ? `${name}: asked about` : `Ask about ${name}`, 'data-act': 'name' });
      const [drawn, total] = [data.features.length, content.features.length];
      const dot = make('em', '', '', { 'aria-hidden': 'true' });
      dot.style.background = palette?.categories[color - 1] ?? '';
      button.append(dot, make('span', '', name), make('small', '', drawn < total ? `${formatShort(drawn)} of ${formatShort(total)}` : formatShort(total)));
      button.addEventListener('click', () => this.ask(file));
      const load = make('button', 'small', 'Load…', { type: 'button', title: `Load ${name} into a collection`, hidden: '' });
      load.addEventListener('click', () => void import('./load').then(({ askToLoad }) => askToLoad(this.app, file)));
      void mayWrite().then((may) => (load.hidden = !may));
      const show = eye(hidden, name, () => this.set(this.list.map((one) => (one.id === id ? { ...one, hidden: !hidden } : one))));
      const remove = icon('remove', `Remove ${name}`, () => this.remove(id));
      row.append(button, load, show, remove);
      for (const one of [button, show, remove]) one.dataset['layer'] = id;
      if (content.notes.length) row.append(make('small', 'lacking', sayNotes(content.notes)));
      if (content.inexact) row.append(make('small', 'lacking', `whole numbers beyond 2^53 such as ${content.inexact} are rounded or texts here, and not loaded`));
      if (content.unkept) row.append(make('small', 'lacking', `values that no field keeps are not loaded; here they are texts, such as ${content.unkept}`));
      if (content.placeless) row.append(make('small', 'lacking', `${formatCount(content.placeless)} without a place: not on the map${content.misplaced && `; ${content.misplaced}`}`));
      return row;
    });
  }
}
