// From docs/openapi.json: `npm run contract` writes it anew.

/**
 * The state of a lease.
 */
export type LeaseState = 'held' | 'lapsed' | 'resigned';
/**
 * A position, as [`Positions`] serialises.
 */
export type Position = number | number[];
/**
 * The role of a process.
 */
export type NodeCondition = 'serves' | 'stands_by' | 'drained' | 'other';
export type Features = Feature | FeatureCollection;
export type AggregateAnswer = Aggregate | ExplainedGroups;
export type DensityAnswer = Density | ExplainedGroups;

export interface Contract {
  Landing: Landing;
  Link: Link;
  Conformance: Conformance;
  Health: Health;
  Version: Version;
  Problem: Problem;
  Mistake: Mistake;
  CollectionList: CollectionList;
  Collection: Collection;
  Extent: Extent;
  Spatial: Spatial;
  Temporal: Temporal;
  Files: Files;
  Feature: Feature;
  FeatureCollection: FeatureCollection;
  Missing: Missing;
  Written: Written;
  LeftOut: LeftOut;
  Deleted: Deleted;
  Aggregate: Aggregate;
  Group: Group;
  Density: Density;
  Tracks: Tracks;
  TrackSummary: TrackSummary;
  ExplainedItems: ExplainedItems;
  ExplainedGroups: ExplainedGroups;
  TileMatrixSetList: TileMatrixSetList;
  TileMatrixSetItem: TileMatrixSetItem;
  TileMatrixSet: TileMatrixSet;
  TileMatrix: TileMatrix;
  TileSetList: TileSetList;
  TileSet: TileSet;
  BoundingBox: BoundingBox;
  Layer: Layer;
  VectorLayer: VectorLayer;
  PlaceRecord: PlaceRecord;
  Places: Places;
  SearchAnswer: SearchAnswer;
  LegStatus: LegStatus;
  SavedSearchAnswer: SavedSearchAnswer;
  WebhookReport: WebhookReport;
  DeadLetterReport: DeadLetterReport;
  PollReport: PollReport;
  SavedSearchList: SavedSearchList;
  ProviderList: ProviderList;
  ProviderStatus: ProviderStatus;
  TokenAnswer: TokenAnswer;
  TokenList: TokenList;
  TokenInfo: TokenInfo;
  DamagedToken: DamagedToken;
  TenantInfo: TenantInfo;
  TenantList: TenantList;
  UserInfo: UserInfo;
  UserList: UserList;
  Session: Session;
  Load: Load;
  RequestLoad: RequestLoad;
  Level: Level;
  MemoryLoad: MemoryLoad;
  TenantLoad: TenantLoad;
  ClassLoad: ClassLoad;
  QuotaLoad: QuotaLoad;
  SlowRequest: SlowRequest;
  ClusterAnswer: ClusterAnswer;
  AnsweringServer: AnsweringServer;
  Cluster: Cluster;
  Owner: Owner;
  LeaseState: LeaseState;
  ClusterGroup: ClusterGroup;
  ClusterCollection: ClusterCollection;
  Position: Position;
  LogTail: LogTail;
  Pinned: Pinned;
  ClusterReader: ClusterReader;
  ClusterScan: ClusterScan;
  ClusterServer: ClusterServer;
  ServerLoad: ServerLoad;
  Caches: Caches;
  ScanReads: ScanReads;
  ClusterNode: ClusterNode;
  NodeCondition: NodeCondition;
  AuditPage: AuditPage;
  AuditLine: AuditLine;
  Question: Question;
  SavedSearch: SavedSearch;
  JsonSchema: JsonSchema;
  Settings: Settings;
  Patch: Patch;
  Backup: Backup;
  NewToken: NewToken;
  NewTenant: NewTenant;
  NewUser: NewUser;
  UserChange: UserChange;
  SignIn: SignIn;
  SignOut: SignOut;
  PasswordChange: PasswordChange;
  Features: Features;
  AggregateAnswer: AggregateAnswer;
  DensityAnswer: DensityAnswer;
}
/**
 * The landing page.
 */
export interface Landing {
  /**
   * Name of the server.
   */
  title: string;
  /**
   * Its role.
   */
  description: string;
  /**
   * Links to everything else.
   */
  links: Link[];
}
/**
 * A link, as every OGC resource carries them (RFC 8288).
 */
export interface Link {
  /**
   * Address.
   */
  href: string;
  /**
   * Relation.
   */
  rel: string;
  /**
   * Media type of what is there.
   */
  type: string;
  /**
   * The content behind the link, in words.
   */
  title: string;
  /**
   * Whether the address has variables.
   */
  templated?: boolean;
}
/**
 * Conformance classes.
 */
export interface Conformance {
  /**
   * Their URIs.
   */
  conformsTo: string[];
  /**
   * This document in other formats.
   */
  links: Link[];
}
/**
 * Whether the server is alive, or ready.
 */
export interface Health {
  /**
   * `ok` or `ready`.
   */
  status: string;
}
/**
 * The program.
 */
export interface Version {
  /**
   * Its name.
   */
  name: string;
  /**
   * Its version.
   */
  version: string;
}
/**
 * A refusal or failure (RFC 9457). Further members name what was refused: limits, ids, positions.
 */
export interface Problem {
  /**
   * URI of the kind of problem.
   */
  type: string;
  /**
   * The kind in words.
   */
  title: string;
  /**
   * HTTP status.
   */
  status: number;
  /**
   * The error, and the expected value.
   */
  detail: string;
  /**
   * The parameter or property at fault.
   */
  field?: string;
  /**
   * The line at fault, from 1.
   */
  line?: number;
  /**
   * The event at fault, from 1, where events are counted instead of lines.
   */
  feature?: number;
  /**
   * All mistakes of a body, at most 100.
   */
  errors?: Mistake[];
  [k: string]: unknown;
}
/**
 * One mistake of a body.
 */
export interface Mistake {
  /**
   * The error.
   */
  detail: string;
  /**
   * The property at fault.
   */
  field?: string;
  /**
   * The line at fault, from 1.
   */
  line?: number;
  /**
   * The event at fault, from 1, where events are counted instead of lines.
   */
  feature?: number;
}
/**
 * All collections.
 */
export interface CollectionList {
  /**
   * Each of them.
   */
  collections: Collection[];
  /**
   * Systems of coordinates that all of them are served in.
   */
  crs: string[];
  /**
   * This document in other formats.
   */
  links: Link[];
}
/**
 * A collection.
 */
