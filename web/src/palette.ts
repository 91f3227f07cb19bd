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
  none: '#75828f',
  rim: '#12181f',
  shape: '#86a5ff',
  veil: '#000000',
  veilOpacity: 0.38,
};
