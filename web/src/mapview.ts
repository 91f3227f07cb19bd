// The map: base map, events, the drawn shape, the chosen event.
import type { Feature, FeatureCollection } from 'geojson';
import { AttributionControl, Map as MapLibre, NavigationControl, Popup, ScaleControl, setWorkerUrl, type AJAXError, type GeoJSONSource, type MapGeoJSONFeature } from 'maplibre-gl';
import { Problem, problemOf } from './api';
import { Draw } from './draw';
import { EVENT_LAYERS } from './eventstyle';
import { DARK, LIGHT, type Palette } from './palette';
import { Picture, type Asked } from './picture';
import { addArrows, LIVE_LAYER } from './live/layers';
import { Trail } from './trail/trail';
import { outline, splitRing, wrapLng, type LngLat, type Shape, type ShapeKind } from './shapes';
import { FAINT } from './surface/scale';
import { EMPTY, FINE_ZOOM, NO_OVERLAYS, RESULT_LAYERS, mapStyle, type Detail, type Overlays } from './style';

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
  failed(error: unknown): void;
  /** Loading of the picture began or ended. */
  busy(busy: boolean): void;
  /** The drawing of the events has changed. */
  pictured?(): void;
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
  /** The events of a collection. */
  readonly picture: Picture;
  /** The same events while time plays. */
  readonly trail: Trail;
  private overlays: Overlays = NO_OVERLAYS;
  private shape: Shape | null = null;
  private ready = false;
  private loading = false;
  private detail: Detail;
  /** The collection whose layers the style has. */
  private asked: string | null = null;

  /** Throws when the browser has no WebGL. */
  constructor(
    container: HTMLElement,
    camera: Camera,
    private readonly events: MapEvents,
  ) {
    this.detail = camera.zoom >= FINE_ZOOM ? 'fine' : 'coarse';
    setWorkerUrl(new URL(__WORKER_URL__, location.origin).href);
    this.map = new MapLibre({
      container,
      style: mapStyle(this.palette(), null, this.overlays, this.detail, location.origin),
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
    this.picture = new Picture(this.map, () => this.palette(), {
      drawn: () => events.pictured?.(),
      busy: (on) => {
        this.loading = on;
        if (on) events.busy(true);
        // Otherwise the map is idle once what has changed is drawn.
        else this.map.triggerRepaint();
      },
      failed: (error) => events.failed(error),
    });
    this.trail = new Trail(this.map, this.picture, () => this.palette(), () => events.pictured?.(), (error) => events.failed(error));
    this.map.touchZoomRotate.disableRotation();
    this.map.keyboard.disableRotation();
    this.map.addControl(new NavigationControl({ showCompass: false }), 'top-right');
    this.map.addControl(new ScaleControl({ maxWidth: 90 }), 'bottom-left');
    this.map.addControl(new AttributionControl({ compact: true, customAttribution: 'Base map: Natural Earth' }), 'bottom-right');
    this.map.getCanvas().setAttribute('aria-label', 'Map of the events. Arrow keys move it, plus and minus zoom.');

    this.map.once('style.load', () => {
      this.ready = true;
      addArrows(this.map);
      this.restyle();
    });
    this.map.on('zoom', () => {
      if (this.detail === 'fine' || this.map.getZoom() < FINE_ZOOM) return;
      this.detail = 'fine';
      this.restyle();
    });
    this.map.on('moveend', () => {
      this.picture.refresh();
      this.trail.refresh();
      events.moved(this.camera());
    });
    this.map.on('dataloading', () => events.busy(true));
    this.map.on('idle', () => {
      // While the picture is loading, a later idle event ends the work.
      if (!this.loading && !this.picture.settle()) events.busy(false);
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

  private palette(): Palette {
    return this.dark.matches ? DARK : LIGHT;
  }

  /** Refreshes the whole style. Only differences are drawn. */
  restyle(): void {
    if (!this.ready) return;
    this.map.setStyle(mapStyle(this.palette(), this.picture.drawn(), this.overlays, this.detail, location.origin), { diff: true });
    this.picture.layer.setRamp(this.palette().counts);
    if (!this.map.getLayer(this.picture.layer.id)) this.map.addLayer(this.picture.layer, this.map.getLayer('event-fill') ? 'event-fill' : 'city-dot');
    if (!this.map.getLayer(this.trail.layer.id)) this.map.addLayer(this.trail.layer, 'city-dot');
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

  /** Shows the events of a question; null for none. */
  ask(asked: Asked | null): void {
    const other = this.asked !== (asked?.collection ?? null);
    this.asked = asked?.collection ?? null;
    this.picture.ask(asked);
    if (other) this.restyle();
  }

  /** Whether every visible tile is loaded. */
  settled(): boolean {
    return this.ready && !this.loading && this.map.areTilesLoaded();
  }

  setShape(shape: Shape | null): void {
    this.shape = shape;
    this.overlay({ shape: shapeData(shape, []), veil: veilData(shape) });
  }

  /** Shows the results of a search. The property `@id` identifies a clicked one; `first` and `named` select its drawing. */
  setResults(results: FeatureCollection): void {
    this.overlay({ results });
  }

  /** Shows objects that are followed. */
  setLive(livePoints: FeatureCollection, liveLines: FeatureCollection): void {
    this.overlay({ livePoints, liveLines });
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
    const layers = [...RESULT_LAYERS, LIVE_LAYER, ...EVENT_LAYERS].filter((id) => this.map.getLayer(id));
    const reach = 4;
    const hits = this.map.queryRenderedFeatures([[x - reach, y - reach], [x + reach, y + reach]], { layers });
    return hits[0] ?? null;
  }

  private click(x: number, y: number, at: LngLat): void {
    if (this.draw.active || this.draw.justEnded) return;
    const hit = this.under(x, y);
    const id = hit && ((hit.properties['@id'] ?? hit.properties['id'] ?? hit.id) as string | number | null | undefined);
    if (id !== undefined && id !== null) this.events.clicked(String(id), at);
    // On the surface a click looks closer.
    else if (!hit && this.picture.eventsNear(at) >= FAINT) this.map.easeTo({ center: [...at], zoom: this.map.getZoom() + 2, duration: 500 });
  }
}
