// Buttons that copy a command.

/** How long a button says that it has copied, in milliseconds. */
const SAID = 1600;

/** Shows the buttons of the page and wires them. Without this script the commands are selected by hand. */
export function wireCopies(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
    const text = button.parentElement?.querySelector('pre')?.textContent;
    if (!text) continue;
    button.hidden = false;
    button.addEventListener('click', () => {
      // Without https or on an old browser there is no clipboard.
      const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('no clipboard'));
      copied.then(
        () => say(button, 'Copied'),
        () => {
          getSelection()?.selectAllChildren(button.parentElement!.querySelector('pre')!);
          say(button, 'Selected');
        },
      );
    });
  }
}

function say(button: HTMLButtonElement, word: string): void {
  button.textContent = word;
  setTimeout(() => (button.textContent = 'Copy'), SAID);
}
