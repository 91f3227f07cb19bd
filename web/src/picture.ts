// The picture of a collection's events: asks how many are in view, chooses the drawing, and loads what that needs.
import type { Map as MapLibre, MapGeoJSONFeature, VectorTileSource } from 'maplibre-gl';
import * as api from './api';
import { AS_SURFACE, drawingOf, EVENTS_MAX, type Drawing } from './drawing';
import { EVENT_LAYERS, eventPaint, IS_CELL, type EventsDrawn, type FieldScale } from './eventstyle';
import { Latest } from './latest';
import type { Palette } from './palette';
import { bboxParam, type LngLat } from './shapes';
import { cellWidth, countTiles, eventTileBoxes, type Box } from './surface/cover';
import { REACH, surfaceOf, valueAt, valuesIn, type Surface } from './surface/density';
import { SurfaceLayer } from './surface/layer';
import { countStops, type Stops } from './surface/scale';
import { SurfaceTiles } from './surface/tiles';

/** Which events are drawn: a collection, the parameters of the question without a place, and the field that colours. */
export interface Asked {
  readonly collection: string;
  readonly query: URLSearchParams;
  readonly field: string;
}

export interface PictureEvents {
  /** The drawing has changed. */
  drawn(): void;
  busy(busy: boolean): void;
  failed(error: unknown): void;
}

const NOTHING: Drawing = { events: 0, surface: 0 };

export class Picture {
  readonly layer = new SurfaceLayer();
  private asked: Asked | null = null;
  /** What colours the events stand for. */
  scale: FieldScale | null = null;
  private drawing = NOTHING;
  private hidden = false;
  private surface: { readonly surface: Surface; readonly stops: Stops } | null = null;
  private readonly work = new Latest(30);
  private readonly tiles = new SurfaceTiles();
  /** Whether the server answered with counts where events were expected, in the view as it is. */
  private tooLarge = false;

  constructor(
    private readonly map: MapLibre,
    private readonly palette: () => Palette,
    private readonly events: PictureEvents,
  ) {}

  /** Shows the events of a question. Another question about the same collection keeps the old picture until the new one is there. */
  ask(asked: Asked | null): void {
    const before = this.asked;
    this.asked = asked;
    if (before?.collection !== asked?.collection) this.draw(NOTHING, null);
    if (!asked) {
      this.work.cancel();
      this.events.busy(false);
    } else if (before?.collection !== asked.collection || before.field !== asked.field || String(before.query) !== String(asked.query)) this.refresh();
  }

  /** The view has moved, or what is asked has changed. */
  refresh(): void {
    if (!this.asked) return;
    const { asked } = this;
    this.tooLarge = false;
    this.events.busy(true);
    this.work.run(
      async (signal) => {
        await this.show(asked, await this.choose(asked, signal), signal);
        this.events.busy(false);
      },
      (error) => {
        this.events.busy(false);
        this.events.failed(error);
      },
    );
  }

  /** New events have come: what is kept is old. */
  renew(): void {
    this.tiles.clear();
    this.refresh();
    const source = this.map.getSource<VectorTileSource>('events');
    const drawn = this.drawn();
    if (source && drawn && drawn.presence > 0) source.setTiles([drawn.url]);
  }

  /** The layers of single events, for the style. */
  drawn(): EventsDrawn | null {
    if (!this.asked) return null;
    const { collection, query, field } = this.asked;
    return { collection, url: `${location.origin}${api.tilesPath(collection, query)}&properties=${encodeURIComponent(field)}`, scale: this.scale, presence: this.hidden ? 0 : this.drawing.events };
  }

  /** The stops of the surface's colours; null where there is no surface. */
  stops(): Stops | null {
    return !this.hidden && this.drawing.surface > 0 ? (this.surface?.stops ?? null) : null;
  }

  get showsEvents(): boolean {
    return !this.hidden && this.drawing.events > 0;
  }

  /** Hides the picture while something else stands for it. */
  hide(hidden: boolean): void {
    if (hidden === this.hidden) return;
    this.hidden = hidden;
    this.layer.setOpacity(hidden ? 0 : this.drawing.surface);
    this.paint();
  }

