// What drawings in the map's own WebGL context share.
import type { Map as MapLibre } from 'maplibre-gl';

/** A program of two shaders. Throws what the driver says if it cannot be made. */
export function program(gl: WebGL2RenderingContext, vertex: string, fragment: string): WebGLProgram {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]] as const) {
    const shader = gl.createShader(kind);
    if (!shader) throw new Error('the browser makes no shader');
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(`the map cannot be drawn: ${gl.getProgramInfoLog(made)}`);
  return made;
}

/** Blends colours that are multiplied by their opacity over what is there. */
export function blend(gl: WebGL2RenderingContext): void {
  gl.disable(gl.DEPTH_TEST);
  gl.disable(gl.STENCIL_TEST);
  gl.disable(gl.CULL_FACE);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
}

/** Red, green and blue of `#rrggbb`, 0 to 255. */
export const rgb = (hex: string): [number, number, number] => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as [number, number, number];

/** Size of the whole world in pixels of the screen. */
export const worldSize = (map: MapLibre): number => 512 * 2 ** map.getZoom();
