// The map page. One `View` holds all that is shown. Each change goes through `update`, which refreshes tiles, histogram,
// totals and table, and writes the view to the address.
import type { Feature } from 'geojson';
import * as api from './api';
import type { App } from './app';
import * as controls from './controls';
import { $, copyLink, fonts, make, wireSkip } from './dom';
import { askToEmbed, wireEmbed } from './embed';
import { Files } from './files/files';
import { withValue } from './filter/conditions';
import { FilterRoom } from './filter/room';
import * as guide from './guide';
import { EMPTY_VIEW, fromHash, MEASURES, toHash, type LayerView, type View } from './hash';
import { SchemaCache, kindOf } from './layers/schemacache';
import { MAIN, type Layer } from './layers/pictures';
import { LayersRoom } from './layers/room';
import { Legend } from './layers/shown';
import { leaveFile, stackOf } from './layers/stack';
import { Live } from './live/live';
import type { MapView } from './mapview';
import { best, createMap, listCollections, showAsked, showOverlay, showUnknown } from './opening';
import type { PictureQuery } from './picture';
import { asProblem, clearProblem, hideProblem, sayProblem } from './problem';
import { cqlName, pictureParams, type Question } from './query';
import { anchorOf, eventCard, idOf } from './results';
import { standing, wireSession } from './session';
import type { LngLat } from './shapes';
import { Served } from './source';
import { TableRoom } from './table/room';
import { Timeline } from './timeline';
import { focusTool, hideTools, showDrawing, showMeasured, wireTools } from './tools';
import { loadBeyond, loadTotals, MEASURE_NAMES } from './totals';
import { setBusy, Work } from './work';

type Part = 'tiles' | 'bars' | 'totals' | 'rows';
const ALL: ReadonlySet<Part> = new Set<Part>(['tiles', 'bars', 'totals', 'rows']);

let view: View = fromHash(location.hash);
let list: readonly api.Collection[] = [];
let open: controls.OpenCollection | null = null;
let mapView: MapView | null = null;

const app: App = {
  work: new Work(showProblem),
  view: () => view,
  open: () => open,
  list: () => list,
  map: () => mapView,
  question,
  update,
  failed: showProblem,
};
const { work } = app;

function showProblem(error: unknown): void {
  for (const id of ['table-scroll', 'histogram']) $(id).classList.remove('waiting');
  const problem = asProblem(error);
  if (problem.field === 'filter' && view.filter) filter.problem(problem.detail || problem.title);
  else sayProblem(problem);
}

// ---- The view ----------------------------------------------------------------------------------------------------

function question(): Question {
  const geometry = open?.schema.geometry ?? null;
  return {
    where: geometry === null ? null : (view.shape ?? mapView?.bounds() ?? null),
    when: open?.schema.times.length ? view.when : null,
    filter: view.filter,
    geometry: geometry ?? 'geometry',
  };
}

/** The view for a link. Files are not part of it. */
const linked = (): string => `#${toHash({ ...view, ...leaveFile(view) })}`;

let hashTimer: ReturnType<typeof setTimeout> | undefined;
function writeHash(): void {
  // Browsers refuse more than some 100 changes of the address in half a minute.
  hashTimer ??= setTimeout(() => {
    hashTimer = undefined;
    history.replaceState(null, '', linked());
  }, 350);
}

/** Changes the view and refreshes what depends on the change. */
function update(change: Partial<View>): void {
  const before = view;
  view = { ...view, ...change };
  const changed = (...keys: (keyof View)[]): boolean => keys.some((key) => before[key] !== view[key]);
  writeHash();
  if (changed('collection')) return openCollection();
  if (!open) return;
  const parts = new Set<Part>();
  const add = (...more: Part[]): void => more.forEach((part) => parts.add(part));
  if (changed('shape')) add('bars', 'totals', 'rows');
  if (changed('camera') && !view.shape && open.schema.geometry !== null) add('bars', 'totals', 'rows');
  if (changed('when')) add('tiles', 'totals', 'rows');
  if (changed('span')) add('bars');
  if (changed('filter', 'field')) add('tiles', 'bars', 'totals', 'rows');
  if (changed('size', 'hidden', 'color', 'opacity', 'below', 'above')) add('tiles');
  if (changed('measure')) add('bars');
  if (changed('sort', 'columns')) add('rows');
  // A stream has one question: another one ends it.
  if (changed('when', 'filter')) live.stop();
  if (changed('shape')) mapView?.setShape(view.shape);
  if (changed('when')) timeline.setBrush(view.when);
  if (changed('filter')) filter.show(view.filter);
  refresh(parts);
}

