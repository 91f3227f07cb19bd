// The map page. One `View` holds all that is shown. Each change goes through `update`, which refreshes tiles, histogram,
// totals and table, and writes the view to the address.
import type { Feature } from 'geojson';
import * as api from './api';
import * as controls from './controls';
import { $, copyLink, fonts, make, wireSkip } from './dom';
import * as guide from './guide';
import { EMPTY_VIEW, fromHash, MEASURES, toHash, type View } from './hash';
import { Live } from './live/live';
import { legendOf, type Shown } from './legend';
import { MapView } from './mapview';
import { formatCount, formatShort } from './numbers';
import { DARK, LIGHT } from './palette';
import { params, pictureParams, type Question } from './query';
import { anchorOf, eventCard, idOf, ResultsTable } from './results';
import { wireSession } from './session';
import { valueStops } from './surface/scale';
import { formatLength } from './time';
import { Timeline } from './timeline';
import { hideTools, showDrawing, wireTools } from './tools';
import { loadBeyond, loadTotals, MEASURE_NAMES } from './totals';
import { setBusy, Work } from './work';

/** Events on a page of the table. */
const PAGE = 50;

type Part = 'tiles' | 'bars' | 'totals' | 'rows';

let view: View = fromHash(location.hash);
let list: readonly api.Collection[] = [];
let open: controls.Open | null = null;
let mapView: MapView | null = null;
let rows: { path: string; before: readonly string[]; next: string | null } | null = null;

const work = new Work(showProblem);

// ---- Problems ----------------------------------------------------------------------------------------------------

function showProblem(error: unknown): void {
  for (const id of ['table-scroll', 'histogram']) $(id).classList.remove('waiting');
  const problem = error instanceof api.Problem ? error : new api.Problem('Something went wrong', error instanceof Error ? error.message : String(error), 0, '');
  if (problem.field === 'filter' && view.filter) {
    showFilterProblem(problem.detail || problem.title);
    return;
  }
  const [title, detail] = [$('problem').querySelector('b'), $('problem').querySelector('p')];
  if (title) title.textContent = problem.title;
  if (detail) detail.textContent = problem.detail;
  $('problem').hidden = false;
}

