// The picture of a collection's events: asks how many are in view, chooses the drawing, and loads what that needs.
import type { ExpressionSpecification, Map as MapLibre, MapGeoJSONFeature, VectorTileSource } from 'maplibre-gl';
import * as api from './api';
import { AS_SURFACE, AVERAGED_MAX, drawingOf, EVENTS_MAX, type Drawing } from './drawing';
import { eventLayerIds, eventPaint, IS_CELL, isValues, rampOf, sourceOf, type ColorScale, type EventLayer, type SizeScale } from './eventstyle';
import { Latest } from './latest';
import type { Palette } from './palette';
import { bboxParam, type LngLat } from './shapes';
import { cellWidth, countTiles, eventTileBoxes, type Box } from './surface/cover';
import { REACH, surfaceOf, valueAt, valuesIn, type Surface } from './surface/density';
import { SurfaceLayer } from './surface/layer';
import { averageScale, countStops, type AverageScale, type Stops, type SurfaceScale } from './surface/scale';
import { SurfaceTiles } from './surface/tiles';

/** Which events are drawn: a collection, the parameters of the question without a place, and the fields that colour and size. */
export interface PictureQuery {
  readonly collection: string;
  readonly query: URLSearchParams;
  readonly field: string;
  /** The field again if it is a number, so that a surface shows its average; else empty. */
  readonly average: string;
  readonly size: string;
}

const sameQuestion = (a: PictureQuery, b: PictureQuery): boolean => a.collection === b.collection && a.field === b.field && a.size === b.size && String(a.query) === String(b.query);

export interface PictureEvents {
  /** The drawing has changed. */
  drawn(): void;
  busy(busy: boolean): void;
  failed(error: unknown): void;
}

const NOTHING: Drawing = { events: 0, surface: 0 };

/** The scale of a surface from what is in view; where no event there has a value, it shows counts. */
function scaleOf(surface: Surface, box: Box): SurfaceScale | null {
  const counts = valuesIn(surface, box);
  const { averages } = surface;
  const scale = averages && averageScale(valuesIn(surface, box, averages.values), valuesIn(surface, box, averages.shares), counts);
  if (scale) return scale;
  const stops = countStops(counts);
  return stops && { kind: 'counts', stops };
}

export class Picture {
  readonly layer: SurfaceLayer;
  private asked: PictureQuery | null = null;
  /** What colours and sizes of the events stand for. */
  scale: ColorScale | null = null;
  size: SizeScale | null = null;
  private opacity = 1;
  private drawing = NOTHING;
  private hidden = false;
  private surface: { readonly surface: Surface; readonly scale: SurfaceScale } | null = null;
  /** Events in the view that was asked last. */
  private count = 0;
  private readonly work = new Latest(30);
  private readonly tiles = new SurfaceTiles();
  /** Whether the server answered with counts where events were expected, in the view as it is. */
  private tooLarge = false;

  constructor(
    private readonly map: MapLibre,
    /** Names the layers of this picture. */
    private readonly slot: string,
    private readonly palette: () => Palette,
    private readonly events: PictureEvents,
  ) {
    this.layer = new SurfaceLayer(`${slot}-surface`);
  }

  /** Shows the events of a question. Another question about the same collection keeps the old picture until the new one is there. */
  ask(asked: PictureQuery | null): void {
    const before = this.asked;
    this.asked = asked;
    if (before?.collection !== asked?.collection) this.draw(NOTHING, null);
    if (!asked) {
      this.work.cancel();
      this.events.busy(false);
    } else if (!before || !sameQuestion(before, asked)) this.refresh();
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
    const source = this.map.getSource<VectorTileSource>(sourceOf(this.slot));
    const drawn = this.drawn();
    if (source && drawn && drawn.presence > 0) source.setTiles([drawn.url]);
  }

  /** The layers of single events, for the style. */
  drawn(): EventLayer | null {
    if (!this.asked) return null;
    const { collection, query, field, size } = this.asked;
    const properties = [field, size].filter((name, i, all) => name && all.indexOf(name) === i).map(encodeURIComponent).join(',');
    return {
      slot: this.slot,
      collection,
      url: `${location.origin}${api.tilesPath(collection, query)}&properties=${properties}`,
      scale: this.scale,
      size: this.size,
      presence: this.hidden ? 0 : this.drawing.events * this.opacity,
    };
  }

  private get surfaceScale(): SurfaceScale | null {
    return !this.hidden && this.drawing.surface > 0 ? (this.surface?.scale ?? null) : null;
  }

  /** The stops of a surface of counts; null where there is none. */
  stops(): Stops | null {
    const scale = this.surfaceScale;
    return scale?.kind === 'counts' ? scale.stops : null;
  }

  /** The scale of a surface of averages; null where there is none. */
  averages(): AverageScale | null {
    const scale = this.surfaceScale;
    return scale?.kind === 'averages' ? this.averagesAs(scale) : null;
  }

  /** The events' own scale holds for the surface below them too, so that a value has one colour. */
  private averagesAs(scale: AverageScale): AverageScale {
    const { scale: events, drawing } = this;
    return drawing.events > 0 && events && !isValues(events) && events.field === this.asked?.average ? { ...scale, stops: events.stops } : scale;
  }

  /** Why a surface has counts although averages are asked; null where it has none, or they are not there yet. */
  get without(): 'many' | 'values' | null {
    if (!this.asked?.average || this.surfaceScale?.kind !== 'counts') return null;
    return this.surface?.surface.averages ? 'values' : this.count > AVERAGED_MAX ? 'many' : null;
  }