function refresh(parts: ReadonlySet<Part>): void {
  if (parts.size) {
    hideProblem();
    if (parts.has('bars')) filter.problem('');
  }
  showControls();
  if (!open || open.total === 0) return;
  if (parts.has('tiles')) loadTiles();
  const field = summed().kind === 'number' ? view.field : '';
  if (parts.has('bars') && open.schema.times.length) timeline.load(open, question(), { ...view, field });
  // While it plays, the next answer is requested only when the last one is shown.
  if (parts.has('totals') && !(timeline.playing && work.busy('totals'))) showTotals();
  if (parts.has('rows') && !timeline.playing) table.load();
}

const summed = (): { field: string; kind: 'number' | 'value' | null } => ({ field: view.field, kind: kindOf(open?.schema, view.field) });

// ---- Collections -------------------------------------------------------------------------------------------------

function loadCollections(): void {
  work.run('open', async (signal) => {
    list = await api.collections(signal);
    listCollections(list);
    if (!list.length) view = { ...view, collection: '' };
    else if (!view.collection) view = { ...view, collection: best(list).id };
    openCollection();
  });
}

/** Opens the collection, or the file, that the view names. */
function openCollection(): void {
  const id = view.collection;
  open = null;
  // A server without collections has only files to ask.
  document.body.classList.toggle('bare', !list.length && !files.source(id));
  live.stop();
  timeline.clear();
  work.cancelAll();
  hideProblem();
  filter.problem('');
  choose(null);
  mapView?.show([], 0);
  $('beyond').hidden = true;
  table.clear();
  showOverlay(null);
  filter.show(view.filter);
  showControls();
  work.run('open', async (signal) => {
    const file = files.source(id);
    const source = file ?? (list.some((c) => c.id === id) ? new Served(id) : null);
    if (!source) {
      if (list.length) showUnknown(id);
      else {
        listCollections(list);
        showOverlay(guide.noCollections(await standing()));
      }
      return showControls();
    }
    showAsked(id, file?.name ?? id);
    const { collection, schema, total, wrong, frame } = await source.open(view.filter, signal);
    // A wrong text stays in its box to be corrected. Until then nothing is filtered.
    if (wrong !== null) view = { ...view, filter: '' };
    // Nor is anything coloured or sized by what does not exist.
    view = { ...view, field: kindOf(schema, view.field) ? view.field : '', size: kindOf(schema, view.size) === 'number' ? view.size : '' };
    known.put(id, schema);
    open = { source, collection, schema, total, frame };
    layers.fill(schema, source.served);
    const first = schema.fields.find((f) => f.kind === 'float') ?? schema.fields.find((f) => f.kind === 'int');
    $<HTMLInputElement>('filter').placeholder = first ? `such as ${cqlName(first.name)} > 5` : 'all events';
    filter.show(wrong === null ? view.filter : $<HTMLInputElement>('filter').value);
    if (total === 0) {
      showOverlay(guide.emptyCollection(id, collection.title));
      return showControls();
    }
    if (schema.geometry === null) showOverlay(guide.noPlace(collection.title, schema.times.length > 0 && collection.interval !== null));
    else if (!mapView) showOverlay(guide.noWebGl());
    if (mapView && schema.geometry !== null) {
      if (view.camera) mapView.jump(view.camera);
      else if (frame) mapView.fit(frame, false);
    }
    mapView?.setShape(view.shape);
    timeline.setBrush(view.when);
    refresh(ALL);
    if (wrong !== null) filter.problem(wrong);
    writeHash();
  });
}

// ---- What is shown -----------------------------------------------------------------------------------------------

