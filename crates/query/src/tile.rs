//! Map tiles: the events themselves if they are few, counts per cell if they are many.
//!
//! A tile of the WebMercatorQuad matrix holds one layer with the requested name. Up to [`TILE_EVENTS_MAX`] events
//! that touch it (and its buffer) are drawn one by one. They are clipped to the buffer, and simplified to
//! [`TOLERANCE`] units of the 4096 along a side. Each has its properties, and its id under `id` (under `@id` if a
//! property is called `id`). More events, or more bytes than [`TILE_BYTES_MAX`], become a grid of [`TILE_CELLS`] by
//! [`TILE_CELLS`] cells. Each cell with events is a point at its centre with `count` and `density=true`. Events count
//! as in [`crate::density()`]. A query may request the grid however few the events are. So no tile is larger than
//! [`TILE_BYTES_MAX`]. Points of a time interval (or all) are counted from pyramids at low zoom, others from nodes
//! that lie in one cell. If the average of a field is requested, a cell with values also has their number as `values`
//! and their average as `avg`.

use crate::averages::PartialAverages;
use crate::cells::{TileGrid, count_into, count_part};
use crate::control::{Control, Stats};
use crate::count::{Limits, count_within};
use crate::density::PartialGrid;
use crate::error::QueryError;
use crate::items::{Items, Order, items};
use crate::mvt::{EXTENT, Layer, Shape, Value};
use crate::pyramids::count_tile;
use crate::scan::Scan;
use crate::shape::Canvas;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use meridian_index::{Grid, Key};
use meridian_model::filter::Predicate;
use meridian_model::{FieldColumn, FieldType, Invalid, Layout, Projection, Schema, Seq, time};
use meridian_store::Snapshot;
use std::f64::consts::PI;

/// Max number of events that a tile draws one by one.
pub const TILE_EVENTS_MAX: usize = 4_096;
/// Max size of a tile in bytes.
pub const TILE_BYTES_MAX: usize = 512 << 10;
/// Name of a tile property for the event id that no field has.
pub fn id_key(schema: &Schema) -> String {
    if schema.field_index("id").is_none() { "id".to_owned() } else { schema.free_name("@id") }
}

/// Cells along a side of a tile of counts.
pub const TILE_CELLS: u32 = 1 << CELL_BITS;
/// Max zoom.
pub const ZOOM_MAX: u8 = 24;
/// Max length of a text property in a tile, in bytes.
pub const TILE_TEXT_BYTES_MAX: usize = 256;

/// Number of events drawn between two checks of the deadline.
const ROWS_UNSEEN: usize = 64;
const CELL_BITS: u8 = 6;
/// Cells of a tile of counts.
pub(crate) const CELLS: usize = 1 << (2 * CELL_BITS);
/// Buffer around a tile in units, so that symbols and strokes are not cut at its edge.
const BUFFER: f64 = 64.0;
/// Max deviation of a simplified line in units: a sixteenth of a pixel of a tile of 512.
const TOLERANCE: f64 = 2.0;

/// A tile query.
#[derive(Debug, Clone)]
pub struct Tile {
    /// The filter of events.
    pub predicate: Predicate,
    /// Tile matrix of WebMercatorQuad.
    pub z: u8,
    /// Row, from north.
    pub row: u32,
    /// Column, from west.
    pub column: u32,
    /// Name of the layer: the collection's.
    pub layer: String,
    /// Fields to write with each event; `None` for all.
    pub fields: Option<Vec<usize>>,
    /// Whether to return counts per cell even if the events are few: a map shows one kind of tile in the whole view.
    pub density: bool,
    /// A numeric field whose average each cell has.
    pub average: Option<usize>,
}

/// The content of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileKind {
    /// Nothing: the tile has no bytes.
    Empty,
    /// The events.
    Events,
    /// Counts of events.
    Density,
}

/// A tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileResult {
    /// An uncompressed Mapbox Vector Tile 2.1; empty if there is no content.
    pub bytes: Vec<u8>,
    /// Its content.
    pub kind: TileKind,
    /// Events drawn or counted.
    pub events: u64,
    /// The cost of the query.
    pub stats: Stats,
}

