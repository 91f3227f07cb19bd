// Follows a collection: where its objects are now, then each event as it is written.
import type { Feature } from 'geojson';
import * as api from '../api';
import { EVENTS_MAX, OBJECTS_MAX } from './objects';

/** Events of a page: the most that the server gives. */
const PAGE = 10_000;
/** Max events that are read to find the last position of each object. */
const READ_MAX = 60_000;

export interface FollowHandlers {
  /** Events, the newest last. */
  events(events: readonly Feature[]): void;
  /** How many objects, or events without one, there are. Null where all of them are loaded. */
  known(total: number | null): void;
  /** Whether the stream is connected. The browser connects again by itself, and goes on where it was. */
  connected(on: boolean): void;
  failed(error: unknown): void;
}

/** Fields of an event that matter: the one that orders, the one that names an object (or empty), the one for its heading (or empty). */
export interface Names {
  readonly time: string;
  readonly object: string;
  readonly heading: string;
}

/** Pages of events, the newest first. */
type Read = (path: string) => Promise<api.Page>;

/**
 * The newest events, the newest last, back to the last position of each object, but at most `most`. `objects` says how many objects
 * there are, as far as it is known. `all` is whether none is missing.
 */
export async function newest(read: Read, first: string, object: string, objects: () => number, most: number): Promise<{ readonly events: Feature[]; readonly all: boolean }> {
  const events: Feature[] = [];
  const seen = new Set<unknown>();
  for (let path: string | null = first; path; ) {
    const { features, next } = await read(path);
    for (const feature of features) {
      events.push(feature);
      seen.add((object ? feature.properties?.[object] : null) ?? feature.id);
    }
    path = features.length ? next : null;
    const done = !path || seen.size >= objects();
    if (done || seen.size >= OBJECTS_MAX || events.length >= most) return { events: events.reverse(), all: done };
  }
  return { events: events.reverse(), all: true };
}

/** Events of the stream, which wait until older ones are loaded: of too many, the first to come are the first to go. */
export class Held {
  private waiting: Feature[] | null = [];

  constructor(private readonly to: (events: readonly Feature[]) => void) {}

  /** Takes an event of the stream. */
  take(event: Feature): void {
    if (this.waiting) this.waiting.push(event);
    else this.to([event]);
  }

  /** Gives the older events, then all that waited for them. */
  release(older: readonly Feature[]): void {
    this.to([...older, ...(this.waiting ?? [])]);
    this.waiting = null;
  }
}

/** Follows the events of a question; answers how to stop. */
export function follow(collection: string, query: URLSearchParams, names: Names, to: FollowHandlers): () => void {
  const stopped = new AbortController();
  const { signal } = stopped;
  const held = new Held((events) => to.events(events));
  // The stream starts first: what is written meanwhile may come twice, and is never missing.
  const source = new EventSource(`${api.collectionPath(collection)}/stream?${query}`);
  source.addEventListener('open', () => to.connected(true));
  source.addEventListener('error', () => to.connected(false));
  source.addEventListener('message', ({ data }: MessageEvent<string>) => {
    if (data) held.take(JSON.parse(data) as Feature);
  });
  const { time, object, heading } = names;
  const recent = new URLSearchParams(query);
  recent.set('sortby', `-${time}`);
  recent.set('properties', [time, object, heading].filter(Boolean).join(','));
  const count = object ? `distinct(${object})` : 'count';
  const load = async (): Promise<void> => {
    let [total, exact] = [Infinity, false];
    const counted = api.aggregate(collection, [count], query, signal).then(
      ([group]) => {
        if (typeof group?.[count] === 'number') total = group[count];
        // Beyond some thousands the number of different values is an estimate: then all is read that may be.
        exact = !group?.[`error(${count})`];
      },
      () => {
        // The objects can be followed without their number.
      },
    );
    const first = api.itemsPath(collection, recent, object ? PAGE : EVENTS_MAX);
    const { events, all } = await newest((path) => api.page(path, signal), first, object, () => (exact ? total : Infinity), object ? READ_MAX : EVENTS_MAX);
    held.release(events);
    await counted;
    to.known(all ? null : total);
  };
  load().catch((error: unknown) => {
    if (signal.aborted) return;
    held.release([]);
    to.failed(error);
  });
  return () => {
    stopped.abort();
    source.close();
  };
}
