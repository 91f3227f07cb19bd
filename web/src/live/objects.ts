// Moving objects as their events arrive: the last position of each, where it heads, and its track.
import type { Feature, FeatureCollection } from 'geojson';
import { formatCount } from '../numbers';
import { parseInstant } from '../time';

/** Positions kept of an object, and objects kept: the newest of both. */
export const TRACK_MAX = 500;
export const OBJECTS_MAX = 20_000;
/** Events kept where no field names an object: the picture below shows the others. */
export const EVENTS_MAX = 2000;

/** Names of a field that says where an object heads, in degrees from north; the first that a collection has counts. */
const HEADING = /^(true_?)?(heading|course|cog|bearing|direction|track)(_?deg(rees)?)?$/i;

export const headingField = (names: readonly string[]): string => names.find((name) => HEADING.test(name)) ?? '';

export interface Position {
  readonly at: readonly [lng: number, lat: number];
  readonly ms: number;
  readonly id: string;
  /** Degrees from north, clockwise; null where the event does not say. */
  readonly heading: number | null;
}

/** Where one goes from a place to the next, in degrees from north; null where it stands still. */
export function bearing([lng1, lat1]: readonly [number, number], [lng2, lat2]: readonly [number, number]): number | null {
  const [a, b, d] = [lat1, lat2, lng2 - lng1].map((v) => (v * Math.PI) / 180);
  const [y, x] = [Math.sin(d) * Math.cos(b), Math.cos(a) * Math.sin(b) - Math.sin(a) * Math.cos(b) * Math.cos(d)];
  if (Math.hypot(x, y) < 1e-9) return null;
  return ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360;
}

/** How many objects, or events where nothing names an object, are shown; `total` is how many there are if some are not. */
export function sayObjects(count: number, total: number | null, named: boolean): string {
  const what = named ? 'object' : 'event';
  if (total === Infinity) return `the newest ${formatCount(count)} ${what}s, and there are more`;
  if (total !== null && total > count) return `the newest ${formatCount(count)} of ${formatCount(total)} ${what}s`;
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}

export class LiveObjects {
  private readonly tracks = new Map<string, Position[]>();
  /** Events taken. */
  taken = 0;
  /** Whether there were too many, and the oldest are gone. */
  dropped = false;
  /** Time of the newest event. */
  newest = -Infinity;

  constructor(
    /** Names of the fields for time, object (empty: each event is its own) and heading (empty: from the positions). */
    private readonly names: { readonly time: string; readonly object: string; readonly heading: string },
  ) {}

  get count(): number {
    return this.tracks.size;
  }

  /** Takes an event; one without a place or a time is left out. */
  take(event: Feature): void {
    if (event.geometry?.type !== 'Point') return;
    const properties = event.properties ?? {};
    const ms = parseInstant(String(properties[this.names.time] ?? ''));
    if (Number.isNaN(ms)) return;
    const id = String(event.id ?? '');
    const object = this.names.object ? String(properties[this.names.object] ?? id) : id;
    const said: unknown = this.names.heading ? properties[this.names.heading] : null;
    // AIS says 511 where it does not know.
    const heading = typeof said === 'number' && said >= 0 && said <= 360 ? said : null;
    const [lng, lat] = event.geometry.coordinates;
    const track = this.tracks.get(object) ?? [];
    if (track.some((one) => one.id === id && id !== '')) return;
    // Events may arrive out of order.
    let at = track.length;
    while (at > 0 && track[at - 1].ms > ms) at--;
    track.splice(at, 0, { at: [lng, lat], ms, id, heading });
    const newest = at === track.length - 1;
    if (track.length > TRACK_MAX) track.shift();
    // The object that moved last is last; the others go first if there are too many.
    if (newest) this.tracks.delete(object);
    this.tracks.set(object, track);
    const max = this.names.object ? OBJECTS_MAX : EVENTS_MAX;
    for (const oldest of this.tracks.keys()) {
      if (this.tracks.size <= max) break;
      this.tracks.delete(oldest);
      this.dropped = true;
    }
    this.taken++;
    this.newest = Math.max(this.newest, ms);
  }

  /** Last positions as points, with `heading` and `object`, and tracks as lines that do not jump over the antimeridian. */
  drawing(): { readonly points: FeatureCollection; readonly lines: FeatureCollection } {
    const points: Feature[] = [];
    const lines: Feature[] = [];
    for (const [object, track] of this.tracks) {
      const last = track[track.length - 1];
      const heading = last.heading ?? (track.length > 1 ? bearing(track[track.length - 2].at, last.at) : null);
      const line: [number, number][] = [];
      for (const { at } of track) {
        const before = line[line.length - 1];
        const turns = before ? Math.round((before[0] - at[0]) / 360) * 360 : 0;
        line.push([at[0] + turns, at[1]]);
      }
      points.push({ type: 'Feature', properties: { '@id': last.id, object, ...(heading === null ? {} : { heading }) }, geometry: { type: 'Point', coordinates: [...last.at] } });
      if (line.length > 1) lines.push({ type: 'Feature', properties: { object }, geometry: { type: 'LineString', coordinates: line } });
    }
    return { points: { type: 'FeatureCollection', features: points }, lines: { type: 'FeatureCollection', features: lines } };
  }
}