export interface Collection {
  /**
   * Its name.
   */
  id: string;
  /**
   * Its title; its name where it has none.
   */
  title: string;
  /**
   * Its subject, or the reason why it is not served.
   */
  description?: string;
  /**
   * The state of a collection.
   */
  status?: 'damaged';
  /**
   * `feature`.
   */
  itemType?: string;
  /**
   * Systems of coordinates that it is served in.
   */
  crs?: string[];
  /**
   * The system that it is stored in.
   */
  storageCrs?: string;
  extent?: Extent;
  /**
   * Events that the newest snapshot sees.
   */
  itemCount?: number;
  /**
   * Bytes on disk and in memory.
   */
  bytes?: number;
  /**
   * The failures that an acknowledged event survives.
   */
  durability?: 'ephemeral' | 'local' | 'replicated';
  /**
   * `latest` where it shows only the newest event of each object.
   */
  mode?: string;
  /**
   * Age from which events are dropped (ISO 8601 duration).
   */
  retention?: string;
  /**
   * Bytes from which the oldest events are dropped.
   */
  retention_bytes?: number;
  /**
   * Number of partitions, each with a log of its own.
   */
  partitions?: number;
  /**
   * Why it accepts no writes.
   */
  refusesWrites?: string;
  /**
   * Links to its resources.
   */
  links: Link[];
}
/**
 * Where and when events are. Deleted events that are still on disk count.
 */
export interface Extent {
  spatial?: Spatial;
  temporal?: Temporal;
}
/**
 * Where events are.
 */
export interface Spatial {
  /**
   * One box: west, south, east, north.
   *
   * @minItems 1
   * @maxItems 1
   */
  bbox: [[number, number, number, number]];
  /**
   * Its system of coordinates.
   */
  crs: string;
}
/**
 * When events are.
 */
export interface Temporal {
  /**
   * One interval; null for an open end.
   *
   * @minItems 1
   * @maxItems 1
   */
  interval: [[string | null, string | null]];
  /**
   * Its calendar.
   */
  trs: string;
}
/**
 * The files of a collection at one snapshot.
 */
export interface Files {
  /**
   * The snapshot.
   */
  snapshot: string;
  /**
   * Their paths.
   */
  files: string[];
  /**
   * When they may be deleted at the earliest.
   */
  keptUntil: string;
  /**
   * The folder that the paths are relative to; absent if they are absolute.
   */
  relativeTo?: string;
}
/**
 * One event as GeoJSON (RFC 7946).
 */
export interface Feature {
  /**
   * `Feature`.
   */
  type: 'Feature';
  /**
   * Its id. A body may leave it out, and may give a number.
   */
  id?: string;
  /**
   * A geometry, or null.
   */
  geometry: {
    [k: string]: unknown;
  } | null;
  /**
   * Values by their names.
   */
  properties: {
    [k: string]: unknown;
  };
  /**
   * Distance in metres from the position in `near`.
   */
  distance?: number;
  /**
   * Where it is.
   */
  links?: Link[];
}
/**
 * Events as GeoJSON.
 */
export interface FeatureCollection {
  /**
   * `FeatureCollection`.
   */
  type: 'FeatureCollection';
  /**
   * The events.
   */
  features: Feature[];
  /**
   * This page in other formats, and the next one.
   */
  links?: Link[];
  /**
   * When the response was made.
   */
  timeStamp?: string;
  /**
   * Events of this page.
   */
  numberReturned?: number;
  /**
   * Events of all pages, where that is known.
   */
  numberMatched?: number;
  /**
   * Parts that may be missing because files are damaged.
   */
  missing?: Missing[];
}
/**
 * Something that is missing.
 */
export interface Missing {
  /**
   * The damage.
   */
  detail: string;
}
/**
 * The outcome of a write.
 */
export interface Written {
  /**
   * Events stored.
   */
  written: number;
  /**
   * Events that they replaced.
   */
  replaced: number;
  /**
   * Events of a repeated batch, known by its key.
   */
  duplicates: number;
  /**
   * Position of the write in the log.
   */
  position: string;
  left_out?: LeftOut;
}
/**
 * Numbers of events that were written without something.
 */
export interface LeftOut {
  /**
   * Events written without their heights.
   */
  heights: number;
  /**
   * Events written without their ids.
   */
  ids: number;
}
/**
 * The outcome of a deletion.
 */
export interface Deleted {
  /**
   * Events deleted.
   */
  deleted: number;
  /**
   * Position of the deletion in the log.
   */
  position: string;
}
/**
 * An aggregate.
 */
export interface Aggregate {
  /**
   * Its groups, in order of window and value.
   */
  groups: Group[];
}
/**
 * One group.
 */
export interface Group {
  /**
   * Start of its window.
   */
  window?: string;
  /**
   * Value of the property that is grouped by; of several properties, an object with the value of each.
   */
  by?: {
    [k: string]: unknown;
  };
  /**
   * Events in it.
   */
  count: number;
  [k: string]: unknown;
}
/**
 * Counts on a grid.
 */
export interface Density {
  /**
   * Its box: west, south, east, north.
   *
   * @minItems 4
   * @maxItems 4
   */
  bbox: [number, number, number, number];
  /**
   * Columns.
   */
  width: number;
  /**
   * Rows.
   */
  height: number;
  /**
   * Events of each cell, row by row from the north-west.
   */
  counts: number[];
}
/**
 * Objects that passed.
 */
export interface Tracks {
  /**
   * Each of them.
   */
  tracks: TrackSummary[];
  /**
   * Objects of this page.
   */
  numberReturned: number;
  /**
   * This page, and the next one.
   */
  links: Link[];
}
/**
 * When an object was seen.
 */
export interface TrackSummary {
  /**
   * The object: a number or a text.
   */
  object: {
    [k: string]: unknown;
  };
  /**
   * Its events.
   */
  count: number;
  /**
   * First instant; null where it is open.
   */
  first: string | null;
  /**
   * Last instant; null where it is open.
   */
  last: string | null;
}
/**
 * The cost of a query for events.
 */
