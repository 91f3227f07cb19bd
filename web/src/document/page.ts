// What the pages of the server do besides their text: they work without it.
import { wireCopies } from './copy';
import { nameCells } from './rows';
import { wireTabs } from './tabs';

wireCopies();
document.querySelectorAll<HTMLElement>('.ask').forEach(wireTabs);
if (/^\/collections\/[^/]+\/items$/.test(location.pathname)) document.querySelectorAll<HTMLTableElement>('.wide table').forEach(nameCells);
const cards = document.querySelectorAll<HTMLElement>('.collection[data-collection]');
if (cards.length) void import('./cards').then(({ wireCards }) => wireCards(cards));
