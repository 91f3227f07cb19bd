// Files that were dropped on the map: the list of them, and what can be done with each. Reading and loading are fetched when used.
import type { FeatureCollection } from 'geojson';
import { Problem } from '../api';
import type { App } from '../app';
import { $, make } from '../dom';
import { boxOf, positionsOf } from '../frame';
import { formatCount, formatShort } from '../numbers';
import { eventCard, anchorOf } from '../results';
import { eye, icon } from '../layers/icon';
import type { LegendPart } from '../legend';
import { mayWrite } from '../session';
import type { LngLat } from '../shapes';
import type { FileLayer } from './drawn';
import type { Note } from './notes';
import type { FileContent } from './read';

export interface MapFile extends FileLayer {
  readonly name: string;
  readonly content: FileContent;
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
        this.add(file.name, content);
      } catch (error) {
        this.app.failed(new Problem(`${file.name} is not shown`, error instanceof Error ? error.message : String(error), 0, 'file'));
      }
    }
  }

  private add(name: string, content: FileContent): void {
    const id = `file${++this.made}`;
    const data: FeatureCollection = { type: 'FeatureCollection', features: content.features.map((feature, i) => ({ ...feature, properties: { '@at': i } })) };
    this.set([...this.list, { id, name, content, data, color: 1 + ((this.made + 2) % 8), opacity: 1, hidden: false }]);
    this.frame(id);
  }

  private frame(id: string): void {
    const content = this.list.find((file) => file.id === id)?.content;
    const places = content?.features.flatMap(({ geometry }) => positionsOf(geometry)) ?? [];
    if (places.length) this.app.map()?.fit(boxOf(places), false);
  }

  /** Shows an event of a file that was clicked. */
  clicked(id: string, at: number, place: LngLat): boolean {
    const file = this.list.find((one) => one.id === id);
    const feature = file?.content.features[at];
    if (!file || !feature) return false;
    const fields = file.content.fields.map(({ name, kind }) => ({ name, title: name, kind }));
    // An id that is a field too would be shown twice.
    const isField = String(feature.id) === String(feature.properties?.['id']);
    this.choose(eventCard({ ...feature, id: isField ? file.name : (feature.id ?? file.name) }, { fields, geometry: null, times: [], object: '' }, '', ''), feature.geometry.type === 'Point' ? (anchorOf(feature.geometry) ?? place) : place);
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
      const { id, name, content, color, hidden } = file;
      const row = make('li', hidden ? 'file off' : 'file', '', { 'data-file': name });
      const button = make('button', 'layer-name', '', { type: 'button', title: `Go to ${name}` });
      const dot = make('em', '', '', { 'aria-hidden': 'true' });
      dot.style.background = palette?.categories[color - 1] ?? '';
      button.append(dot, make('span', '', name), make('small', '', formatShort(content.features.length)));
      button.addEventListener('click', () => this.frame(id));
      const load = make('button', 'small', 'Load…', { type: 'button', title: `Load ${name} into a collection`, hidden: '' });
      load.addEventListener('click', () => void import('./load').then(({ askToLoad }) => askToLoad(this.app, file)));
      void mayWrite().then((may) => (load.hidden = !may));
      const show = eye(hidden, name, () => this.set(this.list.map((one) => (one.id === id ? { ...one, hidden: !hidden } : one))));
      const remove = icon('remove', `Remove ${name}`, () => this.set(this.list.filter((one) => one.id !== id)));
      row.append(button, load, show, remove);
      for (const one of [show, remove]) one.dataset['layer'] = id;
      if (content.notes.length) row.append(make('small', 'lacking', sayNotes(content.notes)));
      if (content.inexact) row.append(make('small', 'lacking', `whole numbers beyond 2^53 such as ${content.inexact} are rounded or texts here, and not loaded`));
      if (content.unkept) row.append(make('small', 'lacking', `values that no field keeps are not loaded; here they are texts, such as ${content.unkept}`));
      if (content.placeless) row.append(make('small', 'lacking', `${formatCount(content.placeless)} without a place: not on the map${content.misplaced && `; ${content.misplaced}`}`));
      return row;
    });
  }
}
