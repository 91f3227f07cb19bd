// Layers of moving objects: tracks, last positions, and arrows where they head.
import type { Map as MapLibre, LayerSpecification } from 'maplibre-gl';
import { rimPaint } from '../eventstyle';
import { DARK, LIGHT, type Palette } from '../palette';

export const LIVE_LAYER = 'live-point';

/** Name of the arrow in a colour, and of its rim. */
const arrowOf = (color: string): string => `arrow-${color}`;
const rimOf = (color: string): string => `arrow-rim-${color}`;

/** An arrow that points north in one colour, or with `rim` what is a little larger. */
function arrow(color: string, rim: boolean): ImageData {
  const side = 44;
  const c = new OffscreenCanvas(side, side).getContext('2d');
  if (!c) throw new Error('the browser draws no images');
  c.translate(side / 2, side / 2);
  c.beginPath();
  c.moveTo(0, -18);
  c.lineTo(12, 15);
  c.lineTo(0, 8);
  c.lineTo(-12, 15);
  c.closePath();
  c.lineJoin = 'round';
  c.lineWidth = 5;
  c.strokeStyle = c.fillStyle = color;
  if (rim) c.stroke();
  c.fill();
  return c.getImageData(0, 0, side, side);
}

/** The rims of all are below the arrows of all: in a crowd a rim would cover its neighbour. */
const heading = (id: string, image: string): LayerSpecification => ({
  id,
  type: 'symbol',
  source: 'livePoints',
  filter: ['has', 'heading'],
  layout: { 'icon-image': image, 'icon-rotate': ['get', 'heading'], 'icon-rotation-alignment': 'map', 'icon-allow-overlap': true, 'icon-ignore-placement': true, 'icon-size': ['interpolate', ['linear'], ['zoom'], 2, 0.2, 5, 0.34, 12, 0.55] },
});

/** Over the sources `livePoints` and `liveLines`. */
export const liveLayers = (p: Palette): LayerSpecification[] => [
  { id: 'live-track', type: 'line', source: 'liveLines', layout: { 'line-join': 'round', 'line-cap': 'round' }, paint: { 'line-color': p.point, 'line-width': 1.8, 'line-opacity': 0.55 } },
  { id: 'live-rim', type: 'circle', source: 'livePoints', filter: ['!', ['has', 'heading']], paint: { 'circle-radius': 4.5, ...rimPaint(p, 1.2) } },
  {
    id: LIVE_LAYER,
    type: 'circle',
    source: 'livePoints',
    paint: {
      'circle-color': p.point,
      'circle-radius': ['case', ['has', 'heading'], 6, 4.5],
      // Under an arrow it only takes clicks.
      'circle-opacity': ['case', ['has', 'heading'], 0, 0.95],
    },
  },
  heading('live-heading-rim', rimOf(p.rim)),
  heading('live-heading', arrowOf(p.point)),
];

/** Gives the map the arrows of both palettes. */
export function addArrows(map: MapLibre): void {
  for (const { point, rim } of [LIGHT, DARK])
    for (const [name, image] of [[arrowOf(point), arrow(point, false)], [rimOf(rim), arrow(rim, true)]] as const) if (!map.hasImage(name)) map.addImage(name, image);
}
