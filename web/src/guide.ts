// Messages of the page when there is nothing to show.
import { make } from './dom';
import type { SignInState } from './session';

const command = (text: string): HTMLElement => make('pre', '', text);

/** What `meridian load` reads, and what the page reads by itself. */
const LOADED = 'meridian load reads GeoJSON, NDJSON, CSV, GeoParquet, Arrow, Shapefile, GeoPackage, FlatGeobuf, KML, GPX, NMEA with AIS, GDELT and GTFS-Realtime.';
const OPENED = 'The browser reads GeoJSON, NDJSON and CSV: drop such a file on the map to look at it.';

/** What to say where the caller sees no collection. A server with users may have some that this one may not read. */
const NONE: Record<SignInState, readonly [title: string, why: string]> = {
  anyone: ['No collections yet', 'This server holds no events.'],
  'signed-out': ['You can read no collection here', 'Nobody is signed in. A user may read more.'],
  user: ['You can read no collection here', 'There is none yet, or this user may read none. The administrator of the server knows.'],
};

/** No collection that the caller may read. */
export function noCollections(standing: SignInState): HTMLElement {
  const [title, why] = NONE[standing];
  const box = make('div');
  box.append(make('h2', '', title), make('p', '', why));
  if (standing !== 'signed-out')
    box.append(
      make('p', '', 'A file that is loaded becomes a collection. Its schema is derived from the file:'),
      command(`meridian load earthquakes earthquakes.csv --url ${location.origin}`),
      make('p', 'muted', `${LOADED} Reload this page after it.`),
    );
  box.append(make('p', 'muted', OPENED));
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

/** What to say of events without a place. The histogram is shown only where they have a time. */
export const sayNoPlace = (title: string, timed: boolean): string =>
  timed ? `The events of ${title} have a time but no place. Use the histogram below and the table.` : `The events of ${title} have neither a place nor a time. Use the table.`;

/** A collection whose events have no geometry. */
export function noPlace(title: string, timed: boolean): HTMLElement {
  const box = make('div');
  box.append(make('h2', '', 'No places to show'), make('p', '', sayNoPlace(title, timed)));
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
