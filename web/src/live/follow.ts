// Follows a collection: its newest events first, so that the map is not empty, then each as it is written.
import type { Feature } from 'geojson';
import * as api from '../api';

/** Events that are loaded before the stream. */
const RECENT = 2000;

export interface Following {
  /** Events, the newest last. */
  events(events: readonly Feature[]): void;
  /** Whether the stream is connected. The browser connects again by itself, and goes on where it was. */
  connected(on: boolean): void;
  failed(error: unknown): void;
}

/** Follows the events of a question; answers how to stop. `time` is the field that orders them. */
export function follow(collection: string, query: URLSearchParams, time: string, to: Following): () => void {
  const stopped = new AbortController();
  let source: EventSource | null = null;
  const recent = new URLSearchParams(query);
  recent.set('sortby', `-${time}`);
  // The stream starts first: what is written meanwhile may come twice, and is never missing.
  source = new EventSource(`${api.collectionPath(collection)}/stream?${query}`);
  source.addEventListener('open', () => to.connected(true));
  source.addEventListener('error', () => to.connected(false));
  source.addEventListener('message', ({ data }: MessageEvent<string>) => {
    if (data) to.events([JSON.parse(data) as Feature]);
  });
  api
    .page(api.itemsPath(collection, recent, RECENT), stopped.signal)
    .then(({ features }) => to.events([...features].reverse()))
    .catch((error: unknown) => {
      if (!stopped.signal.aborted) to.failed(error);
    });
  return () => {
    stopped.abort();
    source?.close();
  };
}