export interface ExplainedItems {
  /**
   * The snapshot that was read.
   */
  snapshot: string;
  /**
   * Rows of the snapshot, dead ones included.
   */
  rows: number;
  /**
   * Memory trees and segments.
   */
  parts: number;
  /**
   * The part of these whose bounds ruled them out.
   */
  parts_pruned: number;
  /**
   * Tree nodes visited.
   */
  nodes_visited: number;
  /**
   * Tree nodes left out with all their events.
   */
  nodes_pruned: number;
  /**
   * Tree nodes taken whole.
   */
  nodes_whole: number;
  /**
   * Blocks read.
   */
  blocks_read: number;
  /**
   * Bytes of the events in these blocks, as they are stored on average.
   */
  bytes_read: number;
  /**
   * Blocks at the edge of the query.
   */
  edge_blocks: number;
  /**
   * Events tested one by one.
   */
  events_tested: number;
  /**
   * Events found to match, before any limit.
   */
  events_matched: number;
  /**
   * Milliseconds of planning.
   */
  plan_ms: number;
  /**
   * Milliseconds of scanning.
   */
  scan_ms: number;
  /**
   * Events of the page.
   */
  events_returned: number;
  /**
   * How the query was executed, a sentence for each step.
   */
  plan: string[];
}
/**
 * The cost of an aggregate or a density.
 */
export interface ExplainedGroups {
  /**
   * The snapshot that was read.
   */
  snapshot: string;
  /**
   * Rows of the snapshot, dead ones included.
   */
  rows: number;
  /**
   * Memory trees and segments.
   */
  parts: number;
  /**
   * The part of these whose bounds ruled them out.
   */
  parts_pruned: number;
  /**
   * Tree nodes visited.
   */
  nodes_visited: number;
  /**
   * Tree nodes left out with all their events.
   */
  nodes_pruned: number;
  /**
   * Tree nodes taken whole.
   */
  nodes_whole: number;
  /**
   * Blocks read.
   */
  blocks_read: number;
  /**
   * Bytes of the events in these blocks, as they are stored on average.
   */
  bytes_read: number;
  /**
   * Blocks at the edge of the query.
   */
  edge_blocks: number;
  /**
   * Events tested one by one.
   */
  events_tested: number;
  /**
   * Events found to match, before any limit.
   */
  events_matched: number;
  /**
   * Milliseconds of planning.
   */
  plan_ms: number;
  /**
   * Milliseconds of scanning.
   */
  scan_ms: number;
  /**
   * Groups of the result.
   */
  groups?: number;
}
/**
 * The tile matrix sets.
 */
export interface TileMatrixSetList {
  /**
   * Each of them.
   */
  tileMatrixSets: TileMatrixSetItem[];
  /**
   * This document in other formats.
   */
  links: Link[];
}
/**
 * A tile matrix set by its name.
 */
export interface TileMatrixSetItem {
  /**
   * Its name.
   */
  id: string;
  /**
   * Its title.
   */
  title: string;
  /**
   * Its URI.
   */
  uri: string;
  /**
   * Its system of coordinates.
   */
  crs: string;
  /**
   * Its definition.
   */
  links: Link[];
}
/**
 * A tile matrix set.
 */
export interface TileMatrixSet {
  /**
   * Its name.
   */
  id: string;
  /**
   * Its title.
   */
  title: string;
  /**
   * Its URI.
   */
  uri: string;
  /**
   * Its system of coordinates.
   */
  crs: string;
  /**
   * Its definition.
   */
  links: Link[];
  /**
   * Order of the coordinates.
   *
   * @minItems 2
   * @maxItems 2
   */
  orderedAxes: [string, string];
  /**
   * URI of its well-known set of scales.
   */
  wellKnownScaleSet: string;
  /**
   * The grid of each zoom level.
   */
  tileMatrices: TileMatrix[];
}
/**
 * The grid of a zoom level.
 */
export interface TileMatrix {
  /**
   * The zoom level.
   */
  id: string;
  /**
   * Scale for a pixel of 0.28 mm.
   */
  scaleDenominator: number;
  /**
   * Metres of a pixel.
   */
  cellSize: number;
  /**
   * `topLeft`.
   */
  cornerOfOrigin: string;
  /**
   * That corner in metres.
   *
   * @minItems 2
   * @maxItems 2
   */
  pointOfOrigin: [number, number];
  /**
   * Tiles on a side.
   */
  matrixWidth: number;
  /**
   * Tiles on a side.
   */
  matrixHeight: number;
  /**
   * Pixels of a tile.
   */
  tileWidth: number;
  /**
   * Pixels of a tile.
   */
  tileHeight: number;
}
/**
 * The tilesets of a collection.
 */
export interface TileSetList {
  /**
   * Each of them.
   */
  tilesets: TileSet[];
  /**
   * This document in other formats.
   */
  links: Link[];
}
/**
 * A tileset. Requested alone, it is TileJSON as well.
 */
export interface TileSet {
  /**
   * Its title.
   */
  title: string;
  /**
   * `vector`.
   */
  dataType: string;
  /**
   * Its system of coordinates.
   */
  crs: string;
  /**
   * Name of its tile matrix set.
   */
  tileMatrixSetId: string;
  /**
   * URI of its tile matrix set.
   */
  tileMatrixSetURI: string;
  /**
   * Its tiles and its tile matrix set.
   */
  links: Link[];
  boundingBox?: BoundingBox;
  /**
   * Its layers.
   */
  layers?: Layer[];
  /**
   * Version of TileJSON.
   */
  tilejson?: string;
  /**
   * URLs of its tiles.
   */
  tiles?: string[];
  /**
   * Min zoom level.
   */
  minzoom?: number;
  /**
   * Max zoom level.
   */
  maxzoom?: number;
  /**
   * West, south, east, north in degrees.
   *
   * @minItems 4
   * @maxItems 4
   */
  bounds?: [number, number, number, number];
  /**
   * Its layers, as TileJSON describes them.
   */
  vector_layers?: VectorLayer[];
}
/**
 * Where the events of a tileset are.
 */
export interface BoundingBox {
  /**
   * West and south.
   *
   * @minItems 2
   * @maxItems 2
   */
  lowerLeft: [number, number];
  /**
   * East and north.
   *
   * @minItems 2
   * @maxItems 2
   */
  upperRight: [number, number];
  /**
   * Their system of coordinates.
   */
  crs: string;
}
/**
 * A layer.
 */
export interface Layer {
  /**
   * Its name.
   */
  id: string;
  /**
   * `vector`.
   */
  dataType: string;
}
/**
 * A layer, as TileJSON describes it.
 */
export interface VectorLayer {
  /**
   * Its name.
   */
  id: string;
  /**
   * Its subject.
   */
  description: string;
  /**
   * Min zoom level.
   */
  minzoom: number;
  /**
   * Max zoom level.
   */
  maxzoom: number;
  /**
   * Types of its properties by their names.
   */
  fields: {
    [k: string]: unknown;
  };
}
/**
 * A place.
 */
