// The page's work: of each kind only the newest run counts, and the progress bar shows while any of it lasts.
import { $ } from './dom';
import { Latest } from './latest';

/** Kinds of work, and how long each waits for more changes, in milliseconds. */
const WAITS = { open: 0, item: 0, filter: 0, files: 60, bars: 160, totals: 120, beyond: 250, rows: 220 } as const;
export type Kind = keyof typeof WAITS;

const busy = new Set<string>();

/** Whether something of this name is under way; the progress bar shows while anything is. */
export function setBusy(name: string, on: boolean): void {
  if (on) busy.add(name);
  else busy.delete(name);
  $('progress').hidden = busy.size === 0;
  document.body.setAttribute('aria-busy', String(busy.size > 0));
}

export class Work {
  private readonly kinds = new Map<Kind, Latest>();

  constructor(private readonly failed: (error: unknown) => void) {
    for (const [kind, wait] of Object.entries(WAITS)) this.kinds.set(kind as Kind, new Latest(wait));
  }

  /** Runs the newest work of a kind. */
  run(kind: Kind, task: (signal: AbortSignal) => Promise<void>): void {
    this.kinds.get(kind)?.run(async (signal) => {
      setBusy(kind, true);
      try {
        await task(signal);
      } finally {
        if (!signal.aborted) setBusy(kind, false);
      }
    }, this.failed);
  }

  busy(kind: Kind): boolean {
    return this.kinds.get(kind)?.busy ?? false;
  }

  cancel(kind: Kind): void {
    this.kinds.get(kind)?.cancel();
    setBusy(kind, false);
  }

  /** Cancels all but the opening of a collection, which is what cancels. */
  cancelAll(): void {
    for (const kind of this.kinds.keys()) if (kind !== 'open') this.cancel(kind);
  }
}
