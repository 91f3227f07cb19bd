// Sections under headings, turned into tabs (the pattern of the ARIA Authoring Practices). Without this script all are shown.
import { make } from '../dom';

/** Turns the sections of an element into tabs. */
export function wireTabs(room: HTMLElement): void {
  const panels = [...room.querySelectorAll<HTMLElement>('section')];
  const list = make('div', '', '', { role: 'tablist', 'aria-label': room.getAttribute('aria-label') ?? '' });
  const tabs = panels.map((panel, i) => {
    const heading = panel.querySelector('h3')!;
    heading.hidden = true;
    const tab = make('button', '', heading.textContent ?? '', { type: 'button', role: 'tab', id: `${panel.id}-tab`, 'aria-controls': panel.id });
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', tab.id);
    tab.addEventListener('click', () => choose(i));
    tab.addEventListener('keydown', (e) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: panels.length - 1 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      choose((to + panels.length) % panels.length);
      tabs[(to + panels.length) % panels.length].focus();
    });
    return tab;
  });
  const choose = (chosen: number): void =>
    tabs.forEach((tab, i) => {
      tab.setAttribute('aria-selected', String(i === chosen));
      tab.tabIndex = i === chosen ? 0 : -1;
      panels[i].hidden = i !== chosen;
    });
  list.append(...tabs);
  room.prepend(list);
  choose(0);
}
