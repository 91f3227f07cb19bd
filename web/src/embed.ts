// The map in a frame of another page: `/map?embed` shows map, legend and time alone.
import { $, copyText } from './dom';

export const embedded = (): boolean => new URLSearchParams(location.search).has('embed');

/** What to put into the other page to show the view as it is here. */
export const frameText = (address: URL): string => `<iframe src="${`${address.origin}${address.pathname}?embed${address.hash}`.replaceAll('&', '&amp;')}" width="800" height="500" style="border:0" title="Map of events" loading="lazy"></iframe>`;

/** Shows what to put into the other page. */
export function askToEmbed(): void {
  $<HTMLTextAreaElement>('embed-text').value = frameText(new URL(location.href));
  $<HTMLDialogElement>('embed-dialog').showModal();
  $<HTMLTextAreaElement>('embed-text').select();
}

export function wireEmbed(): void {
  document.body.classList.toggle('embed', embedded());
  $<HTMLAnchorElement>('embed-open').hidden = !embedded();
  $('embed-copy').addEventListener('click', () => copyText($<HTMLTextAreaElement>('embed-text').value, 'Copied', 'Select the text and copy it'));
  // The whole page of the same view.
  $('embed-open').addEventListener('click', () => ($<HTMLAnchorElement>('embed-open').href = `/map${location.hash}`));
}
