// Draws the histogram: bars of counts, the line of a measure, both axes and the time.
import { countMarks, valueMarks } from './axis';
import { pieces, toX, valueExtent, type Bar, type Frame } from './bars';
import { formatMark, formatShort } from './numbers';
import { ticks, type Range } from './time';

export interface HistogramData {
  readonly bars: readonly Bar[];
  /** The time range shown. */
  readonly span: Range;
  /** Length of a window in milliseconds. */
  readonly unit: number;
  /** Name of the line, such as `avg mag`; empty for none. */
  readonly line: string;
}

/** Plot area inside the canvas, in CSS pixels. */
export const PAD = { left: 42, right: 46, top: 8, bottom: 20 };

interface Pen {
  readonly c: CanvasRenderingContext2D;
  readonly color: (name: string) => string;
  readonly frame: Frame;
  /** The y of zero, and the height above it. */
  readonly floor: number;
  readonly tall: number;
}

function drawCounts({ c, color, frame, floor, tall }: Pen, { bars, span, unit }: HistogramData, brush: Range | null, hover: number | null): void {
  const marks = countMarks(bars.reduce((most, bar) => Math.max(most, bar.count), 0));
  const top = marks[marks.length - 1];
  c.strokeStyle = color('--line');
  c.fillStyle = color('--muted');
  c.lineWidth = 1;
  c.textAlign = 'right';
  for (const mark of marks) {
    const y = Math.round(floor - (mark / top) * tall) + 0.5;
    c.beginPath();
    c.moveTo(frame.left, y);
    c.lineTo(frame.right, y);
    c.stroke();
    c.fillText(formatShort(mark), frame.left - 6, y);
  }
  const [from, to] = brush ?? span;
  const gap = toX(frame, span[0] + unit) - frame.left > 4 ? 1 : 0;
  for (const bar of bars) {
    const left = Math.max(frame.left, toX(frame, bar.from));
    const right = Math.min(frame.right, toX(frame, bar.to));
    if (right <= frame.left || left >= frame.right || !bar.count) continue;
    const tallness = Math.max(1, (bar.count / top) * tall);
    const inside = bar.to > from && bar.from < to;
    const hovered = hover !== null && hover >= bar.from && hover < bar.to;
    c.fillStyle = color(inside ? (hovered ? '--bar-hover' : '--bar') : '--bar-out');
    c.fillRect(left, floor - tallness, Math.max(1, right - left - gap), tallness);
  }
}

function drawLine({ c, color, frame, floor, tall }: Pen, { bars, unit }: HistogramData): void {
  const extent = valueExtent(bars);
  if (!extent) return;
  const marks = valueMarks(...extent);
  const [low, high] = [marks[0], marks[marks.length - 1]];
  const y = (value: number): number => floor - ((value - low) / (high - low)) * tall;
  c.strokeStyle = c.fillStyle = color('--accent');
  c.lineWidth = 1.6;
  c.lineJoin = 'round';
  c.save();
  c.beginPath();
  c.rect(frame.left, 0, frame.right - frame.left, floor + 2);
  c.clip();
  for (const piece of pieces(bars, unit)) {
    c.beginPath();
    piece.forEach((bar, i) => {
      const [x, at] = [toX(frame, (bar.from + bar.to) / 2), y(bar.value ?? 0)];
      if (piece.length === 1) c.arc(x, at, 2, 0, 2 * Math.PI);
      else if (i) c.lineTo(x, at);
      else c.moveTo(x, at);
    });
    if (piece.length === 1) c.fill();
    else c.stroke();
  }
  c.restore();
  c.textAlign = 'left';
  for (const mark of marks) c.fillText(formatMark(mark), frame.right + 6, Math.max(PAD.top, Math.min(floor - 5, y(mark))));
}

function drawTime({ c, color, frame, floor }: Pen, span: Range, width: number, height: number): void {
  c.strokeStyle = color('--axis');
  c.beginPath();
  c.moveTo(frame.left, floor + 0.5);
  c.lineTo(frame.right, floor + 0.5);
  c.stroke();
  c.textBaseline = 'alphabetic';
  c.textAlign = 'center';
  let free = -Infinity;
  for (const tick of ticks(span, Math.max(2, Math.floor((frame.right - frame.left) / 74)))) {
    const x = Math.round(toX(frame, tick.ms)) + 0.5;
    c.beginPath();
    c.moveTo(x, floor);
    c.lineTo(x, floor + 4);
    c.stroke();
    const half = c.measureText(tick.label).width / 2;
    if (x - half < free + 8 || x + half > width) continue;
    free = x + half;
    c.fillStyle = color(tick.major ? '--text' : '--muted');
    c.fillText(tick.label, x, height - 5);
  }
}

/** Draws into a canvas that fills `root`; answers the frame of the plot, or null where there is nothing to draw. */
export function drawHistogram(canvas: HTMLCanvasElement, root: HTMLElement, data: HistogramData | null, brush: Range | null, hover: number | null): Frame | null {
  const { clientWidth: width, clientHeight: height } = root;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const c = canvas.getContext('2d');
  if (!c || !width || !height || !data) return null;
  c.scale(ratio, ratio);
  const css = getComputedStyle(root);
  const frame: Frame = { left: PAD.left, right: width - PAD.right, span: data.span };
  const floor = height - PAD.bottom;
  const pen: Pen = { c, color: (name) => css.getPropertyValue(name).trim(), frame, floor, tall: floor - PAD.top };
  c.font = `11px ${css.fontFamily}`;
  c.textBaseline = 'middle';
  drawCounts(pen, data, brush, hover);
  if (data.line) drawLine(pen, data);
  drawTime(pen, data.span, width, height);
  return frame;
}
