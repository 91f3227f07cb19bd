// A base map of the operator's own: a style, or a file of tiles (PMTiles) that this server serves. The page names its address.
import type { LayerSpecification, StyleSpecification } from 'maplibre-gl';
import type { Palette } from './palette';

export interface BaseMap {
  readonly sources: StyleSpecification['sources'];
  readonly layers: (palette: Palette) => LayerSpecification[];
  readonly sprite?: StyleSpecification['sprite'];
  readonly glyphs?: string;
}

/** The address of the operator's base map; empty for the one of the bundle. */
export const baseMapAddress = (): string => document.querySelector<HTMLMetaElement>('meta[name="meridian-base-map"]')?.content ?? '';

/** A style with its names set apart from the page's own. */
export function ofStyle(style: StyleSpecification): BaseMap {
  const named = (name: string): string => `base-${name}`;
  const layers = style.layers.map((layer) => ({ ...layer, id: named(layer.id), ...('source' in layer && layer.source ? { source: named(layer.source) } : {}) })) as LayerSpecification[];
  return {
    sources: Object.fromEntries(Object.entries(style.sources).map(([name, source]) => [named(name), source])),
    layers: () => layers,
    ...(style.sprite ? { sprite: style.sprite } : {}),
    ...(style.glyphs ? { glyphs: style.glyphs } : {}),
  };
}

/** Loads a base map. Throws what is wrong with it. */
export async function loadBaseMap(address: string): Promise<BaseMap> {
  const url = new URL(address, location.href).href;
  if (url.endsWith('.pmtiles')) return (await import('./basetiles')).ofTiles(url);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  const style = (await response.json()) as StyleSpecification;
  if (style.version !== 8 || !Array.isArray(style.layers)) throw new Error(`${url} is not a style of MapLibre, version 8`);
  return ofStyle(style);
}
