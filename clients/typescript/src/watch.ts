/** Aborts a request when its caller does, and when the server has been silent for too long. */
export class Watch {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #silence: number;
  readonly #abort = (): void => this.#controller.abort(this.#caller?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #silent = false;

  /** `silence` in milliseconds. */
  constructor(caller: AbortSignal | undefined, silence: number) {
    this.#caller = caller;
    this.#silence = silence;
    // Listeners and not `AbortSignal.any`: one signal may see thousands of requests, and must not keep them.
    if (caller?.aborted) this.#abort();
    else caller?.addEventListener('abort', this.#abort);
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether it was the silence that ended the request. */
  get silent(): boolean {
    return this.#silent;
  }

  /** The server said something: the silence begins anew. */
  heard(): void {
    clearTimeout(this.#timer);
    if (this.#controller.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#silent = true;
      this.#controller.abort();
    }, this.#silence);
  }

  /** The caller has paused: its pause is not the server's silence. */
  paused(): void {
    clearTimeout(this.#timer);
  }

  /** Ends the request, if it goes on, and forgets the caller. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener('abort', this.#abort);
    this.#controller.abort();
  }
}

/** Waits; an aborted signal ends the wait with its reason. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}
