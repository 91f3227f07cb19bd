// A trail on the map while time plays: loads its events, colours them, and takes the place of the picture.
import type { Map as MapLibre } from 'maplibre-gl';
import type { ColorScale } from '../eventstyle';
import { Latest } from '../latest';
import type { Palette } from '../palette';
import type { Picture, PictureQuery } from '../picture';
import { valueStops } from '../surface/scale';
import type { Range } from '../time';
import { loadTrail } from './events';
import { TrailLayer } from './layer';

export class Trail {
  readonly layer = new TrailLayer();
  /** Whether a trail is shown. Where there are too many events, or shapes, the picture itself plays. */
  shown = false;
  /** What colours the trail. */
  scale: ColorScale | null = null;
  private readonly work = new Latest(0);
  private asked: { readonly asked: PictureQuery; readonly texts: readonly string[] | null; readonly time: string; readonly span: Range } | null = null;

  constructor(
    private readonly map: MapLibre,
    private readonly picture: Picture,
    private readonly palette: () => Palette,
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** Begins a trail of events, or goes on with others. `texts`: the values that have a colour, if the field is a text. */
  start(asked: PictureQuery, texts: readonly string[] | null, time: string, span: Range): void {
    this.asked = { asked, texts, time, span };
    this.work.run(async (signal) => {
      const b = this.map.getBounds();
      const events = await loadTrail(asked, texts, time, [b.getWest(), b.getSouth(), b.getEast(), b.getNorth()], span, signal);
      const stops = events && !texts ? valueStops(Array.from(events.values)) : null;
      this.scale = texts ? { field: asked.field, values: texts } : stops && { field: asked.field, stops };
      this.shown = events !== null;
      this.layer.show(events, this.scale, this.palette());
      this.picture.hide(this.shown);
      this.changed();
    }, this.failed);
  }

  /** The view has moved. */
  refresh(): void {
    if (this.asked) this.start(this.asked.asked, this.asked.texts, this.asked.time, this.asked.span);
  }

  /** Events of the trail with and without a value of the field. */
  counts(): { readonly valued: number; readonly lacking: number } {
    const values = this.layer.values();
    const lacking = values.reduce((sum, value) => sum + (Number.isNaN(value) ? 1 : 0), 0);
    return { valued: values.length - lacking, lacking };
  }

  move(when: Range): void {
    this.layer.move(when);
  }

  stop(): void {
    this.work.cancel();
    this.asked = null;
    this.shown = false;
    this.layer.show(null, null, this.palette());
    this.picture.hide(false);
    this.changed();
  }
}
