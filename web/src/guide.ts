// Messages of the page when there is nothing to show.
import { make } from './dom';

const command = (text: string): HTMLElement => make('pre', '', text);

/** No collection on this server yet. */
export function noCollections(): HTMLElement {
  const box = make('div');
  box.append(
    make('h2', '', 'No collections yet'),
    make('p', '', 'This server holds no events. Load a file and it becomes a collection; its schema is derived from the file:'),
    command(`meridian load earthquakes earthquakes.csv --url ${location.origin}`),
    make('p', 'muted', 'GeoJSON, NDJSON, CSV, GeoParquet and Arrow files are accepted. Then reload this page.'),
  );
  return box;
}

/** A collection without events. */
export function emptyCollection(id: string, title: string): HTMLElement {
  const box = make('div');
  box.append(
    make('h2', '', `${title} is empty`),
    make('p', '', 'The collection exists but holds no events yet. Load a file into it:'),
    command(`meridian load ${id} FILE --url ${location.origin}`),
    make('p', 'muted', `Or send events to POST /collections/${id}/items. They show here after a reload.`),
  );
  return box;
}

/** A collection whose events have no geometry. */
export function noPlace(title: string): HTMLElement {
  const box = make('div');
  box.append(make('h2', '', 'No places to show'), make('p', '', `The events of ${title} have a time but no place. Use the histogram below and the table.`));
  return box;
}

/** A browser without WebGL. */
export function noWebGl(works = 'The histogram, the filter and the table work without it.'): HTMLElement {
  const box = make('div');
  box.append(make('h2', '', 'The map cannot be drawn'), make('p', '', `This browser offers no WebGL. ${works}`));
  return box;
}

/** A link to a collection that does not exist. */
export function unknownCollection(id: string): HTMLElement {
  const box = make('div');
  box.append(make('h2', '', `There is no collection “${id}”`), make('p', '', 'It may have been removed, or the link is for another server. Choose a collection above.'));
  return box;
}
