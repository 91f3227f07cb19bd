// Work of which only the newest run counts.

/** Waits briefly for more calls, cancels the previous run, and starts the newest. */
export class Latest {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private controller: AbortController | null = null;

  constructor(private readonly wait: number) {}

  /** `work` must throw when its signal aborts; that error is ignored. Other errors go to `failed`. */
  run(work: (signal: AbortSignal) => Promise<void>, failed: (error: unknown) => void): void {
    this.cancel();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      const controller = new AbortController();
      this.controller = controller;
      work(controller.signal)
        .catch((error: unknown) => {
          if (!controller.signal.aborted) failed(error);
        })
        .finally(() => {
          if (this.controller === controller) this.controller = null;
        });
    }, this.wait);
  }

  /** Whether a run is waiting or under way. */
  get busy(): boolean {
    return this.timer !== undefined || this.controller !== null;
  }

  cancel(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.controller?.abort();
    this.controller = null;
  }
}
