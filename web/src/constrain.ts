// How far the map may be zoomed out and moved.
//
// By itself the map never shows less than its height of the world. So a narrow and tall one, as on a phone, could not show all of the
// world from west to east. Here the width alone counts; north and south of the world there is sea.
import type { LngLat as MapPlace } from 'maplibre-gl';
import { latOf, mercatorY } from './surface/cover';

/** Width of the world at zoom 0, in pixels. */
const WORLD = 512;
/** Min zoom of a map that is wide enough. */
const ZOOM_MIN = 0.6;
const ZOOM_MAX = 18;

/** The zoom at which all of the world is as wide as the map. */
export const minZoomOf = (width: number): number => Math.max(-2, Math.min(ZOOM_MIN, Math.log2(Math.max(1, width) / WORLD)));

/**
 * The latitude nearest to `lat` on which a map of this height and zoom may be centred. At the map's edges is the world, or all of
 * it is inside.
 */
export function constrainedLat(lat: number, zoom: number, height: number): number {
  const world = WORLD * 2 ** zoom;
  const edge = height / 2;
  const y = edge * 2 > world ? world / 2 : Math.max(edge, Math.min(world - edge, mercatorY(lat) * world));
  return latOf(y / world);
}

/** For the map's option `transformConstrain`. */
export function constrainIn(container: HTMLElement): (center: MapPlace, zoom: number) => { center: MapPlace; zoom: number } {
  return (center, zoom) => {
    const kept = Math.max(minZoomOf(container.clientWidth), Math.min(ZOOM_MAX, zoom));
    // A copy, without the class itself: this module is read without a browser too.
    const moved = center.wrap();
    [moved.lng, moved.lat] = [center.lng, constrainedLat(center.lat, kept, container.clientHeight)];
    return { center: moved, zoom: kept };
  };
}
