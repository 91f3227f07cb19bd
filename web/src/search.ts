// The search page: a question from the form or the address, its run, and its results.
import { Problem } from './api';
import { $, copyLink, fonts, say, toast, wireSkip } from './dom';
import * as guide from './guide';
import { MapView } from './mapview';
import { formatWait } from './numbers';
import { anchorOf } from './results';
import { Form } from './search/form';
import { offer } from './search/keep';
import { lines, ResultList } from './search/list';
import { Framing, sayOutside, type Viewport } from './search/framing';
import { follow, type Packet } from './search/packets';
import { asksForSomething, closedRing, fromHash, toHash, type Question } from './search/question';
import { card, placeNamed } from './search/result';
import { Run, type Result } from './search/run';
import * as server from './search/server';
import { Sources } from './search/sources';
import * as words from './search/words';
import { wireSession } from './session';
import { extent, outline, type Shape } from './shapes';
import { hideTools, showDrawing, wireTools } from './tools';

/** The run shown, when it was requested, and how the page cancels it. */
interface ActiveRun {
  readonly run: Run;
  readonly question: Question;
  readonly began: number;
  readonly leave: AbortController;
}

let mapView: MapView | null = null;
let shown: ActiveRun | null = null;
/** The request, until the server has accepted the question. */
let asking: AbortController | null = null;

const titles: words.Titles = (name) => sources.title(name);
const sources = new Sources($('sources'), () => showChoice());
const list = new ResultList($('list'), $<HTMLButtonElement>('list-more'), titles, (result) => choose(result));
/** What the map shows of the results. */
const framing = new Framing();
const form = new Form(sources, (shape) => mapView?.setShape(shape));

// ---- Asking ------------------------------------------------------------------------------------------------------

/** Ends the run on this page. The server ends a search that has no reader. The same question within a second joins the running search. */
function leave(): void {
  asking?.abort();
  asking = null;
  if (!shown) return;
  shown.leave.abort();
  shown = null;
}

/** Starts a search. With `push`, "back" returns to the question before. */
function ask(question: Question, push: boolean): void {
  if (!asksForSomething(question)) return form.problem({ text: 'The question is empty: type keywords, an address or an author, or draw a place.', field: 'keywords' });
  if (question.providers?.length === 0) return form.problem({ text: 'No source is selected: tick at least one.', field: '' });
  leave();
  const hash = `#${toHash(question)}`;
  if (push && location.hash !== hash) history.pushState(null, '', hash);
  mapView?.draw.cancel();
  choose(null);
  list.clear();
  mapView?.setResults({ type: 'FeatureCollection', features: [] });
  framing.begin(null);
  showOutside();
  form.problem(null);
  $('problem').hidden = true;
  const began = performance.now();
  const control = new AbortController();
  asking = control;
  showState();
  say($('announce'), 'Searching.');
  void begin(question, began, control).catch((error: unknown) => {
    if (control.signal.aborted) return;
    asking = null;
    refuse(error);
    showState();
  });
}

async function begin(question: Question, began: number, control: AbortController): Promise<void> {
  const started = await server.start(question, control.signal);
  if (control.signal.aborted) return;
  asking = null;
  const run = new Run(started.search, started.providers, question.limit ?? undefined);
  const mine: ActiveRun = { run, question, began, leave: control };
  shown = mine;
  const where: Shape | null = question.shape ?? (started.near ? { kind: 'circle', center: started.near, radius: started.radius ?? 10_000 } : null);
  mapView?.setShape(where);
  framing.begin(where && extent(outline(where)));
  frame();
  showState();
  tick();
  try {
    await follow(run.id, control.signal, (packet) => take(mine, packet), (broken) => document.body.classList.toggle('broken', broken));
  } catch (error) {
    if (control.signal.aborted) return;
    run.lose(performance.now() - began);
    refuse(error);
  }
  document.body.classList.remove('broken');
  showEnd(mine);
}

/** Cancels the run. Its results stay, and are reported as partial. */
function cancel(): void {
  if (asking) {
    asking.abort();
    asking = null;
    say($('announce'), 'Cancelled.');
    return showState();
  }
  if (!shown?.run.running) return;
  shown.run.stopped = true;
  server.stop(shown.run.id).catch(refuse);
}

