// What the pages of the server do besides their text: they work without it.
import { wireCopies } from './copy';
import { foldSorts, hintColumns, nameCells } from './rows';
import { wireTabs } from './tabs';

wireCopies();
document.querySelectorAll<HTMLElement>('.ask').forEach(wireTabs);
document.querySelectorAll<HTMLElement>('.list').forEach((room) => {
  const table = room.querySelector('table');
  if (!table) return;
  nameCells(table);
  foldSorts(room, table);
  hintColumns(room, table);
});
const cards = document.querySelectorAll<HTMLElement>('.collection[data-collection]');
if (cards.length) void import('./cards').then(({ wireCards }) => wireCards(cards));