export interface PlaceRecord {
  /**
   * Its id.
   */
  id?: string;
  /**
   * Its name.
   */
  name: string;
  /**
   * Street and number.
   */
  address?: string;
  /**
   * City.
   */
  city?: string;
  /**
   * State.
   */
  state?: string;
  /**
   * Postal code.
   */
  zipCode?: string;
  /**
   * Telephone number.
   */
  telephoneNumber?: string;
  /**
   * Latitude in degrees.
   */
  latitude: number;
  /**
   * Longitude in degrees.
   */
  longitude: number;
  /**
   * Distance in kilometres, in `near` responses.
   */
  distance?: number;
}
/**
 * A page of places.
 */
export interface Places {
  /**
   * Places in all.
   */
  totalPlaces: number;
  /**
   * The places of the page.
   */
  places: PlaceRecord[];
}
/**
 * A search and its status.
 */
export interface SearchAnswer {
  /**
   * Its id.
   */
  search: string;
  /**
   * `running`; after its end `complete`, `partial` or `absent`.
   */
  state: string;
  /**
   * Milliseconds from its arrival to its deadline.
   */
  deadline_ms: number;
  /**
   * Packets with results.
   */
  result_packets: number;
  /**
   * Results.
   */
  results: number;
  /**
   * Providers by name.
   */
  providers: {
    [k: string]: LegStatus;
  };
  /**
   * Longitude and latitude of the centre of the search, for example of a geocoded address.
   *
   * @minItems 2
   * @maxItems 2
   */
  near?: [number, number];
  /**
   * Metres around it.
   */
  radius?: number;
  /**
   * The URL of its packets.
   */
  packets: string;
  /**
   * Whether the same caller's search was already running.
   */
  joined?: boolean;
}
/**
 * The state of a provider in a search.
 */
export interface LegStatus {
  /**
   * `asked`, then its outcome.
   */
  state: string;
  /**
   * The reason of the outcome.
   */
  detail: string;
  /**
   * Results.
   */
  results: number;
  /**
   * Milliseconds from the arrival of the search to the provider's last result or its end.
   */
  ms: number;
  /**
   * Whether it may have more results than requested.
   */
  more?: boolean;
}
/**
 * A saved search and its status.
 */
export interface SavedSearchAnswer {
  /**
   * Its id.
   */
  id: string;
  /**
   * When it was created.
   */
  created: string;
  /**
   * Results sent.
   */
  results: number;
  /**
   * Number of the oldest packet kept.
   */
  first_packet: number;
  /**
   * Number of the next packet.
   */
  next_packet: number;
  /**
   * Packets evicted before any reader took them.
   */
  lost_packets: number;
  /**
   * Events that were not matched: too many arrived at once, or while no server ran.
   */
  dropped_events: number;
  webhook?: WebhookReport;
  polls?: PollReport;
  /**
   * The URL of its packets.
   */
  packets: string;
  [k: string]: unknown;
}
/**
 * The state of a webhook.
 */
export interface WebhookReport {
  /**
   * The URL that packets are sent to.
   */
  url: string;
  /**
   * Number of the packet to send next.
   */
  next_packet: number;
  /**
   * Packets sent.
   */
  sent: number;
  /**
   * Packets evicted before they were sent.
   */
  lost: number;
  /**
   * Packets given up.
   */
  dead: number;
  /**
   * Why the last call failed, if it did.
   */
  failing: string | null;
  /**
   * The last packets given up; only in the response for one saved search.
   */
  dead_letters?: DeadLetterReport[];
}
/**
 * A packet given up.
 */
export interface DeadLetterReport {
  /**
   * Its number.
   */
  seq: number;
  /**
   * When it was given up.
   */
  at: string;
  /**
   * Calls made for it.
   */
  tries: number;
  /**
   * Why the last of them failed.
   */
  why: string;
  /**
   * The packet.
   */
  packet: {
    [k: string]: unknown;
  };
}
/**
 * The state of polls.
 */
export interface PollReport {
  /**
   * Polls done.
   */
  count: number;
  /**
   * When the last one ended.
   */
  last: string | null;
  /**
   * The state of each provider.
   */
  providers: {
    [k: string]: string;
  };
  /**
   * Why the last poll could not start.
   */
  failing: string | null;
}
/**
 * A page of saved searches.
 */
export interface SavedSearchList {
  /**
   * Saved searches of this page.
   */
  numberReturned: number;
  /**
   * Each of them.
   */
  saved_searches: SavedSearchAnswer[];
  /**
   * The next page.
   */
  links: Link[];
  /**
   * Records that were damaged: their names, and what is wrong or was done.
   */
  damaged?: {
    [k: string]: string;
  };
}
/**
 * The providers, including Meridian's own collections.
 */
export interface ProviderList {
  /**
   * Each of them.
   */
  providers: ProviderStatus[];
}
/**
 * A provider: the questions it takes, and its health.
 */
export interface ProviderStatus {
  /**
   * Its name in questions and packets.
   */
  name: string;
  /**
   * Its title.
   */
  title: string;
  [k: string]: unknown;
}
/**
 * A new token. Its text is shown this once.
 */
export interface TokenAnswer {
  /**
   * Names the token in lists, and to revoke it.
   */
  id: string;
  /**
   * The tenant that it belongs to; absent for an operator's.
   */
  tenant?: string;
  /**
   * `reader`, `writer`, `admin` or `operator`.
   */
  role: string;
  /**
   * The collections that it covers, as a pattern.
   */
  collections: string;
  /**
   * When it was created.
   */
  created: string;
  /**
   * When it expires; absent where it does not.
   */
  expires?: string;
  /**
   * Its text, for `Authorization: Bearer`.
   */
  token: string;
}
/**
 * The tokens of a tenant; for operators who name no tenant, all of them.
 */
export interface TokenList {
  /**
   * In order of creation.
   */
  tokens: TokenInfo[];
  /**
   * For operators: tokens whose records are damaged, which admit nobody. Absent if there are none.
   */
  damaged?: DamagedToken[];
}
/**
 * A token, without its secret.
 */
export interface TokenInfo {
  /**
   * Names the token in lists, and to revoke it.
   */
  id: string;
  /**
   * The tenant that it belongs to; absent for an operator's.
   */
  tenant?: string;
  /**
   * `reader`, `writer`, `admin` or `operator`.
   */
  role: string;
  /**
   * The collections that it covers, as a pattern.
   */
  collections: string;
  /**
   * When it was created.
   */
  created: string;
  /**
   * When it expires; absent where it does not.
   */
  expires?: string;
}
/**
 * A token whose record is damaged.
 */
