// How events are drawn in a view: as a surface of density where they are many, one by one where they are few. The whole view is
// drawn one way. Between the two, events fade in over the surface of the same events, so the change has no edge.

/** Max events drawn one by one in a view, and in a tile: with more the server sends counts. */
export const EVENTS_MAX = 4096;
/** Max events in a view whose averages are asked: further out, the server reads every event for them. */
export const AVERAGED_MAX = 5_000_000;
/** With fewer events the surface adds nothing. */
export const SURFACE_MIN = 600;
/** Presence of the events where they begin to show. */
const FIRST = 0.3;

export interface Drawing {
  /** Presence of single events, 0 to 1; 0 is none. */
  readonly events: number;
  /** Presence of the surface, 0 to 1; 0 is none. */
  readonly surface: number;
}

/** The drawing of as many events. */
export function drawingOf(count: number): Drawing {
  if (count > EVENTS_MAX) return { events: 0, surface: 1 };
  const t = Math.max(0, Math.min(1, Math.log(EVENTS_MAX / Math.max(1, count)) / Math.log(EVENTS_MAX / SURFACE_MIN)));
  return { events: FIRST + (1 - FIRST) * t, surface: 1 - t };
}

/** Where the server sends counts for one of the tiles (more events beside the view, or large shapes), the view is a surface. */
export const AS_SURFACE: Drawing = { events: 0, surface: 1 };
