// Draws a surface into the map, coloured by the graphics card. A pixel has three numbers: place on the ramp, opacity, and share
// of events that the ramp is for.
//
// The map never turns or tilts, so the surface is a rectangle whose corners the map projects. Its matrix has too few digits for
// close zooms.
import type { CustomLayerInterface, Map as MapLibre } from 'maplibre-gl';
import { blend, program, rgb } from '../gl';
import { latOf, lngOf } from './cover';
import type { Surface } from './density';
import { FAINT, onRamp, onValueRamp, SOLID, type SurfaceScale } from './scale';

const VERTEX = `#version 300 es
uniform vec4 box; // left, top, right, bottom in clip space
out vec2 at;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  at = corner;
  gl_Position = vec4(mix(box.xy, box.zw, corner), 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D surface;
uniform sampler2D ramp;
uniform float opacity;
uniform vec3 none;
in vec2 at;
out vec4 color;
void main() {
  vec3 here = texture(surface, at).rgb;
  float alpha = here.g * opacity;
  color = vec4(mix(none, texture(ramp, vec2(here.r, 0.5)).rgb, here.b) * alpha, alpha);
}`;

/** Colours between the five of a ramp. */
const STEPS = 256;
/** Opacity of the surface where it is solid. The coast below stays visible. */
const OPACITY = 0.85;

/** The colours of a ramp as a row of pixels. */
export function rampPixels(ramp: readonly string[]): Uint8Array {
  const colors = ramp.map(rgb);
  const out = new Uint8Array(STEPS * 4);
  for (let i = 0; i < STEPS; i++) {
    const at = (i / (STEPS - 1)) * (colors.length - 1);
    const low = Math.min(Math.max(0, colors.length - 2), Math.floor(at));
    const high = Math.min(colors.length - 1, low + 1);
    for (let c = 0; c < 3; c++) out[4 * i + c] = Math.round(colors[low][c] + (colors[high][c] - colors[low][c]) * (at - low));
    out[4 * i + 3] = 255;
  }
  return out;
}

/** Place on the ramp, opacity, and share of events that the ramp is for, of each pixel as bytes. */
export function surfacePixels({ values, averages }: Surface, scale: SurfaceScale): Uint8Array {
  const out = new Uint8Array(values.length * 3);
  for (let i = 0; i < values.length; i++) {
    if (values[i] <= FAINT) continue;
    const rise = Math.min(1, (values[i] - FAINT) / (SOLID - FAINT));
    const [place, share] = scale.kind === 'counts' ? [onRamp(scale.stops, values[i]), 1] : averages?.shares[i] ? [onValueRamp(scale.stops, averages.values[i]), averages.shares[i]] : [0, 0];
    out[3 * i] = Math.round(255 * place);
    out[3 * i + 1] = Math.round(255 * rise * rise * (3 - 2 * rise));
    out[3 * i + 2] = Math.round(255 * share);
  }
  return out;
}

export class SurfaceLayer implements CustomLayerInterface {
  readonly type = 'custom';
  private map: MapLibre | null = null;
  private gl: WebGL2RenderingContext | null = null;
  private made: WebGLProgram | null = null;
  private textures: [surface: WebGLTexture, ramp: WebGLTexture] | null = null;
  private shown: Surface | null = null;
  /** What to give to the graphics card before the next frame. */
  private fresh: { pixels?: Uint8Array; ramp?: Uint8Array } = {};
  private opacity = 1;
  private none: readonly number[] = [0, 0, 0];

  constructor(readonly id: string) {}

  /** Shows a surface; null for none. */
  show(surface: Surface | null, scale: SurfaceScale | null): void {
    this.shown = scale && surface;
    if (this.shown && scale) this.fresh.pixels = surfacePixels(this.shown, scale);
    this.map?.triggerRepaint();
  }

  /** The colours of the scale, and that of events without a value. */
  setColors(ramp: readonly string[], none: string): void {
    this.fresh.ramp = rampPixels(ramp);
    this.none = rgb(none).map((channel) => channel / 255);
    this.map?.triggerRepaint();
  }

  /** 0 to 1. */
  setOpacity(opacity: number): void {
    if (opacity === this.opacity) return;
    this.opacity = opacity;
    this.map?.triggerRepaint();
  }

  onAdd(map: MapLibre, gl: WebGL2RenderingContext): void {
    this.map = map;
    this.gl = gl;
    this.made = program(gl, VERTEX, FRAGMENT);
    this.textures = [gl.createTexture(), gl.createTexture()];
  }

  onRemove(): void {
    if (this.gl) {
      this.gl.deleteProgram(this.made);
      for (const texture of this.textures ?? []) this.gl.deleteTexture(texture);
    }
    this.map = this.gl = this.made = this.textures = null;
  }

  private upload(gl: WebGL2RenderingContext): void {
    const [surface, ramp] = this.textures ?? [];
    const fill = (texture: WebGLTexture | undefined, inside: number, width: number, height: number, format: number, pixels: Uint8Array): void => {
      gl.bindTexture(gl.TEXTURE_2D, texture ?? null);
      gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
      gl.pixelStorei(gl.UNPACK_FLIP_Y_WEBGL, false);
      gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, false);
      gl.texImage2D(gl.TEXTURE_2D, 0, inside, width, height, 0, format, gl.UNSIGNED_BYTE, pixels);
      gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
      for (const axis of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, axis, gl.CLAMP_TO_EDGE);
      for (const size of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, size, gl.LINEAR);
    };
    if (this.fresh.pixels && this.shown) fill(surface, gl.RGB8, this.shown.width, this.shown.height, gl.RGB, this.fresh.pixels);
    if (this.fresh.ramp) fill(ramp, gl.RGBA8, STEPS, 1, gl.RGBA, this.fresh.ramp);
    this.fresh = {};
  }

  render(gl: WebGL2RenderingContext): void {
    const { map, made, textures, shown } = this;
    if (!map || !made || !textures || !shown || this.opacity <= 0) return;
    this.upload(gl);
    const side = 2 ** shown.cover.z;
    const { west, east, north, south } = shown.cover;
    // The copy of the world that is in view.
    const middle = lngOf((west + east + 1) / 2 / side);
    const turns = Math.round((map.getCenter().lng - middle) / 360) * 360;
    const { clientWidth, clientHeight } = map.getCanvas();
    const clip = (column: number, row: number): [number, number] => {
      const { x, y } = map.project([lngOf(column / side) + turns, latOf(row / side)]);
      return [(2 * x) / clientWidth - 1, 1 - (2 * y) / clientHeight];
    };
    gl.useProgram(made);
    gl.bindVertexArray(null);
    gl.uniform4f(gl.getUniformLocation(made, 'box'), ...clip(west, north), ...clip(east + 1, south + 1));
    gl.uniform1f(gl.getUniformLocation(made, 'opacity'), this.opacity * OPACITY);
    gl.uniform3fv(gl.getUniformLocation(made, 'none'), this.none);
    textures.forEach((texture, unit) => {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.uniform1i(gl.getUniformLocation(made, unit ? 'ramp' : 'surface'), unit);
    });
    blend(gl);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }
}
