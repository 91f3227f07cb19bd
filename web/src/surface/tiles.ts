// Tiles of counts, fetched once and kept.
import * as api from '../api';
import { NO_CELLS, readCells, type TileCells } from './cells';
import type { Cover } from './cover';

/** Tiles kept: several views. */
const KEPT = 240;

export class SurfaceTiles {
  private readonly kept = new Map<string, TileCells>();

  /** Loads the tiles of a cover, with averages of a field if one is named; answers how to find one. The world repeats from west to east. */
  async load(collection: string, query: URLSearchParams, average: string, cover: Cover, signal: AbortSignal): Promise<(column: number, row: number) => TileCells> {
    const side = 2 ** cover.z;
    const pattern = `${api.tilesPath(collection, query)}&density=true${average && `&avg=${encodeURIComponent(average)}`}`;
    const addressOf = (column: number, row: number): string => api.tileAt(pattern, cover.z, row, ((column % side) + side) % side);
    const wanted = new Set<string>();
    for (let row = cover.north; row <= cover.south; row++) for (let column = cover.west; column <= cover.east; column++) wanted.add(addressOf(column, row));
    const found = new Map<string, TileCells>();
    await Promise.all(
      [...wanted].map(async (address) => {
        const cells = this.kept.get(address) ?? readCells(await (await api.call(address, signal)).arrayBuffer());
        found.set(address, cells);
      }),
    );
    for (const [address, cells] of found) {
      this.kept.delete(address);
      this.kept.set(address, cells);
    }
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= Math.max(KEPT, found.size)) break;
      this.kept.delete(oldest);
    }
    return (column, row) => found.get(addressOf(column, row)) ?? NO_CELLS;
  }

  /** New events have come: every tile must be asked again. */
  clear(): void {
    this.kept.clear();
  }
}
