import { Collection } from './collection.js';
import { Http, type ResponseBody, type RequestInput, type ConnectOptions, type Path, type RequestOptions } from './http.js';
import type { FollowOptions } from './resumed.js';
import { Problem } from './problem.js';
import { found, SavedSearch, Search } from './search.js';
import type { CollectionInfo, CreatedToken, NewSavedSearch, NewToken, Properties, Provider, Question, Schema, TokenInfo, Version } from './types.js';

/** Settings of a new collection: docs/collections.md. */
export interface CreateOptions extends RequestOptions {
  durability?: 'ephemeral' | 'local' | 'replicated' | undefined;
  /** ISO 8601 duration. */
  retention?: string | undefined;
  retentionBytes?: number | undefined;
  partitions?: number | undefined;
}

/** Whether a collection has exactly the fields of a schema; ids that the server makes are beside them. */
function sameFields({ properties: have }: Schema, { properties: want }: Schema): boolean {
  const members = ['type', 'format', 'x-ogc-role', 'x-meridian-object'] as const;
  const same = (name: string): boolean => name in have && members.every((member) => have[name]?.[member] === want[name]?.[member]);
  return Object.keys(want).every(same) && Object.keys(have).every((name) => name in want || have[name]?.['readOnly'] === true);
}

/** A client of the server at `url`, such as `http://127.0.0.1:7117`. Nothing is sent before the first question. */
export function connect(url: string | URL, options: ConnectOptions = {}): Database {
  return new Database(new Http(String(url), options));
}

/** A client of one server. */
export class Database {
  constructor(private readonly http: Http) {}

  /** Address of the server. */
  get url(): string {
    return this.http.url;
  }

  /** The collection of this name, without a request. `P` are the properties of its events. */
  collection<P = Properties>(name: string): Collection<P> {
    return new Collection<P>(this.http, name);
  }

  /** The collections that this token may read. */
  async collections({ signal }: RequestOptions = {}): Promise<CollectionInfo[]> {
    return (await this.http.json('get', '/collections', { query: { f: 'json' } }, { signal })).collections;
  }

  /**
   * Creates a collection with a JSON Schema, or the text of a SimpleFeatureType spec. An existing one with the same schema
   * keeps its events; with another schema it is a 409, unless it was never written to. One that another client makes during
   * the call keeps its types and settings: a 412, unless `schema` is a JSON Schema of the same fields.
   */
  async create<P = Properties>(name: string, schema: Schema | string, options: CreateOptions = {}): Promise<Collection<P>> {
    const { signal, durability, retention, retentionBytes, partitions } = options;
    const query = { durability, retention, retention_bytes: retentionBytes, partitions };
    const made = this.collection<P>(name);
    const isText = typeof schema === 'string';
    // Without the condition, an empty collection made meanwhile would get this schema.
    const condition: Record<string, string> = (await made.exists({ signal })) ? {} : { 'if-none-match': '*' };
    const asked = isText ? { body: schema, headers: { 'content-type': 'text/plain', ...condition } } : { json: { type: 'object', ...schema }, headers: condition };
    try {
      await this.http.json('put', '/collections/{c}', { path: { c: name }, query, ...asked }, { signal, repeatable: true });
    } catch (error) {
      const isTaken = error instanceof Problem && error.status === 412;
      if (!isTaken || isText || !sameFields(await made.schema({ signal }), schema)) throw error;
    }
    return made;
  }

  /** Removes a collection with all its events; false if there is none. */
  drop(name: string, { signal }: RequestOptions = {}): Promise<boolean> {
    return found(this.http.json('delete', '/collections/{c}', { path: { c: name } }, { signal }));
  }

  // Searches

  /** Asks Meridian's collections and outside sources at once (docs/searches.md). Results come as they are found. */
  async search(question: Question, options: RequestOptions & Pick<FollowOptions, 'transport' | 'patience'> = {}): Promise<Search> {
    const status = await this.http.json('post', '/searches', { json: question }, { signal: options.signal });
    return new Search(this.http, status, options);
  }

  /** Saves a question, which covers every event written from now on (docs/saved-searches.md). */
  async saveSearch(saved: NewSavedSearch, { signal }: RequestOptions = {}): Promise<SavedSearch> {
    return new SavedSearch(this.http, (await this.http.json('post', '/saved-searches', { json: saved }, { signal })).id);
  }

  /** All saved searches of the tenant. */
  async *savedSearches({ signal }: RequestOptions = {}): AsyncGenerator<SavedSearch, void> {
    let after: string | undefined;
    do {
      const page = await this.http.json('get', '/saved-searches', { query: { limit: 1000, after } }, { signal });
      for (const { id } of page.saved_searches) yield new SavedSearch(this.http, id);
      const next = page.links.find((link) => link.rel === 'next');
      after = next && (new URL(next.href, this.url).searchParams.get('after') ?? undefined);
    } while (after !== undefined);
  }

  /** The sources that a search can ask, and their state. */
  async providers({ signal }: RequestOptions = {}): Promise<Provider[]> {
    return (await this.http.json('get', '/providers', {}, { signal })).providers;
  }

  // Tokens

  /** Creates a token: its text is in the answer, this once. */
  createToken(token: NewToken, { signal }: RequestOptions = {}): Promise<CreatedToken> {
    return this.http.json('post', '/tokens', { json: token }, { signal });
  }

  /** The tokens of the tenant; for operators, of all tenants. */
  async tokens({ signal }: RequestOptions = {}): Promise<TokenInfo[]> {
    return (await this.http.json('get', '/tokens', {}, { signal })).tokens;
  }

  /** Revokes a token by its id: its streams end within a second. False if there is none. */
  revokeToken(id: string, { signal }: RequestOptions = {}): Promise<boolean> {
    return found(this.http.json('delete', '/tokens/{id}', { path: { id } }, { signal }));
  }

  // The rest

  /** Name and version of the server. */
  version({ signal }: RequestOptions = {}): Promise<Version> {
    return this.http.json('get', '/version', {}, { signal });
  }

  /** A request to any route of the API, with its parameters and its JSON answer typed by the contract. */
  request<M extends 'get' | 'put' | 'post' | 'patch' | 'delete', P extends Path<M>>(method: M, path: P, asked: RequestInput<M, P>, { signal }: RequestOptions = {}): Promise<ResponseBody<M, P>> {
    return this.http.json(method, path, asked, { signal });
  }
}
