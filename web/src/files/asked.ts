// A file as what answers the questions of the page: the same table, histogram and conditions as of a collection, from memory.
import type { Feature, FeatureCollection } from 'geojson';
import type { Page, Schema } from '../api';
import type { Group } from '../bars';
import { boxOf, partsOf, positionsOf, type Bbox } from '../frame';
import { anywhere, type Question } from '../query';
import type { Opened, Paging, Source } from '../source';
import type { Range } from '../time';
import { idColumn, type FileContent } from './read';
import { instantOf, testOf } from './test';
import { metresTo, touches, type Placed } from './within';

interface Event extends Placed {
  readonly feature: Feature;
  /** NaN where open; an instant is its own end. */
  readonly start: number;
  readonly end: number;
}

/** Answers that are kept: one question is asked by several parts of the page. */
const KEPT_MAX = 8;
/** 1970-01-05, a Monday, as weeks begin with. */
const MONDAY = 4 * 86_400_000;
const UNITS: Record<string, number> = { S: 1000, M: 60_000, H: 3_600_000 };

/** The window of a length that an instant is in, as the server has it: in UTC, with months from the year 0. */
export function windowOf(iso: string, ms: number): Range {
  const [, days = '', count, unit] = /^P(T?)(\d+)([SMHDWY])$/.exec(iso) ?? [];
  const n = Number(count);
  if (days === '' && (unit === 'M' || unit === 'Y')) {
    const months = n * (unit === 'Y' ? 12 : 1);
    const at = new Date(ms);
    const first = Math.floor((at.getUTCFullYear() * 12 + at.getUTCMonth()) / months) * months;
    // `Date.UTC` takes the years 0 to 99 as those of the 20th century.
    const [from, to] = [first, first + months].map((month) => new Date(0).setUTCFullYear(Math.floor(month / 12), month - Math.floor(month / 12) * 12, 1));
    return [from, to];
  }
  const length = n * (days ? UNITS[unit] : unit === 'W' ? 7 * 86_400_000 : 86_400_000);
  const origin = unit === 'W' ? MONDAY : 0;
  const from = Math.floor((ms - origin) / length) * length + origin;
  return [from, from + length];
}

const text = (ms: number): string => new Date(ms).toISOString();

/** Whether an event is in a range of time. An open end reaches for ever; an event without a time is in none. */
const isWithin = ({ start, end }: Event, [from, to]: Range): boolean => !(Number.isNaN(start) && Number.isNaN(end)) && !(start >= to) && !(end < from);

export class FileSource implements Source {
  readonly served = false;
  readonly schema: Schema;
  readonly frame: Bbox;
  /** All events as the map draws them: `@at` is the place in the file. */
  private readonly all: FeatureCollection;
  /** What is drawn of them. */
  private shown: FeatureCollection;
  private readonly events: readonly Event[];
  private readonly interval: Range | null;
  private readonly kept = new Map<string, readonly number[]>();

  constructor(
    readonly name: string,
    content: FileContent,
  ) {
    const { features, fields, times, id, origin } = content;
    this.schema = { fields: fields.filter((field) => field.name !== idColumn(content)).map(({ name: field, kind }) => ({ name: field, title: field, kind })), geometry: 'geometry', arePoints: features.every(({ geometry }) => geometry.type === 'Point'), times, object: '' };
    // Without ids of its own, an event is named by where it is in the file.
    const idOf = ({ id: member, properties }: Feature, i: number): string => (id ? String(id.member ? member : properties?.[id.name]) : `${origin.unit} ${origin.numbers[i]}`);
    const [first, last = first] = times;
    let [from, to] = [Infinity, -Infinity];
    this.events = features.map((feature, i): Event => {
      const [start, end] = [instantOf(feature.properties?.[first]), instantOf(feature.properties?.[last])];
      // Where one is NaN the other counts.
      for (const at of [start, end]) if (!Number.isNaN(at)) [from, to] = [Math.min(from, at), Math.max(to, at)];
      let box: Bbox = [Infinity, Infinity, -Infinity, -Infinity];
      for (const [x, y] of positionsOf(feature.geometry)) box = [Math.min(box[0], x), Math.min(box[1], y), Math.max(box[2], x), Math.max(box[3], y)];
      return { feature: { ...feature, id: idOf(feature, i) }, geometry: feature.geometry, box, start, end };
    });
    this.interval = from <= to ? [from, to] : null;
    this.frame = boxOf(features.flatMap(({ geometry }) => partsOf(geometry)));
    this.shown = this.all = { type: 'FeatureCollection', features: features.map((feature, i) => ({ ...feature, properties: { '@at': i } })) };
  }

  open(filter: string): Promise<Opened> {
    const { name, schema, events, interval, frame } = this;
    const collection = { id: name, title: name, description: '', bbox: frame, interval, count: events.length };
    return Promise.resolve({ collection, schema, total: events.length, wrong: this.wrong(filter), frame });
  }

