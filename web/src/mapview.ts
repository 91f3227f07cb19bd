// The map: base map, events, the drawn shape, the chosen event.
import type { Feature, FeatureCollection } from 'geojson';
import { AttributionControl, Map as MapLibre, NavigationControl, ScaleControl, setWorkerUrl, type AJAXError, type GeoJSONSource, type MapGeoJSONFeature } from 'maplibre-gl';
import { Problem, problemOf } from './api';
import { constrainIn, minZoomOf } from './constrain';
import { Draw, type DrawKind } from './draw';
import { ROUGH_ZOOM, roughNote, type BaseMap } from './basemap';
import { eventLayerIds } from './eventstyle';
import { fileLayerIds, type FileLayer } from './files/drawn';
import { MAIN, Pictures, type Layer } from './layers/pictures';
import { DARK, LIGHT, type Palette } from './palette';
import type { Picture } from './picture';
import { addArrows, LIVE_LAYER } from './live/layers';
import { Trail } from './trail/trail';
import { pathOf } from './measure';
import { EventPopup } from './popup';
import { outline, splitRing, wrapLng, type LngLat, type Shape } from './shapes';
import { FAINT } from './surface/scale';
import { EMPTY, FINE_ZOOM, NO_OVERLAYS, RESULT_LAYERS, mapStyle, type Detail, type Overlays } from './style';

export interface Camera {
  readonly center: LngLat;
  readonly zoom: number;
}

export interface MapEvents {
  /** A move of the map has ended. */
  moved(camera: Camera): void;
  /** An event on the map was clicked: its id, if the server gave one, and the slot or the file that it belongs to. */
  clicked(id: string, at: LngLat, of: string): void;
  /** A shape was drawn. */
  drawn(shape: Shape): void;
  /** What is measured: a line, or with `closed` an area; null when it ends. */
  measured?(corners: readonly LngLat[] | null, closed: boolean, done: boolean): void;
  /** See `Draw`. */
  drawing(kind: DrawKind | null, hint: string, canFinish: boolean): void;
  /** A tile could not be loaded. */
  failed(error: unknown): void;
  /** Loading of the picture began or ended. */
  busy(busy: boolean): void;
  /** The drawing of the events has changed. */
  pictured?(): void;
}

/** Room of the tools at both sides of the map, and of the notes and the legend of two layers at its foot, in pixels. */
const SIDE = 70;
const FOOT = 116;

const feature = (geometry: Feature['geometry']): Feature => ({ type: 'Feature', properties: {}, geometry });
const points = (list: readonly LngLat[]): number[][] => list.map(([x, y]) => [x, y]);

function shapeData(shape: Shape | null, corners: readonly LngLat[]): FeatureCollection {
  const features: Feature[] = [];
  if (shape) features.push(feature({ type: 'Polygon', coordinates: [points(outline(shape))] }));
  else if (corners.length > 1) features.push(feature({ type: 'LineString', coordinates: points(corners) }));
  for (const corner of corners) features.push(feature({ type: 'Point', coordinates: [...corner] }));
  return { type: 'FeatureCollection', features };
}