/** Shows an error of the server or of the connection. */
function refuse(error: unknown): void {
  const problem = error instanceof Problem ? error : new Problem('Something went wrong', error instanceof Error ? error.message : String(error), 0, '');
  if (problem.status === 400) return form.problem({ text: problem.detail || problem.title, field: problem.field });
  const [title, detail] = [$('problem').querySelector('b'), $('problem').querySelector('p')];
  if (title) title.textContent = problem.title;
  if (detail) detail.textContent = problem.detail;
  $('problem').hidden = false;
}

// ---- Results ----------------------------------------------------------------------------------------------------

function take(mine: ActiveRun, packet: Packet): void {
  const { run } = mine;
  const had = run.results.length;
  const added = run.take(packet, performance.now() - mine.began);
  if (mine !== shown) return;
  if (packet.kind === 'provider' && packet.state !== 'complete' && packet.state !== 'skipped') say($('announce'), `${titles(packet.provider)}: ${packet.state}. ${packet.detail}`);
  if (added.length) {
    list.grow(run.results, formatWait(run.firstMs ?? 0));
    draw();
    if (!had) say($('announce'), words.announcement(run, titles));
  }
  showState();
}

let drawTimer: ReturnType<typeof setTimeout> | undefined;

/** Draws the results on the map, a few times a second at most. */
function draw(): void {
  drawTimer ??= setTimeout(() => {
    drawTimer = undefined;
    const features = (shown?.run.results ?? []).flatMap(({ key, first, feature }) =>
      feature.geometry ? [{ type: 'Feature' as const, geometry: feature.geometry, properties: { '@id': key, first, named: placeNamed(feature) !== null } }] : [],
    );
    mapView?.setResults({ type: 'FeatureCollection', features });
    if (framing.grow(shown?.run.results ?? [])) frame();
    else showOutside();
  }, 150);
}

function choose(result: Result | null): void {
  list.mark(result);
  const at = result && anchorOf(result.feature.geometry);
  mapView?.choose(result?.feature ?? null, at, result && card(result, titles), () => choose(null));
  if (!at) return;
  // What was chosen stays in view when more arrives.
  framing.moved = true;
  mapView?.reveal(at);
}

/** Keeps all results in view. Once the user has moved the map, it says how many are outside instead. */
function frame(): void {
  const box = framing.box();
  if (framing.moved || !box) return showOutside();
  mapView?.fit(box, true);
}

/** Says how many results the map does not show. */
function showOutside(): void {
  const b = mapView?.map.getBounds();
  const sight: Viewport | undefined = b && [b.getWest(), b.getSouth(), b.getEast(), b.getNorth()];
  const text = sight ? sayOutside(framing.outside(sight), framing.beyond()) : '';
  say($('outside-text'), text);
  $('outside').hidden = !text;
}

// ---- What is shown -----------------------------------------------------------------------------------------------

/** Updates the elapsed time while a search runs. */
function tick(): void {
  if (!shown?.run.running) return;
  showState();
  setTimeout(tick, 200);
}

function showState(): void {
  const run = shown?.run ?? null;
  const busy = asking !== null || (run?.running ?? false);
  const now = shown ? performance.now() - shown.began : 0;
  $('progress').hidden = !busy;
  $('stop').hidden = !busy;
  document.body.setAttribute('aria-busy', String(busy));
  sources.states(run, now);
  showChoice();
  const said = run && words.say(run, titles, now);
  $('banner').dataset['tone'] = said?.tone ?? (asking ? 'busy' : 'quiet');
  say($('headline'), said?.headline ?? (asking ? 'Asking…' : 'Type keywords or draw a place, and search. Results come as they are found.'));
  say($('awaited'), said?.awaited ?? '');
  $('awaited').hidden = !said?.awaited;
  say($('figures'), said?.figures ?? '');
  $('figures').hidden = !said?.figures;
  const lacking = said?.lacking ?? [];
  if ($('lacking').childElementCount !== lacking.length || !busy) $('lacking').replaceChildren(...lines(lacking));
  $('lacking').hidden = lacking.length === 0;
  const end = run ? words.ending(run, titles) : '';
  say($('list-end'), end);
  $('list-end').hidden = end === '';
  const asked = shown && (shown.question.keywords || titleOfPlace(shown.question));
  const partial = run?.outcome && run.outcome !== 'complete' ? ', not complete' : '';
  document.title = run && asked ? `${asked} · ${run.results.length} results${partial} · Meridian` : 'Search · Meridian';
}

