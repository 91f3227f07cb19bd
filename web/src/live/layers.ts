// Layers of moving objects: tracks, last positions, and arrows where they head.
import type { Map as MapLibre, LayerSpecification } from 'maplibre-gl';
import { DARK, LIGHT, type Palette } from '../palette';

export const LIVE_LAYER = 'live-point';

/** Name of the arrow in a palette's colour. */
const arrowOf = ({ point }: Palette): string => `arrow-${point}`;

/** An arrow that points north, as an image of one colour. */
function arrow(color: string, rim: string): ImageData {
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
  c.strokeStyle = rim;
  c.fillStyle = color;
  c.stroke();
  c.fill();
  return c.getImageData(0, 0, side, side);
}

/** Over the sources `livePoints` and `liveLines`. */
export const liveLayers = (p: Palette): LayerSpecification[] => [
  { id: 'live-track', type: 'line', source: 'liveLines', layout: { 'line-join': 'round', 'line-cap': 'round' }, paint: { 'line-color': p.point, 'line-width': 1.8, 'line-opacity': 0.55 } },
  {
    id: LIVE_LAYER,
    type: 'circle',
    source: 'livePoints',
    paint: {
      'circle-color': p.point,
      'circle-radius': ['case', ['has', 'heading'], 6, 4.5],
      // Under an arrow it only takes clicks.
      'circle-opacity': ['case', ['has', 'heading'], 0, 0.95],
      'circle-stroke-color': p.rim,
      'circle-stroke-width': ['case', ['has', 'heading'], 0, 1.2],
    },
  },
  {
    id: 'live-heading',
    type: 'symbol',
    source: 'livePoints',
    filter: ['has', 'heading'],
    layout: { 'icon-image': arrowOf(p), 'icon-rotate': ['get', 'heading'], 'icon-rotation-alignment': 'map', 'icon-allow-overlap': true, 'icon-ignore-placement': true, 'icon-size': ['interpolate', ['linear'], ['zoom'], 4, 0.32, 12, 0.55] },
  },
];

/** Gives the map the arrows of both palettes. */
export function addArrows(map: MapLibre): void {
  for (const palette of [LIGHT, DARK]) if (!map.hasImage(arrowOf(palette))) map.addImage(arrowOf(palette), arrow(palette.point, palette.rim));
}