export interface DamagedToken {
  /**
   * Names the token, to revoke it.
   */
  id: string;
  /**
   * What is wrong with its record.
   */
  detail: string;
}
/**
 * A tenant.
 */
export interface TenantInfo {
  /**
   * Its name.
   */
  name: string;
  /**
   * Its share of the server beside others.
   */
  weight: number;
  /**
   * Whether its callers are refused.
   */
  suspended: boolean;
  /**
   * The collections that callers without a credential may read, as a pattern; absent for none.
   */
  anonymous?: string;
  /**
   * Limits on what it uses, by name; what is absent has no limit.
   */
  quotas: {
    [k: string]: number;
  };
  /**
   * Its collections; absent here and below while the server that has them cannot be reached.
   */
  collections?: number;
  /**
   * Its events; absent here and below at a server that shows what an owner has flushed.
   */
  events?: number;
  /**
   * Bytes of its events, in files and in memory, as the quota `stored_bytes` counts them.
   */
  bytes?: number;
}
/**
 * The tenants of the server.
 */
export interface TenantList {
  /**
   * In order of their names.
   */
  tenants: TenantInfo[];
}
/**
 * A user, without what is kept of its password.
 */
export interface UserInfo {
  /**
   * Its name, unique in its tenant.
   */
  name: string;
  /**
   * The login: the name, with `TENANT/` before it in another tenant than the default one.
   */
  login: string;
  /**
   * The tenant that it belongs to; absent for an operator.
   */
  tenant?: string;
  /**
   * `reader`, `writer`, `admin` or `operator`.
   */
  role: string;
  /**
   * The collections that it covers, as a pattern.
   */
  collections: string;
  /**
   * When it was created.
   */
  created: string;
  /**
   * Whether it may not sign in.
   */
  disabled: boolean;
}
/**
 * The users of a tenant; for operators, all of them.
 */
export interface UserList {
  /**
   * In order of what they sign in with.
   */
  users: UserInfo[];
}
/**
 * The signed-in user; only `sign_in` is present if there is none.
 */
export interface Session {
  /**
   * Whether there are users, who sign in at `/login`.
   */
  sign_in: boolean;
  /**
   * The user's login.
   */
  user?: string;
  /**
   * The tenant that it belongs to; absent for an operator.
   */
  tenant?: string;
  /**
   * `reader`, `writer`, `admin` or `operator`.
   */
  role?: string;
  /**
   * The collections that it covers, as a pattern.
   */
  collections?: string;
  /**
   * For the header `X-CSRF-Token`, which requests with the session's cookie need, apart from GET, HEAD and OPTIONS.
   */
  csrf_token?: string;
  /**
   * When the session ends at the latest.
   */
  expires?: string;
}
/**
 * The server's current work, and the tenants behind it.
 */
export interface Load {
  /**
   * When this was so.
   */
  time: string;
  /**
   * Seconds that recent figures cover; absent where there are none yet.
   */
  window_s?: number;
  requests: RequestLoad;
  connections: Level;
  streams: Level;
  searches: Level;
  /**
   * How long the oldest queued work of searches has waited, in milliseconds.
   */
  search_wait_ms: number;
  /**
   * Memory by purpose.
   */
  memory: MemoryLoad[];
  /**
   * The tenants with running, waiting or recently refused requests, busiest first; at most 20.
   */
  tenants: TenantLoad[];
  /**
   * All tenants.
   */
  tenants_in_all: number;
  /**
   * The slowest requests of the last 15 minutes that took longer than `log.slow`, slowest first; at most 20.
   */
  slow: SlowRequest[];
}
/**
 * Requests of all tenants.
 */
export interface RequestLoad {
  /**
   * Slots that there are now.
   */
  slots: number;
  /**
   * Requests that hold one.
   */
  running: number;
  /**
   * Requests that began and were overtaken.
   */
  paused: number;
  /**
   * Requests that have not begun.
   */
  waiting: number;
  /**
   * Requests that got no slot, since the start.
   */
  refused: number;
}
/**
 * How many there are, of how many there may be.
 */
export interface Level {
  /**
   * Now.
   */
  now: number;
  /**
   * At most.
   */
  max: number;
  /**
   * Refused since the start, where that is counted.
   */
  refused?: number;
}
/**
 * Memory for one purpose.
 */
export interface MemoryLoad {
  /**
   * `bodies`, `batches`, `answers`, `conditions` (of streams), `queries`, `packets` or `writes`.
   */
  purpose: string;
  /**
   * Bytes held.
   */
  held: number;
  /**
   * Bytes that there may be; absent for `writes`, which the store bounds (`store.memory_bytes`).
   */
  limit?: number;
}
/**
 * A tenant.
 */
export interface TenantLoad {
  /**
   * Its name.
   */
  name: string;
  /**
   * Its share of the server beside others.
   */
  weight: number;
  /**
   * Its requests by class; classes without one are left out.
   */
  classes: ClassLoad[];
  /**
   * Processor time since the start, in seconds.
   */
  processor_s: number;
  /**
   * Processors used recently, on average; absent until that is known.
   */
  processors?: number;
  /**
   * Requests refused since the start, by reason: a quota, or `queue_full`, `waited` and `deadline` for want of a
   * slot.
   */
  refused: {
    [k: string]: number;
  };
  /**
   * The same over the last seconds; absent until that is known.
   */
  refused_of_late?: {
    [k: string]: number;
  };
  /**
   * The quotas that are set.
   */
  quotas: QuotaLoad[];
  /**
   * Bytes of memory that it holds, by purpose.
   */
  memory: {
    [k: string]: number;
  };
  /**
   * Open streams of events and packets.
   */
  streams: number;
  /**
   * Running searches.
   */
  searches: number;
}
/**
 * The requests of one class of a tenant.
 */
export interface ClassLoad {
  /**
   * `interactive`, `batch` or `background`.
   */
  class: string;
  /**
   * Requests that hold a slot.
   */
  running: number;
  /**
   * Requests that began and were overtaken.
   */
  paused: number;
  /**
   * Requests that have not begun.
   */
  waiting: number;
  /**
   * How long the first of those has waited, in milliseconds.
   */
  oldest_wait_ms?: number;
}
/**
 * A quota of a tenant.
 */
