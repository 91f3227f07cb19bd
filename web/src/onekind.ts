// One kind of tile in the whole view. The server draws a tile's events where they are few and counts them per cell where they are
// many; seen side by side, dots and circles would read as different data. So where both kinds are in view, all tiles are asked for as counts.

/** What the map shows once every tile is there. */
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
  /** Whether tiles are asked for as counts. */
  density = false;
  /** Whether events were asked for again since the view changed. Without this, two kinds would follow each other for ever. */
  private tried = false;

  /** The view moved, or another question is asked: events may fit by now. */
  changed(): void {
    this.tried = false;
  }

  /** Another collection. */
  reset(): void {
    this.density = false;
    this.tried = false;
  }

  /** Decides after the tiles in view are there; true where tiles of the other kind must be asked for. */
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
