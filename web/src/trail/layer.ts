// Draws events of a moving window of time: new ones full, older ones fading, until they leave it.
import type { CustomLayerInterface, Map as MapLibre } from 'maplibre-gl';
import { blend, program, rgb, worldSize } from '../gl';
import { isValues, rampOf, type ColorScale } from '../eventstyle';
import type { Palette } from '../palette';
import { mercatorX, mercatorY } from '../surface/cover';
import type { Range } from '../time';
import type { TrailEvents } from './events';

const VERTEX = `#version 300 es
layout(location = 0) in vec3 place; // x, y, time
layout(location = 1) in vec3 tint;
uniform vec2 middle;  // of the view, relative to the origin
uniform vec2 scale;   // from Mercator to clip space
uniform vec2 range;   // of time
uniform float size;
out vec4 color;
void main() {
  float age = (place.z - range.x) / (range.y - range.x); // 1 is new
  bool inside = age > 0.0 && age <= 1.0;
  gl_Position = inside ? vec4((place.xy - middle) * scale, 0.0, 1.0) : vec4(2.0, 2.0, 0.0, 1.0);
  // A new event arrives large.
  float fresh = smoothstep(0.94, 1.0, age);
  gl_PointSize = size * (0.62 + 0.38 * age + 0.7 * fresh);
  color = vec4(tint, 0.12 + 0.88 * age * age);
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
uniform vec3 rim;
in vec4 color;
out vec4 shown;
void main() {
  float r = length(gl_PointCoord - 0.5) * 2.0;
  float disc = 1.0 - smoothstep(0.88, 1.0, r);
  float edge = smoothstep(0.66, 0.78, r);
  float alpha = disc * color.a;
  shown = vec4(mix(color.rgb, rim, edge) * alpha, alpha);
}`;

/** Diameter of an event at full size, in pixels, at two zooms. */
const sizeAt = (zoom: number): number => 7 + 6 * Math.max(0, Math.min(1, (zoom - 1) / 10));

/** The colour of a value between the stops of a scale; of a text, the value is its number in the scale, or -1. */
function tintOf(value: number, scale: ColorScale | null, palette: Palette): [number, number, number] {
  if (!scale) return rgb(palette.point);
  if (Number.isNaN(value)) return rgb(palette.none);
  if (isValues(scale)) return rgb(value < 0 ? palette.other : palette.categories[value % palette.categories.length]);
  const colors = rampOf(palette.values, scale.stops.length).map(rgb);
  const { stops } = scale;
  const above = stops.findIndex((stop) => value <= stop);
  if (above <= 0) return colors[above === 0 ? 0 : colors.length - 1];
  const t = (value - stops[above - 1]) / (stops[above] - stops[above - 1]);
  return colors[above].map((v, i) => colors[above - 1][i] + (v - colors[above - 1][i]) * t) as [number, number, number];
}

export class TrailLayer implements CustomLayerInterface {
  readonly id = 'event-trail';
  readonly type = 'custom';
  private map: MapLibre | null = null;
  private gl: WebGL2RenderingContext | null = null;
  private made: WebGLProgram | null = null;
  private buffers: [places: WebGLBuffer, tints: WebGLBuffer] | null = null;
  private array: WebGLVertexArrayObject | null = null;
  private events: TrailEvents | null = null;
  private tints: Uint8Array | null = null;
  private stale = false;
  private rim: [number, number, number] = [255, 255, 255];
  private when: Range = [0, 0];

  /** Shows events; null for none. */
  show(events: TrailEvents | null, scale: ColorScale | null, palette: Palette): void {
    this.events = events;
    this.rim = rgb(palette.rim);
    this.tints = events && Uint8Array.from({ length: events.count * 3 });
    if (events) for (let i = 0; i < events.count; i++) this.tints?.set(tintOf(events.values[i], scale, palette), 3 * i);
    this.stale = true;
    this.map?.triggerRepaint();
  }

  /** Moves the window of time. */
  move(when: Range): void {
    this.when = when;
    if (this.events) this.map?.triggerRepaint();
  }

  values(): Float32Array {
    return this.events?.values ?? new Float32Array();
  }

  /** Events in the window as it is. */
  visible(): number {
    if (!this.events) return 0;
    const [from, to] = this.share(this.events.span);
    let found = 0;
    for (let i = 0; i < this.events.count; i++) if (this.events.places[3 * i + 2] > from && this.events.places[3 * i + 2] <= to) found++;
    return found;
  }

  private share([from, to]: Range): [number, number] {
    return [(this.when[0] - from) / (to - from), (this.when[1] - from) / (to - from)];
  }

  onAdd(map: MapLibre, gl: WebGL2RenderingContext): void {
    this.map = map;
    this.gl = gl;
    this.made = program(gl, VERTEX, FRAGMENT);
    this.buffers = [gl.createBuffer(), gl.createBuffer()];
    this.array = gl.createVertexArray();
    this.stale = true;
  }

  onRemove(): void {
    if (this.gl) {
      this.gl.deleteProgram(this.made);
      for (const buffer of this.buffers ?? []) this.gl.deleteBuffer(buffer);
      this.gl.deleteVertexArray(this.array);
    }
    this.map = this.gl = this.made = this.buffers = this.array = null;
  }

  private upload(gl: WebGL2RenderingContext, events: TrailEvents): void {
    if (!this.stale || !this.buffers || !this.tints) return;
    const fill = (buffer: WebGLBuffer, at: number, data: Float32Array | Uint8Array, kind: number): void => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, 3, kind, kind === gl.UNSIGNED_BYTE, 0, 0);
    };
    fill(this.buffers[0], 0, events.places, gl.FLOAT);
    fill(this.buffers[1], 1, this.tints, gl.UNSIGNED_BYTE);
    this.stale = false;
  }

  render(gl: WebGL2RenderingContext): void {
    const { map, made, events } = this;
    if (!map || !made || !events?.count) return;
    gl.useProgram(made);
    gl.bindVertexArray(this.array);
    this.upload(gl, events);
    const uniform = (name: string): WebGLUniformLocation | null => gl.getUniformLocation(made, name);
    const { lng, lat } = map.getCenter();
    const [width, height] = [map.getCanvas().clientWidth, map.getCanvas().clientHeight];
    const world = worldSize(map);
    const across = mercatorX(lng) - events.origin[0];
    gl.uniform2f(uniform('scale'), (2 * world) / width, (-2 * world) / height);
    gl.uniform2f(uniform('range'), ...this.share(events.span));
    gl.uniform1f(uniform('size'), sizeAt(map.getZoom()) * devicePixelRatio);
    gl.uniform3f(uniform('rim'), ...(this.rim.map((v) => v / 255) as [number, number, number]));
    blend(gl);
    // Other copies of the world, where they are in view.
    const reach = Math.ceil((width / world - 1) / 2 + 0.5);
    for (let copy = -reach; copy <= reach; copy++) {
      gl.uniform2f(uniform('middle'), across - Math.round(across) + copy, mercatorY(lat) - events.origin[1]);
      gl.drawArrays(gl.POINTS, 0, events.count);
    }
    gl.bindVertexArray(null);
  }
}