/** What the picture of a layer asks; null if it shows nothing. */
function pictureQuery(layer: LayerView, active: boolean): PictureQuery | null {
  const schema = known.schema(layer.collection);
  if (!schema || schema.geometry === null || layer.hidden) return null;
  const when = schema.times.length ? view.when : null;
  const query = active ? pictureParams(question()) : pictureParams({ where: null, when, filter: layer.filter, geometry: schema.geometry });
  return { collection: layer.collection, query, field: layer.field, average: kindOf(schema, layer.field) === 'number' ? layer.field : '', size: layer.size };
}

function loadTiles(): void {
  if (!open || !mapView) return;
  // Playing waits for the picture, so that each step is seen; a trail needs none.
  if (timeline.playing && !mapView.settled()) return;
  files.show(view);
  if (timeline.playing && mapView.trail.shown) return;
  const { layers: all, active } = stackOf(view);
  mapView.show(all.map((layer, i): Layer => ({ asked: pictureQuery(layer, i === active), color: layer.color, opacity: layer.opacity })), active);
}

function showTotals(): void {
  if (!open) return;
  loadTotals(work, open.source, question(), summed(), (values) => legend.setValues(values));
  if (!timeline.playing) loadBeyond(work, open, question(), view.shape === null);
}

function choose(feature: Feature | null, at = feature && anchorOf(feature.geometry)): void {
  table.mark(feature ? idOf(feature) : '');
  const card = feature && open ? eventCard(feature, open.schema, view.field, open.source.served ? open.collection.id : '') : null;
  mapView?.choose(feature, at, card, () => choose(null));
}

/** Shows an event that was clicked on the map: of the collection that is asked about, of another layer, or of a file. */
function clicked(id: string, at: LngLat, of: string): void {
  // Files draw themselves, also the one that is asked about.
  if ((of !== files.asked() && files.clicked(of, id, at)) || !open) return;
  const { source } = open;
  const { layers: all, active } = stackOf(view);
  const index = mapView?.pictures.shown().findIndex(({ name }) => name === of) ?? -1;
  const other = of === MAIN || index < 0 || index === active ? null : all[index];
  const schema = other ? known.schema(other.collection) : open.schema;
  work.run('item', async (signal) => {
    const feature = await (other ? new Served(other.collection) : source).item(id, signal);
    const place = feature.geometry?.type === 'Point' ? anchorOf(feature.geometry) : at;
    if (!other || !schema) return choose(feature, place);
    table.mark('');
    mapView?.choose(feature, place, eventCard(feature, schema, other.field, other.collection), () => choose(null));
  });
}

/** Refreshes all that depends on the view alone, without a request. */
function showControls(): void {
  controls.showControls(view, open, timeline.shown?.span, update);
  layers.show();
  if (open?.total) return;
  $('table-scroll').classList.remove('waiting');
  $('count').textContent = open ? '0' : '–';
  $('stats').hidden = true;
  table.clear();
}

/** Loads the events of all of the time shown, to be played as a trail. */
function loadTrail(): void {
  const span = timeline.shown?.span;
  const [time] = open?.schema.times ?? [];
  const active = stackOf(view).active;
  const asked = pictureQuery(stackOf(view).layers[active], true);
  if (!open || !mapView || !span || !time || !asked) return;
  const texts = summed().kind === 'value' ? (known.top(open.collection.id, view.field) ?? []).map(({ value }) => value) : null;
  mapView.trail.start({ ...asked, query: pictureParams({ ...question(), when: null }) }, texts, time, span);
}

// ---- Parts of the page -------------------------------------------------------------------------------------------

const table = new TableRoom(app, (feature) => {
  const at = anchorOf(feature.geometry);
  choose(feature);
  if (at) mapView?.reveal(at);
});

const filter = new FilterRoom(app);

const known = new SchemaCache(() => {
  loadTiles();
  legend.show();
}, showProblem);

function shownFiles(): void {
  layers.show();
  legend.show();
}

const files = new Files(app, shownFiles, (card, at) => mapView?.choose(null, at, card, () => choose(null)));
const layers = new LayersRoom(app, files);

const timeline = new Timeline(work, {
  brushed: (when) => update({ when }),
  frame: (when) => mapView?.trail.move(when),
  playing: (on) => {
    // The table and the notes are of the time before. They are loaded when it pauses.
    document.body.classList.toggle('playing', on);
    $('follows').hidden = !on;
    if (on) {
      live.stop();
      return loadTrail();
    }
    mapView?.trail.stop();
    if (open) refresh(new Set<Part>(['tiles', 'totals', 'rows']));
  },
  shown: () => {
    showControls();
    if (timeline.playing) loadTrail();
  },
});

