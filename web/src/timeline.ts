// The time under the map: histogram, brush, and playing. While it plays, the map shows a trail where the events are not too many.
import { barsOf, type Bar } from './bars';
import type { OpenCollection } from './controls';
import { $ } from './dom';
import type { View } from './hash';
import { Histogram } from './histogram';
import type { HistogramData } from './histogramdraw';
import { formatCount } from './numbers';
import { Player } from './player';
import type { Question } from './query';
import { MEASURE_NAMES } from './totals';
import { windowFor, type Range } from './time';
import type { Work } from './work';

export interface TimelineEvents {
  /** The brush has moved, by hand or by playing. */
  brushed(when: Range | null): void;
  /** The window of a frame that plays. */
  frame(when: Range): void;
  playing(on: boolean): void;
  /** The histogram has new content. */
  shown(): void;
}

const whole = (when: Range | null): Range | null => when && [Math.round(when[0]), Math.round(when[1])];

export class Timeline {
  /** The content of the histogram. */
  shown: HistogramData | null = null;
  readonly player: Player;
  private readonly histogram: Histogram;
  private when: Range | null = null;

  constructor(
    private readonly work: Work,
    private readonly events: TimelineEvents,
  ) {
    this.histogram = new Histogram($('histogram'), (when) => {
      this.player.stop();
      events.brushed(whole(when));
    });
    this.player = new Player(
      () => this.shown && { span: this.shown.span, bars: this.shown.bars, when: this.when },
      (when) => {
        this.histogram.setBrush(when);
        events.frame(when);
      },
      (when) => events.brushed(when),
      (playing) => {
        $('play').setAttribute('aria-pressed', String(playing));
        const word = $('play').querySelector('span');
        if (word) word.textContent = playing ? 'Pause' : 'Play';
        events.playing(playing);
      },
    );
    $('play').addEventListener('click', () => this.player.toggle());
    $('speed').addEventListener('change', () => (this.player.speed = Number($<HTMLSelectElement>('speed').value)));
    $('gaps').addEventListener('change', () => (this.player.skipGaps = $<HTMLInputElement>('gaps').checked));
  }

  get playing(): boolean {
    return this.player.playing;
  }

  setBrush(when: Range | null): void {
    this.when = when;
    this.histogram.setBrush(when);
  }

  /** Another collection opens: nothing is known yet. */
  clear(): void {
    this.player.stop();
    this.shown = null;
    this.histogram.show(null);
    $('span-note').textContent = '';
  }

  /** Loads the bars of a question about a collection with times. */
  load({ source, collection: { interval } }: OpenCollection, question: Question, { span, field, measure }: Pick<View, 'span' | 'field' | 'measure'>): void {
    if (!interval) return this.histogram.show(null);
    const all: Range = [interval[0], Math.max(interval[1] + 1, interval[0] + 1000)];
    const asked = span ?? all;
    const most = Math.max(40, Math.min(220, Math.round($('histogram').clientWidth / 5)));
    const { iso, ms } = windowFor(asked[1] - asked[0], most);
    this.work.run('bars', async (signal) => {
      const [groups, [total]] = await Promise.all([
        source.aggregate(field ? ['count', `${measure}(${field})`] : ['count'], { ...question, when: span }, signal, iso),
        source.aggregate(['count'], { ...question, when: null }, signal),
      ]);
      const bars = barsOf(groups, measure, field);
      // All time is shown from the edge of the first window to the edge of the last one.
      const wide: Range = span ?? [Math.min(all[0], bars[0]?.from ?? Infinity), Math.max(all[1], bars.at(-1)?.to ?? -Infinity)];
      const line = field ? `${MEASURE_NAMES[measure]} ${field}` : '';
      this.shown = { bars, span: wide, unit: ms, line };
      this.histogram.show(this.shown);
      $('line-name').textContent = line;
      $('span-note').textContent = sayRest(bars, total?.count ?? 0, span !== null);
      this.events.shown();
    });
  }
}

/** What to say of the events that the bars leave out. */
export function sayRest(bars: readonly Bar[], total: number, zoomed: boolean): string {
  const rest = total - bars.reduce((sum, bar) => sum + bar.count, 0);
  if (rest <= 0) return '';
  return zoomed ? `${formatCount(rest)} before or after` : `${formatCount(rest)} without a time`;
}
