// Small helpers around the document.

/** The element with this id; the page is ours, so a missing one is a mistake in map.html. */
export function $<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`map.html has no #${id}`);
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
