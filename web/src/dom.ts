// Helpers for the document.

/** The element with this id. A missing one is an error in the page's HTML. */
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

/** Sets a text if it differs, so that a screen reader announces it once. */
export function say(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

let toastTimer: ReturnType<typeof setTimeout> | undefined;

/** Shows a short message at the foot of the page. */
export function toast(text: string): void {
  $('toast').textContent = text;
  $('toast').hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => ($('toast').hidden = true), 2400);
}

/** Copies a text and says so. Without https or on an old browser there is no clipboard: then it says what to do instead. */
export function copyText(text: string, done: string, instead: string): void {
  const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('no clipboard'));
  copied.then(
    () => toast(done),
    () => toast(instead),
  );
}

/** Copies the page's address, which contains the whole view. */
export const copyLink = (): void => copyText(location.href, 'Link copied', 'Copy the link from the address bar');

/** Waits for the page's font. Without it, the map would draw names in another one. */
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
