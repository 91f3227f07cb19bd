// A tile of counts as the server sends it, read into arrays. The tile is a vector tile of points with a `count`, and an average
// if one was asked.
import { PbfReader } from 'pbf';

/** Cells along a side of a tile of counts, as the server makes them. */
export const CELLS = 64;

/** The cells of a tile that hold events: column from the west, row from the north, and count. */
export interface TileCells {
  readonly columns: readonly number[];
  readonly rows: readonly number[];
  readonly counts: readonly number[];
  /** Events of each cell with a value of the field that is averaged. */
  readonly values: readonly number[];
  /** The average of these; 0 where there is none. */
  readonly averages: readonly number[];
}

export const NO_CELLS: TileCells = { columns: [], rows: [], counts: [], values: [], averages: [] };

interface Layer {
  extent: number;
  readonly keys: string[];
  readonly values: number[];
  readonly features: { tags: number[]; geometry: number[] }[];
}

/** A number of a `Tile.Value` (Mapbox Vector Tile 2.1, 4.1); NaN where it holds something else. */
function readValue(tag: number, value: { number: number }, pbf: PbfReader): void {
  if (tag === 2) value.number = pbf.readFloat();
  else if (tag === 3) value.number = pbf.readDouble();
  else if (tag === 4) value.number = pbf.readVarint(true);
  else if (tag === 5) value.number = pbf.readVarint();
  else if (tag === 6) value.number = pbf.readSVarint();
}

function readLayer(tag: number, layer: Layer, pbf: PbfReader): void {
  if (tag === 2) {
    const feature = { tags: [] as number[], geometry: [] as number[] };
    pbf.readMessage((part, into) => {
      if (part === 2) pbf.readPackedVarint(into.tags);
      else if (part === 4) pbf.readPackedVarint(into.geometry);
    }, feature);
    layer.features.push(feature);
  } else if (tag === 3) layer.keys.push(pbf.readString());
  else if (tag === 4) layer.values.push(pbf.readMessage(readValue, { number: NaN }).number);
  else if (tag === 5) layer.extent = pbf.readVarint();
}

const unzigzag = (n: number): number => (n >>> 1) ^ -(n & 1);

/** Reads a tile. A feature without a `count` is one event. */
export function readCells(bytes: ArrayBuffer): TileCells {
  if (!bytes.byteLength) return NO_CELLS;
  const [columns, rows, counts]: [number[], number[], number[]] = [[], [], []];
  const [values, averages]: [number[], number[]] = [[], []];
  const inside = (cell: number): boolean => cell >= 0 && cell < CELLS;
  new PbfReader(bytes).readFields((tag, _none, pbf) => {
    if (tag !== 3) return;
    const empty: Layer = { extent: 4096, keys: [], values: [], features: [] };
    const layer = pbf.readMessage(readLayer, empty);
    const keys = ['count', 'values', 'avg'].map((name) => layer.keys.indexOf(name));
    for (const { tags, geometry } of layer.features) {
      // A point: one MoveTo, then its position.
      if (geometry.length < 3) continue;
      const [column, row] = [1, 2].map((i) => Math.floor((unzigzag(geometry[i]) / layer.extent) * CELLS));
      // A tile may repeat what lies around it.
      if (!inside(column) || !inside(row)) continue;
      const found = [1, 0, 0];
      for (let i = 0; i + 1 < tags.length; i += 2) {
        const at = keys.indexOf(tags[i]);
        if (at >= 0) found[at] = layer.values[tags[i + 1]];
      }
      const [count, valued, average] = found;
      columns.push(column);
      rows.push(row);
      counts.push(count > 0 ? count : 0);
      values.push(valued > 0 ? valued : 0);
      averages.push(average);
    }
  }, null);
  return { columns, rows, counts, values, averages };
}
