// The look of a file that was dropped on the map.
import type { FeatureCollection } from 'geojson';
import type { ExpressionSpecification, LayerSpecification } from 'maplibre-gl';
import { rimPaint } from '../eventstyle';
import { layerPalette, type Palette } from '../palette';

export interface FileLayer {
  /** Names its source and its layers. */
  readonly id: string;
  readonly data: FeatureCollection;
  /** A number of `Palette.categories`, from 1. */
  readonly color: number;
  /** 0.1 to 1. */
  readonly opacity: number;
  readonly hidden: boolean;
}

/** Clickable layers of a file, uppermost first. */
export const fileLayerIds = (id: string): string[] => ['point', 'line', 'fill'].map((kind) => `${id}-${kind}`);

const only = (...types: string[]): ExpressionSpecification => ['in', ['geometry-type'], ['literal', types]];

const RADIUS: ExpressionSpecification = ['interpolate', ['linear'], ['zoom'], 1, 3, 6, 4.5, 12, 7];

/** `@at` of a feature is its number in the file, see `readFile`. */
export function fileLayers(palette: Palette, { id, color, opacity, hidden }: FileLayer): LayerSpecification[] {
  const own = layerPalette(palette, color);
  const { point } = own;
  const layout = { visibility: hidden ? 'none' : 'visible' } as const;
  return [
    { id: `${id}-fill`, type: 'fill', source: id, layout, filter: only('Polygon', 'MultiPolygon'), paint: { 'fill-color': point, 'fill-opacity': 0.28 * opacity } },
    { id: `${id}-line`, type: 'line', source: id, layout: { ...layout, 'line-join': 'round', 'line-cap': 'round' }, filter: ['!', only('Point', 'MultiPoint')], paint: { 'line-color': point, 'line-width': 1.6, 'line-opacity': 0.8 * opacity } },
    // The rims of all are below the points of all, see `eventLayers`.
    { id: `${id}-rim`, type: 'circle', source: id, layout, filter: only('Point', 'MultiPoint'), paint: { 'circle-radius': RADIUS, 'circle-stroke-opacity': opacity, ...rimPaint(own, 1) } },
    { id: `${id}-point`, type: 'circle', source: id, layout, filter: only('Point', 'MultiPoint'), paint: { 'circle-color': point, 'circle-radius': RADIUS, 'circle-opacity': 0.85 * opacity } },
  ];
}
