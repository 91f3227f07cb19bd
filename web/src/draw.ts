// Drawing a box, a circle or a polygon on the map, and measuring a line or an area, with mouse, finger or keyboard.
//
// Box and circle: press, drag, release; or click twice. Polygon, line and area: click the corners, end with a double click, a click
// on the first corner (a line: on the last), or Finish. Keyboard: arrow keys move the map under a cross in its middle, Enter sets a corner there, and
// ends at the same spot, Backspace takes the last one back, Escape ends.
import type { Map as MapLibre, MapMouseEvent, MapTouchEvent } from 'maplibre-gl';
import { boxOf, circleOf, selfCrossing, type LngLat, type Shape, type ShapeKind } from './shapes';

/** Movement below this many pixels is a click, not a drag. */
const SLOP = 5;
/** A click this near to the first corner closes a polygon, in pixels. */
const CLOSING = 12;
/** Max corners of a polygon: a question's address must stay short enough for every proxy. */
const CORNERS_MAX = 100;

/** A shape to ask about, or something to measure. */
export type DrawKind = ShapeKind | 'distance' | 'area';

/** Whether a kind has as many corners as one likes. */
const isOpen = (kind: DrawKind | null): boolean => kind === 'polygon' || kind === 'distance' || kind === 'area';
const isMeasure = (kind: DrawKind | null): kind is 'distance' | 'area' => kind === 'distance' || kind === 'area';
const cornersMin = (kind: DrawKind): number => (kind === 'distance' ? 2 : 3);

export interface DrawEvents {
  /** The shape so far, and its corners; null when there is none yet. */
  preview(shape: Shape | null, corners: readonly LngLat[]): void;
  /** A finished shape. */
  done(shape: Shape): void;
  /** The corners of what is measured, `closed` for an area; null when there is nothing any more. */
  measured(corners: readonly LngLat[] | null, closed: boolean, done: boolean): void;
  /** Drawing began, continued or ended. `hint` tells the user what to do next. */
  state(kind: DrawKind | null, hint: string, canFinish: boolean): void;
}

export class Draw {
  private kind: DrawKind | null = null;
  private corners: LngLat[] = [];
  private pointer: LngLat | null = null;
  private pressedAt: { x: number; y: number } | null = null;
  private keyboard = false;
  private endedAt = -Infinity;

  constructor(
    private readonly map: MapLibre,
    private readonly events: DrawEvents,
  ) {
    map.on('mousedown', (e) => this.press(e));
    map.on('mousemove', (e) => this.move(e));
    map.on('mouseup', (e) => this.release(e));
    map.on('touchstart', (e) => e.points.length === 1 && this.press(e));
    map.on('touchmove', (e) => e.points.length === 1 && this.move(e));
    map.on('touchend', (e) => this.release(e));
    map.on('dblclick', (e) => {
      if (!this.kind) return;
      e.preventDefault();
      this.finish();
    });
    map.on('move', () => {
      if (this.kind && this.keyboard) this.follow(this.middle());
    });
    map.getCanvas().addEventListener('keydown', (e) => this.key(e));
  }

  get active(): boolean {
    return this.kind !== null;
  }

  /** Whether the pointer's last press ended a drawing. The click that follows is then ignored. */
  get justEnded(): boolean {
    return performance.now() - this.endedAt < 350;
  }

  start(kind: DrawKind): void {
    // What was begun would stay on the map, with nothing that removes it.
    this.cancel();
    this.kind = kind;
    if (isMeasure(kind)) this.events.measured(null, false, false);
    this.map.getCanvas().style.cursor = 'crosshair';
    this.map.doubleClickZoom.disable();
    this.map.getCanvas().focus();
    this.report();
  }

  cancel(): void {
    if (!this.kind) return;
    if (isMeasure(this.kind)) this.events.measured(null, false, false);
    this.reset();
    this.events.preview(null, []);
    this.report();
  }

  /** Ends what has any number of corners, or tells why it cannot be ended. */
  finish(): void {
    if (!this.kind || !isOpen(this.kind)) return;
    const ring = this.corners.filter((p, i) => i === 0 || p[0] !== this.corners[i - 1][0] || p[1] !== this.corners[i - 1][1]);
    const min = cornersMin(this.kind);
    if (ring.length < min) return this.events.state(this.kind, `Set at least ${min === 2 ? 'two points' : 'three corners'}.`, false);
    if (this.kind !== 'distance' && selfCrossing(ring)) return this.events.state(this.kind, 'The sides cross each other: remove corners with Backspace, or Escape to begin again.', true);
    if (!isMeasure(this.kind)) return this.end({ kind: 'polygon', ring });
    const closed = this.kind === 'area';
    this.reset();
    this.endedAt = performance.now();
    this.report();
    this.events.measured(ring, closed, true);
  }

  private reset(): void {
    this.kind = null;
    this.corners = [];
    this.pointer = null;
    this.pressedAt = null;
    this.setKeyboard(false);
    this.map.getCanvas().style.cursor = '';
    // After the double click, which may have ended the drawing, is over.
    setTimeout(() => this.kind || this.map.doubleClickZoom.enable(), 400);
  }

  private end(shape: Shape): void {
    this.reset();
    this.endedAt = performance.now();
    this.events.preview(null, []);
    this.report();
    this.events.done(shape);
  }

  private middle(): LngLat {
    const { lng, lat } = this.map.getCenter();
    return [lng, lat];
  }

