// The pictures of all collections on the map: the one that is asked about, and those under and over it.
import type { Map as MapLibre } from 'maplibre-gl';
import { type EventLayer } from '../eventstyle';
import { layerPalette, type Palette } from '../palette';
import { Picture, type PictureEvents, type PictureQuery } from '../picture';

/** A collection to be drawn. */
export interface Layer {
  /** Null while it is hidden, or not known yet. */
  readonly asked: PictureQuery | null;
  readonly color: number;
  readonly opacity: number;
}

export const MAIN = 'event';

interface Slot {
  readonly picture: Picture;
  color: number;
}

export class Pictures {
  readonly main: Picture;
  private readonly slots = new Map<string, Slot>();
  /** Names of the slots, from the lowest to the uppermost. */
  private order: readonly string[] = [MAIN];
  private readonly busy = new Set<string>();

  constructor(
    private readonly map: MapLibre,
    private readonly palette: () => Palette,
    private readonly events: PictureEvents,
  ) {
    this.main = this.slot(MAIN).picture;
  }

  private slot(name: string): Slot {
    let slot = this.slots.get(name);
    if (!slot) {
      const picture = new Picture(this.map, name, () => this.paletteOf(name), {
        drawn: () => this.events.drawn(),
        failed: (error) => this.events.failed(error),
        busy: (on) => {
          if (on) this.busy.add(name);
          else this.busy.delete(name);
          this.events.busy(this.busy.size > 0);
        },
      });
      slot = { picture, color: 0 };
      this.slots.set(name, slot);
    }
    return slot;
  }

  /** The colours of a slot. */
  paletteOf(name: string): Palette {
    return layerPalette(this.palette(), this.slots.get(name)?.color ?? 0);
  }

  /** Whether anything is loading. */
  get loading(): boolean {
    return this.busy.size > 0;
  }

  /** Slots from the lowest to the uppermost, with their pictures and colours. */
  shown(): { readonly name: string; readonly picture: Picture; readonly palette: Palette }[] {
    return this.order.map((name) => ({ name, picture: this.slot(name).picture, palette: this.paletteOf(name) }));
  }

  drawn(): { readonly drawn: EventLayer; readonly palette: Palette }[] {
    return this.shown().flatMap(({ picture, palette }) => {
      const drawn = picture.drawn();
      return drawn ? [{ drawn, palette }] : [];
    });
  }

  /** Shows layers from the lowest to the uppermost; `active` is the one that is asked about. Answers whether the style must follow. */
  show(layers: readonly Layer[], active: number): boolean {
    const names = layers.map((_, i) => (i === active ? MAIN : i < active ? `below${i}` : `above${i - active - 1}`));
    const before = JSON.stringify([this.order, this.order.map((name) => [this.slot(name).color, this.slot(name).picture.drawn()?.collection])]);
    for (const name of this.order) if (!names.includes(name)) this.slot(name).picture.ask(null);
    this.order = names;
    layers.forEach(({ asked, color, opacity }, i) => {
      const slot = this.slot(names[i]);
      slot.color = color;
      slot.picture.setOpacity(opacity);
      slot.picture.ask(asked);
    });
    return before !== JSON.stringify([names, names.map((name) => [this.slot(name).color, this.slot(name).picture.drawn()?.collection])]);
  }

  refresh(): void {
    for (const { picture } of this.shown()) picture.refresh();
  }

  /** See `Picture.settle`. */
  settle(): boolean {
    return this.shown().map(({ picture }) => picture.settle()).some(Boolean);
  }
}
