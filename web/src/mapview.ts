// The map: base map, events, the drawn shape, the chosen event.
import type { Feature, FeatureCollection } from 'geojson';
import { AttributionControl, Map as MapLibre, NavigationControl, Popup, ScaleControl, setWorkerUrl, type AJAXError, type GeoJSONSource, type MapGeoJSONFeature, type VectorTileSource } from 'maplibre-gl';
import { Problem, problemOf } from './api';
import { Draw } from './draw';
import { OneKind } from './onekind';
import { outline, splitRing, wrapLng, type LngLat, type Shape, type ShapeKind } from './shapes';
import { CELL_LAYER, DARK, EMPTY, EVENT_LAYERS, LIGHT, RESULT_LAYERS, eventColor, mapStyle, type EventTiles, type FieldScale, type Overlays } from './style';

export interface Camera {
  readonly center: LngLat;
  readonly zoom: number;
}

export interface MapEvents {
  /** A move of the map has ended. */
  moved(camera: Camera): void;
  /** An event on the map was clicked: its id, if the server gave one. */
  clicked(id: string, at: LngLat): void;
  /** A shape was drawn. */
  drawn(shape: Shape): void;
  /** See `Draw`. */
  drawing(kind: ShapeKind | null, hint: string, canFinish: boolean): void;
  /** A tile could not be loaded. */
  failed(problem: Problem): void;
  /** Loading of tiles began or ended. */
  busy(busy: boolean): void;
}

const feature = (geometry: Feature['geometry']): Feature => ({ type: 'Feature', properties: {}, geometry });
const points = (list: readonly LngLat[]): number[][] => list.map(([x, y]) => [x, y]);

function shapeData(shape: Shape | null, corners: readonly LngLat[]): FeatureCollection {
  const features: Feature[] = [];
  if (shape) features.push(feature({ type: 'Polygon', coordinates: [points(outline(shape))] }));
  else if (corners.length > 1) features.push(feature({ type: 'LineString', coordinates: points(corners) }));
  for (const corner of corners) features.push(feature({ type: 'Point', coordinates: [...corner] }));
  return { type: 'FeatureCollection', features };
}

/** The world without the shape. */
function veilData(shape: Shape | null): FeatureCollection {
  if (!shape) return EMPTY;
  const holes = splitRing(outline(shape).slice(0, -1)).map((ring) => points([...ring, ring[0]]));
  const world = [[-180, -85.06], [180, -85.06], [180, 85.06], [-180, 85.06], [-180, -85.06]];
  return { type: 'FeatureCollection', features: [feature({ type: 'Polygon', coordinates: [world, ...holes] })] };
}

export class MapView {
  readonly map: MapLibre;
  readonly draw: Draw;
  private readonly dark = matchMedia('(prefers-color-scheme: dark)');
  private readonly popup = new Popup({ focusAfterOpen: false, closeButton: true, closeOnClick: false, maxWidth: '320px', offset: 10, className: 'event-popup' });
  private tiles: EventTiles | null = null;
  private scale: FieldScale | null = null;
  private readonly kind = new OneKind();
  private overlays: Overlays = { shape: EMPTY, veil: EMPTY, chosen: EMPTY, results: EMPTY };
  private shape: Shape | null = null;
  private ready = false;