  /** Events that the surface shows around a position, within its circle; 0 where there is none. */
  eventsNear([lng, lat]: LngLat): number {
    if (!this.surface || this.hidden || this.drawing.surface <= 0) return 0;
    return valueAt(this.surface.surface, lng, lat);
  }

  setScale(scale: FieldScale | null): void {
    if (JSON.stringify(scale) === JSON.stringify(this.scale)) return;
    this.scale = scale;
    this.paint();
  }

  /** The events drawn one by one in the view, each once. */
  inView(): MapGeoJSONFeature[] {
    if (!this.showsEvents) return [];
    const found = this.map.queryRenderedFeatures({ layers: EVENT_LAYERS.filter((id) => this.map.getLayer(id)) });
    const seen = new Map<unknown, MapGeoJSONFeature>();
    for (const event of found) seen.set(event.properties['@id'] ?? event.properties['id'] ?? event.id, event);
    return [...seen.values()];
  }

  /** Once the tiles are there: whether one of them holds counts, so that the view is drawn anew as a surface. */
  settle(): boolean {
    if (!this.asked || !this.showsEvents || this.tooLarge || this.work.busy) return false;
    const cells = this.map.querySourceFeatures('events', { sourceLayer: this.asked.collection, filter: IS_CELL });
    if (!cells.length) return false;
    this.tooLarge = true;
    const { asked } = this;
    this.events.busy(true);
    this.work.run(
      async (signal) => {
        await this.show(asked, AS_SURFACE, signal);
        this.events.busy(false);
      },
      (error) => this.events.failed(error),
    );
    return true;
  }

  private box(): Box {
    const b = this.map.getBounds();
    return [b.getWest(), b.getSouth(), b.getEast(), b.getNorth()];
  }

  /** How to draw the view. Events are drawn where they are few in the view, and in each of its tiles. */
  private async choose(asked: Asked, signal: AbortSignal): Promise<Drawing> {
    const count = async (box: Box): Promise<number> => {
      const query = new URLSearchParams(asked.query);
      query.set('bbox', bboxParam(...box));
      return (await api.aggregate(asked.collection, ['count'], query, signal))[0]?.count ?? 0;
    };
    const [zoom, box] = [this.map.getZoom(), this.box()];
    const drawing = drawingOf(await count(box));
    if (!drawing.events) return drawing;
    const tiles = await Promise.all(eventTileBoxes(zoom, box).map(count));
    return tiles.some((n) => n > EVENTS_MAX) ? AS_SURFACE : drawing;
  }

  private async show(asked: Asked, drawing: Drawing, signal: AbortSignal): Promise<void> {
    let made: typeof this.surface = null;
    if (drawing.surface > 0) {
      const [zoom, box] = [this.map.getZoom(), this.box()];
      const cover = countTiles(zoom, box, REACH);
      const tile = await this.tiles.load(asked.collection, asked.query, cover, signal);
      const surface = surfaceOf(cover, cellWidth(cover.z, zoom), tile);
      const stops = countStops(valuesIn(surface, box));
      made = stops && { surface, stops };
    }
    this.draw(drawing, made);
  }

  private draw(drawing: Drawing, surface: typeof this.surface): void {
    this.drawing = drawing;
    this.surface = surface;
    this.layer.show(surface?.surface ?? null, surface?.stops ?? null);
    this.layer.setOpacity(this.hidden ? 0 : drawing.surface);
    const source = this.map.getSource<VectorTileSource>('events');
    const drawn = this.drawn();
    if (source && drawn && drawing.events > 0 && source.tiles?.[0] !== drawn.url) source.setTiles([drawn.url]);
    this.paint();
    this.events.drawn();
  }

  /** Brings layers that are there up to date. */
  private paint(): void {
    const drawn = this.drawn();
    if (!drawn || !this.map.getLayer('event-point')) return;
    for (const [id, paint] of Object.entries(eventPaint(this.palette(), drawn))) {
      this.map.setLayoutProperty(id, 'visibility', drawn.presence > 0 ? 'visible' : 'none');
      for (const [name, value] of Object.entries(paint)) this.map.setPaintProperty(id, name as 'circle-color', value as string);
    }
  }
}