function showFilterProblem(text: string): void {
  $('filter-problem').textContent = text;
  $('filter-problem').hidden = text === '';
  $('filter').setAttribute('aria-invalid', String(text !== ''));
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

let hashTimer: ReturnType<typeof setTimeout> | undefined;
function writeHash(): void {
  // Browsers refuse more than some 100 changes of the address in half a minute.
  hashTimer ??= setTimeout(() => {
    hashTimer = undefined;
    history.replaceState(null, '', `#${toHash(view)}`);
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
  if (changed('filter')) add('tiles', 'bars', 'totals', 'rows');
  if (changed('field')) add('tiles', 'bars', 'totals', 'rows');
  if (changed('measure')) add('bars');
  // A stream has one question: another one ends it.
  if (changed('when', 'filter')) live.stop();
  if (changed('shape')) mapView?.setShape(view.shape);
  if (changed('when')) timeline.setBrush(view.when);
  if (changed('filter')) $<HTMLInputElement>('filter').value = view.filter;
  refresh(parts);
}

function refresh(parts: ReadonlySet<Part>): void {
  if (parts.size) {
    $('problem').hidden = true;
    if (parts.has('bars')) showFilterProblem('');
  }
  showControls();
  if (!open || open.total === 0) return;
  if (parts.has('tiles')) loadTiles();
  if (parts.has('bars') && open.schema.times.length) timeline.load(open.collection, question(), view);
  // While it plays, the next answer is requested only when the last one is shown.
  if (parts.has('totals') && !(timeline.playing && work.busy('totals'))) showTotals();
  if (parts.has('rows') && !timeline.playing) loadRows();
}

const ALL: ReadonlySet<Part> = new Set<Part>(['tiles', 'bars', 'totals', 'rows']);

// ---- Collections -------------------------------------------------------------------------------------------------

function showOverlay(content: HTMLElement | null): void {
  $('overlay').replaceChildren(...(content ? [content] : []));
  $('overlay').hidden = content === null;
}

function loadCollections(): void {
  work.run('open', async (signal) => {
    list = await api.collections(signal);
    const select = $<HTMLSelectElement>('collection');
    select.replaceChildren(
      ...list.map((c) => make('option', '', c.count === null ? c.title : `${c.title} (${formatShort(c.count)})`, { value: c.id })),
    );
    select.disabled = list.length === 0;
    if (!list.length) {
      select.append(make('option', '', 'No collections'));
      view = { ...view, collection: '' };
      showOverlay(guide.noCollections());
      showControls();
      return;
    }
    if (!view.collection) {
      // The first with events in space and time shows the most.
      const best = list.find((c) => c.bbox && c.interval && c.count !== 0) ?? list.find((c) => c.bbox && c.count !== 0) ?? list[0];
      view = { ...view, collection: best.id };
    }
    openCollection();
  });
}

/** Opens the collection that the view names. */
function openCollection(): void {
  const id = view.collection;
  open = null;
  live.stop();
  timeline.clear();
  work.cancelAll();
  $('problem').hidden = true;
  showFilterProblem('');
  choose(null);
  $('no-rows').hidden = true;
  mapView?.ask(null);
  $('beyond').hidden = true;
  table.show([], { fields: [], geometry: null, times: [], object: '' }, '');
  showOverlay(null);
  $<HTMLInputElement>('filter').value = view.filter;
  showControls();
  work.run('open', async (signal) => {
    const select = $<HTMLSelectElement>('collection');
    if (!list.some((c) => c.id === id)) {
      select.prepend(make('option', '', id, { value: id }));
      select.value = id;
      showOverlay(guide.unknownCollection(id));
      return showControls();
    }
    select.value = id;
    const [collection, schema, groups, wrong] = await Promise.all([
      api.collection(id, signal),
      api.schema(id, signal),
      api.aggregate(id, ['count'], new URLSearchParams(), signal),
      view.filter ? checkFilter(id, view.filter, signal) : null,
    ]);
    // A wrong text stays in its box to be corrected. Until then nothing is filtered.
    if (wrong !== null) view = { ...view, filter: '' };
    open = { collection, schema, total: groups[0]?.count ?? 0 };
    const numeric = schema.fields.filter((f) => f.kind === 'int' || f.kind === 'float');
    if (!numeric.some((f) => f.name === view.field)) view = { ...view, field: '' };
    fillFields(numeric);
    if (open.total === 0) {
      showOverlay(guide.emptyCollection(id, collection.title));
      showControls();
      return;
    }
    if (schema.geometry === null) showOverlay(guide.noPlace(collection.title));
    else if (!mapView) showOverlay(guide.noWebGl());
    if (mapView && schema.geometry !== null) {
      if (view.camera) mapView.jump(view.camera);
      else if (collection.bbox) mapView.fit(collection.bbox, false);
    }
    mapView?.setShape(view.shape);
    timeline.setBrush(view.when);
    refresh(ALL);
    if (wrong !== null) showFilterProblem(wrong);
    writeHash();
  });
}

/** Why the server rejects a filter; null if it accepts it. */
async function checkFilter(id: string, filter: string, signal: AbortSignal): Promise<string | null> {
  try {
    await api.aggregate(id, ['count'], params({ where: null, when: null, filter, geometry: 'geometry' }), signal);
    return null;
  } catch (error) {
    if (!(error instanceof api.Problem) || error.status !== 400) throw error;
    return error.detail || error.title;
  }
}

function fillFields(numeric: readonly api.Field[]): void {
  const select = $<HTMLSelectElement>('field');
  select.replaceChildren(make('option', '', 'none', { value: '' }), ...numeric.map((f) => make('option', '', f.title, { value: f.name })));
  select.value = view.field;
  const first = numeric.find((f) => f.kind === 'float') ?? numeric[0];
  $<HTMLInputElement>('filter').placeholder = first ? `such as ${first.name} > 5` : 'all events';
}

// ---- What is shown -----------------------------------------------------------------------------------------------

function loadTiles(): void {
  if (!open || open.schema.geometry === null || !mapView) return;
  // Playing waits for the picture, so that each step is seen; a trail needs none.
  if (timeline.playing && (mapView.trail.shown || !mapView.settled())) return;
  mapView.ask({ collection: open.collection.id, query: pictureParams(question()), field: view.field });
}

function showTotals(): void {
  if (!open) return;
  loadTotals(work, open.collection.id, question(), view.field);
  if (!timeline.playing) loadBeyond(work, open, question(), view.shape === null);
}

function loadRows(path?: string, before: readonly string[] = []): void {
  if (!open) return;
  const { collection, schema } = open;
  $('table').classList.add('stale');
  $('table-scroll').classList.toggle('waiting', $('table').childElementCount === 0);
  work.run('rows', async (signal) => {
    const first = path ?? api.itemsPath(collection.id, params(question()), PAGE);
    const page = await api.page(first, signal);
    rows = { path: first, before, next: page.next };
    $('table-scroll').classList.remove('waiting');
    table.show(page.features, schema, view.field);
    $('table').classList.remove('stale');
    $('table').hidden = page.features.length === 0;
    const start = before.length * PAGE;
    $('rows').textContent = page.features.length ? `${formatCount(start + 1)}–${formatCount(start + page.features.length)}` : '';
    $('no-rows').hidden = page.features.length > 0;
    $('no-rows').textContent = start ? 'No more events.' : 'No event matches. Widen the time, the place or the filter.';
    $<HTMLButtonElement>('previous').disabled = before.length === 0;
    // A last page may be followed by an empty one, which ends the table.
    $<HTMLButtonElement>('next').disabled = page.next === null || page.features.length === 0;
  });
}

/** Applies a typed filter once the server has accepted it. A wrong one changes nothing. */
function applyFilter(): void {
  const filter = $<HTMLInputElement>('filter').value.trim();
  if (filter === view.filter) {
    work.cancel('filter');
    return showFilterProblem('');
  }
  if (!open || !filter) return update({ filter });
  const { id } = open.collection;
  work.run('filter', async (signal) => {
    const wrong = await checkFilter(id, filter, signal);
    if (wrong === null) update({ filter });
    else showFilterProblem(wrong);
  });
}

function choose(feature: Feature | null, at = feature && anchorOf(feature.geometry)): void {
  table.mark(feature ? idOf(feature) : '');
  const card = feature && open ? eventCard(feature, open.schema, view.field, open.collection.id) : null;
  mapView?.choose(feature, at, card, () => choose(null));
}

/** Refreshes all that depends on the view alone, without a request. */
function showControls(): void {
  controls.showControls(view, open, timeline.shown?.span, update);
  if (open?.total) return;
  $('table-scroll').classList.remove('waiting');
  $('count').textContent = open ? '0' : '–';
  $('rows').textContent = '';
  $('stats').hidden = $('no-rows').hidden = true;
  $<HTMLButtonElement>('next').disabled = $<HTMLButtonElement>('previous').disabled = true;
}

/** Loads the events of all of the time shown, to be played as a trail. */
function loadTrail(): void {
  const span = timeline.shown?.span;
  const [time] = open?.schema.times ?? [];
  if (!open || !mapView || !span || !time || open.schema.geometry === null) return;
  mapView.trail.start({ collection: open.collection.id, query: pictureParams({ ...question(), when: null }), field: view.field }, time, span);
}

/** Colours the events by what is in view, and shows the legend of what is drawn. */
function showLegend(): void {
  const palette = matchMedia('(prefers-color-scheme: dark)').matches ? DARK : LIGHT;
  const parts = mapView && open ? legendOf(shownOn(mapView, open.schema), palette) : [];
  $('legend').replaceChildren(...parts);
  $('legend').hidden = !parts.length;
}

function shownOn({ picture, trail }: MapView, schema: api.Schema): Shown {
  const field = schema.fields.find((f) => f.name === view.field)?.title ?? '';
  if (trail.shown) {
    const fades = view.when ? formatLength(view.when[1] - view.when[0]) : '';
    return { surface: null, events: true, field, scale: trail.scale, ...trail.counts(), fades };
  }
  const values = view.field ? picture.inView().map((event) => event.properties[view.field] as unknown) : [];
  const known = values.filter((value) => typeof value === 'number');
  const stops = valueStops(known);
  // While it plays, a colour keeps its value.
  if (!timeline.playing) picture.setScale(stops && { field: view.field, stops });
  return { surface: picture.stops(), events: picture.showsEvents, field, scale: picture.scale, valued: known.length, lacking: values.length - known.length, fades: '' };
}

// ---- Parts of the page -------------------------------------------------------------------------------------------

const table = new ResultsTable($<HTMLTableElement>('table'), (feature) => {
  const at = anchorOf(feature.geometry);
  choose(feature);
  if (at) mapView?.reveal(at);
});

const timeline = new Timeline(work, {
  brushed: (when) => update({ when }),
  frame: (when) => mapView?.trail.move(when),
  playing: (on) => {
    if (on) return loadTrail();
    mapView?.trail.stop();
    if (open) refresh(new Set<Part>(['tiles', 'totals', 'rows']));
  },
  shown: () => {
    showControls();
    if (timeline.playing) loadTrail();
  },
});

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
    if (!on) refresh(new Set<Part>(['tiles', 'bars', 'totals', 'rows']));
  },
});

