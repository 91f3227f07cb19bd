// The list of events. On a narrow screen each row becomes a list of its cells, with their names, see document.css; on a wide one
// long texts are cut, and columns may be out of sight.
import { make } from '../dom';

/** A longer text may be cut: a column is at most as wide as 22 zeros. */
const CUT = 22;

/** With more columns to sort by, their links would fill the screen of a phone. */
const SORTS = 8;

/** Names the cells of the events of a page, and gives those that may be cut their text as a title. */
export function nameCells(table: HTMLTableElement): void {
  table.classList.add('rows', 'events');
  const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.textContent);
  for (const body of table.tBodies)
    for (const row of body.rows)
      [...row.cells].forEach((cell, i) => {
        cell.dataset.name = names[i] ?? '';
        const { textContent: text } = cell;
        if (!cell.title && text.length > CUT) cell.title = text;
      });
}

/** Folds the links that sort, where there are many: on a narrow screen they are above the table, closed. */
export function foldSorts(room: HTMLElement, table: HTMLTableElement): void {
  const links = [...(table.tHead?.querySelectorAll('a') ?? [])];
  if (links.length <= SORTS) return;
  table.classList.add('folded');
  const current = table.tHead?.querySelector('[aria-sort]');
  const folded = make('details', 'sorts');
  folded.append(make('summary', '', current ? `Sorted by ${current.textContent}, ${current.getAttribute('aria-sort') ?? ''}` : 'Sort by'), make('ul'));
  for (const link of links) {
    const line = make('li');
    line.append(link.cloneNode(true));
    folded.lastElementChild?.append(line);
  }
  room.before(folded);
}

/** What to say of columns of which the right edge is beyond that of the room; empty where all are in sight. */
export function sayColumns(edges: readonly number[], right: number): string {
  const out = edges.filter((edge) => edge > right + 1).length;
  return out ? `${out} of ${edges.length} columns ${out === 1 ? 'is' : 'are'} to the right: scroll the table sideways.` : '';
}

/** Says above a table how many of its columns are out of sight. */
export function hintColumns(room: HTMLElement, table: HTMLTableElement): void {
  const hint = make('p', 'more');
  room.before(hint);
  const show = (): void => {
    const edges = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.getBoundingClientRect().right);
    const text = room.scrollWidth > room.clientWidth ? sayColumns(edges, room.getBoundingClientRect().right) : '';
    // Where the last column is reached, the line keeps its room: the table must not jump.
    hint.textContent = text || (room.scrollWidth > room.clientWidth ? 'This is the last column.' : '');
    hint.hidden = !hint.textContent;
  };
  room.addEventListener('scroll', show, { passive: true });
  new ResizeObserver(show).observe(room);
}