export interface QuotaLoad {
  /**
   * Its name.
   */
  quota: string;
  /**
   * Its limit.
   */
  limit: number;
  /**
   * Its use: current, in all, or, for a quota by the second, the unpaid use, which may exceed the limit. Absent if
   * it holds for each request alone.
   */
  used?: number;
}
/**
 * A request that took longer than `log.slow`.
 */
export interface SlowRequest {
  /**
   * When it ended.
   */
  time: string;
  /**
   * Its caller's tenant.
   */
  tenant: string;
  /**
   * Its method.
   */
  method: string;
  /**
   * Its path in the route table.
   */
  route: string;
  /**
   * Its status; 499 where its client left first.
   */
  status: number;
  /**
   * Its id, as in the header `X-Request-Id` and in log lines.
   */
  request_id: string;
  /**
   * Milliseconds that the server took for it, without those of its client.
   */
  ms: number;
  /**
   * Milliseconds by stage.
   */
  stages: {
    [k: string]: number;
  };
  /**
   * Bytes of events read.
   */
  bytes_read: number;
  /**
   * Tree nodes visited.
   */
  nodes_visited: number;
}
/**
 * The server that answers, and its cluster.
 */
export interface ClusterAnswer {
  server: AnsweringServer;
  /**
   * Its cluster, as `meridian cluster status --json` prints it; null of a server that is one process.
   */
  cluster: Cluster | null;
}
/**
 * The server that answers.
 */
export interface AnsweringServer {
  /**
   * `all`: one process, without a cluster; `gateway` or `scan`.
   */
  role: string;
  /**
   * Its name in its cluster; null of one process.
   */
  node: string | null;
}
/**
 * A cluster, at one moment.
 */
export interface Cluster {
  /**
   * 1; another number if a name is removed or changes its meaning.
   */
  version: number;
  /**
   * Time of the survey.
   */
  time: string;
  /**
   * Address of the bucket.
   */
  bucket: string;
  /**
   * Nothing of a cluster is in the bucket: its address, or the prefix in it, may be wrong.
   */
  empty: boolean;
  /**
   * Where the log of the collections is: `bucket` or `nats`.
   */
  log: string;
  /**
   * Why the log in NATS was not checked.
   */
  log_error: string | null;
  /**
   * The holder of the lease, or the last one; null before the first owner. With several groups of partitions, that
   * of group 0.
   */
  owner: Owner | null;
  /**
   * The same of each group of partitions, if there are several.
   */
  owners: ClusterGroup[];
  /**
   * The collections, by tenant and name.
   */
  collections: ClusterCollection[];
  /**
   * Processes that only read the bucket, by their pins.
   */
  readers: ClusterReader[];
  /**
   * Gateways and scan servers, as they say of themselves.
   */
  servers: ClusterServer[];
  /**
   * All processes by the roll, owners included. One that ended without a word stays for some time.
   */
  nodes: ClusterNode[];
}
/**
 * The holder, by its lease.
 */
export interface Owner {
  state: LeaseState;
  /**
   * Its name.
   */
  node: string;
  /**
   * Host and port by which gateways reach it.
   */
  address: string;
  /**
   * Number of its term.
   */
  epoch: number;
  /**
   * Length of the lease.
   */
  lease_ms: number;
  /**
   * Time since the last renewal.
   */
  age_ms: number | null;
  /**
   * Time until the lease ends without another renewal; less than 0: since then.
   */
  expires_in_ms: number | null;
  /**
   * Whether it answers the process that looks; null unless it holds the lease.
   */
  reachable: boolean | null;
  /**
   * Why it does not answer.
   */
  reason: string | null;
}
/**
 * The owner of a group of partitions.
 */
export interface ClusterGroup {
  /**
   * Its number, from 0.
   */
  group: number;
  /**
   * The holder of its lease, or the last one; null before the first owner.
   */
  owner: Owner | null;
}
/**
 * A collection.
 */
export interface ClusterCollection {
  /**
   * Its tenant.
   */
  tenant: string;
  /**
   * Its name.
   */
  collection: string;
  /**
   * Why a part of it cannot be read; its values are then null.
   */
  error: string | null;
  /**
   * Number of partitions.
   */
  partitions: number | null;
  /**
   * Version of the newest manifest.
   */
  manifest: string | null;
  /**
   * Epoch of the manifest's writer.
   */
  epoch: number | null;
  /**
   * Position up to which the segments have all writes; a list, of several partitions.
   */
  position: Position | null;
  /**
   * Live segments.
   */
  segments: number | null;
  /**
   * Rows of these segments, those included that were replaced or deleted.
   */
  rows: number | null;
  /**
   * Bytes of these segments.
   */
  bytes: number | null;
  /**
   * Records of the log that no manifest covers yet.
   */
  tail: LogTail | null;
  /**
   * The segments have every write that was acknowledged before this time, according to the owner.
   */
  complete: string | null;
  /**
   * Time since then.
   */
  complete_age_ms: number | null;
  /**
   * The objects of it that readers use; null without a reader.
   */
  pinned: Pinned | null;
}
/**
 * The part of a log that no manifest covers.
 */
export interface LogTail {
  /**
   * Objects, or messages.
   */
  entries: number;
  /**
   * Bytes; of objects only.
   */
  bytes: number | null;
}
/**
 * The objects of a collection that readers use.
 */
export interface Pinned {
  /**
   * How many use it.
   */
  readers: number;
  /**
   * Version of the oldest manifest in use.
   */
  manifest: string;
  /**
   * Min sequence number of a snapshot in use.
   */
  snapshot: string;
}
/**
 * A process that only reads, by its pin.
 */
export interface ClusterReader {
  /**
   * A random number that the process has until it ends.
   */
  reader: string;
  /**
   * Age of its pin.
   */
  age_ms: number | null;
  /**
   * Whether the pin still counts; null: its age is not known.
   */
  counts: boolean | null;
  /**
   * Collections that it reads.
   */
  collections: number;
  /**
   * The report of a scan server; null for other roles.
   */
  scan: ClusterScan | null;
  /**
   * Why its pin is unreadable.
   */
  error: string | null;
}
/**
 * A scan server that answers gateways, as of when its pin was written.
 */
export interface ClusterScan {
  /**
   * Where gateways reach it.
   */
  address: string;
  /**
   * Its group, which profiles name.
   */
  group: string;
  /**
   * Questions that work on a batch.
   */
  working: number;
  /**
   * Questions that have started and not ended.
   */
  started: number;
  /**
   * Questions that wait for their start.
   */
  waiting: number;
}
/**
 * A gateway or a scan server, by its own report.
 */