function startMap(): void {
  try {
    mapView = new MapView($('map'), view.camera ?? { center: [10, 25], zoom: 1.4 }, {
      moved: (camera) => open && update({ camera }),
      clicked: (id, at) => {
        if (!open) return;
        const { id: collection } = open.collection;
        work.run('item', async (signal) => {
          const feature = await api.item(collection, id, signal);
          choose(feature, feature.geometry?.type === 'Point' ? anchorOf(feature.geometry) : at);
        });
      },
      drawn: (shape) => update({ shape }),
      drawing: showDrawing,
      failed: showProblem,
      busy: (on) => {
        setBusy('map', on);
        if (!on) showLegend();
      },
      pictured: showLegend,
    });
    // For tests, and for inspection from the console.
    Object.assign(window, { meridianMap: mapView.map, meridianPicture: mapView.picture, meridianTrail: mapView.trail });
  } catch {
    mapView = null;
    hideTools();
  }
}

function wire(): void {
  $('collection').addEventListener('change', () => {
    const { measure } = view;
    update({ ...EMPTY_VIEW, measure, collection: $<HTMLSelectElement>('collection').value });
  });
  $('field').addEventListener('change', () => update({ field: $<HTMLSelectElement>('field').value }));
  $('filter-form').addEventListener('submit', (e) => {
    e.preventDefault();
    applyFilter();
  });
  $('filter').addEventListener('change', applyFilter);
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
  $('clear-shape').addEventListener('click', () => update({ shape: null }));
  wireSkip();
  void wireSession();
  wireTools(() => mapView?.draw);
  $('previous').addEventListener('click', () => rows && loadRows(rows.before.at(-1), rows.before.slice(0, -1)));
  $('next').addEventListener('click', () => rows?.next && loadRows(rows.next, [...rows.before, rows.path]));
  $('retry').addEventListener('click', () => {
    $('problem').hidden = true;
    if (open) refresh(ALL);
    else loadCollections();
  });
  $('widen').addEventListener('click', () => {
    const wide = document.body.classList.toggle('wide');
    $('widen').setAttribute('aria-pressed', String(wide));
    $('widen').textContent = wide ? 'Narrow' : 'Widen';
  });
  $('share').addEventListener('click', () => {
    history.replaceState(null, '', `#${toHash(view)}`);
    copyLink();
  });
  window.addEventListener('hashchange', () => {
    const next = fromHash(location.hash);
    view = { ...next, collection: next.collection || view.collection };
    openCollection();
  });
}

wire();
showControls();
void fonts().then(() => {
  startMap();
  loadCollections();
});
