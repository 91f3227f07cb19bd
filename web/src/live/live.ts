// Live mode of the map: follows the collection's events as they are written, and shows where its objects are and have been.
import type { Feature } from 'geojson';
import type * as api from '../api';
import { $, say } from '../dom';
import type { LiveInput } from '../legend';
import type { MapView } from '../mapview';
import { EMPTY } from '../style';
import { formatEventTime } from '../time';
import { follow } from './follow';
import { headingField, LiveObjects, sayObjects } from './objects';

/** Time between two drawings, in milliseconds: a stream may be faster than the eye, and many objects slower than the map. */
const DRAW = 200;
const DRAW_MANY = 1000;
const MANY = 3000;
/** Time between two questions for what the page shows beside the map. */
const ASK = 3000;

export interface LiveEvents {
  /** New events have come: what counts them is old. */
  grown(): void;
  failed(error: unknown): void;
  changed(on: boolean): void;
  /** What is on the map has changed; null where nothing is followed. */
  shown(shown: LiveInput | null): void;
}

export class Live {
  private stopFollowing: (() => void) | null = null;
  private objects: LiveObjects | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  private connected = false;
  private loading = false;
  /** Objects of which only the newest are loaded; null where all are. */
  private total: number | null = null;
  private named = false;

  constructor(
    private readonly view: () => MapView | null,
    private readonly events: LiveEvents,
  ) {}

  get on(): boolean {
    return this.stopFollowing !== null;
  }

  /** Follows the events of a question about a collection with places and times. */
  start(collection: string, schema: api.Schema, query: URLSearchParams): void {
    this.stop();
    const [time] = schema.times;
    const numbers = schema.fields.filter(({ kind }) => kind === 'int' || kind === 'float').map(({ name }) => name);
    const names = { time, object: schema.object, heading: headingField(numbers) };
    const objects = new LiveObjects(names);
    this.objects = objects;
    this.named = schema.object !== '';
    this.loading = true;
    this.total = null;
    this.stopFollowing = follow(collection, query, names, {
      events: (list: readonly Feature[]) => {
        const before = objects.taken;
        for (const event of list) objects.take(event);
        // Events without a position count, and are drawn by the picture.
        if (objects.taken !== before || (list.length > 0 && !objects.count)) this.later();
      },
      known: (total) => {
        this.loading = false;
        this.total = total;
        this.say();
      },
      connected: (on) => {
        this.connected = on;
        this.say();
      },
      failed: (error) => {
        this.loading = false;
        this.events.failed(error);
      },
    });
    this.say();
    this.events.changed(true);
  }

  private later(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (!this.objects) return;
      const { points, lines } = this.objects.drawing();
      this.view()?.setLive(points, lines);
      const count = points.features.length;
      if (count) {
        const headed = points.features.filter(({ properties }) => 'heading' in (properties ?? {})).length;
        this.view()?.picture.hide(this.named);
        this.events.shown({ named: this.named, count, headed, tracks: lines.features.length });
      }
      this.say();
      this.askLater();
    }, (this.objects?.count ?? 0) > MANY ? DRAW_MANY : DRAW);
  }

  /** Asks at once, or when the time between two questions is over: the last event must count as well. */
  private askLater(): void {
    this.asking ??= setTimeout(
      () => {
        this.asking = undefined;
        this.asked = performance.now();
        this.events.grown();
      },
      Math.max(0, this.asked + ASK - performance.now()),
    );
  }

  private say(): void {
    const { objects } = this;
    const state = !this.connected ? 'Connecting…' : this.loading ? 'Loading…' : 'Live';
    const newest = objects && Number.isFinite(objects.newest) ? ` · newest ${formatEventTime(new Date(objects.newest).toISOString())} UTC` : '';
    const total = this.total ?? (objects?.dropped ? Infinity : null);
    const count = objects?.count ? ` · ${sayObjects(objects.count, total, this.named)}` : '';
    say($('live-state'), objects ? `${state}${count}${newest}` : '');
  }

  stop(): void {
    if (!this.stopFollowing) return;
    this.stopFollowing();
    this.stopFollowing = null;
    this.objects = null;
    this.connected = false;
    clearTimeout(this.timer);
    clearTimeout(this.asking);
    this.timer = this.asking = undefined;
    this.view()?.setLive(EMPTY, EMPTY);
    this.view()?.picture.hide(false);
    this.say();
    this.events.shown(null);
    this.events.changed(false);
  }
}