  private press(e: MapMouseEvent | MapTouchEvent): void {
    if (!this.kind || ('button' in e.originalEvent && e.originalEvent.button !== 0)) return;
    this.setKeyboard(false);
    this.pressedAt = e.point;
    if (isOpen(this.kind)) return; // the map may be dragged between corners
    e.preventDefault();
    if (!this.corners.length) this.place([e.lngLat.lng, e.lngLat.lat]);
  }

  private move(e: MapMouseEvent | MapTouchEvent): void {
    if (!this.kind) return;
    if (e.type === 'touchmove' && !isOpen(this.kind)) e.preventDefault();
    if (!this.keyboard) this.follow([e.lngLat.lng, e.lngLat.lat]);
  }

  private release(e: MapMouseEvent | MapTouchEvent): void {
    const from = this.pressedAt;
    this.pressedAt = null;
    if (!this.kind || !from) return;
    const moved = Math.hypot(e.point.x - from.x, e.point.y - from.y) > SLOP;
    const at: LngLat = [e.lngLat.lng, e.lngLat.lat];
    if (isOpen(this.kind)) {
      if (moved) return;
      if (this.kind !== 'distance' && this.corners.length >= 3) {
        const first = this.map.project([this.corners[0][0], this.corners[0][1]]);
        if (Math.hypot(first.x - e.point.x, first.y - e.point.y) < CLOSING) return this.finish();
      }
      // The second click of a double click lands on the corner that the first one set.
      const last = this.corners.at(-1);
      const there = last && this.map.project([last[0], last[1]]);
      if (!there || Math.hypot(there.x - e.point.x, there.y - e.point.y) > SLOP) this.place(at);
      return;
    }
    // A drag ends the shape where it is released; after a click the shape follows the pointer to a second click.
    const first = this.map.project([this.corners[0][0], this.corners[0][1]]);
    if (moved || Math.hypot(first.x - e.point.x, first.y - e.point.y) > SLOP) this.close(at);
  }

  private key(e: KeyboardEvent): void {
    if (!this.kind) return;
    if (e.key === 'Escape') {
      e.preventDefault();
      this.cancel();
    } else if (e.key === 'Enter') {
      e.preventDefault();
      if (!this.keyboard) {
        // The first Enter shows the cross, so that no corner is set where the user does not look.
        this.setKeyboard(true);
        this.follow(this.middle());
        return this.report();
      }
      const at = this.middle();
      const last = this.corners.at(-1);
      if (isOpen(this.kind)) return last && last[0] === at[0] && last[1] === at[1] ? this.finish() : this.place(at);
      if (this.corners.length) this.close(at);
      else this.place(at);
    } else if (e.key === 'Backspace' && isOpen(this.kind)) {
      e.preventDefault();
      this.corners.pop();
      this.show();
      this.report();
    }
  }

  private setKeyboard(on: boolean): void {
    this.keyboard = on;
    this.map.getContainer().classList.toggle('aiming', on);
  }

  private place(at: LngLat): void {
    if (this.corners.length >= CORNERS_MAX) return this.events.state(this.kind, `There may be at most ${CORNERS_MAX} corners.`, true);
    this.corners.push(at);
    this.pointer = at;
    this.show();
    this.report();
  }

  private follow(at: LngLat): void {
    this.pointer = at;
    if (this.corners.length) this.show();
  }

  private close(at: LngLat): void {
    const shape = this.shapeTo(at);
    const empty = !shape || (shape.kind === 'box' && (shape.west === shape.east || shape.south === shape.north)) || (shape.kind === 'circle' && shape.radius <= 0);
    if (shape && !empty) this.end(shape);
  }

  private shapeTo(at: LngLat): Shape | null {
    const [first] = this.corners;
    if (!first) return null;
    if (this.kind === 'box') return boxOf(first, at);
    if (this.kind === 'circle') return circleOf(first, at);
    const ring = [...this.corners, at];
    return ring.length > 2 ? { kind: 'polygon', ring } : null;
  }

  private show(): void {
    const path = isOpen(this.kind) && this.pointer && this.corners.length ? [...this.corners, this.pointer] : this.corners;
    if (isMeasure(this.kind)) return this.events.measured(path, this.kind === 'area', false);
    if (!this.corners.length) return this.events.preview(null, []);
    this.events.preview(this.shapeTo(this.pointer ?? this.corners[0]), path);
  }

  private report(): void {
    if (!this.kind) return this.events.state(null, '', false);
    const n = this.corners.length;
    const act = this.keyboard ? 'move the map, then Enter' : 'click';
    const min = cornersMin(this.kind);
    const corners = n < min ? `Set ${this.kind === 'distance' ? 'point' : 'corner'} ${n + 1}: ${act}.` : this.keyboard ? 'Set more, or finish with Enter at the same spot.' : 'Set more, or finish with a double click.';
    const hints: Record<DrawKind, string> = {
      box: n ? 'Release or click at the opposite corner.' : 'Press and drag from corner to corner. Keyboard: Enter.',
      circle: n ? 'Release or click at the rim.' : 'Press at the centre and drag outwards. Keyboard: Enter.',
      polygon: corners,
      distance: corners,
      area: corners,
    };
    const aimed = `Move the map with the arrow keys, then Enter to set ${n ? 'the next point' : 'the first point'}.`;
    this.events.state(this.kind, this.keyboard && !isOpen(this.kind) ? aimed : hints[this.kind], isOpen(this.kind) && n >= min);
  }
}
