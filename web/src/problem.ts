// The problem that the page shows above everything else.
import { Problem } from './api';
import { $ } from './dom';

/** Any error as a problem. */
export const asProblem = (error: unknown): Problem => (error instanceof Problem ? error : new Problem('Something went wrong', error instanceof Error ? error.message : String(error), 0, ''));

/** Shows a problem. One that `stays` is not solved by another question. */
export function sayProblem({ title, detail, field }: Problem, stays = false): void {
  const [head, text] = [$('problem').querySelector('b'), $('problem').querySelector('p')];
  if (head) head.textContent = title;
  if (text) text.textContent = detail;
  // The same file again has the same fault.
  $('retry').hidden = field === 'file';
  $('problem').classList.toggle('stays', stays);
  $('problem').hidden = false;
}

/** Hides the problem of an earlier question. */
export function hideProblem(): void {
  if (!$('problem').classList.contains('stays')) $('problem').hidden = true;
}

/** Hides the problem, whatever it is. */
export function clearProblem(): void {
  $('problem').classList.remove('stays');
  hideProblem();
}
