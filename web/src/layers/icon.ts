// The buttons of a layer's row that are icons.
import { make } from '../dom';

const ICONS = {
  shown: 'M2.500 10s2.700-4.800 7.500-4.800 7.500 4.800 7.500 4.800-2.700 4.800-7.500 4.800S2.500 10 2.500 10zM10 8a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  hidden: 'M4 4l12 12M2.500 10s1-1.800 2.900-3.200M8 5.500c4.800-1.400 9.500 4.500 9.500 4.500s-.7 1.200-2 2.400M12.500 14.500C7.300 16 2.500 10 2.500 10',
  up: 'M10 15.500v-11M5.500 9 10 4.500 14.500 9',
  down: 'M10 4.500v11M5.500 11l4.500 4.500 4.500-4.500',
  remove: 'M5.500 5.500l9 9M14.500 5.500l-9 9',
} as const;

export function icon(name: keyof typeof ICONS, label: string, act: () => void): HTMLButtonElement {
  const button = make('button', 'icon', '', { type: 'button', title: label, 'aria-label': label, 'data-act': name });
  button.innerHTML = `<svg viewBox="0 0 20 20" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;
  button.addEventListener('click', act);
  return button;
}

/** The button that shows or hides what has this title. */
export function eye(hidden: boolean, title: string, act: () => void): HTMLButtonElement {
  const button = icon(hidden ? 'hidden' : 'shown', `${hidden ? 'Show' : 'Hide'} ${title}`, act);
  button.dataset['act'] = 'eye';
  return button;
}
