// A base map of the operator's own: a style, or a file of tiles (PMTiles) that this server serves. The page names its address.
import type { IControl, LayerSpecification, Map as MapLibre, StyleSpecification } from 'maplibre-gl';
import { make } from './dom';
import type { Palette } from './palette';

export interface BaseMap {
  readonly sources: StyleSpecification['sources'];
  readonly layers: (palette: Palette) => LayerSpecification[];
  readonly sprite?: StyleSpecification['sprite'];
  readonly glyphs?: string;
}

/** The address of the operator's base map; empty for the one of the bundle. */
export const baseMapAddress = (): string => document.querySelector<HTMLMetaElement>('meta[name="meridian-base-map"]')?.content ?? '';

/** The zoom from which the built-in map is off by more than a pixel or two: its coasts fade from here on. */
export const ROUGH_ZOOM = 7;

/** Says where the built-in map is too rough, and how to have a finer one. */
export function roughNote(): IControl {
  const note = make('p', 'maplibregl-ctrl base-note', 'The built-in map is only rough here; a finer one: ', { title: 'The operator of this server sets it, see “A base map of your own” in docs/map.md' });
  note.append(make('code', '', 'server.base_map'));
  let show = (): void => {};
  return {
    onAdd(map: MapLibre) {
      show = () => (note.hidden = map.getZoom() < ROUGH_ZOOM);
      map.on('zoom', show);
      show();
      return note;
    },
    onRemove(map: MapLibre) {
      map.off('zoom', show);
      note.remove();
    },
  };
}

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
