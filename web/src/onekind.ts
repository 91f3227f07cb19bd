// One kind of tile in the whole view. The server sends a tile's events if they are few, and counts per cell if they are many.
// Side by side, dots and circles would look like different data. So if both kinds are in view, all tiles are requested as counts.

/** The content of the map once every tile is loaded. */
export interface Seen {
  /** Whether any cell of counts is in view. */
  readonly cells: boolean;
  /** Whether any single event is in view. */
  readonly events: boolean;
  /** Events counted by the cells in view. */
  readonly counted: number;
}

/** Cells that count fewer events than this may be drawn as events: a tile of the server draws up to 4,096. */
export const FEW = 4096;

export class OneKind {
  /** Whether tiles are requested as counts. */
  density = false;
  /** Whether events were requested again since the view changed. Without this, the two kinds would alternate for ever. */
  private tried = false;

  /** The view moved or the question changed: events may fit now. */
  changed(): void {
    this.tried = false;
  }

  /** Another collection. */
  reset(): void {
    this.density = false;
    this.tried = false;
  }

  /** Decides once the tiles in view are loaded. True if tiles of the other kind must be requested. */
  settle({ cells, events, counted }: Seen): boolean {
    if (!this.density && cells && events) {
      this.density = true;
      return true;
    }
    if (this.density && counted <= FEW && !this.tried) {
      this.density = false;
      this.tried = true;
      return true;
    }
    return false;
  }
}
