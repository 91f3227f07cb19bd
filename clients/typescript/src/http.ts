import type { paths } from './contract.js';
import type { Socket } from './frames.js';
import { BrokenOff, problemOf, Unreachable } from './problem.js';
import { Source } from './source.js';
import { pause, Watch } from './watch.js';

/** A token, or what gives one: asked before each request, so that it may be rotated. */
export type Token = string | (() => string | Promise<string>);

/** Options of `connect`. */
export interface ConnectOptions {
  /** Goes with each request as `Authorization: Bearer`. */
  token?: Token | undefined;
  /** The tenant that an operator means. */
  tenant?: string | undefined;
  /** The longest silence of the server in milliseconds: 120,000. */
  timeout?: number | undefined;
  /** The time for all retries of one request, in milliseconds: 30,000. */
  patience?: number | undefined;
  /** Sends the requests: `globalThis.fetch` unless given, as for a certificate authority or a proxy of your own. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Opens WebSockets; `globalThis.WebSocket` unless given. */
  webSocket?: ((url: string, headers: Record<string, string>) => Socket) | undefined;
  /** Is told that an answer may lack events, since files of the server are damaged: `console.warn` unless given. */
  warn?: ((message: string) => void) | undefined;
}

/** What every request takes. */
export interface RequestOptions {
  /** Ends the request: the server stops its work. */
  signal?: AbortSignal | undefined;
}

/** What `fetch` sends: the name that browsers have for it, `BodyInit`, is not in Node. */
type Sent = NonNullable<RequestInit['body']>;
/** A body of a request: what `fetch` sends, or texts and bytes of an async iterator. */
export type Body = Sent | AsyncIterable<string | Uint8Array>;