/// One partition's result of a tile query.
#[derive(Debug)]
pub enum PartialTile {
    /// Its events, if few.
    Drawn(Box<Drawing>),
    /// A count for each cell.
    Counted(PartialGrid),
    /// A count and the totals of a field for each cell.
    Averaged(Box<PartialAverages>),
}

/// The events of one partition as features of a tile.
#[derive(Debug)]
pub struct Drawing {
    /// Events that touch the tile, drawn or not.
    pub(crate) found: u64,
    /// Drawn events.
    pub(crate) drawn: u64,
    pub(crate) layer: Layer,
    /// The position of each feature in natural order; empty for a drawing that is not merged.
    pub(crate) places: Vec<(Key, Seq)>,
    pub(crate) stats: Stats,
}

/// Runs a tile query.
pub fn tile(snapshot: &Snapshot, question: &Tile, control: &Control) -> Result<TileResult, QueryError> {
    Ok(PartialTile::alone(snapshot, question, control)?.finish(question))
}

impl PartialTile {
    /// A snapshot's partial result of a tile query, to be merged with others.
    pub fn of(snapshot: &Snapshot, question: &Tile, control: &Control) -> Result<PartialTile, QueryError> {
        PartialTile::new(snapshot, question, control, true)
    }

    /// The same for a single snapshot, without the data for a merge.
    fn alone(snapshot: &Snapshot, question: &Tile, control: &Control) -> Result<PartialTile, QueryError> {
        PartialTile::new(snapshot, question, control, false)
    }

    fn new(snapshot: &Snapshot, question: &Tile, control: &Control, to_merge: bool) -> Result<PartialTile, QueryError> {
        let started = control.elapsed_us();
        control.check()?;
        let (z, x, y) = (question.z, question.column, question.row);
        let side = 1u64 << z.min(63);
        if z > ZOOM_MAX || u64::from(x) >= side || u64::from(y) >= side {
            return Err(
                Invalid::new(format!("there is no tile {z}/{y}/{x}: expected a tile matrix up to {ZOOM_MAX}")).into()
            );
        }
        let mut stats = Stats::default();
        let drawing = if question.density { None } else { draw(snapshot, question, control, to_merge, &mut stats)? };
        let mut part = match drawing {
            Some(drawing) => PartialTile::Drawn(Box::new(drawing)),
            None => cells(snapshot, question, control, &mut stats)?,
        };
        stats.scan_us = (control.elapsed_us() - started).max(0) as u64;
        *part.stats_mut() = stats;
        Ok(part)
    }

    /// The cost of the query.
    pub fn stats(&self) -> Stats {
        match self {
            PartialTile::Drawn(drawing) => drawing.stats,
            PartialTile::Counted(grid) => grid.stats,
            PartialTile::Averaged(averages) => averages.stats,
        }
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        match self {
            PartialTile::Drawn(drawing) => &mut drawing.stats,
            PartialTile::Counted(grid) => &mut grid.stats,
            PartialTile::Averaged(averages) => &mut averages.stats,
        }
    }

    /// The tile.
    pub fn finish(self, question: &Tile) -> TileResult {
        match self {
            PartialTile::Drawn(drawing) => {
                let Drawing { drawn, layer, stats, .. } = *drawing;
                let bytes = layer.into_tile();
                let kind = if bytes.is_empty() { TileKind::Empty } else { TileKind::Events };
                TileResult { bytes, kind, events: drawn, stats }
            }
            PartialTile::Counted(grid) => counted(&grid.counts, |_| None, grid.stats, question),
            PartialTile::Averaged(averages) => {
                counted(&averages.counts, |cell| averages.value(cell), averages.stats, question)
            }
        }
    }
}