const titleOfPlace = (q: Question): string => q.address || q.author || 'a place';

function showEnd(mine: ActiveRun): void {
  if (mine !== shown) return;
  showState();
  say($('announce'), words.announcement(mine.run, titles));
}

function showChoice(): void {
  const chosen = sources.chosen();
  if (!sources.count) return say($('sources-count'), '');
  const open = shown?.run.running ? shown.run.with('asked').length : 0;
  say($('sources-count'), open ? `· waiting for ${open}` : chosen === null ? `· all ${sources.count}` : `· ${chosen.length} of ${sources.count}`);
}

// ---- Parts of the page -------------------------------------------------------------------------------------------

function drawn(shape: Shape): void {
  if (shape.kind === 'polygon' && !closedRing(shape.ring)) return toast('A polygon must not cross the antimeridian: draw a box or a circle there.');
  form.draw(shape);
  $('go').focus();
}

function startMap(): void {
  try {
    mapView = new MapView($('map'), { center: [10, 25], zoom: 1.4 }, {
      moved: showOutside,
      clicked: (key) => choose(shown?.run.results[Number(key)] ?? null),
      drawn,
      drawing: showDrawing,
      failed: refuse,
      busy: () => {},
    });
    mapView.map.getCanvas().setAttribute('aria-label', 'Map of the results. Arrow keys move it, plus and minus zoom.');
    // Drags, wheels, keys and buttons of the map come with their event; moves of the page do not.
    mapView.map.on('movestart', ({ originalEvent }: { originalEvent?: unknown }) => {
      framing.moved ||= Boolean(originalEvent);
    });
    // For tests, and for inspection from the console.
    Object.assign(window, { meridianMap: mapView.map });
  } catch {
    mapView = null;
    hideTools();
    $('overlay').replaceChildren(guide.noWebGl('The search and the list of results work without it.'));
    $('overlay').hidden = false;
  }
}

async function loadSources(): Promise<void> {
  try {
    sources.show(await server.providers(new AbortController().signal));
    showState();
  } catch (error) {
    refuse(error);
  }
}

/** Starts the search that the address holds. */
function restore(): void {
  const question = fromHash(location.hash);
  form.write(question);
  if (asksForSomething(question)) ask(question, false);
  else leave();
  showState();
}

function wire(): void {
  $('question').addEventListener('submit', (e) => {
    e.preventDefault();
    ask(form.read(), true);
  });
  $('stop').addEventListener('click', () => {
    cancel();
    $('keywords').focus();
  });
  for (const [id, names] of [['all', null], ['none', []]] as const)
    $(id).addEventListener('click', () => {
      sources.choose(names);
      showChoice();
    });
  $('retry').addEventListener('click', () => {
    $('problem').hidden = true;
    if (sources.count) ask(form.read(), true);
    else void loadSources();
  });
  $('share').addEventListener('click', () => {
    history.replaceState(null, '', `#${toHash(form.read())}`);
    copyLink();
  });
  $('show-all').addEventListener('click', () => {
    // A turn of the wheel that still zooms would count as the next move, and end the fit.
    mapView?.map.stop();
    framing.moved = false;
    frame();
  });
  wireSkip();
  void wireSession();
  wireTools(() => mapView?.draw);
  // On a phone the sources would leave no space for the results.
  $<HTMLDetailsElement>('sources-room').open = !matchMedia('(max-width: 780px)').matches;
  document.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape' || e.defaultPrevented || $<HTMLDialogElement>('save-dialog').open || mapView?.draw.active) return;
    if (!asking && !shown?.run.running) return choose(null);
    // A search box clears itself at Escape, which must only close the list.
    e.preventDefault();
    cancel();
  });
  window.addEventListener('hashchange', restore);
  window.addEventListener('pageshow', (e) => e.persisted && restore());
}

wire();
showState();
void offer(
  () => {
    const question = form.read();
    if (asksForSomething(question)) return question;
    form.problem({ text: 'There is nothing to save yet: type keywords or draw a place.', field: 'keywords' });
    return null;
  },
  (question) => question.keywords || titleOfPlace(question),
);
void Promise.all([fonts().then(startMap), loadSources()]).then(restore);