export interface ClusterServer {
  /**
   * A random number that the process has until it ends.
   */
  server: string;
  /**
   * `gateway` or `scan`; null if it does not say.
   */
  role: string | null;
  /**
   * Its name.
   */
  node: string | null;
  /**
   * Where it listens for clients.
   */
  address: string | null;
  /**
   * Its version of Meridian.
   */
  version: string | null;
  /**
   * Time since its last report, which it renews every 15 s at the latest.
   */
  age_ms: number | null;
  /**
   * Whether its report is recent; null if the time is unknown.
   */
  counts: boolean | null;
  /**
   * Its work; null if it does not say.
   */
  load: ServerLoad | null;
  /**
   * Why its report cannot be read.
   */
  error: string | null;
}
/**
 * The work of a server. Sums count from its start.
 */
export interface ServerLoad {
  /**
   * Slots for requests that compute.
   */
  slots: number;
  /**
   * Requests that hold one.
   */
  running: number;
  /**
   * Requests that wait for one.
   */
  waiting: number;
  /**
   * Requests that got none, in sum.
   */
  refused: number;
  /**
   * Open connections.
   */
  connections: number;
  /**
   * Its caches of blocks; null of a server that reads no segments.
   */
  caches: Caches | null;
  /**
   * Its eventual reads; null of a server that asks no scan servers.
   */
  scan_reads: ScanReads | null;
}
/**
 * Hits of a server's block caches, and bytes fetched.
 */
export interface Caches {
  /**
   * Blocks that were found, in sum.
   */
  hits: number;
  /**
   * Blocks that were fetched, in sum.
   */
  misses: number;
  /**
   * Bytes that were fetched, in sum.
   */
  bytes_fetched: number;
}
/**
 * Eventual reads that a gateway sent to scan servers. A question is of one partition.
 */
export interface ScanReads {
  /**
   * Questions, in sum.
   */
  questions: number;
  /**
   * Requests to scan servers for these, in sum.
   */
  attempts: number;
  /**
   * Requests that were answered busy, in sum.
   */
  busy: number;
  /**
   * Requests that failed, in sum.
   */
  failed: number;
  /**
   * Second requests beside one that was slow to begin, in sum.
   */
  hedges: number;
  /**
   * Questions that went to the owner, in sum: there was no scan server, none could be reached, or all refused.
   */
  fallbacks: number;
  /**
   * Questions that got 503 for one of these reasons, in sum: the owner was not to answer, or took no more.
   */
  refused: number;
}
/**
 * A process, by its entry on the roll.
 */
export interface ClusterNode {
  /**
   * Its name, by which orders find it.
   */
  node: string;
  /**
   * `owner`, `gateway` or `scan`.
   */
  role: string;
  /**
   * Where clients reach it, or gateways an owner.
   */
  address: string;
  /**
   * Its version of Meridian.
   */
  program: string;
  /**
   * The forms of objects that it reads and writes, as a number that grows with versions.
   */
  level: number;
  condition: NodeCondition;
  /**
   * Names of the leases that it holds.
   */
  leases: string[];
  /**
   * Time since its last report, which it renews after two thirds of a lease.
   */
  age_ms: number | null;
}
/**
 * A page of the audit log. It may be empty and have a `next` link: a page reads a bounded part of the log.
 */
export interface AuditPage {
  /**
   * Lines, oldest first.
   */
  acts: AuditLine[];
  /**
   * To the next page.
   */
  links: Link[];
}
/**
 * A line of the audit log.
 */
export interface AuditLine {
  /**
   * Its number, from 1.
   */
  n: number;
  /**
   * When it was written.
   */
  time: string;
  /**
   * The id of the request.
   */
  request: string;
  /**
   * The caller: a token's id, `user:NAME`, `jwt:ISSUER:SUBJECT`, `socket`, `local` or `anonymous`.
   */
  who: string;
  /**
   * The tenant that it concerns; empty for the server.
   */
  tenant: string;
  /**
   * The client's address, or `socket`.
   */
  from: string;
  /**
   * The operation, by its name in this description.
   */
  act: string;
  /**
   * The object of the act, as a path.
   */
  target: string;
  /**
   * The collection, where it is one.
   */
  collection?: string;
  /**
   * The request, in words.
   */
  change?: string;
  /**
   * The status of the response; absent in the line that records the start of the act.
   */
  status?: number;
  /**
   * The line that records the start of this act.
   */
  began?: number;
  /**
   * The number of this line when it was first written; that one was removed to make room.
   */
  first?: number;
  /**
   * The lines up to this number were removed to make room.
   */
  trimmed?: number;
  /**
   * Refused attempts before this line that got none of their own.
   */
  unrecorded?: number;
  /**
   * SHA-256 of the line before it in the log.
   */
  previous: string;
}
/**
 * One of `keywords`, a place and `author` is required; see docs/searches.md.
 */
export interface Question {
  /**
   * Words that the text must have, with `OR`, `NOT`, quotes and parentheses.
   */
  keywords?: string;
  /**
   * Longitude and latitude in degrees.
   *
   * @minItems 2
   * @maxItems 2
   */
  near?: [number, number];
  /**
   * Metres.
   */
  radius?: number;
  /**
   * West, south, east, north in degrees.
   *
   * @minItems 4
   * @maxItems 4
   */
  bbox?: [number, number, number, number];
  /**
   * A polygon as GeoJSON.
   */
  polygon?: {
    /**
     * `Polygon`.
     */
    type: 'Polygon';
    /**
     * Its rings.
     */
    coordinates: unknown[];
  };
  /**
   * Name of a place.
   */
  address?: string;
  /**
   * Name of the author.
   */
  author?: string;
  /**
   * Names of the providers to ask; all that are enabled without it.
   *
   * @minItems 1
   * @maxItems 100
   */
  providers?: [string, ...string[]];
  /**
   * RFC 3339, or a date: that whole day in UTC.
   */
  start?: string;
  /**
   * RFC 3339, or a date: that whole day in UTC.
   */
  end?: string;
  /**
   * The media that a result must have.
   */
  media?: 'images' | 'videos' | 'any';
  /**
   * Two letters (ISO 639-1), or `any`.
   */
  language?: string;
  /**
   * Max results of each provider.
   */
  limit?: number;
  /**
   * Milliseconds.
   */
  timeout?: number;
  /**
   * Whether a client waits for it.
   */
  priority?: 'quick' | 'background';
  /**
   * Of saved searches: the transitions of moving objects to report.
   *
   * Items: A transition of a moving object.
   */
  when?: ('enter' | 'inside' | 'exit')[];
  /**
   * Where its results are stored.
   */
  keep?: {
    /**
     * Name of the collection.
     */
    collection: string;
    /**
     * Hours until they expire.
     */
    hours?: number;
  };
}
/**
 * A question that is asked from now on. Its members may be beside `name` too.
 */
