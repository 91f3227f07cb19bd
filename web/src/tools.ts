// The drawing buttons, and the hint for the next step.
import { $ } from './dom';
import type { Draw, DrawKind } from './draw';
import { sayMeasure } from './measure';
import type { LngLat } from './shapes';

const buttons = (): NodeListOf<HTMLButtonElement> => document.querySelectorAll<HTMLButtonElement>('[data-draw]');

/** Connects the buttons to a drawing; there is none if the map could not be created. */
export function wireTools(draw: () => Draw | undefined): void {
  const ending = (end: () => void) => (): void => {
    const tool = document.querySelector<HTMLElement>('[data-draw][aria-pressed=true]');
    end();
    // The button that was pressed is hidden with the hint.
    if ($('draw-hint').hidden) tool?.focus();
  };
  $('draw-finish').addEventListener('click', ending(() => draw()?.finish()));
  $('draw-cancel').addEventListener('click', ending(() => draw()?.cancel()));
  for (const button of buttons())
    button.addEventListener('click', () => {
      if (button.getAttribute('aria-pressed') === 'true') draw()?.cancel();
      else draw()?.start(button.dataset['draw'] as DrawKind);
    });
}

/** Gives the focus to the button of a tool. */
export function focusTool(kind: DrawKind): void {
  document.querySelector<HTMLElement>(`[data-draw=${kind}]`)?.focus();
}

/** Whether a shape can be drawn. What is measured needs no events. */
export function enableTools(on: boolean): void {
  for (const button of buttons()) button.disabled = !on && !['distance', 'area'].includes(button.dataset['draw'] ?? '');
}

/** Shows what is measured, see `DrawEvents.measured`; `clear` removes it. */
export function showMeasured(corners: readonly LngLat[] | null, closed: boolean, done: boolean, clear: () => void): void {
  $('measured').hidden = !corners;
  const text = corners ? sayMeasure(corners, closed) : '';
  $('measured-text').textContent = text || 'Nothing yet';
  $('measured-clear').hidden = !done;
  $('measured-clear').onclick = clear;
}

/** Hides the buttons. */
export function hideTools(): void {
  for (const room of document.querySelectorAll<HTMLElement>('.tools')) room.hidden = true;
}

/** Shows the progress of a drawing, see `DrawEvents.state`. */
export function showDrawing(kind: DrawKind | null, hint: string, canFinish: boolean): void {
  for (const button of buttons()) button.setAttribute('aria-pressed', String(button.dataset['draw'] === kind));
  $('draw-hint').hidden = kind === null;
  const text = $('draw-hint').querySelector('span');
  if (text) text.textContent = hint;
  $('draw-finish').hidden = !canFinish;
}
