// What the map of a search shows: all results, until the user moves it. From then on the page says how many are outside.
import { boxOf, partsOf, type Bbox } from '../frame';
import { anchorOf } from '../results';
import type { LngLat } from '../shapes';
import type { Result } from './run';

/** West, south, east and north of the map in degrees; a longitude may lie on another copy of the world. */
export type Viewport = Bbox;

/** Whether a place is in sight, on whatever copy of the world. */
export function inSight([lng, lat]: LngLat, [west, south, east, north]: Viewport): boolean {
  if (lat < south || lat > north) return false;
  return lng + 360 * Math.ceil((west - lng) / 360) <= east;
}

/** A box as one part of what is to be seen, which is in all columns of it. */
const cornersOf = ([west, south, east, north]: Bbox): readonly LngLat[] => [[west, south], [east, north]];

/** Mercator ends here: no map shows a place beyond it. */
const EDGE = 85.05;

export class Framing {
  /** The boxes of what is to be seen: the area of the search, and its results. */
  private parts: (readonly LngLat[])[] = [];
  private anchors: LngLat[] = [];
  private taken = 0;
  /** Whether the user has moved the map since the search began. */
  moved = false;

  /** A new search; `area` is where it asks, if it says. */
  begin(area: Bbox | null): void {
    this.parts = area ? [cornersOf(area)] : [];
    this.anchors = [];
    this.taken = 0;
    this.moved = false;
  }

  /** Takes the results that are new among all so far. Answers whether the box of all has changed. */
  grow(results: readonly Result[]): boolean {
    const before = String(this.box());
    for (const { feature } of results.slice(this.taken)) {
      const at = anchorOf(feature.geometry);
      if (!at) continue;
      this.anchors.push(at);
      this.parts.push(cornersOf(boxOf(partsOf(feature.geometry))));
    }
    this.taken = results.length;
    return String(this.box()) !== before;
  }

  /** The box of all that is to be seen; null of nothing. */
  box(): Bbox | null {
    return this.parts.length ? boxOf(this.parts) : null;
  }

  /** Results with a place that are not in sight. */
  outside(sight: Viewport): number {
    return this.anchors.filter((at) => !inSight(at, sight)).length;
  }

  /** Results that no map can show. */
  beyond(): number {
    return this.anchors.filter(([, lat]) => Math.abs(lat) > EDGE).length;
  }
}

/** What to say of the results that are not in sight; empty of none. */
export function sayOutside(count: number, beyond: number): string {
  if (!count) return '';
  const [what, are] = count === 1 ? ['result', 'is'] : ['results', 'are'];
  const poles = beyond ? `, ${beyond} of them beyond 85° north or south` : '';
  return `${count.toLocaleString('en')} ${what} ${are} outside of the map${poles}`;
}
