// The list of events on a narrow screen: each row becomes a list of its cells, with their names, see document.css.

/** Names the cells of the events of a page. */
export function nameCells(table: HTMLTableElement): void {
  table.classList.add('rows', 'events');
  const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.textContent);
  for (const body of table.tBodies) for (const row of body.rows) [...row.cells].forEach((cell, i) => (cell.dataset.name = names[i] ?? ''));
}
