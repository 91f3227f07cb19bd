// The popup of an event: beside its place, and all of it on the map.
import { Popup, type Map as MapLibre } from 'maplibre-gl';
import type { LngLat } from './shapes';

/** Room that stays free between the popup and the edge of the map, in pixels. */
const EDGE = 8;
/** Height of the tip, and the room between it and the place. */
const TIP = 20;
const WIDTH_MAX = 380;
const HEIGHT_MAX = 460;

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** How far a box must move to be inside of another one, in pixels. Where it is larger, its left and its top are inside. */
export function wayInto(box: Box, room: Box): [x: number, y: number] {
  const way = (low: number, high: number, from: number, to: number): number => (low < from ? from - low : Math.max(from - low, Math.min(0, to - high)));
  return [way(box.left, box.right, room.left + EDGE, room.right - EDGE), way(box.top, box.bottom, room.top + EDGE, room.bottom - EDGE)];
}

export class EventPopup {
  private readonly popup = new Popup({ focusAfterOpen: false, closeButton: true, closeOnClick: false, offset: 10, padding: { top: EDGE, bottom: EDGE, left: EDGE, right: EDGE }, className: 'event-popup' });
  private closed: () => void = () => {};

  constructor(private readonly map: MapLibre) {}

  close(): void {
    this.popup.off('close', this.closed);
    this.popup.remove();
  }

  show(at: LngLat, content: HTMLElement, closed: () => void): void {
    this.close();
    this.closed = closed;
    const room = this.map.getContainer();
    this.popup.setMaxWidth(`${Math.min(WIDTH_MAX, room.clientWidth - 2 * EDGE)}px`);
    content.style.maxHeight = `${Math.min(HEIGHT_MAX, room.clientHeight - 2 * EDGE - TIP)}px`;
    this.popup.setLngLat([...at]).setDOMContent(content).addTo(this.map);
    this.popup.on('close', this.closed);
    // The caller may move the map to it first.
    queueMicrotask(() => this.settle(content, () => this.bring(content)));
  }

  /** Goes on once the map rests, if the popup still has this content. */
  private settle(content: HTMLElement, then: () => void): void {
    if (!content.isConnected) return;
    if (this.map.isMoving()) this.map.once('moveend', () => this.settle(content, then));
    else then();
  }

  private way(): [number, number] {
    return wayInto(this.popup.getElement().getBoundingClientRect(), this.map.getContainer().getBoundingClientRect());
  }

  /** Moves the map so that the popup is on it. At the edge of the world, where the map does not move, the popup becomes lower. */
  private bring(content: HTMLElement): void {
    const [x, y] = this.way();
    if (!x && !y) return;
    this.map.panBy([-x, -y], { duration: 250 });
    this.settle(content, () => {
      const rest = Math.abs(this.way()[1]);
      if (rest) content.style.maxHeight = `${content.clientHeight - rest}px`;
    });
  }
}
