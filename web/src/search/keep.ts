// Saving a search, on servers with saved searches.
import { Problem } from '../api';
import { $, make } from '../dom';
import type { Question } from './question';
import * as server from './server';

/** The provider of this server's own collections. It is not polled, since new events are matched as they are written. */
const OWN = 'meridian';

/** Shows the button if the server has saved searches. `question` is saved; `name` is the suggested name. */
export async function offer(question: () => Question | null, name: (q: Question) => string): Promise<void> {
  const forever = new AbortController().signal;
  if (!(await server.keeps(forever).catch(() => false))) return;
  const dialog = $<HTMLDialogElement>('save-dialog');
  const button = $<HTMLButtonElement>('save-go');
  let asked: Question | null = null;
  const problem = (text: string): void => {
    $('save-problem').textContent = text;
    $('save-problem').hidden = text === '';
  };
  const poll = (): number | null => ($('save-poll-room').hidden ? null : Number($<HTMLSelectElement>('save-poll').value) || null);
  $('save').hidden = false;
  $('save').addEventListener('click', () => {
    asked = question();
    if (!asked) return;
    problem('');
    $('saved').hidden = true;
    button.disabled = false;
    $('save-poll-room').hidden = asked.providers?.every((source) => source === OWN) ?? false;
    $<HTMLInputElement>('save-name').value = name(asked);
    dialog.showModal();
    $<HTMLInputElement>('save-name').select();
  });
  $('save-cancel').addEventListener('click', () => dialog.close());
  $('save-form').addEventListener('submit', (e) => {
    e.preventDefault();
    if (!asked) return;
    button.disabled = true;
    problem('');
    server.save($<HTMLInputElement>('save-name').value.trim(), asked, poll(), forever).then(
      (path) => {
        const link = (to: string): HTMLElement => make('a', '', to, { href: to, target: '_blank', rel: 'noopener' });
        $('saved').replaceChildren('Saved as ', link(path), '. New results are at ', link(`${path}/packets`), '.');
        $('saved').hidden = false;
        $('save-cancel').focus();
      },
      (error: unknown) => {
        button.disabled = false;
        problem(error instanceof Problem ? error.detail || error.title : String(error));
      },
    );
  });
}