/** A line or an area that is measured, with its corners. */
function rulerData(corners: readonly LngLat[] | null, closed: boolean): FeatureCollection {
  if (!corners?.length) return EMPTY;
  const features: Feature[] = corners.map((corner) => feature({ type: 'Point', coordinates: [...corner] }));
  if (closed && corners.length > 2) features.push(feature({ type: 'Polygon', coordinates: [points([...corners, corners[0]])] }));
  else if (corners.length > 1) features.push(feature({ type: 'LineString', coordinates: points(pathOf(corners)) }));
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
  private readonly popup: EventPopup;
  /** The events of every collection on the map. */
  readonly pictures: Pictures;
  /** The same events while time plays. */
  readonly trail: Trail;
  private overlays: Overlays = NO_OVERLAYS;
  private shape: Shape | null = null;
  private ready = false;
  private loading = false;
  private detail: Detail;
  private files: readonly FileLayer[] = [];

  /** Throws when the browser has no WebGL. */
  constructor(
    container: HTMLElement,
    camera: Camera,
    private readonly events: MapEvents,
    /** The operator's base map; null for the one of the bundle. */
    private readonly base: BaseMap | null = null,
  ) {
    this.detail = camera.zoom >= FINE_ZOOM ? 'fine' : 'coarse';
    setWorkerUrl(new URL(__WORKER_URL__, location.origin).href);
    this.map = new MapLibre({
      container,
      style: mapStyle(this.palette(), { events: [], files: [], base }, this.overlays, this.detail, location.origin),
      center: [...camera.center],
      zoom: camera.zoom,
      minZoom: minZoomOf(container.clientWidth),
      transformConstrain: constrainIn(container),
      maxZoom: 18,
      attributionControl: false,
      dragRotate: false,
      pitchWithRotate: false,
      touchPitch: false,
      maxPitch: 0,
    });
    this.popup = new EventPopup(this.map);
    this.pictures = new Pictures(this.map, () => this.palette(), {
      drawn: () => events.pictured?.(),
      busy: (on) => {
        this.loading = on;
        if (on) events.busy(true);
        // Otherwise the map is idle once what has changed is drawn.
        else this.map.triggerRepaint();
      },
      failed: (error) => events.failed(error),
    });
    this.trail = new Trail(this.map, this.picture, () => this.pictures.paletteOf(MAIN), () => events.pictured?.(), (error) => events.failed(error));
    this.map.touchZoomRotate.disableRotation();
    this.map.keyboard.disableRotation();
    this.map.addControl(new NavigationControl({ showCompass: false }), 'top-right');
    this.map.addControl(new ScaleControl({ maxWidth: 110 }), 'bottom-left');
    this.map.addControl(new AttributionControl({ compact: true, customAttribution: base ? [] : 'Base map: Natural Earth' }), 'bottom-right');
    this.map.getCanvas().setAttribute('aria-label', 'Map of the events. Arrow keys move it, plus and minus zoom.');

    this.map.once('style.load', () => {
      this.ready = true;
      addArrows(this.map);
      this.restyle();
    });
    if (!base) this.map.addControl(roughNote(), 'bottom-left');
    this.map.on('resize', () => this.map.setMinZoom(minZoomOf(container.clientWidth)));
    this.map.on('zoom', () => {
      if (this.detail === 'fine' || this.map.getZoom() < FINE_ZOOM) return;
      this.detail = 'fine';
      this.restyle();
    });
    this.map.on('moveend', () => {
      this.pictures.refresh();
      this.trail.refresh();
      events.moved(this.camera());
    });
    this.map.on('dataloading', () => events.busy(true));
    this.map.on('idle', () => {
      // While the picture is loading, a later idle event ends the work.
      if (!this.loading && !this.pictures.settle()) events.busy(false);
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
      measured: (corners, closed, done) => {
        this.overlay({ ruler: rulerData(corners, closed) });
        events.measured?.(corners, closed, done);
      },
      state: (kind, hint, canFinish) => events.drawing(kind, hint, canFinish),
    });
    this.map.on('click', (e) => this.click(e.point.x, e.point.y, [e.lngLat.lng, e.lngLat.lat]));
    this.map.on('mousemove', (e) => {
      if (this.draw.active) return;
      this.map.getCanvas().style.cursor = this.under(e.point.x, e.point.y) ? 'pointer' : '';
    });
    this.dark.addEventListener('change', () => this.restyle());
  }

  /** The events of the collection that is asked about. */
  get picture(): Picture {
    return this.pictures.main;
  }

  palette(): Palette {
    return this.dark.matches ? DARK : LIGHT;
  }

  /** Refreshes the whole style. Only differences are drawn. */
  restyle(): void {
    if (!this.ready) return;
    const drawn = { events: this.pictures.drawn(), files: this.files, base: this.base };
    // North and south of the world, which a tall map shows.
    if (!this.base) this.map.getContainer().style.background = this.palette().sea;
    this.map.setStyle(mapStyle(this.palette(), drawn, this.overlays, this.detail, location.origin), { diff: true });
    const top = this.map.getLayer('city-dot') ? 'city-dot' : 'live-track';
    const files = this.files.map(({ id }) => `${id}-fill`).find((id) => this.map.getLayer(id));
    let above = files ?? top;
    for (const { name, picture } of this.pictures.shown().reverse()) {
      if (this.map.getLayer(`${name}-fill`)) above = `${name}-fill`;
      picture.colorSurface();
      if (this.map.getLayer(picture.layer.id)) this.map.moveLayer(picture.layer.id, above);
      else this.map.addLayer(picture.layer, above);
      above = picture.layer.id;
    }
    if (!this.map.getLayer(this.trail.layer.id)) this.map.addLayer(this.trail.layer, top);
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
    // A single place needs its surroundings, a walk does not.
    const maxZoom = wide > west || north > south ? 16 : 11;
    const room = this.map.getContainer();
    const margin = Math.min(36, room.clientWidth / 24);
    const box: [number, number, number, number] = [west, Math.max(south, -75), wide, Math.min(north, 78)];
    const camera = this.map.cameraForBounds(box, { padding: margin, maxZoom });
    // A few places must not lie under the tools and notes of the map; events of half a continent may.
    const close = (camera?.zoom ?? 0) >= ROUGH_ZOOM;
    const side = Math.min(SIDE, room.clientWidth / 5);
    const padding = close ? { top: margin, bottom: Math.min(FOOT, room.clientHeight / 4), left: side, right: side } : margin;
    this.map.fitBounds(box, { padding, maxZoom, animate, linear: true, duration: 400 });
  }

  /** Shows layers from the lowest to the uppermost; `active` is the one that is asked about. */
  show(layers: readonly Layer[], active: number): void {
    if (this.pictures.show(layers, active)) this.restyle();
  }

  /** Shows files that were dropped on the map. */
  setFiles(files: readonly FileLayer[]): void {
    this.files = files;
    this.restyle();
  }

  /** Shows other events of the same files. Their sources change alone: a style is compared as a whole, event by event. */
  fillFiles(files: readonly FileLayer[]): void {
    const before = new Map(this.files.map(({ id, data }) => [id, data]));
    this.files = files;
    for (const { id, data } of files) if (data !== before.get(id)) void this.map.getSource<GeoJSONSource>(id)?.setData(data);
  }

  /** Whether every visible tile is loaded. */
  settled(): boolean {
    return this.ready && !this.loading && this.map.areTilesLoaded();
  }

  /** Removes what was measured. */
  clearMeasured(): void {
    this.overlay({ ruler: EMPTY });
    this.events.measured?.(null, false, false);
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
    this.popup.close();
    this.overlay({ chosen: event?.geometry ? { type: 'FeatureCollection', features: [{ ...event, properties: {} }] } : EMPTY });
    if (at && content) this.popup.show(at, content, closed);
  }

  /** Moves so that a position is visible, and zooms in if the map is far out. */
  reveal(at: LngLat): void {
    const zoom = Math.max(this.map.getZoom(), 4);
    const inSight = this.map.getBounds().contains([...at]) && this.map.getZoom() >= 3;
    if (!inSight) this.map.easeTo({ center: [...at], zoom, duration: 600 });
  }

  private under(x: number, y: number): MapGeoJSONFeature | null {
    if (!this.ready) return null;
    const slots = this.pictures.shown().reverse().flatMap(({ name }) => eventLayerIds(name));
    const layers = [...RESULT_LAYERS, LIVE_LAYER, ...this.files.flatMap(({ id }) => fileLayerIds(id)), ...slots].filter((id) => this.map.getLayer(id));
    const reach = 4;
    const hits = this.map.queryRenderedFeatures([[x - reach, y - reach], [x + reach, y + reach]], { layers });
    return hits[0] ?? null;
  }

  private click(x: number, y: number, at: LngLat): void {
    if (this.draw.active || this.draw.justEnded) return;
    const hit = this.under(x, y);
    const id = hit && ((hit.properties['@at'] ?? hit.properties['@id'] ?? hit.properties['id'] ?? hit.id) as string | number | null | undefined);
    if (hit && id !== undefined && id !== null) this.events.clicked(String(id), at, hit.layer.id.replace(/-(point|line|fill)$/, ''));
    // On the surface a click looks closer.
    else if (!hit && this.picture.eventsNear(at) >= FAINT) this.map.easeTo({ center: [...at], zoom: this.map.getZoom() + 2, duration: 500 });
  }
}
