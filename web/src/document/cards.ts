// The pictures of the cards: where the events of a collection are, and when. They come once a card is in view, by the
// routes that everybody asks, in the class that gives way to other questions.
import { call } from '../api';
import type * as Contract from '../contract';
import { barsOf, type Group } from '../bars';
import { windowFor, type Range } from '../time';
import { boxOf, cellPaths } from './minimap';
import { sparkBars, SPARKS } from './spark';

/** Cells of a mini map. */
const [COLUMNS, ROWS] = [72, 36];
/** Cards that are asked for at a time. */
const AT_ONCE = 2;
const SVG = 'http://www.w3.org/2000/svg';

/** Draws cards as they come into view. */
export function wireCards(cards: Iterable<HTMLElement>): void {
  const waiting: HTMLElement[] = [];
  let running = 0;
  const next = (): void => {
    const card = running < AT_ONCE ? waiting.shift() : undefined;
    if (!card) return;
    running++;
    void draw(card).finally(() => {
      running--;
      card.dataset.drawn = '';
      next();
    });
    next();
  };
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      waiting.push(target as HTMLElement);
    }
    next();
  });
  for (const card of cards) {
    if (!card.querySelector('.times')) card.querySelector('.words')?.after(timeless());
    observer.observe(card);
  }
}

/** Stands where others have their line of time. */
function timeless(): HTMLElement {
  const room = Object.assign(document.createElement('div'), { className: 'timeless' });
  nothing(room, 'No times');
  return room;
}

async function draw(card: HTMLElement): Promise<void> {
  const { collection = '', bbox, interval } = card.dataset;
  const path = `/collections/${encodeURIComponent(collection)}`;
  const [places, times] = [card.querySelector<HTMLElement>('.places'), card.querySelector<HTMLElement>('.times')];
  await Promise.all([
    bbox && places && ofPlaces(path, bbox.split(',').map(Number), places).catch(() => nothing(places, 'The map could not be drawn.')),
    interval && times && ofTimes(path, interval, times).catch(() => undefined),
  ]);
}

async function ask<T>(path: string): Promise<T> {
  const answer = await call(path, AbortSignal.timeout(30_000), { headers: { accept: 'application/json', priority: 'u=6' } });
  return (await answer.json()) as T;
}

async function ofPlaces(path: string, extent: number[], room: HTMLElement): Promise<void> {
  const box = boxOf(extent);
  const [{ counts }, { LAND }] = await Promise.all([ask<Contract.Density>(`${path}/density?bbox=${box.join(',')}&width=${COLUMNS}&height=${ROWS}`), import('./land')]);
  const svg = picture(`${box[0]} ${-box[3]} ${box[2] - box[0]} ${box[3] - box[1]}`, `Map of ${room.dataset.name}`);
  const land = svg.appendChild(document.createElementNS(SVG, 'path'));
  land.setAttribute('class', 'land');
  land.setAttribute('d', LAND);
  for (const { d, opacity } of cellPaths(counts, COLUMNS, ROWS, box)) {
    const cells = svg.appendChild(document.createElementNS(SVG, 'path'));
    cells.setAttribute('class', 'cell');
    cells.setAttribute('d', d);
    cells.setAttribute('fill-opacity', String(opacity));
  }
  room.replaceChildren(svg);
}

async function ofTimes(path: string, interval: string, room: HTMLElement): Promise<void> {
  const span = interval.split('/').map((text) => Date.parse(text)) as unknown as Range;
  if (!(span[0] < span[1])) return;
  const { iso } = windowFor(span[1] - span[0], SPARKS);
  const { groups = [] } = await ask<{ groups?: Group[] }>(`${path}/aggregate?function=count&window=${iso}&datetime=${interval}`);
  const bars = sparkBars(barsOf(groups, 'avg', ''), span);
  if (!bars.length) return;
  const svg = picture('0 0 1 1', `Events of ${room.dataset.name} over time`);
  for (const { x, width, height } of bars) {
    const bar = svg.appendChild(document.createElementNS(SVG, 'rect'));
    for (const [name, value] of Object.entries({ x, y: 1 - height, width, height })) bar.setAttribute(name, value.toFixed(4));
  }
  room.replaceChildren(svg);
}

function picture(viewBox: string, name: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  for (const [key, value] of Object.entries({ viewBox, preserveAspectRatio: 'none', role: 'img', 'aria-label': name })) svg.setAttribute(key, value);
  return svg;
}

function nothing(room: HTMLElement, why: string): void {
  room.replaceChildren(Object.assign(document.createElement('p'), { className: 'nothing', textContent: why }));
}