const legend = new Legend(app, known, files, () => timeline.playing, (value) => open && update({ filter: withValue(view.filter, view.field, value, open.schema.fields) }));

const live = new Live(() => mapView, {
  grown: () => {
    mapView?.picture.renew();
    const { id } = open?.collection ?? { id: '' };
    work.run('open', async (signal) => {
      const collection = await api.collection(id, signal);
      if (open?.collection.id === id) open = { ...open, collection };
      refresh(new Set<Part>(['bars', 'totals', 'rows']));
    });
  },
  failed: showProblem,
  changed: (on) => {
    $('live').setAttribute('aria-pressed', String(on));
    if (!on) refresh(ALL);
  },
  shown: (shown) => legend.setLive(shown),
});

async function startMap(): Promise<void> {
  mapView = await createMap(view.camera, (error) => sayProblem(asProblem(error), true), {
    moved: (camera) => open && update({ camera }),
    clicked,
    drawn: (shape) => update({ shape }),
    measured: (corners, closed, done) => showMeasured(corners, closed, done, () => mapView?.clearMeasured()),
    drawing: showDrawing,
    failed: showProblem,
    busy: (on) => {
      setBusy('map', on);
      if (!on) legend.show();
    },
    pictured: () => legend.show(),
  });
  if (!mapView) return hideTools();
  // For tests, and for inspection from the console.
  Object.assign(window, { meridianMap: mapView.map, meridianPicture: mapView.picture, meridianTrail: mapView.trail });
}

function wire(): void {
  $('collection').addEventListener('change', () => {
    const { measure } = view;
    update({ ...EMPTY_VIEW, measure, collection: $<HTMLSelectElement>('collection').value });
  });
  $('field').addEventListener('change', () => update({ field: $<HTMLSelectElement>('field').value }));
  for (const measure of MEASURES) {
    const button = make('button', '', measure, { type: 'button', role: 'radio', 'data-measure': measure, title: `Line: ${MEASURE_NAMES[measure]}` });
    button.addEventListener('click', () => update({ measure }));
    $('measure').append(button);
  }
  $('live').addEventListener('click', () => {
    if (live.on || !open) return live.stop();
    timeline.player.stop();
    // What comes from now on is newer than any chosen time.
    update({ when: null });
    live.start(open.collection.id, open.schema, pictureParams(question()));
  });
  $('clear-time').addEventListener('click', () => {
    timeline.player.stop();
    update({ when: null });
  });
  $('zoom-time').addEventListener('click', () => update({ span: view.when }));
  $('all-time').addEventListener('click', () => update({ span: null }));
  $('clear-shape').addEventListener('click', () => {
    const { shape } = view;
    update({ shape: null });
    if (shape) focusTool(shape.kind);
  });
  $('download').addEventListener('click', () => void import('./download').then(({ askToDownload }) => askToDownload(app)));
  $('save-picture').addEventListener('click', () => void import('./snapshot').then(({ savePicture }) => savePicture(app, legend.said())).catch(showProblem));
  $('retry').addEventListener('click', () => {
    clearProblem();
    if (open) refresh(ALL);
    else loadCollections();
  });
  $('widen').addEventListener('click', () => {
    const wide = document.body.classList.toggle('wide');
    $('widen').setAttribute('aria-pressed', String(wide));
    $('widen').textContent = wide ? 'Narrow' : 'Widen';
  });
  const address = (): void => history.replaceState(null, '', linked());
  $('share').addEventListener('click', () => {
    address();
    copyLink();
  });
  $('embed').addEventListener('click', () => {
    address();
    askToEmbed();
  });
  window.addEventListener('hashchange', () => {
    const next = fromHash(location.hash);
    view = { ...next, collection: next.collection || view.collection };
    openCollection();
  });
  wireEmbed();
  wireSkip();
  void wireSession();
  wireTools(() => mapView?.draw);
}

wire();
showControls();
void fonts().then(startMap).then(loadCollections);
