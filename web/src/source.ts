// What answers the questions of the page about one layer: a collection of the server, or a file in the browser (files/asked.ts).
import type { Feature } from 'geojson';
import * as api from './api';
import type { Group } from './bars';
import { frameOf } from './frame';
import { anywhere, params, type Question } from './query';

/** What is known of a layer once it is open. */
export interface Opened {
  readonly collection: api.Collection;
  readonly schema: api.Schema;
  readonly total: number;
  /** Why the filter is rejected; null if it is accepted. */
  readonly wrong: string | null;
  /** Where to look if the view does not say; east may pass 180. */
  readonly frame: api.Collection['bbox'];
}

/** Which events of a question a page has. */
export interface Paging {
  /** A field, with `-` before it for descending; empty for the source's own order. */
  readonly sort: string;
  /** The token of the page before; null for the first. */
  readonly token: string | null;
  readonly limit: number;
  /** The only property that is needed; empty for all. */
  readonly slim: string;
}

export interface Source {
  /** Whether the server has the events: it draws, streams and saves them. */
  readonly served: boolean;
  open(filter: string, signal: AbortSignal): Promise<Opened>;
  /** Why a filter is rejected; null if it is accepted. */
  check(filter: string, signal: AbortSignal): Promise<string | null>;
  /** Aggregates such as `count` and `max(mag)`, in groups of a window of time if one is given. */
  aggregate(functions: readonly string[], question: Question, signal: AbortSignal, window?: string): Promise<Group[]>;
  page(question: Question, paging: Paging, signal: AbortSignal): Promise<api.Page>;
  /** The event that was clicked on the map. */
  item(id: string, signal: AbortSignal): Promise<Feature>;
}

/** A collection of the server. */
export class Served implements Source {
  readonly served = true;

  constructor(private readonly id: string) {}

  async open(filter: string, signal: AbortSignal): Promise<Opened> {
    const { id } = this;
    const [collection, schema, groups, wrong] = await Promise.all([
      api.collection(id, signal),
      api.schema(id, signal),
      api.aggregate(id, ['count'], new URLSearchParams(), signal),
      filter ? this.check(filter, signal) : null,
    ]);
    // With a camera too: what the map shows of all events is said of every view.
    const frame = collection.bbox && (await frameOf(id, collection.bbox, schema.arePoints, signal));
    return { collection, schema, total: groups[0]?.count ?? 0, wrong, frame };
  }

  async check(filter: string, signal: AbortSignal): Promise<string | null> {
    try {
      await this.aggregate(['count'], anywhere(filter), signal);
      return null;
    } catch (error) {
      if (!(error instanceof api.Problem) || error.status !== 400) throw error;
      return error.detail || error.title;
    }
  }

  aggregate(functions: readonly string[], question: Question, signal: AbortSignal, window = ''): Promise<Group[]> {
    const query = params(question);
    if (window) query.set('window', window);
    return api.aggregate(this.id, functions, query, signal);
  }

  page(question: Question, { sort, token, limit, slim }: Paging, signal: AbortSignal): Promise<api.Page> {
    const query = params(question);
    if (sort) query.set('sortby', sort);
    if (slim) query.set('properties', slim);
    if (token) query.set('token', token);
    return api.page(api.itemsPath(this.id, query, limit), signal);
  }

  item(id: string, signal: AbortSignal): Promise<Feature> {
    return api.item(this.id, id, signal);
  }
}
