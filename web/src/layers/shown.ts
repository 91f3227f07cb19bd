// What each layer shows, from what is in view: its colours, its sizes, its legend.
import type { App } from '../app';
import { $ } from '../dom';
import type { LayerView } from '../hash';
import type { Files } from '../files/files';
import { legendElement, legendOf, livePart, type LegendInput, type LegendPart, type LiveInput, type ValueCount } from '../legend';
import type { Picture } from '../picture';
import { valueStops } from '../surface/scale';
import { formatLength } from '../time';
import { kindOf, type SchemaCache } from './schemacache';
import { stackOf } from './stack';

const titleOf = (known: SchemaCache, collection: string, field: string): string => known.schema(collection)?.fields.find(({ name }) => name === field)?.title ?? field;

export class Legend {
  /** The frequent values of the field among the events that are asked about. */
  private values: readonly ValueCount[] | null = null;
  private parts: LegendPart[] = [];
  private live: LiveInput | null = null;
  /** Events that the scales are from while it plays; Infinity where they are from before. */
  private scaled = Infinity;

  constructor(
    private readonly app: App,
    private readonly known: SchemaCache,
    private readonly files: Files,
    private readonly playing: () => boolean,
    /** A value of the field that colours was clicked. */
    private readonly ask: (value: string) => void,
  ) {}

  setValues(values: readonly ValueCount[] | null): void {
    this.values = values;
    this.show();
  }

  /** What live mode has on the map; null while it is off. */
  setLive(live: LiveInput | null): void {
    this.live = live;
    const [map, before] = [this.app.map(), $('legend').querySelector('[data-legend=live]')];
    if (!live || !map || !before) return this.show();
    // Events come often: replaced with them, the other parts would lose clicks.
    const part = livePart(live, map.palette());
    this.parts = this.parts.map((one) => (one.kind === 'live' ? part : one));
    before.replaceWith(legendElement(part, this.ask));
  }

  /** What the legend says, for a saved picture. */
  said(): readonly LegendPart[] {
    return this.parts;
  }

  /** Colours and sizes the events by what is in view, and shows the legend of what is drawn. */
  show(): void {
    const map = this.app.map();
    const { layers, active } = stackOf(this.app.view());
    const slots = map?.pictures.shown() ?? [];
    // The uppermost first, as the list of layers has them. Until a collection is open, nothing is asked about any.
    const parts = (this.app.open() ? layers : []).map((layer, i) => (slots[i] && !layer.hidden ? legendOf(this.shownOf(layer, slots[i].picture, i === active), slots[i].palette) : []));
    const live = this.live && map ? [livePart(this.live, map.palette())] : [];
    // What is followed is above files, and files are above all collections.
    this.parts = [...live, ...this.files.legend(), ...parts.reverse().flat()];
    const held = $('legend').contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset['value'] : undefined;
    $('legend').replaceChildren(...this.parts.map((part) => legendElement(part, this.ask)));
    // The keyboard goes on from the same value.
    if (held !== undefined) $('legend').querySelector<HTMLElement>(`[data-value="${CSS.escape(held)}"]`)?.focus();
    $('legend').hidden = !this.parts.length;
  }

  private shownOf(layer: LayerView, picture: Picture, active: boolean): LegendInput {
    const { app, known } = this;
    const map = app.map();
    const { collection, field, size: sized } = layer;
    const many = stackOf(app.view()).layers.length > 1 || this.files.legend().length > 0;
    const kind = kindOf(known.schema(collection), field);
    const top = kind === 'value' ? known.top(collection, field) : undefined;
    const about = {
      name: many ? (app.list().find(({ id }) => id === collection)?.title ?? collection) : '',
      field: kind ? titleOf(known, collection, field) : '',
      values: kind === 'value' ? ((active ? this.values : top) ?? []) : null,
      sized: kindOf(known.schema(collection), sized) === 'number' ? titleOf(known, collection, sized) : '',
      zoom: map?.map.getZoom() ?? 0,
    };
    const trail = map?.trail;
    if (active && trail?.shown) {
      const { when } = app.view();
      return { ...about, sized: '', size: null, surface: null, averages: null, without: null, strength: 0, events: true, scale: trail.scale, ...trail.counts(), fades: when ? formatLength(when[1] - when[0]) : '' };
    }
    // What is followed has the layer's one colour. Scales stay: the picture has them when it is back, also if it plays at once.
    if (picture.replaced) return { ...about, field: '', values: null, sized: '', size: null, surface: null, averages: null, without: null, strength: 0, events: false, scale: null, valued: 0, lacking: 0, fades: '' };
    const events = picture.inView().map(({ properties }) => properties);
    const numbers = (name: string): number[] => (name ? events.map((one) => one[name] as unknown).filter((value) => typeof value === 'number') : []);
    const valued = kind === 'value' ? events.filter((one) => one[field] !== undefined && one[field] !== null).length : numbers(field).length;
    const stops = kind === 'number' ? valueStops(numbers(field)) : null;
    const ends = about.sized ? valueStops(numbers(sized)) : null;
    const color = (kind === 'value' ? top && { field, values: top.map(({ value }) => value) } : stops && { field, stops }) ?? null;
    const size = ends && { field: sized, low: ends[0], high: ends[ends.length - 1] };
    const plays = active && this.playing();
    // While it plays, a colour keeps its value. After a surface there is none: it is from the first events, and from twice as many once they come.
    const lacks = picture.scale?.field !== (kind ? field : undefined);
    const renews = !plays || events.length > 2 * this.scaled;
    picture.setScale(renews || lacks ? color : picture.scale, renews || picture.size?.field !== (about.sized ? sized : undefined) ? size : picture.size);
    if (!plays) this.scaled = Infinity;
    else if (renews || lacks) this.scaled = events.length;
    return { ...about, surface: picture.stops(), averages: picture.averages(), without: picture.without, strength: picture.strength, events: picture.showsEvents, scale: picture.scale, size: picture.size, valued, lacking: field ? events.length - valued : 0, fades: '' };
  }
}