export interface SavedSearch {
  /**
   * For people; at most 200 bytes.
   */
  name?: string;
  question?: Question;
  /**
   * Where packets are sent.
   */
  webhook?: {
    /**
     * Address of the receiver.
     */
    url: string;
    /**
     * Key of the signatures.
     */
    secret: string;
  };
  /**
   * Seconds between polls of outside providers; the operator may set a higher min.
   */
  poll_s?: number;
}
/**
 * A JSON Schema with x-ogc-role and x-meridian-… members.
 */
export interface JsonSchema {
  /**
   * `object`.
   */
  type?: 'object';
  /**
   * Title of the collection.
   */
  title?: string;
  /**
   * Subject of the collection.
   */
  description?: string;
  /**
   * The schema of each property of an event, by its name.
   */
  properties: {
    [k: string]: {
      [k: string]: unknown;
    };
  };
  /**
   * Names of the properties that every event has.
   */
  required?: string[];
  /**
   * `false`: properties without a schema are refused.
   */
  additionalProperties?: false;
  /**
   * Whether a query sees all events, or the newest of each object.
   */
  'x-meridian-mode'?: 'history' | 'latest';
  /**
   * ISO 8601 duration.
   */
  'x-meridian-time-unit'?: string;
  /**
   * The id, if its name is that of another property too.
   */
  'x-meridian-id'?: {
    /**
     * Its name.
     */
    name: string;
    /**
     * Whether clients give it; otherwise the server makes it.
     */
    given: boolean;
  };
}
/**
 * Changes of a collection; what is absent stays.
 */
export interface Settings {
  /**
   * A new name, without other changes.
   */
  id?: string;
  /**
   * ISO 8601 duration; null keeps them for ever.
   */
  retention?: string | null;
  /**
   * Bytes of events; null for no limit.
   */
  retention_bytes?: number | null;
  /**
   * New optional fields, as in a JSON Schema.
   */
  properties?: {
    [k: string]: {
      [k: string]: unknown;
    };
  };
}
/**
 * A JSON Merge Patch (RFC 7396) of the event as GeoJSON.
 */
export interface Patch {
  /**
   * A geometry, which replaces the event's; null for none.
   */
  geometry?: {
    [k: string]: unknown;
  } | null;
  /**
   * New values by their names; null removes one.
   */
  properties?: {
    [k: string]: unknown;
  };
}
/**
 * What is to be backed up; everything if the body is empty.
 */
export interface Backup {
  /**
   * Files in the folder, with their checksums (CRC32C).
   */
  have?: {
    [k: string]: number;
  };
  /**
   * The only tenant that is saved; without it all are.
   */
  tenant?: string;
  /**
   * 32 bytes in base64 or hexadecimal, which seal secrets; without it they are left out.
   */
  key?: string;
}
/**
 * A new token.
 */
export interface NewToken {
  /**
   * Operators only; the caller's own where it is absent.
   */
  tenant?: string;
  /**
   * The rights of its callers.
   */
  role: 'reader' | 'writer' | 'admin' | 'operator';
  /**
   * Names of collections, separated by commas; a name may end in `*`.
   */
  collections?: string;
  /**
   * An RFC 3339 instant, or an ISO 8601 duration from now.
   */
  expires?: string;
}
/**
 * A new tenant, or changes of one; absent settings stay.
 */
export interface NewTenant {
  /**
   * Its name, which a new tenant needs and a change keeps.
   */
  name?: string;
  /**
   * Share of the server beside other tenants; 1 by default.
   */
  weight?: number;
  /**
   * Whether its callers are refused.
   */
  suspended?: boolean;
  /**
   * Names of collections that callers without a token may read, separated by commas; a name may end in `*`. Null in
   * a change takes the right away.
   */
  anonymous?: string | null;
  /**
   * Limits on the tenant's use; null in a change removes one. Unnamed ones stay.
   */
  quotas?: {
    requests_per_second?: number | null;
    events_per_second?: number | null;
    scanned_bytes_per_second?: number | null;
    result_bytes_per_second?: number | null;
    concurrent_requests?: number | null;
    scanned_bytes_per_request?: number | null;
    searches?: number | null;
    streams?: number | null;
    saved_searches?: number | null;
    stored_bytes?: number | null;
  };
}
/**
 * A new user.
 */
export interface NewUser {
  /**
   * Small letters, digits, `-`, `_`, `.`, `+`, `@`; unique in the tenant.
   */
  name: string;
  /**
   * Operators only; the caller's own where it is absent.
   */
  tenant?: string;
  /**
   * The user's rights.
   */
  role: 'reader' | 'writer' | 'admin' | 'operator';
  /**
   * Names of collections, separated by commas; a name may end in `*`.
   */
  collections?: string;
  /**
   * At least 12 characters.
   */
  password: string;
}
/**
 * Changes of a user; absent settings stay.
 */
export interface UserChange {
  /**
   * The user's rights.
   */
  role?: 'reader' | 'writer' | 'admin' | 'operator';
  /**
   * Names of collections, separated by commas; a name may end in `*`.
   */
  collections?: string;
  /**
   * At least 12 characters.
   */
  password?: string;
  /**
   * Whether the user may not sign in.
   */
  disabled?: boolean;
}
/**
 * Name and password of a user.
 */
export interface SignIn {
  /**
   * The user's login: the name, with `TENANT/` before it in another tenant than the default one.
   */
  name: string;
  /**
   * The user's password.
   */
  password: string;
  /**
   * Path on this server to go to; forms only.
   */
  next?: string;
}
/**
 * A form that ends the session.
 */
export interface SignOut {
  /**
   * Instead of the header `X-CSRF-Token`, which a form cannot send.
   */
  csrf_token?: string;
}
/**
 * The current password, and the new one.
 */
export interface PasswordChange {
  /**
   * That of now.
   */
  password: string;
  /**
   * At least 12 characters.
   */
  new: string;
  /**
   * In forms, which cannot send the header `X-CSRF-Token`.
   */
  csrf_token?: string;
}
