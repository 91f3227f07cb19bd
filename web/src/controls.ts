// What the page says of the view alone, without a request: buttons, chips, names.
import type * as api from './api';
import { $, make } from './dom';
import type { View } from './hash';
import { kindOf } from './layers/schemacache';
import { describe } from './shapes';
import type { Source } from './source';
import { formatRange, resolutionOf, type Range } from './time';
import { enableTools } from './tools';

/** What is asked about: a collection, or a file in the place of one. */
export interface OpenCollection {
  /** Answers all questions about it. */
  readonly source: Source;
  readonly collection: api.Collection;
  readonly schema: api.Schema;
  /** Events of the collection. */
  readonly total: number;
  /** The box of its events, with east past 180 where they lie around the antimeridian. */
  readonly frame: api.Collection['bbox'];
}

function chip(text: string, clear: (() => void) | null, what: string): HTMLElement {
  const item = make('li', clear ? 'set' : '', text);
  if (clear) {
    const button = make('button', '', '×', { type: 'button', 'aria-label': `Clear ${what}` });
    button.addEventListener('click', clear);
    item.append(button);
  }
  return item;
}

/** Shows the view of an open collection; `span` is the time that the histogram shows. */
export function showControls(view: View, open: OpenCollection | null, span: Range | undefined, update: (change: Partial<View>) => void): void {
  const timed = Boolean(open?.schema.times.length && open.collection.interval && open.total);
  const placed = open?.schema.geometry !== null;
  // While a collection opens, the histogram keeps its space, so that the map does not change its size.
  const waiting = !open && $('overlay').hidden;
  $('about').textContent = open ? open.collection.description : '';
  document.title = open ? `${open.collection.title} · Meridian` : 'Map · Meridian';
  $('histogram').hidden = $('timeline-head').hidden = !timed && !waiting;
  for (const id of ['play', 'speed', 'gaps']) $<HTMLButtonElement>(id).disabled = !timed;
  $<HTMLButtonElement>('live').disabled = !timed || !placed || !open?.source.served;
  $('timeline-note').hidden = timed || !open || open.total === 0;
  $('timeline-note').textContent = 'These events have no time: there is nothing to play.';
  $('timeline').hidden = $('histogram').hidden && $('timeline-note').hidden;
  $('when').textContent = waiting ? '' : view.when ? formatRange(view.when, resolutionOf(view.when)) : 'All time';
  $('clear-time').hidden = !view.when;
  $('zoom-time').hidden = !view.when || !span || view.when[1] - view.when[0] > 0.98 * (span[1] - span[0]);
  $('all-time').hidden = !view.span;
  $('clear-shape').hidden = !view.shape;
  const numeric = kindOf(open?.schema, view.field) === 'number';
  $('measure').hidden = !numeric;
  $('line-name').hidden = !numeric;
  for (const button of $('measure').children) button.setAttribute('aria-checked', String((button as HTMLElement).dataset['measure'] === view.measure));
  $('measure-room').hidden = $<HTMLSelectElement>('field').options.length < 2;
  for (const id of ['save-picture', 'columns', 'apply']) $<HTMLButtonElement>(id).disabled = !open?.total;
  // They are of what the server has.
  for (const id of ['download', 'embed']) $<HTMLButtonElement>(id).disabled = !open?.total || !open.source.served;
  // A text that was written by hand takes no more conditions.
  $<HTMLButtonElement>('add-condition').disabled = !open?.total || !$('by-hand').hidden;
  enableTools(placed && Boolean(open?.total));
  const chips = [];
  if (open?.total) {
    if (placed) chips.push(chip(view.shape ? describe(view.shape) : 'On the map as it is', view.shape && (() => update({ shape: null })), 'the shape'));
    if (timed) chips.push(chip(view.when ? formatRange(view.when, resolutionOf(view.when)) : 'All time', view.when && (() => update({ when: null })), 'the time'));
    if (view.filter) chips.push(chip(view.filter, () => update({ filter: '' }), 'the filter'));
  }
  $('chips').replaceChildren(...chips);
}