  /** The scale that the surface is drawn in. */
  private get drawnScale(): SurfaceScale | null {
    const scale = this.surface?.scale ?? null;
    return scale?.kind === 'averages' ? this.averagesAs(scale) : scale;
  }

  /** Gives the surface the colours of what it shows. */
  colorSurface(): void {
    const [palette, scale] = [this.palette(), this.drawnScale];
    this.layer.setColors(scale?.kind === 'averages' ? rampOf(palette.values, scale.stops.length) : palette.counts, palette.none);
  }

  /** Opacity of the surface before that of the layer, 0 to 1. */
  get strength(): number {
    return this.drawing.surface;
  }

  get showsEvents(): boolean {
    return !this.hidden && this.drawing.events > 0;
  }

  /** Whether something else stands for it. */
  get replaced(): boolean {
    return this.hidden;
  }

  /** Hides the picture while something else stands for it. */
  hide(hidden: boolean): void {
    if (hidden === this.hidden) return;
    this.hidden = hidden;
    this.fade();
    this.paint();
  }

  /** 0 to 1. */
  setOpacity(opacity: number): void {
    if (opacity === this.opacity) return;
    this.opacity = opacity;
    this.fade();
    this.paint();
  }

  private fade(): void {
    this.layer.setOpacity(this.hidden ? 0 : this.drawing.surface * this.opacity);
  }

  /** Events that the surface shows around a position, within its circle; 0 where there is none. */
  eventsNear([lng, lat]: LngLat): number {
    if (!this.surface || this.hidden || this.drawing.surface <= 0) return 0;
    return valueAt(this.surface.surface, lng, lat);
  }

  setScale(scale: ColorScale | null, size: SizeScale | null): void {
    if (JSON.stringify([scale, size]) === JSON.stringify([this.scale, this.size])) return;
    this.scale = scale;
    this.size = size;
    this.showSurface();
    this.paint();
  }

  /** The events drawn one by one in the view, each once. */
  inView(): MapGeoJSONFeature[] {
    if (!this.showsEvents) return [];
    const found = this.map.queryRenderedFeatures({ layers: eventLayerIds(this.slot).filter((id) => this.map.getLayer(id)) });
    const seen = new Map<unknown, MapGeoJSONFeature>();
    for (const event of found) seen.set(event.properties['@id'] ?? event.properties['id'] ?? event.id, event);
    return [...seen.values()];
  }

  /** Once the tiles are there: whether one of them holds counts, so that the view is drawn anew as a surface. */
  settle(): boolean {
    if (!this.asked || !this.showsEvents || this.tooLarge || this.work.busy) return false;
    const cells = this.map.querySourceFeatures(sourceOf(this.slot), { sourceLayer: this.asked.collection, filter: IS_CELL });
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
  private async choose(asked: PictureQuery, signal: AbortSignal): Promise<Drawing> {
    const count = async (box: Box): Promise<number> => {
      const query = new URLSearchParams(asked.query);
      query.set('bbox', bboxParam(...box));
      return (await api.aggregate(asked.collection, ['count'], query, signal))[0]?.count ?? 0;
    };
    const [zoom, box] = [this.map.getZoom(), this.box()];
    this.count = await count(box);
    const drawing = drawingOf(this.count);
    if (!drawing.events) return drawing;
    const tiles = await Promise.all(eventTileBoxes(zoom, box).map(count));
    return tiles.some((n) => n > EVENTS_MAX) ? AS_SURFACE : drawing;
  }

  private async show(asked: PictureQuery, drawing: Drawing, signal: AbortSignal): Promise<void> {
    let made: typeof this.surface = null;
    if (drawing.surface > 0) {
      const [zoom, box] = [this.map.getZoom(), this.box()];
      const cover = countTiles(zoom, box, REACH);
      const average = this.count > AVERAGED_MAX ? '' : asked.average;
      const tile = await this.tiles.load(asked.collection, asked.query, average, cover, signal);
      const surface = surfaceOf(cover, cellWidth(cover.z, zoom), tile, average !== '');
      const scale = scaleOf(surface, box);
      made = scale && { surface, scale };
    }
    this.draw(drawing, made);
  }

  private draw(drawing: Drawing, surface: typeof this.surface): void {
    this.drawing = drawing;
    this.surface = surface;
    this.showSurface();
    this.fade();
    const source = this.map.getSource<VectorTileSource>(sourceOf(this.slot));
    const drawn = this.drawn();
    if (source && drawn && drawing.events > 0 && source.tiles?.[0] !== drawn.url) source.setTiles([drawn.url]);
    this.paint();
    this.events.drawn();
  }

  private showSurface(): void {
    this.layer.show(this.surface?.surface ?? null, this.drawnScale);
    this.colorSurface();
  }

  /** Brings layers that are there up to date. */
  private paint(): void {
    const drawn = this.drawn();
    if (!drawn || !this.map.getLayer(`${this.slot}-point`)) return;
    const order: ExpressionSpecification | undefined = drawn.size ? ['-', 0, ['to-number', ['get', drawn.size.field], 0]] : undefined;
    this.map.setLayoutProperty(`${this.slot}-point`, 'circle-sort-key', order);
    for (const [id, paint] of Object.entries(eventPaint(this.palette(), drawn))) {
      this.map.setLayoutProperty(id, 'visibility', drawn.presence > 0 ? 'visible' : 'none');
      for (const [name, value] of Object.entries(paint)) this.map.setPaintProperty(id, name as 'circle-color', value as string);
    }
  }
}
