//! Partial results, as sent by the servers of a cluster.

use crate::world;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use meridian_model::Projection;
use meridian_model::filter::Predicate;
use meridian_query::near::Circle;
use meridian_query::partial::*;
use meridian_query::{Aggregate, Density, Function, Order, Passages, Tile, Track, Windows};

/// The query whose groups are read.
pub fn grouped() -> Aggregate {
    let functions = Function::parse("count,sum(n),avg(x),min(n),max(x)", world::batch().schema()).unwrap();
    let windows = Some(Windows::parse("P1D", "Europe/Berlin").unwrap());
    Aggregate { predicate: Predicate::all(), functions, windows, by: Vec::new(), empty: false }
}

/// Cells of the grid.
const CELLS: (u32, u32) = (7, 5);

/// The first record batches of an Arrow stream.
fn batches(bytes: &[u8]) -> Vec<RecordBatch> {
    let (mut decoder, mut bytes, mut batches) = (StreamDecoder::new(), Buffer::from(bytes), Vec::new());
    while let Ok(Some(batch)) = decoder.decode(&mut bytes) {
        batches.push(batch);
    }
    batches.truncate(4);
    batches
}

/// Record batches of an Arrow stream, each read as every kind of partial result; a decoded one is merged with itself.
pub fn partial(bytes: &[u8]) {
    // Bytes that make its decoder panic are not a record batch, and so not an input of ours.
    let batches = std::panic::catch_unwind(|| batches(bytes)).unwrap_or_default();
    let (control, schema, question) = (world::control(), world::batch().schema(), grouped());
    for batch in &batches {
        let groups = || PartialGroups::from_arrow(batch, &question, schema, &control);
        if let (Ok(mut one), Ok(other)) = (groups(), groups()) {
            one.merge(other).unwrap();
            let _ = one.finish(&question, &control);
        }
        if let Ok(mut one) = PartialGrid::from_arrow(batch, (CELLS.0 * CELLS.1) as usize) {
            one.merge(&one.clone()).unwrap();
        }
        if let Ok(mut one) = PartialCount::from_arrow(batch) {
            let same = one;
            one.merge(&same);
        }
        let _ = PartialTile::from_arrow(batch);
        let _ = PartialTrack::from_arrow(batch, &control);
        let _ = PartialPassages::from_arrow(batch, schema);
        let _ = RowsSummary::from_arrow(batch);
        let _ = PartialNear::from_arrow(batch, schema);
        for order in [Order::Natural, Order::Near { lon: 1.0, lat: 2.0, k: None }] {
            let _ = PartialRows::from_arrow(batch, &order, schema);
        }
    }
}

fn stream(batch: RecordBatch) -> Vec<u8> {
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    stream.into_inner().unwrap()
}

/// Inputs for [`partial`]: the partial results of a collection.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (snapshot, control, schema) = (world::snapshot(), world::control(), world::batch().schema());
    let all = Predicate::all;
    let grid = Density { predicate: all(), bbox: [-180.0, -90.0, 180.0, 90.0], width: CELLS.0, height: CELLS.1 };
    let tile = Tile {
        predicate: all(),
        z: 0,
        row: 0,
        column: 0,
        layer: "a".to_owned(),
        fields: None,
        density: false,
        average: None,
    };
    let averages = Tile { density: true, average: schema.numeric_fields().first().copied(), ..tile.clone() };
    let track = Track { object: "ship 1".to_owned(), predicate: all(), simplify_m: None };
    let passages = Passages { predicate: all(), after: None, limit: 5 };
    let columns = Projection::all(&snapshot.layout);
    let batches = [
        ("groups", PartialGroups::of(snapshot, &grouped(), &control).unwrap().to_arrow(schema)),
        ("grid", PartialGrid::of(snapshot, &grid, &control).unwrap().to_arrow()),
        ("count", PartialCount::of(snapshot, &all(), u64::MAX, &control).unwrap().to_arrow()),
        ("tile", PartialTile::of(snapshot, &tile, &control).unwrap().to_arrow()),
        ("averages", PartialTile::of(snapshot, &averages, &control).unwrap().to_arrow()),
        ("track", PartialTrack::of(snapshot, &track, &control).unwrap().to_arrow()),
        ("passages", PartialPassages::of(snapshot, &passages, &control).unwrap().to_arrow(schema)),
        ("near", PartialNear::of(snapshot, Circle::new(1.0, 2.0, 5e6), 5, &columns).unwrap().to_arrow()),
    ];
    batches.into_iter().map(|(name, batch)| (name, stream(batch.unwrap()))).collect()
}