/// The events of a tile, unless there are too many; with the position of each in natural order if they are to be
/// merged.
fn draw(
    snapshot: &Snapshot,
    question: &Tile,
    control: &Control,
    to_merge: bool,
    stats: &mut Stats,
) -> Result<Option<Drawing>, QueryError> {
    let schema = &snapshot.schema;
    let fields: Vec<usize> = match &question.fields {
        Some(fields) => fields.iter().copied().filter(|&f| f < schema.fields.len()).collect(),
        None => (0..schema.fields.len()).collect(),
    };
    let layout = Layout::of(schema);
    let mut projection = Projection::none(&layout);
    projection.add_id(&layout);
    projection.add_geometry(&layout);
    fields.iter().for_each(|&f| projection.add(layout.field(f)));
    let [west, south, east, north] = bbox(question);
    // The box includes the buffer: a line that passes just outside the tile is drawn into its edge, so that adjacent
    // tiles join.
    let predicate = Predicate::and(vec![Predicate::bbox(west, south, east, north), question.predicate.clone()]);
    // Count first: it needs no property, comes mostly from nodes, and ends as soon as there are too many. Only if
    // counts per cell come from a pyramid do they cost less than testing what the nodes leave open.
    let by_pyramid = question.predicate.as_interval().is_some() && question.z + CELL_BITS <= meridian_index::BASE_LEVEL;
    let tested = if by_pyramid { 16 * TILE_EVENTS_MAX as u64 } else { u64::MAX };
    let limits = Limits { tested, found: TILE_EVENTS_MAX as u64 };
    let (found, cost) = count_within(snapshot, &predicate, limits, control)?;
    stats.merge(&cost);
    let Some(found) = found else { return Ok(None) };
    if to_merge {
        // The columns for keys.
        projection.add_boxes(&layout);
        projection.add_time(&layout, schema);
    }
    let grid = Grid::of(schema);
    // One more than are drawn: it detects too many, if the count stopped at its limit of tests.
    let wanted = Items {
        predicate,
        order: Order::Natural,
        limit: Some(TILE_EVENTS_MAX + 1),
        after: None,
        until: None,
        projection,
    };
    let mut answer = items(snapshot, &wanted, control)?;
    let canvas = Canvas::new(question.z, question.column, question.row, BUFFER, TOLERANCE);
    let id_key = id_key(schema);
    let mut layer = if to_merge { Layer::recording(&question.layer) } else { Layer::new(&question.layer) };
    let mut places = Vec::new();
    let mut drawn = 0u64;
    for hits in answer.by_ref() {
        let hits = hits?;
        let columns: Vec<_> = fields.iter().filter_map(|&f| Some((f, hits.batch.field(f)?))).collect();
        for row in 0..hits.batch.rows() {
            if row.is_multiple_of(ROWS_UNSEEN) {
                control.check()?;
            }
            let shape = match hits.batch.geometry(row) {
                Some(geometry) => canvas.draw(&geometry, &|| control.check())?,
                None => None,
            };
            // Outside the tile once clipped: the box touches it, the shape does not.
            let Some(shape) = shape else { continue };
            layer.property(&id_key, Value::Text(cut(&hits.batch.id_of(row, hits.seqs[row]))));
            for (field, column) in &columns {
                property(&mut layer, schema, *field, column, row);
            }
            layer.feature(&shape);
            drawn += 1;
            if to_merge {
                places.push((grid.key(&hits.batch.bounds(row)), hits.seqs[row]));
            }
            if is_too_much(drawn, &layer) {
                stats.merge(&answer.stats());
                return Ok(None);
            }
        }
    }
    stats.merge(&answer.stats());
    Ok(Some(Drawing { found, drawn, layer, places, stats: Stats::default() }))
}

/// Whether a tile of `drawn` events becomes one of counts.
pub(crate) fn is_too_much(drawn: u64, layer: &Layer) -> bool {
    // 4096 bytes of slack below the limit: the check comes after a feature is written.
    drawn > TILE_EVENTS_MAX as u64 || layer.bytes() > TILE_BYTES_MAX - 4096
}

/// West, south, east and north of a tile and its buffer.
fn bbox(question: &Tile) -> [f64; 4] {
    let side = f64::from(1u32 << question.z);
    let buffer = BUFFER / f64::from(EXTENT);
    let lon = |x: f64| (x / side * 360.0 - 180.0).clamp(-180.0, 180.0);
    let lat = |y: f64| (PI * (1.0 - 2.0 * y / side)).sinh().atan().to_degrees();
    let (x, y) = (f64::from(question.column), f64::from(question.row));
    [lon(x - buffer), lat(y + 1.0 + buffer), lon(x + 1.0 + buffer), lat(y - buffer)]
}

