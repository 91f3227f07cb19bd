// What the pages of the server do besides their text: they work without it.
import { wireCopies } from './copy';
import { wireTabs } from './tabs';

wireCopies();
document.querySelectorAll<HTMLElement>('.ask').forEach(wireTabs);
const cards = document.querySelectorAll<HTMLElement>('.collection[data-collection]');
if (cards.length) void import('./cards').then(({ wireCards }) => wireCards(cards));
