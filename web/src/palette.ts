// The colours of the map, light and dark. Each ramp goes one way in lightness, so that it reads without its hues.

export type Ramp = readonly [string, string, string, string, string];

export interface Palette {
  readonly sea: string;
  readonly land: string;
  readonly coast: string;
  readonly border: string;
  readonly country: string;
  readonly city: string;
  readonly halo: string;
  /** From few events to many. */
  readonly counts: Ramp;
  /** From the min of a field to its max. Cold, as counts are warm: the two never look like each other. */
  readonly values: Ramp;
  readonly point: string;
  /** Values of a text, and layers beside each other: told apart by hue and lightness. None is warm, as counts are. */
  readonly categories: readonly string[];
  /** Values of a text that have no colour of their own. */
  readonly other: string;
  /** Events without a value of the field that colours the others. */
  readonly none: string;
  readonly rim: string;
  readonly shape: string;
  readonly veil: string;
  readonly veilOpacity: number;
}

export const LIGHT: Palette = {
  sea: '#dbe4ea',
  land: '#f7f6f2',
  coast: '#b4c2cc',
  border: '#cfcdc6',
  country: '#4b5560',
  city: '#545d67',
  halo: '#f7f6f2',
  counts: ['#fbc07a', '#f38b43', '#d94f33', '#a0243d', '#560f33'],
  values: ['#6fcfbb', '#44adc2', '#2f88c6', '#3063bb', '#34429d'],
  point: '#dd5a3c',
  categories: ['#0072b2', '#8a30f1', '#009e73', '#b8578f', '#8c9400', '#3fa0d8', '#332288', '#14504a'],
  other: '#6b7480',
  none: '#8b939d',
  rim: '#ffffff',
  shape: '#2f54c8',
  veil: '#33475b',
  veilOpacity: 0.07,
};

export const DARK: Palette = {
  sea: '#0e151c',
  land: '#1b242d',
  coast: '#33424f',
  border: '#33404b',
  country: '#b3bfca',
  city: '#98a5b2',
  halo: '#141c24',
  counts: ['#62214f', '#a63050', '#de5d3f', '#f5a24d', '#fde3a0'],
  values: ['#4456b5', '#3483cb', '#38b0cb', '#79d8d0', '#d2f8ee'],
  point: '#f08a52',
  categories: ['#4aa8e0', '#7c5ffa', '#2fc79b', '#e6a0c4', '#b9cc2f', '#9bd8f7', '#b9b3ff', '#2f8a78'],
  other: '#a4b0bc',
  none: '#75828f',
  rim: '#12181f',
  shape: '#86a5ff',
  veil: '#000000',
  veilOpacity: 0.38,
};

const channels = (hex: string): number[] => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** A colour between two, `share` of the way to the second. */
export function mix(from: string, to: string, share: number): string {
  const [a, b] = [channels(from), channels(to)];
  return `#${a.map((v, i) => Math.round(v + (b[i] - v) * share).toString(16).padStart(2, '0')).join('')}`;
}

/** The palette of a layer with its own colour: a number of `categories`, from 1; 0 is the palette as it is. */
export function layerPalette(palette: Palette, color: number): Palette {
  const point = palette.categories[color - 1];
  if (!point) return palette;
  // Few events are near the land's colour, many are far from it.
  const far = palette === DARK ? '#ffffff' : '#000000';
  const counts: Ramp = [mix(point, palette.land, 0.62), mix(point, palette.land, 0.34), point, mix(point, far, 0.32), mix(point, far, 0.6)];
  return { ...palette, point, counts };
}
