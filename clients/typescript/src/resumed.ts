import type { Frame, Socket } from './frames.js';
import { sentEvents, SILENCE_MS, socketFrames } from './frames.js';
import type { Http, Parameters, Path, RequestOptions } from './http.js';
import { BrokenOff, Problem, Unreachable } from './problem.js';
import { pause, Watch } from './watch.js';

/** How to follow what goes on. */
export interface FollowOptions extends RequestOptions {
  /** Resume behind this position. */
  after?: string | number | undefined;
  /** Server-Sent Events by default. A browser cannot send a token over a WebSocket. */
  transport?: 'sse' | 'websocket' | undefined;
  /** How long to try to connect again, in milliseconds: 60,000. */
  patience?: number | undefined;
}

/** What is followed: a path of the API, its names and its parameters. */
export interface FollowTarget {
  path: Path<'get'>;
  names: Record<string, string>;
  query?: Parameters;
}

const PAUSE_MS = 200;
const PAUSE_MAX_MS = 5_000;

/** An async iterator over the messages of a connection, which is made again where it was cut. */
export abstract class Resumed<T> implements AsyncIterableIterator<T> {
  readonly #followed: FollowTarget;
  readonly #options: FollowOptions;
  readonly #closing = new AbortController();
  readonly #abort = (): void => this.#closing.abort(this.#options.signal?.reason);
  #frames: AsyncGenerator<Frame, void> | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #after: string | undefined;
  #ended = false;

  constructor(
    protected readonly http: Http,
    followed: FollowTarget,
    options: FollowOptions,
  ) {
    this.#followed = followed;
    this.#options = options;
    this.#after = options.after?.toString();
    if (options.signal?.aborted) this.#abort();
    else options.signal?.addEventListener('abort', this.#abort);
  }

  /** Where to resume: `after` of another one starts behind what this one has given. */
  get position(): string | undefined {
    return this.#after;
  }

  /** Ends it, also while something waits for `next()`, which is done then. */
  close(): void {
    this.#ended = true;
    this.#closing.abort();
    this.#options.signal?.removeEventListener('abort', this.#abort);
    this.disconnect();
  }

  /** What a message gives the caller, if anything; notes the position. */
  protected abstract take(frame: Frame): T | undefined;

  protected set position(after: string | undefined) {
    this.#after = after;
  }

  /** Nothing comes any more. */
  protected finish(): void {
    this.#ended = true;
  }

  /** Leaves the connection; the next message comes from another one. */
  protected disconnect(): void {
    const frames = this.#frames;
    this.#frames = undefined;
    // A generator that waits ends by the signal; its `return` would wait for it.
    void frames?.return().catch(() => undefined);
  }

  /** Connects, trying again for as long as the patience lasts. */
  protected async connect(): Promise<void> {
    const until = Date.now() + (this.#options.patience ?? 60_000);
    for (let step = PAUSE_MS; ; step = Math.min(2 * step, PAUSE_MAX_MS)) {
      try {
        this.#frames = this.#options.transport === 'websocket' ? await this.#socket() : await this.#sent();
        return;
      } catch (error) {
        const busy = error instanceof Problem && [429, 503].includes(error.status) && error.kind !== 'damaged';
        if (!(busy || error instanceof Unreachable) || Date.now() + step > until) throw error;
        await pause(step, this.#closing.signal);
      }
    }
  }

  /** The next message; undefined where the connection ended. */
  protected async frame(): Promise<Frame | undefined> {
    try {
      const { done, value } = (await this.#frames?.next()) ?? { done: true, value: undefined };
      return done ? undefined : (value ?? undefined);
    } catch (error) {
      // A network that is gone, or a server that was killed.
      if (error instanceof BrokenOff) return undefined;
      throw error;
    }
  }

  next(): Promise<IteratorResult<T>> {
    // One after the other, also for callers that do not wait.
    const turn = this.#turn.then(() => this.#advance());
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  return(): Promise<IteratorResult<T>> {
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #advance(): Promise<IteratorResult<T>> {
    try {
      while (!this.#ended) {
        if (!this.#frames) await this.connect();
        const frame = await this.frame();
        if (frame) {
          const item = this.take(frame);
          if (item !== undefined) return { done: false, value: item };
        } else if (!this.#ended) {
          this.disconnect();
          await pause(PAUSE_MS, this.#closing.signal);
        }
      }
    } catch (error) {
      const closed = this.#ended;
      this.close();
      this.#options.signal?.throwIfAborted();
      if (!closed) throw error;
    }
    this.close();
    this.#options.signal?.throwIfAborted();
    return { done: true, value: undefined };
  }

  #query(): Parameters {
    return { ...this.#followed.query, after: this.#after };
  }

  async #sent(): Promise<AsyncGenerator<Frame, void>> {
    const asked = { path: this.#followed.names, query: this.#query(), headers: { accept: 'text/event-stream' } };
    const opened = await this.http.open('get', this.#followed.path, asked as never, { signal: this.#closing.signal, timeout: SILENCE_MS });
    // Everything was received already.
    if (opened.response.status === 204) this.finish();
    return sentEvents(opened, this.#closing.signal);
  }

  async #socket(): Promise<AsyncGenerator<Frame, void>> {
    const url = this.http.address(this.#followed.path, this.#followed.names, this.#query()).replace(/^http/, 'ws');
    const headers = await this.http.headers();
    this.#closing.signal.throwIfAborted();
    const make = this.http.options.webSocket ?? plainSocket;
    return socketFrames(() => make(url, headers), new Watch(this.#closing.signal, SILENCE_MS));
  }
}

/** The platform's own WebSocket. Node's takes headers, a browser's does not. */
function plainSocket(url: string, headers: Record<string, string>): Socket {
  if (typeof WebSocket === 'undefined') throw new TypeError("this platform has no WebSocket: give connect() one as `webSocket`, or use the transport 'sse'");
  if (Object.keys(headers).length === 0) return new WebSocket(url);
  if (!('process' in globalThis)) throw new TypeError("a browser cannot send a token over a WebSocket: use the transport 'sse'");
  return new WebSocket(url, { headers } as never);
}
