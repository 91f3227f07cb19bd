// Names for the controls of the viewer, which has none for many of them: a screen reader says which parameter a field is of.

const CONTROLS = '.swagger-ui :is(select, input:not([type="hidden"]), textarea):not([aria-label])';

function nameOf(control: Element): string {
  const parameter = control.closest<HTMLElement>('[data-param-name]')?.dataset.paramName;
  if (parameter) return parameter;
  if (control.closest('.opblock-section-request-body')) return control instanceof HTMLSelectElement ? 'Media type of the body' : 'Request body';
  return control.closest('.response, .responses-wrapper') ? 'Media type of the response' : (control.getAttribute('placeholder') ?? '');
}

/** Names the controls of an element, now and as they come. */
export function nameControls(room: HTMLElement): void {
  const name = (): void => {
    for (const control of room.querySelectorAll(CONTROLS)) {
      const label = (control as HTMLInputElement).labels?.length ? '' : nameOf(control);
      if (label) control.setAttribute('aria-label', label);
    }
    // A response may be longer than its box: a keyboard scrolls what has the focus.
    for (const text of room.querySelectorAll('.microlight:not([tabindex])')) text.setAttribute('tabindex', '0');
    // The page has a landmark of its own. What takes the focus would stay one.
    const inner = room.querySelector('main');
    inner?.setAttribute('role', 'none');
    inner?.removeAttribute('tabindex');
  };
  name();
  new MutationObserver(name).observe(room, { childList: true, subtree: true });
}
