// Events that a picture does not show. They lie beyond the edge of the projection, have no place, or are outside of the chosen
// time. A map that shows all from west to east also lacks events north or south of it. They are counted, and the page says how
// many.
import { formatCount } from './numbers';
import type { Question } from './query';
import type { Shape } from './shapes';
import type { Range } from './time';

/** Latitude at which the Web Mercator projection ends, north and south. */
export const EDGE = 85.0511287798066;

/** What is known of a collection. */
export interface Extent {
  /** West, south, east, north of all events. */
  readonly bbox: readonly [number, number, number, number] | null;
  /** West and east of the events as the first view frames them: around the antimeridian their box is that of the world. */
  readonly stretch: readonly [west: number, east: number] | null;
  readonly interval: Range | null;
}

export type Missing = 'poles' | 'frame' | 'placeless' | 'outside';

/** Questions for counts; the answer is the sum of `plus` less the sum of `minus`. */
export interface Ask {
  readonly what: Missing;
  readonly plus: readonly Question[];
  readonly minus: readonly Question[];
}

const WORLD: Shape = { kind: 'box', west: -180, south: -90, east: 180, north: 90 };

/** Whether a view shows all of a collection from west to east, on whatever copy of the world. */
function isWide(view: Shape, stretch: Extent['stretch']): boolean {
  if (view.kind !== 'box' || !stretch) return false;
  const { west, east } = view;
  const [first, last] = [stretch[0], stretch[1] < stretch[0] ? stretch[1] + 360 : stretch[1]];
  return east - west >= 360 || [-360, 0, 360].some((turn) => west <= first + turn && east >= last + turn);
}

/** What must be counted for a question; `drawn` is whether its place is what the map shows, and not a drawn shape. */
export function asksOf(question: Question, drawn: boolean, extent: Extent, placed: boolean): Ask[] {
  const asks: Ask[] = [];
  const { where, when } = question;
  if (placed && drawn) {
    const [west, east] = where?.kind === 'box' ? [where.west, where.east] : [-180, 180];
    const caps: Shape[] = [];
    const [south, north] = where?.kind === 'box' ? [where.south, where.north] : [-90, 90];
    if (north >= 90 && (extent.bbox?.[3] ?? 0) > EDGE) caps.push({ kind: 'box', west, east, south: EDGE, north: 90 });
    if (south <= -90 && (extent.bbox?.[1] ?? 0) < -EDGE) caps.push({ kind: 'box', west, east, south: -90, north: -EDGE });
    // A wide map may be too low for all of the world. A closer look leaves events out on purpose, and says nothing of them.
    const cut = Boolean(extent.bbox) && ((north < 90 && (extent.bbox?.[3] ?? 0) > north) || (south > -90 && (extent.bbox?.[1] ?? 0) < south));
    if (where && cut && isWide(where, extent.stretch))
      asks.push({ what: 'frame', plus: [{ ...question, where: { kind: 'box', west, east, south: -90, north: 90 } }], minus: [question] });
    if (caps.length) asks.push({ what: 'poles', plus: caps.map((cap) => ({ ...question, where: cap })), minus: [] });
    asks.push({ what: 'placeless', plus: [{ ...question, where: null }], minus: [{ ...question, where: WORLD }] });
  }
  if (when) asks.push({ what: 'outside', plus: [{ ...question, when: null }], minus: [question] });
  return asks;
}

const SAYS: Record<Missing, (count: number) => string> = {
  poles: (n) => `${formatCount(n)} beyond 85° north or south: counted, not on the map`,
  frame: (n) => `${formatCount(n)} more north or south of the map`,
  placeless: (n) => `${formatCount(n)} without a place: not on the map`,
  outside: (n) => `${formatCount(n)} more here outside of the chosen time`,
};

/** What to say; nothing of what is 0. */
export const sayMissing = (what: Missing, count: number): string => (count > 0 ? SAYS[what](count) : '');