  private wrong(filter: string): string | null {
    try {
      testOf(filter, this.schema.fields);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  }

  check(filter: string): Promise<string | null> {
    return Promise.resolve(this.wrong(filter));
  }

  private once(key: string, find: () => readonly number[]): readonly number[] {
    const found = this.kept.get(key) ?? find();
    if (this.kept.size >= KEPT_MAX && !this.kept.has(key)) this.kept.clear();
    this.kept.set(key, found);
    return found;
  }

  /** The places in the file of the events of a question. */
  private found(question: Question): readonly number[] {
    const { where, when, filter } = question;
    return this.once(JSON.stringify([where, when, filter]), () => {
      const [matches, isThere] = [testOf(filter, this.schema.fields), where && touches(where)];
      return this.events.flatMap((event, i) => ((!when || isWithin(event, when)) && matches(event.feature) && (!isThere || isThere(event)) ? [i] : []));
    });
  }

  /** The same in the order of a table, events without a value last. */
  private ordered(question: Question, sort: string): readonly number[] {
    const [field, way] = [sort.replace(/^-/, ''), sort.startsWith('-') ? -1 : 1];
    const { where } = question;
    const kind = this.schema.fields.find(({ name }) => name === field)?.kind;
    if (!kind && where?.kind !== 'circle') return this.found(question);
    const valueOf = ({ feature, geometry }: Event): unknown => {
      if (!kind) return where?.kind === 'circle' ? metresTo(where.center, geometry) : 0;
      const value: unknown = feature.properties?.[field] ?? null;
      return kind === 'time' && value !== null ? instantOf(value) : value;
    };
    return this.once(JSON.stringify([question, sort]), () => {
      const keys = new Map(this.found(question).map((i) => [i, valueOf(this.events[i]) as number | null]));
      const order = (a: number | null, b: number | null): number => (a === null || b === null ? Number(a === null) - Number(b === null) : a < b ? -way : a > b ? way : 0);
      return [...keys].sort(([i, a], [k, b]) => order(a, b) || i - k).map(([i]) => i);
    });
  }

  page(question: Question, { sort, token, limit }: Paging): Promise<Page> {
    const [list, from] = [this.ordered(question, sort), Number(token ?? 0)];
    const features = list.slice(from, from + limit).map((i) => this.events[i].feature);
    return Promise.resolve({ features, next: from + limit < list.length ? `?token=${from + limit}` : null });
  }

  aggregate(functions: readonly string[], question: Question, _signal?: AbortSignal, window = ''): Promise<Group[]> {
    const groups = new Map<string, Event[]>();
    let [from, to] = [NaN, NaN];
    let [key, group]: [string, Event[]] = ['', []];
    if (!window) groups.set(key, group);
    for (const i of this.found(question)) {
      const event = this.events[i];
      // Neighbours of a file are mostly of the same window. An interval counts in the window of its start.
      if (window && !(event.start >= from && event.start < to)) {
        if (Number.isNaN(event.start)) continue;
        [from, to] = windowOf(window, event.start);
        key = `${text(from)}/${text(to)}`;
        group = groups.get(key) ?? [];
        groups.set(key, group);
      }
      group.push(event);
    }
    return Promise.resolve([...groups].map(([key, events]) => ({
      ...(key ? { window: key } : {}),
      count: events.length,
      ...Object.fromEntries(functions.filter((one) => one !== 'count').map((one) => [one, measureOf(one, events)])),
    })));
  }

  item(id: string): Promise<Feature> {
    return Promise.resolve(this.events[Number(id)].feature);
  }

  /** What the map draws: the events of a filter in a time. Those of a file without times are always there. */
  drawn(filter: string, when: Range | null): FeatureCollection {
    const found = this.found({ ...anywhere(filter), when: this.schema.times.length ? when : null });
    const features = found.map((i) => this.all.features[i]);
    const before = this.shown.features;
    // The same events are the same object, so that they are not drawn anew.
    if (features.length !== before.length || features.some((one, i) => one !== before[i])) this.shown = features.length === this.events.length ? this.all : { ...this.all, features };
    return this.shown;
  }
}

/** The min or max of a field, or its most frequent values with their counts. Null for another measure. */
function measureOf(name: string, events: readonly Event[]): unknown {
  const [, how, argument] = /^(min|max|top)\((.*)\)$/.exec(name) ?? [];
  // A comma may be in the name of a field too.
  const [, field, most] = (how === 'top' && /^(.*),(\d+)$/.exec(argument)) || ['', argument];
  const values = events.map(({ feature }) => (feature.properties?.[field] ?? null) as number | string | null).filter((value) => value !== null);
  if (how === 'top') {
    const counts = new Map<unknown, number>();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    return [...counts].sort(([, a], [, b]) => b - a).slice(0, Number(most)).map(([value, count]) => ({ value, count }));
  }
  if (!how || !values.length) return null;
  return values.reduce((best, value) => ((how === 'min' ? value < best : value > best) ? value : best));
}