type Method = 'get' | 'put' | 'post' | 'patch' | 'delete';
/** Paths of the API that have this method. */
export type Path<M extends Method> = { [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never }[keyof paths];
type Json<R> = R extends { content: { 'application/geo+json': infer J } }
  ? J
  : R extends { content: { 'application/json': infer J } }
    ? J
    : R extends { content: { 'application/schema+json': infer J } }
      ? J
      : never;
type Success = 200 | 201 | 202;
type Responses<O> = O extends { responses: infer R } ? R[keyof R & Success] : never;
/** The JSON of a successful answer, as the contract has it. */
export type ResponseBody<M extends Method, P extends Path<M>> = Json<Responses<paths[P][M]>>;
type PathParameters<O> = O extends { parameters: { path: infer N } } ? { path: N } : { path?: undefined };
type QueryParameters<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
/** Parameters and body of a request. */
export type RequestInput<M extends Method, P extends Path<M>> = PathParameters<paths[P][M]> & {
  query?: QueryParameters<paths[P][M]> | Parameters | undefined;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: Body | undefined;
  headers?: Record<string, string> | undefined;
};
/** Parameters as they stand in the address; lists have commas between. */
export type Parameters = Record<string, string | number | boolean | readonly (string | number)[] | undefined>;

interface SendOptions extends RequestOptions {
  /** Whether the request may be sent again after no answer came: by default a GET may. */
  repeatable?: boolean | undefined;
  /** The longest silence, in milliseconds. */
  timeout?: number | undefined;
}

/** A response whose body is still to be read. */
export interface OpenResponse {
  response: Response;
  watch: Watch;
}

const PAUSE_MS = 250;
const PAUSE_MAX_MS = 10_000;

/** Requests to one server. */
export class Http {
  readonly url: string;
  readonly timeout: number;
  readonly options: ConnectOptions;
  readonly #patience: number;

  constructor(url: string, options: ConnectOptions) {
    const parts = new URL(url);
    if (!['http:', 'https:'].includes(parts.protocol)) throw new TypeError(`${url}: expected an address such as http://127.0.0.1:7117`);
    if (parts.search || parts.hash || parts.username || parts.password)
      throw new TypeError('the address of a server has no query, fragment, user or password');
    this.url = url.replace(/\/+$/, '');
    this.options = options;
    this.timeout = options.timeout ?? 120_000;
    this.#patience = options.patience ?? 30_000;
  }

  /** The address of a resource; names are escaped. */
  address(path: string, names: Readonly<Record<string, string>> = {}, query: Parameters = {}): string {
    const filled = path.replace(/\{([^}]+)\}/g, (_, name: string) => {
      const value = names[name];
      // An empty name would be another resource, and so would these two, which an address has for steps.
      if (value === undefined || ['', '.', '..'].includes(String(value))) throw new TypeError(`${name}: ${JSON.stringify(value)} names nothing`);
      return encodeURIComponent(String(value));
    });
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
    const asked = parameters.toString();
    return `${this.url}${filled}${asked && `?${asked}`}`;
  }

  /** The headers of every request. */
  async headers(): Promise<Record<string, string>> {
    const { token, tenant } = this.options;
    const headers: Record<string, string> = {};
    if (token !== undefined) headers['authorization'] = `Bearer ${typeof token === 'function' ? await token() : token}`;
    if (tenant !== undefined) headers['meridian-tenant'] = tenant;
    return headers;
  }

  /** The JSON of an answer; `undefined` where it has no content. */
  async json<M extends Method, P extends Path<M>>(method: M, path: P, asked: RequestInput<M, P>, sending: SendOptions = {}): Promise<ResponseBody<M, P>> {
    let text = '';
    for await (const piece of pieces(await this.open(method, path, asked, sending), sending.signal)) text += piece;
    try {
      return (text ? JSON.parse(text) : undefined) as ResponseBody<M, P>;
    } catch (cause) {
      throw new BrokenOff('the answer is not JSON', { cause });
    }
  }

  /**
   * A response with a status below 300, its body not yet read. 429 and 503 are asked again after `Retry-After`, within the
   * patience; so is a request without an answer that is repeatable. A body that is read once is sent once.
   */
  async open<M extends Method, P extends Path<M>>(method: M, path: P, asked: RequestInput<M, P>, sending: SendOptions = {}): Promise<OpenResponse> {
    const { signal, repeatable = method === 'get' } = sending;
    const url = this.address(path, asked.path as Record<string, string> | undefined, asked.query as Parameters | undefined);
    const source = asked.json === undefined && Source.is(asked.body) ? new Source(asked.body) : undefined;
    const until = Date.now() + this.#patience;
    for (let step = PAUSE_MS; ; step = Math.min(2 * step, PAUSE_MAX_MS)) {
      const { response, watch, failure } = await this.#attempt(method.toUpperCase(), url, asked, sending, source).catch((error: unknown) => {
        // Also where nothing was sent: the source is the request's from here on.
        source?.end(error);
        throw error;
      });
      if (response?.ok) {
        this.#warn(response);
        return { response, watch };
      }
      let wanted: number | undefined;
      let error: Error = failure ?? new Unreachable(`${this.url}: no answer`);
      if (response) {
        // Before the refusal is read: a source that goes on would hold it up.
        source?.end();
        const refused = await problemOf(response);
        watch.end();
        // Such a request was not begun, so that every method may be asked again. A damaged collection stays so.
        if (![429, 503].includes(refused.status) || refused.kind === 'damaged' || source) throw refused;
        error = refused;
        wanted = seconds(response.headers.get('retry-after'));
      } else if (!repeatable || source) throw error;
      // With jitter, so that clients that were refused together do not come back together.
      const wait = (wanted ?? step) * (1 + Math.random() / 4);
      if (Date.now() + wait > until) throw error;
      await pause(wait, signal);
    }
  }

  async #attempt(
    method: string,
    url: string,
    asked: { json?: unknown; body?: Body | undefined; headers?: Record<string, string> | undefined },
    { signal, timeout = this.timeout }: SendOptions,
    source: Source | undefined,
  ): Promise<{ response?: Response; watch: Watch; failure?: Error }> {
    signal?.throwIfAborted();
    const headers = { ...(await this.headers()), ...asked.headers };
    const body = asked.json === undefined ? asked.body : JSON.stringify(asked.json);
    if (asked.json !== undefined) headers['content-type'] ??= 'application/json';
    // A header that cannot be sent is a TypeError here. `fetch` would have it look like a failure of the network.
    new Request(url, { method, headers });
    // `fetch` wants `duplex` beside a stream; the types of browsers lack it.
    const sent = source ? { body: source.stream as Sent, duplex: 'half' as const } : body === undefined ? {} : { body: body as Sent };
    const watch = new Watch(signal, timeout);
    source?.under(watch);
    try {
      const init: RequestInit = { method, headers, ...sent, signal: watch.signal, redirect: 'error' };
      const response = await (this.options.fetch ?? globalThis.fetch)(url, init);
      // From here on a caller may take its time before it reads; the body of a refusal is read at once.
      if (response.ok) watch.paused();
      else watch.heard();
      return { response, watch };
    } catch (cause) {
      watch.end();
      signal?.throwIfAborted();
      if (source?.failure) throw source.failure.cause;
      const why = watch.silent ? `it was silent for ${timeout / 1000} s` : reason(cause);
      return { watch, failure: new Unreachable(`${this.url}: ${why}`, { cause }) };
    }
  }

  #warn(response: Response): void {
    const missing = response.headers.get('meridian-missing');
    const warn = this.options.warn ?? ((message: string) => console.warn(message));
    if (missing) warn(`${missing} damaged files on the server: events may be missing`);
  }
}

/** The text of a body in the pieces that arrive. Leaving the loop ends the request. */
export async function* pieces({ response, watch }: OpenResponse, caller: AbortSignal | undefined): AsyncGenerator<string, void> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      watch.heard();
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      watch.paused();
      if (done || value === undefined) break;
      yield decoder.decode(value, { stream: true });
    }
  } catch (error) {
    throw broken(error, caller);
  } finally {
    watch.end();
  }
}

/** What a failure while a body is read means. */
function broken(error: unknown, caller: AbortSignal | undefined): Error {
  if (caller?.aborted) return caller.reason as Error;
  return new BrokenOff(`the answer broke off: ${reason(error)}`, { cause: error });
}

/** What went wrong below `fetch`: its own message says no more than that it did. */
function reason(error: unknown): string {
  const below = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return below instanceof Error ? below.message || below.name : String(below);
}

function seconds(text: string | null): number | undefined {
  const found = Number(text ?? Number.NaN);
  return Number.isFinite(found) && found >= 0 ? 1000 * found : undefined;
}