  /** Throws when the browser has no WebGL. */
  constructor(
    container: HTMLElement,
    camera: Camera,
    private readonly events: MapEvents,
  ) {
    setWorkerUrl(new URL(__WORKER_URL__, location.origin).href);
    this.map = new MapLibre({
      container,
      style: this.style(),
      center: [...camera.center],
      zoom: camera.zoom,
      minZoom: 0.6,
      maxZoom: 18,
      attributionControl: false,
      dragRotate: false,
      pitchWithRotate: false,
      touchPitch: false,
      maxPitch: 0,
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.keyboard.disableRotation();
    this.map.addControl(new NavigationControl({ showCompass: false }), 'top-right');
    this.map.addControl(new ScaleControl({ maxWidth: 90 }), 'bottom-left');
    this.map.addControl(new AttributionControl({ compact: true, customAttribution: 'Base map: Natural Earth' }), 'bottom-right');
    this.map.getCanvas().setAttribute('aria-label', 'Map of the events. Arrow keys move it, plus and minus zoom.');

    this.map.once('style.load', () => {
      this.ready = true;
      this.restyle();
    });
    this.map.on('moveend', () => {
      this.kind.changed();
      events.moved(this.camera());
    });
    this.map.on('dataloading', () => events.busy(true));
    this.map.on('idle', () => {
      // Tiles of the other kind are loading: the next idle event ends the work.
      if (!this.settle()) events.busy(false);
    });
    this.map.on('error', ({ error }) => {
      // A tile that is no longer wanted is not an error.
      if (error instanceof Error && error.name === 'AbortError') return;
      const { status, body } = error as Partial<AJAXError>;
      if (status && body) void problemOf(new Response(body, { status })).then((problem) => events.failed(problem));
      else events.failed(new Problem('A part of the map could not be loaded', error.message, 0, ''));
    });
    this.draw = new Draw(this.map, {
      preview: (shape, corners) => this.overlay({ shape: shapeData(shape ?? (corners.length ? null : this.shape), corners) }),
      done: (shape) => events.drawn(shape),
      state: (kind, hint, canFinish) => events.drawing(kind, hint, canFinish),
    });
    this.map.on('click', (e) => this.click(e.point.x, e.point.y, [e.lngLat.lng, e.lngLat.lat]));
    this.map.on('mousemove', (e) => {
      if (this.draw.active) return;
      this.map.getCanvas().style.cursor = this.under(e.point.x, e.point.y) ? 'pointer' : '';
    });
    this.dark.addEventListener('change', () => this.restyle());
  }

  private palette(): typeof LIGHT {
    return this.dark.matches ? DARK : LIGHT;
  }

  private style(): ReturnType<typeof mapStyle> {
    return mapStyle(this.palette(), this.asked(), this.scale, this.overlays, location.origin);
  }

  /** Refreshes the whole style. Only differences are drawn. */
  private restyle(): void {
    if (this.ready) this.map.setStyle(this.style(), { diff: true });
  }

  camera(): Camera {
    const { lng, lat } = this.map.getCenter();
    return { center: [wrapLng(lng), lat], zoom: this.map.getZoom() };
  }

  /** The visible box; null if it is the whole world. */
  bounds(): Shape | null {
    const b = this.map.getBounds();
    const [west, south, east, north] = [b.getWest(), b.getSouth(), b.getEast(), b.getNorth()];
    // Mercator ends at 85 degrees. A view that reaches this edge includes all beyond it.
    const edges = { south: south < -84.9 ? -90 : south, north: north > 84.9 ? 90 : north };
    if (east - west >= 359.9 && edges.south === -90 && edges.north === 90) return null;
    return { kind: 'box', west, east, ...edges };
  }

  jump(camera: Camera): void {
    this.map.jumpTo({ center: [...camera.center], zoom: camera.zoom });
  }

  /** Shows a box, given as west, south, east, north. */
  fit(bbox: readonly [number, number, number, number], animate: boolean): void {
    const [west, south, east, north] = bbox;
    const wide = east < west ? east + 360 : east;
    this.map.fitBounds([west, Math.max(south, -75), wide, Math.min(north, 78)], { padding: 36, maxZoom: 11, animate });
  }

  /** Shows the events of these tiles. A new address of the same collection keeps the old picture until the new one is there. */
  setTiles(tiles: EventTiles | null): void {
    const before = this.tiles;
    this.tiles = tiles;
    if (before?.collection === tiles?.collection) this.kind.changed();
    else this.kind.reset();
    if (!this.ready || before?.url === tiles?.url) return;
    const source = before?.collection === tiles?.collection ? this.map.getSource<VectorTileSource>('events') : undefined;
    if (source) this.reload(source);
    else this.restyle();
  }

  /** The requested tiles: all of one kind if both would be in view. */
  private asked(): EventTiles | null {
    if (!this.tiles || !this.kind.density) return this.tiles;
    return { ...this.tiles, url: `${this.tiles.url}&density=true` };
  }

  private reload(source: VectorTileSource): void {
    const tiles = this.asked();
    if (tiles) source.setTiles([tiles.url]);
  }

  /** Checks what is drawn. Requests tiles of the other kind if both are in view; returns whether it did. */
  private settle(): boolean {
    const source = this.ready && this.tiles ? this.map.getSource<VectorTileSource>('events') : undefined;
    if (!source) return false;
    const cells = this.rendered([CELL_LAYER]);
    const counted = cells.reduce((sum, cell) => sum + Number(cell.properties['count'] ?? 0), 0);
    if (!this.kind.settle({ cells: cells.length > 0, events: this.rendered(EVENT_LAYERS).length > 0, counted })) return false;
    this.reload(source);
    return true;
  }

  /** The features that these layers have drawn. */
  private rendered(layers: readonly string[]): MapGeoJSONFeature[] {
    const present = layers.filter((id) => this.map.getLayer(id));
    return present.length ? this.map.queryRenderedFeatures({ layers: present }) : [];
  }

  /** What is drawn: whether there are cells, and how many single events have or lack a value of `field`. */
  drawn(field: string): { readonly cells: boolean; readonly valued: number; readonly lacking: number } {
    if (!this.ready) return { cells: false, valued: 0, lacking: 0 };
    const events = this.rendered(EVENT_LAYERS);
    const valued = events.filter((event) => event.properties[field] !== undefined).length;
    return { cells: this.rendered([CELL_LAYER]).length > 0, valued, lacking: events.length - valued };
  }

  /** Colours single events by a field. */
  setScale(scale: FieldScale | null): void {
    if (JSON.stringify(scale) === JSON.stringify(this.scale)) return;
    this.scale = scale;
    if (!this.ready || !this.tiles || !this.map.getLayer('event-point')) return;
    const color = eventColor(this.palette(), scale);
    this.map.setPaintProperty('event-point', 'circle-color', color);
    this.map.setPaintProperty('event-line', 'line-color', color);
    this.map.setPaintProperty('event-edge', 'line-color', color);
    this.map.setPaintProperty('event-fill', 'fill-color', color);
    this.map.setPaintProperty('event-fill', 'fill-opacity', scale ? 0.6 : 0.28);
  }

  /** Whether every visible tile is loaded. */
  settled(): boolean {
    return this.ready && this.map.areTilesLoaded();
  }

  setShape(shape: Shape | null): void {
    this.shape = shape;
    this.overlay({ shape: shapeData(shape, []), veil: veilData(shape) });
  }

  /** Shows the results of a search. The property `@id` identifies a clicked one; `first` and `named` select its drawing. */
  setResults(results: FeatureCollection): void {
    this.overlay({ results });
  }

  private overlay(change: Partial<Overlays>): void {
    this.overlays = { ...this.overlays, ...change };
    if (!this.ready) return;
    for (const [name, data] of Object.entries(change)) void this.map.getSource<GeoJSONSource>(name)?.setData(data);
  }

  /** Marks one event and shows `content` beside it; null removes mark and popup. */
  choose(event: Feature | null, at: LngLat | null, content: HTMLElement | null, closed: () => void): void {
    this.popup.off('close', this.onClosed);
    this.popup.remove();
    this.onClosed = closed;
    this.overlay({ chosen: event?.geometry ? { type: 'FeatureCollection', features: [{ ...event, properties: {} }] } : EMPTY });
    if (at && content) {
      this.popup.setLngLat([...at]).setDOMContent(content).addTo(this.map);
      this.popup.on('close', this.onClosed);
    }
  }

  private onClosed: () => void = () => {};

  /** Moves so that a position is visible, and zooms in if the map is far out. */
  reveal(at: LngLat): void {
    const zoom = Math.max(this.map.getZoom(), 4);
    const inSight = this.map.getBounds().contains([...at]) && this.map.getZoom() >= 3;
    if (!inSight) this.map.easeTo({ center: [...at], zoom, duration: 600 });
  }

  private under(x: number, y: number): MapGeoJSONFeature | null {
    if (!this.ready) return null;
    const layers = [...RESULT_LAYERS, ...EVENT_LAYERS, CELL_LAYER].filter((id) => this.map.getLayer(id));
    const reach = 4;
    const hits = this.map.queryRenderedFeatures([[x - reach, y - reach], [x + reach, y + reach]], { layers });
    return hits[0] ?? null;
  }

  private click(x: number, y: number, at: LngLat): void {
    if (this.draw.active || this.draw.justEnded) return;
    const hit = this.under(x, y);
    if (!hit) return;
    if (hit.layer.id === CELL_LAYER) {
      this.map.easeTo({ center: [...at], zoom: this.map.getZoom() + 2, duration: 500 });
      return;
    }
    const id = (hit.properties['@id'] ?? hit.properties['id'] ?? hit.id) as string | number | null | undefined;
    if (id === undefined || id === null) return;
    this.events.clicked(String(id), at);
  }
}
