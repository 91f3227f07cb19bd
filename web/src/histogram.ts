// The time histogram: bars of counts, a line of a field's measure, and a brush with two handles.
import { barAt, snap, toTime, toX, type Frame } from './bars';
import { drawHistogram, PAD, type HistogramData } from './histogramdraw';
import { formatCount, formatValue } from './numbers';
import { formatInstant, formatRange, type Range } from './time';

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
      // Beside the pointer: above the histogram it would cover what is chosen.
      const right = x < this.root.clientWidth / 2;
      this.tip.style.left = right ? `${x + 14}px` : '';
      this.tip.style.right = right ? '' : `${this.root.clientWidth - x + 14}px`;
    }
    this.draw();
  }

  private draw(): void {
    const { data } = this;
    for (const element of [this.window, this.from, this.to]) element.hidden = !data;
    const frame = drawHistogram(this.canvas, this.root, data, this.brush, this.hover);
    if (!data || !frame) return;
    this.frame = frame;
    this.placeHandles(data, frame, this.root.clientHeight - PAD.bottom);
    const total = data.bars.reduce((sum, bar) => sum + bar.count, 0);
    this.canvas.setAttribute('aria-label', `Histogram over time: ${formatCount(total)} events, ${formatRange(data.span, data.unit)}`);
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
