// The time histogram: bars of counts, a line of a field's measure, and a brush with two handles.
import { barAt, niceCeil, snap, toTime, toX, valueExtent, type Bar, type Frame } from './bars';
import { formatCount, formatShort, formatValue } from './numbers';
import { formatInstant, formatRange, ticks, type Range } from './time';

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
const PAD = { left: 42, right: 46, top: 8, bottom: 20 };

const handle = (name: string): HTMLElement => {
  const element = document.createElement('div');
  element.className = `handle ${name}`;
  element.tabIndex = 0;
  element.setAttribute('role', 'slider');
  return element;
};

export class Histogram {
  private readonly canvas = document.createElement('canvas');
  private readonly window = document.createElement('div');
  private readonly from = handle('from');
  private readonly to = handle('to');
  private readonly tip = document.createElement('div');
  private data: HistogramData | null = null;
  private brush: Range | null = null;
  private hover: number | null = null;
  private frame: Frame = { left: 0, right: 1, span: [0, 1] };

  constructor(
    private readonly root: HTMLElement,
    /** Called at each change by the user; null means all time. */
    private readonly changed: (brush: Range | null) => void,
  ) {
    this.window.className = 'window';
    this.window.tabIndex = 0;
    this.window.setAttribute('role', 'slider');
    this.window.setAttribute('aria-label', 'Chosen time, as a whole');
    this.from.setAttribute('aria-label', 'Start of the chosen time');
    this.to.setAttribute('aria-label', 'End of the chosen time');
    this.tip.className = 'tip';
    this.tip.hidden = true;
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', 'Histogram over time');
    root.append(this.canvas, this.window, this.from, this.to, this.tip);

    new ResizeObserver(() => this.draw()).observe(root);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    this.canvas.addEventListener('pointerdown', (e) => this.drag(e, 'new'));
    this.window.addEventListener('pointerdown', (e) => this.drag(e, 'window'));
    this.from.addEventListener('pointerdown', (e) => this.drag(e, 'from'));
    this.to.addEventListener('pointerdown', (e) => this.drag(e, 'to'));
    root.addEventListener('dblclick', () => this.set(null));
    root.addEventListener('pointermove', (e) => this.point(e));
    root.addEventListener('pointerleave', () => this.point(null));
    this.from.addEventListener('keydown', (e) => this.key(e, 'from'));
    this.to.addEventListener('keydown', (e) => this.key(e, 'to'));
    this.window.addEventListener('keydown', (e) => this.key(e, 'window'));
  }

  /** Null while the data are loading. */
  show(data: HistogramData | null): void {
    this.data = data;
    this.root.classList.toggle('waiting', data === null);
    this.draw();
  }

  setBrush(brush: Range | null): void {
    this.brush = brush;
    this.draw();
  }

  private set(brush: Range | null): void {
    this.setBrush(brush);
    this.changed(brush);
  }

  private at(e: PointerEvent): number {
    return toTime(this.frame, e.clientX - this.root.getBoundingClientRect().left);
  }

  private snapped(ms: number): number {
    return this.data ? snap(ms, this.data.bars, this.data.unit) : ms;
  }

  private drag(e: PointerEvent, part: 'new' | 'from' | 'to' | 'window'): void {
    if (!this.data || e.button !== 0) return;
    e.preventDefault();
    const target = e.currentTarget as HTMLElement;
    target.setPointerCapture(e.pointerId);
    if (part !== 'new') target.focus();
    const { span } = this.data;
    const start = this.at(e);
    const startX = e.clientX;
    const before = this.brush ?? span;
    // A brush over the whole range cannot be moved, so a drag starts a new one.
    const { left, right } = this.frame;
    if (part === 'window' && toX(this.frame, before[0]) < left + 4 && toX(this.frame, before[1]) > right - 4) part = 'new';
    let moved = false;
    const move = (event: PointerEvent): void => {
      if (!moved && Math.abs(event.clientX - startX) < 3) return;
      moved = true;
      const now = this.at(event);
      let next: Range;
      if (part === 'new') next = [Math.min(start, now), Math.max(start, now)];
      else if (part === 'from') next = [Math.min(now, before[1] - 1), before[1]];
      else if (part === 'to') next = [before[0], Math.max(now, before[0] + 1)];
      else {
        const by = Math.max(span[0] - before[0], Math.min(span[1] - before[1], now - start));
        const first = this.snapped(before[0] + by);
        next = [first, first + before[1] - before[0]];
      }
      if (part !== 'window') {
        next = [this.snapped(next[0]), this.snapped(next[1])];
        if (next[0] >= next[1]) return;
      }
      this.set(next);
    };
    const stop = (event: PointerEvent): void => {
      target.removeEventListener('pointermove', move);
      target.removeEventListener('pointerup', stop);
      target.removeEventListener('pointercancel', stop);
      // A click on a bar chooses its window.
      const bar = part === 'new' && !moved && event.type === 'pointerup' ? barAt(this.data?.bars ?? [], start) : null;
      if (bar) this.set([bar.from, bar.to]);
    };
    target.addEventListener('pointermove', move);
    target.addEventListener('pointerup', stop);
    target.addEventListener('pointercancel', stop);
  }