/// The events of a tile by cell.
fn cells(
    snapshot: &Snapshot,
    question: &Tile,
    control: &Control,
    stats: &mut Stats,
) -> Result<PartialTile, QueryError> {
    let grid = TileGrid { z: question.z, x: question.column, y: question.row, bits: CELL_BITS };
    if let Some(field) = question.average {
        let averages = PartialAverages::of(snapshot, &question.predicate, field, &grid, control, stats)?;
        return Ok(PartialTile::Averaged(Box::new(averages)));
    }
    let mut counts = vec![0u64; CELLS];
    let mut scan = Scan::new(snapshot, &question.predicate, control)?;
    match question.predicate.as_interval() {
        None => count_into(&mut scan, &grid, &mut counts)?,
        // All events of a time interval: the most frequent request of maps.
        Some(interval) => {
            let mut boxes = Projection::none(&scan.layout);
            boxes.add_boxes(&scan.layout);
            let columns = scan.columns_with(&boxes);
            if grid.may_use_pyramids() {
                scan.snapshot.load_pyramids();
            }
            for part in scan.parts() {
                control.check()?;
                if !count_tile(&mut scan, part, &grid, &interval, &mut counts)? {
                    count_part(&mut scan, part, &columns, &grid, &mut counts)?;
                }
            }
        }
    }
    stats.merge(&scan.stats);
    Ok(PartialTile::Counted(PartialGrid { counts, stats: Stats::default() }))
}

/// The tile of counts; `average` gives a cell's number of values and their average.
fn counted(counts: &[u64], average: impl Fn(usize) -> Option<(i64, f64)>, stats: Stats, question: &Tile) -> TileResult {
    let size = (EXTENT / TILE_CELLS) as i32;
    let mut layer = Layer::new(&question.layer);
    for (cell, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        layer.property("count", Value::Int(i64::try_from(count).unwrap_or(i64::MAX)));
        layer.property("density", Value::Bool(true));
        if let Some((values, average)) = average(cell) {
            layer.property("values", Value::Int(values));
            layer.property("avg", Value::Float(average));
        }
        let (x, y) = (cell as i32 % TILE_CELLS as i32, cell as i32 / TILE_CELLS as i32);
        layer.feature(&Shape::Points(vec![(x * size + size / 2, y * size + size / 2)]));
    }
    let bytes = layer.into_tile();
    let kind = if bytes.is_empty() { TileKind::Empty } else { TileKind::Density };
    let events = counts.iter().fold(0u64, |all, count| all.saturating_add(*count));
    TileResult { bytes, kind, events, stats }
}

fn property(layer: &mut Layer, schema: &Schema, field: usize, column: &FieldColumn<'_>, row: usize) {
    let name = &schema.fields[field].name;
    match column {
        FieldColumn::Text(a) if a.is_valid(row) => layer.property(name, Value::Text(cut(a.value(row)))),
        FieldColumn::Int(a) if a.is_valid(row) => layer.property(name, Value::Int(a.value(row))),
        FieldColumn::Float(a) if a.is_valid(row) => layer.property(name, Value::Float(a.value(row))),
        FieldColumn::Bool(a) if a.is_valid(row) => layer.property(name, Value::Bool(a.value(row))),
        FieldColumn::Time(a) if a.is_valid(row) => {
            let text = match schema.fields[field].kind {
                FieldType::Date => time::format_date(a.value(row)),
                _ => time::format_instant(a.value(row)),
            };
            layer.property(name, Value::Text(&text));
        }
        FieldColumn::TextList(a) if a.is_valid(row) => {
            let list = a.value(row);
            let texts: Vec<&str> = list.as_string_opt::<i32>().into_iter().flatten().flatten().collect();
            layer.property(name, Value::Text(cut(&texts.join(", "))));
        }
        _ => {}
    }
}

/// A text truncated to [`TILE_TEXT_BYTES_MAX`] bytes.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TILE_TEXT_BYTES_MAX)]
}
