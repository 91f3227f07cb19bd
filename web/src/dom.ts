// Small helpers around the document.

/** The element with this id; the page is ours, so a missing one is a mistake in its HTML. */
export function $<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element as T;
}

/** A new element with a class, text and attributes. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, className = '', text = '', attributes: Record<string, string> = {}): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Sets a text where it differs: a screen reader hears of it once. */
export function say(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

let toastTimer: ReturnType<typeof setTimeout> | undefined;

/** A word at the foot of the page, for a moment. */
export function toast(text: string): void {
  $('toast').textContent = text;
  $('toast').hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => ($('toast').hidden = true), 2400);
}

/** Copies the page's address, which holds all that a link restores. */
export function copyLink(): void {
  // Without https or on an old browser there is no clipboard; the address bar still holds the link.
  const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error('no clipboard'));
  copied.then(
    () => toast('Link copied'),
    () => toast('Copy the link from the address bar'),
  );
}

/** The map draws names with the page's font: without waiting it would use another one. */
export async function fonts(): Promise<void> {
  const patience = new Promise((resolve) => setTimeout(resolve, 2000));
  await Promise.race([document.fonts.load('400 24px "Inter Variable"', 'Aé').catch(() => []), patience]);
}

/** The link that skips to the results: it moves the focus and leaves the address alone, which holds the view. */
export function wireSkip(): void {
  const link = document.querySelector<HTMLAnchorElement>('.skip');
  if (!link) return;
  link.addEventListener('click', (e) => {
    e.preventDefault();
    $(link.hash.slice(1)).focus();
  });
}