  private key(e: KeyboardEvent, part: 'from' | 'to' | 'window'): void {
    if (!this.data) return;
    const { span, unit } = this.data;
    const [from, to] = this.brush ?? span;
    const step = unit * (e.shiftKey ? 10 : 1);
    const by = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, Home: -Infinity, End: Infinity }[e.key];
    if (e.key === 'Escape' || e.key === 'Delete') this.set(null);
    if (by === undefined) return;
    e.preventDefault();
    const clamp = (ms: number, low: number, high: number): number => Math.max(low, Math.min(high, ms));
    // A step of an average month may end inside a window. The next edge in the step's direction is taken then.
    const edge = (ms: number, old: number): number => {
      const near = this.snapped(ms);
      return near === old ? this.snapped(ms + Math.sign(by) * unit * 0.6) : near;
    };
    if (part === 'from') this.set([clamp(edge(from + by, from), span[0], to - 1), to]);
    else if (part === 'to') this.set([from, clamp(edge(to + by, to), from + 1, span[1])]);
    else {
      const first = clamp(edge(from + by, from), span[0], span[1] - (to - from));
      this.set([first, first + (to - from)]);
    }
  }

  private point(e: PointerEvent | null): void {
    this.hover = e && e.pointerType !== 'touch' && this.data ? this.at(e) : null;
    const data = this.data;
    const bar = this.hover !== null && data ? barAt(data.bars, this.hover) : null;
    this.tip.hidden = !data || this.hover === null;
    if (data && this.hover !== null) {
      const when = bar ? formatRange([bar.from, bar.to], data.unit) : formatInstant(this.hover, data.unit);
      const count = `${formatCount(bar?.count ?? 0)} ${bar?.count === 1 ? 'event' : 'events'}`;
      this.tip.replaceChildren(Object.assign(document.createElement('b'), { textContent: count }), when);
      if (data.line && bar) this.tip.append(Object.assign(document.createElement('i'), { textContent: `${data.line} ${formatValue(bar.value)}` }));
      const x = toX(this.frame, this.hover);
      this.tip.style.left = `${Math.max(70, Math.min(this.root.clientWidth - 70, x))}px`;
    }
    this.draw();
  }

  private draw(): void {
    const { clientWidth: width, clientHeight: height } = this.root;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const c = this.canvas.getContext('2d');
    if (!c || !width || !height) return;
    c.scale(ratio, ratio);
    const css = getComputedStyle(this.root);
    const color = (name: string): string => css.getPropertyValue(name).trim();
    const data = this.data;
    for (const element of [this.window, this.from, this.to]) element.hidden = !data;
    if (!data) return;

    const frame: Frame = { left: PAD.left, right: width - PAD.right, span: data.span };
    this.frame = frame;
    const floor = height - PAD.bottom;
    const tall = floor - PAD.top;
    const top = niceCeil(data.bars.reduce((most, bar) => Math.max(most, bar.count), 0));
    c.font = `11px ${css.fontFamily}`;
    c.textBaseline = 'middle';

    c.strokeStyle = color('--line');
    c.fillStyle = color('--muted');
    c.lineWidth = 1;
    c.textAlign = 'right';
    for (const share of [0.5, 1]) {
      const y = Math.round(floor - share * tall) + 0.5;
      c.beginPath();
      c.moveTo(frame.left, y);
      c.lineTo(frame.right, y);
      c.stroke();
      if (top * share >= 1) c.fillText(formatShort(top * share), frame.left - 6, y);
    }

    const [from, to] = this.brush ?? data.span;
    const gap = toX(frame, data.span[0] + data.unit) - frame.left > 4 ? 1 : 0;
    for (const bar of data.bars) {
      const left = Math.max(frame.left, toX(frame, bar.from));
      const right = Math.min(frame.right, toX(frame, bar.to));
      if (right <= frame.left || left >= frame.right || !bar.count) continue;
      const tallness = Math.max(1, (bar.count / top) * tall);
      const inside = bar.to > from && bar.from < to;
      const hovered = this.hover !== null && this.hover >= bar.from && this.hover < bar.to;
      c.fillStyle = color(inside ? (hovered ? '--bar-hover' : '--bar') : '--bar-out');
      c.fillRect(left, floor - tallness, Math.max(1, right - left - gap), tallness);
    }

    this.drawLine(c, data, frame, floor, tall, color);
    c.strokeStyle = color('--axis');
    c.beginPath();
    c.moveTo(frame.left, floor + 0.5);
    c.lineTo(frame.right, floor + 0.5);
    c.stroke();
    c.textBaseline = 'alphabetic';
    c.textAlign = 'center';
    let free = -Infinity;
    for (const tick of ticks(data.span, Math.max(2, Math.floor((frame.right - frame.left) / 74)))) {
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
    this.placeHandles(data, frame, floor);
    const total = data.bars.reduce((sum, bar) => sum + bar.count, 0);
    this.canvas.setAttribute('aria-label', `Histogram over time: ${formatCount(total)} events, ${formatRange(data.span, data.unit)}`);
  }

  private drawLine(c: CanvasRenderingContext2D, data: HistogramData, frame: Frame, floor: number, tall: number, color: (name: string) => string): void {
    const extent = data.line ? valueExtent(data.bars) : null;
    if (!extent) return;
    const [low, high] = extent;
    const y = (value: number): number => floor - ((value - low) / (high - low)) * tall;
    c.strokeStyle = color('--accent');
    c.fillStyle = color('--accent');
    c.lineWidth = 1.6;
    c.lineJoin = 'round';
    c.save();
    c.beginPath();
    c.rect(frame.left, 0, frame.right - frame.left, floor);
    c.clip();
    // Windows without events interrupt the line. A single value between two of them is drawn as a dot.
    const known = data.bars.filter((bar) => bar.value !== null);
    const joined = (a: Bar | undefined, b: Bar | undefined): boolean => Boolean(a && b && b.from - a.to < data.unit * 0.5);
    c.beginPath();
    known.forEach((bar, i) => {
      const [x, at] = [toX(frame, (bar.from + bar.to) / 2), y(bar.value ?? 0)];
      if (joined(known[i - 1], bar)) c.lineTo(x, at);
      else c.moveTo(x, at);
    });
    c.stroke();
    c.beginPath();
    known.forEach((bar, i) => {
      if (joined(known[i - 1], bar) || joined(bar, known[i + 1])) return;
      const [x, at] = [toX(frame, (bar.from + bar.to) / 2), y(bar.value ?? 0)];
      c.moveTo(x + 2, at);
      c.arc(x, at, 2, 0, 2 * Math.PI);
    });
    c.fill();
    c.restore();
    c.textAlign = 'left';
    for (const value of [low, high]) c.fillText(formatValue(value), frame.right + 6, Math.max(PAD.top, Math.min(floor - 6, y(value))));
  }

  private placeHandles(data: HistogramData, frame: Frame, floor: number): void {
    const [from, to] = this.brush ?? data.span;
    const left = Math.max(frame.left, Math.min(frame.right, toX(frame, from)));
    const right = Math.max(frame.left, Math.min(frame.right, toX(frame, to)));
    this.root.classList.toggle('brushed', this.brush !== null);
    this.window.style.cssText = `left:${left}px;width:${Math.max(0, right - left)}px;top:${PAD.top - 4}px;height:${floor - PAD.top + 4}px`;
    for (const [element, x, ms] of [[this.from, left, from], [this.to, right, to]] as const) {
      element.style.cssText = `left:${x}px;top:${PAD.top - 4}px;height:${floor - PAD.top + 4}px`;
      element.setAttribute('aria-valuemin', String(data.span[0]));
      element.setAttribute('aria-valuemax', String(data.span[1]));
      element.setAttribute('aria-valuenow', String(ms));
      element.setAttribute('aria-valuetext', formatInstant(ms, Math.min(data.unit, 86_400_000)));
    }
    this.window.setAttribute('aria-valuemin', String(data.span[0]));
    this.window.setAttribute('aria-valuemax', String(data.span[1]));
    this.window.setAttribute('aria-valuenow', String(from));
    this.window.setAttribute('aria-valuetext', formatRange([from, to], data.unit));
  }
}
