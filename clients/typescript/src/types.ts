import type { components } from './contract.js';

type Schemas = components['schemas'];

/** Longitude and latitude in degrees (WGS 84). */
export type Position = readonly [number, number];
/** West, south, east, north in degrees; a west greater than the east crosses the antimeridian. */
export type Box = readonly [number, number, number, number];

/** A GeoJSON geometry (RFC 7946) with positions of a type. */
export type GeometryOf<P> =
  | { type: 'Point'; coordinates: P }
  | { type: 'MultiPoint' | 'LineString'; coordinates: P[] }
  | { type: 'MultiLineString' | 'Polygon'; coordinates: P[][] }
  | { type: 'MultiPolygon'; coordinates: P[][][] };
/** A GeoJSON geometry, as the server sends it. */
export type Geometry = GeometryOf<[number, number]>;

/** Values of an event by their names. Integers beyond 2^53 lose digits, as always in JavaScript. */
export type Properties = Record<string, unknown>;

/** An event as a GeoJSON feature. */
export type Feature<P = Properties> = Omit<Schemas['Feature'], 'geometry' | 'properties'> & {
  type: 'Feature';
  geometry: Geometry | null;
  properties: P;
};
/** A feature that the server sent: it has an id. */
export type Event<P = Properties> = Feature<P> & { id: string };
/** A page of events. `numberMatched` is there where it is cheap to know, `missing` where files are damaged. */
export type Page<P = Properties> = Omit<Schemas['FeatureCollection'], 'features'> & { features: Event<P>[] };
/** The line of an object, with the instants of its vertices. */
export type Track = Feature & { properties: Properties & { times?: string[] } };

/** An event of a stream. */
export type StreamEvent<P = Properties> = Event<P> & {
  /** Resume behind this event with `after`. */
  position: string;
  /** The transition of a moving object, where `when` asked for some. */
  when?: When;
};
/** A transition of a moving object: docs/stream.md. */
export type When = 'enter' | 'inside' | 'exit';

/** A JSON Schema with `x-ogc-role` and `x-meridian-…` members: docs/load.md. */
export type Schema = Schemas['JsonSchema'];
export type CollectionInfo = Schemas['Collection'];
export type Settings = Schemas['Settings'];
export type Density = Schemas['Density'];
export type TrackSummary = Schemas['TrackSummary'];
export type Written = Schemas['Written'];
export type Deleted = Schemas['Deleted'];
export type Question = Schemas['Question'];
export type SearchStatus = Schemas['SearchAnswer'];
export type SavedSearchStatus = Schemas['SavedSearchAnswer'];
export type NewSavedSearch = Schemas['SavedSearch'];
export type Provider = Schemas['ProviderStatus'];
export type NewToken = Schemas['NewToken'];
export type CreatedToken = Schemas['TokenAnswer'];
export type TokenInfo = Schemas['TokenInfo'];
export type Version = Schemas['Version'];

/** A function with an error beside its value. */
type Estimate = `${'median' | 'distinct'}(${string})` | `${'percentile' | 'top'}(${string},${number})`;
/** A function of `aggregate`: docs/aggregate.md. */
export type AggregateFunction = 'count' | `${'count' | 'sum' | 'avg' | 'min' | 'max'}(${string})` | Estimate;
/** One of the most frequent values of a field, and the number of events that have it. */
export interface TopValue {
  value: string | number | boolean;
  count: number;
}
/** The value of a function in a group: null where no event has the field. */
export type AggregateValue<F extends AggregateFunction> = F extends `top(${string})`
  ? TopValue[]
  : F extends 'count' | `count(${string})` | `distinct(${string})`
    ? number
    : number | null;
/**
 * One group of an aggregate. Each function has its value under its text as the caller gave it. `error(FUNCTION)` has the
 * error of a percentile, a median, a distinct count or a top list, 0 where it is exact.
 */
export type Group<F extends AggregateFunction = 'count'> = {
  /** `start/end`, where `window` was asked for. */
  window?: string;
  /** The value of the field; of several fields, an object with the value of each. */
  by?: unknown;
  count: number;
} & { [N in F]: AggregateValue<N> } & { [N in Extract<F, Estimate> as `error(${N})`]: number };
