// The map as a picture, with its legend, its question and its sources.
import type { App } from './app';
import { $ } from './dom';
import type { LegendPart } from './legend';
import type { MapView } from './mapview';
import { saveBlob } from './saving';

const FONT = '"Inter Variable", system-ui, sans-serif';
const PAD = 10;
const WIDTH = 196;

/** The pixels of the map, which are there only while it draws. */
function pixels({ map }: MapView): Promise<HTMLCanvasElement> {
  return new Promise((resolve) => {
    map.once('render', () => {
      const source = map.getCanvas();
      const copy = document.createElement('canvas');
      [copy.width, copy.height] = [source.width, source.height];
      copy.getContext('2d')?.drawImage(source, 0, 0);
      resolve(copy);
    });
    map.triggerRepaint();
  });
}

const heightOf = (part: LegendPart): number => 20 + (part.ramp ? 28 : 0) + (part.circles ? Math.max(...part.circles.map(({ diameter }) => diameter)) + 18 : 0) + part.rows.length * 16 + 8;

/** Draws a part of the legend with its upper left corner at a place. */
function drawPart(c: CanvasRenderingContext2D, part: LegendPart, x: number, top: number, text: string, muted: string): void {
  let y = top + 12;
  let indent = 0;
  c.textAlign = 'left';
  const dot = (color: string, mark?: 'arrow' | 'line'): void => {
    c.fillStyle = color;
    c.beginPath();
    if (mark === 'line') c.rect(x + 0.5, y - 5, 9, 2);
    else if (mark === 'arrow') for (const [dx, dy] of [[5, -10], [9.5, 2], [5, -0.5], [0.5, 2]]) c.lineTo(x + dx, y + dy);
    else c.arc(x + 5, y - 4, 4.5, 0, 7);
    // As faint as a track is, see `liveLayers`.
    c.globalAlpha = mark === 'line' ? 0.55 : 1;
    c.fill();
    c.globalAlpha = 1;
  };
  if (part.color) {
    dot(part.color);
    indent = 15;
  }
  c.fillStyle = text;
  c.font = `550 11px ${FONT}`;
  c.fillText(part.title, x + indent, y, WIDTH - 2 * PAD - indent);
  c.font = `11px ${FONT}`;
  c.strokeStyle = muted;
  if (part.circle) {
    c.beginPath();
    c.arc(x + WIDTH - 2 * PAD - part.circle / 2, y - 4, part.circle / 2, 0, 7);
    c.stroke();
  }
  y += 8;
  if (part.ramp) {
    const { colors, labels, opacity = 1 } = part.ramp;
    const wide = WIDTH - 2 * PAD;
    const ramp = c.createLinearGradient(x, 0, x + wide, 0);
    colors.forEach((color, i) => ramp.addColorStop(colors.length > 1 ? i / (colors.length - 1) : 0, color));
    c.fillStyle = ramp;
    c.globalAlpha = opacity;
    c.fillRect(x, y, wide, 8);
    c.globalAlpha = 1;
    c.fillStyle = muted;
    labels.forEach((label, i) => {
      c.textAlign = i === 0 ? 'left' : i === labels.length - 1 ? 'right' : 'center';
      c.fillText(label, x + (labels.length > 1 ? (wide * i) / (labels.length - 1) : 0), y + 20);
    });
    c.textAlign = 'left';
    y += 28;
  }
  if (part.circles) {
    const tall = Math.max(...part.circles.map(({ diameter }) => diameter));
    part.circles.forEach(({ diameter, text: label }, i) => {
      const middle = x + ((i + 0.5) * (WIDTH - 2 * PAD)) / (part.circles?.length ?? 1);
      c.beginPath();
      c.arc(middle, y + tall / 2, diameter / 2, 0, 7);
      c.stroke();
      c.fillStyle = muted;
      c.textAlign = 'center';
      c.fillText(label, middle, y + tall + 12);
    });
    c.textAlign = 'left';
    y += tall + 18;
  }
  for (const { color, mark, text: label, count } of part.rows) {
    y += 12;
    if (color) dot(color, mark);
    c.fillStyle = muted;
    c.fillText(label, x + (color ? 15 : 0), y, WIDTH - 2 * PAD - (color ? 15 : 0) - (count ? 45 : 0));
    if (count) {
      c.textAlign = 'right';
      c.fillText(count, x + WIDTH - 2 * PAD, y);
      c.textAlign = 'left';
    }
    y += 4;
  }
}

/** The picture as a PNG file. */
export async function picture(map: MapView, legend: readonly LegendPart[], title: string): Promise<Blob> {
  const canvas = await pixels(map);
  const c = canvas.getContext('2d');
  if (!c) throw new Error('the browser draws no pictures');
  const ratio = canvas.width / map.map.getCanvas().clientWidth;
  c.scale(ratio, ratio);
  const [width, height] = [canvas.width / ratio, canvas.height / ratio];
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const box = (x: number, y: number, wide: number, high: number): void => {
    c.globalAlpha = 0.92;
    c.fillStyle = color('--raised');
    c.beginPath();
    c.roundRect(x, y, wide, high, 7);
    c.fill();
    c.globalAlpha = 1;
  };
  if (legend.length) {
    const tall = legend.reduce((sum, part) => sum + heightOf(part), 2 * PAD - 8);
    let y = Math.max(PAD, height - tall - 32);
    box(width - WIDTH - PAD, y, WIDTH, tall);
    y += PAD;
    for (const part of legend) {
      drawPart(c, part, width - WIDTH, y, color('--text'), color('--muted'));
      y += heightOf(part);
    }
  }
  const line = (text: string, x: number, y: number, font: string, tint: string, right: boolean): void => {
    c.font = font;
    const wide = Math.min(c.measureText(text).width, width - 40);
    box(right ? x - wide - 8 : x, y - 15, wide + 16, 21);
    c.fillStyle = tint;
    c.textAlign = 'left';
    c.fillText(text, right ? x - wide : x + 8, y, wide);
  };
  line(title, PAD, 28, `550 13px ${FONT}`, color('--text'), false);
  const sources = [...document.querySelectorAll('.maplibregl-ctrl-attrib-inner')].map((one) => one.textContent).join(' ');
  line(sources.trim() || 'Meridian', width - PAD - 8, height - 10, `11px ${FONT}`, color('--muted'), true);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the browser makes no PNG'))), 'image/png'));
}

/** Saves the picture of the map as it is. */
export async function savePicture(app: App, legend: readonly LegendPart[]): Promise<void> {
  const [map, open] = [app.map(), app.open()];
  if (!map || !open) return;
  const about = [open.collection.title, `${$('count').textContent} ${$('count-word').textContent}`, $('when').textContent, app.view().filter].filter(Boolean).join(' · ');
  const blob = await picture(map, legend, about);
  saveBlob(blob, `${open.collection.id}.png`);
}
