// Live mode of the map: follows the collection's events as they are written, and shows where its objects are and have been.
import type { Feature } from 'geojson';
import type * as api from '../api';
import { $, say } from '../dom';
import type { MapView } from '../mapview';
import { formatCount } from '../numbers';
import { EMPTY } from '../style';
import { formatEventTime } from '../time';
import { follow } from './follow';
import { headingField, LiveObjects } from './objects';

/** Time between two drawings, in milliseconds: a stream may be faster than the eye. */
const DRAW = 200;
/** Time between two questions for what the page shows beside the map. */
const ASK = 3000;

export interface LiveEvents {
  /** New events have come: what counts them is old. */
  grown(): void;
  failed(error: unknown): void;
  changed(on: boolean): void;
}

export class Live {
  private stopFollowing: (() => void) | null = null;
  private objects: LiveObjects | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  private connected = false;

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
    const objects = new LiveObjects({ time, object: schema.object, heading: headingField(schema.fields.filter(({ kind }) => kind === 'int' || kind === 'float').map(({ name }) => name)) });
    this.objects = objects;
    this.stopFollowing = follow(collection, query, time, {
      events: (list: readonly Feature[]) => {
        const before = objects.taken;
        for (const event of list) objects.take(event);
        if (objects.taken !== before) this.later();
      },
      connected: (on) => {
        this.connected = on;
        this.say();
      },
      failed: (error) => this.events.failed(error),
    });
    this.view()?.picture.hide(schema.object !== '');
    this.say();
    this.events.changed(true);
  }

  private later(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (!this.objects) return;
      const { points, lines } = this.objects.drawing();
      this.view()?.setLive(points, lines);
      this.say();
      this.askLater();
    }, DRAW);
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
    const state = this.connected ? 'Live' : 'Connecting…';
    const newest = objects && Number.isFinite(objects.newest) ? ` · newest ${formatEventTime(new Date(objects.newest).toISOString())} UTC` : '';
    say($('live-state'), objects ? `${state} · ${formatCount(objects.count)} ${objects.count === 1 ? 'object' : 'objects'}${newest}` : '');
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
    this.events.changed(false);
  }
}
