// A base map from a PMTiles file: pictures as they are, vector tiles in the page's colours by the layer names of Protomaps and
// OpenMapTiles.
import { addProtocol, type LayerSpecification } from 'maplibre-gl';
import { PMTiles, Protocol, TileType } from 'pmtiles';
import type { BaseMap } from './basemap';
import { LIGHT, type Palette } from './palette';

const SOURCE = 'base-tiles';
/** Names of layers that a message lists. */
const NAMES_MAX = 8;

/** Layers of vector tiles that have these names. */
export function tileLayers(names: ReadonlySet<string>, p: Palette): LayerSpecification[] {
  const earth = names.has('earth');
  const layers: LayerSpecification[] = [{ id: 'base-ground', type: 'background', paint: { 'background-color': earth ? p.sea : p.land } }];
  const add = (id: string, name: string, layer: object): void => {
    if (names.has(name)) layers.push({ id: `base-${id}-${name}`, source: SOURCE, 'source-layer': name, ...layer } as LayerSpecification);
  };
  const polygon = ['==', ['geometry-type'], 'Polygon'];
  add('land', 'earth', { type: 'fill', filter: polygon, paint: { 'fill-color': p.land } });
  add('water', 'water', { type: 'fill', filter: polygon, paint: { 'fill-color': p.sea } });
  add('river', 'waterway', { type: 'line', paint: { 'line-color': p.sea, 'line-width': 1.2 } });
  for (const name of ['buildings', 'building']) add('houses', name, { type: 'fill', minzoom: 13, paint: { 'fill-color': p.border, 'fill-opacity': 0.5 } });
  for (const name of ['roads', 'transportation'])
    add('ways', name, { type: 'line', filter: ['==', ['geometry-type'], 'LineString'], layout: { 'line-cap': 'round', 'line-join': 'round' }, paint: { 'line-color': p.border, 'line-width': ['interpolate', ['exponential', 1.5], ['zoom'], 5, 0.4, 12, 1.2, 18, 9] } });
  for (const name of ['boundaries', 'boundary']) add('border', name, { type: 'line', paint: { 'line-color': p.coast, 'line-width': 0.9 } });
  for (const name of ['places', 'place'])
    add('name', name, {
      type: 'symbol',
      layout: { 'text-field': ['coalesce', ['get', 'name:en'], ['get', 'name']], 'text-font': ['Inter Variable'], 'text-size': ['interpolate', ['linear'], ['zoom'], 2, 10.5, 10, 14], 'text-max-width': 7, 'text-padding': 4 },
      paint: { 'text-color': p.country, 'text-halo-color': p.halo, 'text-halo-width': 1.3 },
    });
  return layers;
}

/** Refuses vector tiles of which nothing would be drawn besides the ground. */
export function checkNames(names: ReadonlySet<string>, url: string): void {
  if (tileLayers(names, LIGHT).length > 1) return;
  const found = [...names];
  const more = found.length > NAMES_MAX ? ` and ${found.length - NAMES_MAX} more` : '';
  throw new Error(`${url} has none of the layers of Protomaps or OpenMapTiles, such as earth, water or roads: found ${found.slice(0, NAMES_MAX).join(', ') || 'no names'}${more}`);
}

export async function ofTiles(url: string): Promise<BaseMap> {
  const archive = new PMTiles(url);
  const [header, metadata] = [await archive.getHeader(), (await archive.getMetadata()) as { vector_layers?: { id: string }[]; attribution?: string }];
  const names = header.tileType === TileType.Mvt ? new Set((metadata.vector_layers ?? []).map(({ id }) => id)) : null;
  if (names) checkNames(names, url);
  const protocol = new Protocol();
  protocol.add(archive);
  addProtocol('pmtiles', protocol.tile);
  const { attribution } = metadata;
  const source = { tiles: [`pmtiles://${url}/{z}/{x}/{y}`], minzoom: header.minZoom, maxzoom: header.maxZoom, ...(attribution ? { attribution } : {}) };
  if (names) return { sources: { [SOURCE]: { type: 'vector', ...source } }, layers: (p) => tileLayers(names, p) };
  return {
    sources: { [SOURCE]: { type: 'raster', tileSize: 256, ...source } },
    layers: (p) => [{ id: 'base-ground', type: 'background', paint: { 'background-color': p.sea } }, { id: 'base-pictures', type: 'raster', source: SOURCE }],
  };
}
