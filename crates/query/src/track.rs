//! Tracks: the events of one object in time order.

use crate::by::ByValue;
use crate::candidates::Run;
use crate::cells::centre;
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::memory::Share;
use crate::passages::{object_field, object_of};
use crate::scan::Scan;
use crate::simplify::keep_on_sphere;
use meridian_model::filter::{Comparison, Expr, Operand, Predicate};
use meridian_model::{Invalid, Layout, Projection, Schema, Seq};
use meridian_store::{CHUNK_ROWS, Snapshot};

/// Max number of events of a track before simplification.
pub const TRACK_EVENTS_MAX: usize = 500_000;

/// Estimated bytes of a point: in the list, in the line to simplify, and in the result.
const POINT_BYTES: usize = 192;

/// A track query.
#[derive(Debug, Clone)]
pub struct Track {
    /// The object, as named by the collection's object field.
    pub object: String,
    /// The filter of its events; [`Predicate::all`] for all.
    pub predicate: Predicate,
    /// Tolerance in metres: events that lie this close to the line without them are omitted.
    pub simplify_m: Option<f64>,
}

/// One place of a track.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackPoint {
    /// Longitude in degrees; for a shape, that of the centre of its box.
    pub lon: f64,
    /// Latitude in degrees.
    pub lat: f64,
    /// Time in microseconds since 1970; for an interval, its start.
    pub time: i64,
    /// The event's sequence number.
    pub seq: Seq,
}

/// A track.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackResult {
    /// Places in order of time, then of sequence number.
    pub points: Vec<TrackPoint>,
    /// Number of events before simplification.
    pub events: u64,
    /// The cost of the query.
    pub stats: Stats,
}

/// The places of one partition: all of them, unordered.
#[derive(Debug)]
pub struct PartialTrack {
    pub(crate) points: Vec<TrackPoint>,
    pub(crate) stats: Stats,
    /// The memory used by the places.
    pub(crate) share: Share,
}

/// The predicate of one object's events.
pub fn of_object(schema: &Schema, object: &str) -> Result<Predicate, Invalid> {
    let field = &schema.fields[object_field(schema, "track")?];
    let value = match object_of(schema, object, "track")? {
        ByValue::Int(n) => Operand::Int(n),
        _ => Operand::Text(object.to_owned()),
    };
    let same = Expr::Compare { op: Comparison::Eq, left: Operand::Property(field.name.clone()), right: value };
    Predicate::bind(&same, schema)
}

/// Runs a track query. Events without geometry are omitted, as are those without a start, which have no place in the
/// order of time.
pub fn track(snapshot: &Snapshot, question: &Track, control: &Control) -> Result<TrackResult, QueryError> {
    PartialTrack::of(snapshot, question, control)?.finish(question, control)
}

impl PartialTrack {
    /// The places of the object's events in a snapshot.
    pub fn of(snapshot: &Snapshot, question: &Track, control: &Control) -> Result<PartialTrack, QueryError> {
        let schema = &snapshot.schema;
        if !schema.has_time() || schema.geometry.is_none() {
            return Err(Invalid::field("track", "a track needs a collection with a time and a geometry").into());
        }
        if question.simplify_m.is_some_and(|m| !(m >= 0.0 && m.is_finite())) {
            return Err(Invalid::field("simplify", "expected a number of metres that is not negative").into());
        }
        let layout = Layout::of(schema);
        // Places and times only: neither the object nor any other property.
        let mut projection = Projection::none(&layout);
        projection.add_boxes(&layout);
        projection.add_time(&layout, schema);
        let predicate = Predicate::and(vec![of_object(schema, &question.object)?, question.predicate.clone()]);
        let mut scan = Scan::new(snapshot, &predicate, control)?;
        let columns = scan.columns_with(&projection);
        let mut track = PartialTrack { points: Vec::new(), stats: Stats::default(), share: control.share() };
        for part in scan.parts() {
            // The object's rows are found by key; in each block that has some, the range between them is read.
            let rows = scan.part(part).object_rows(&question.object, i64::MIN..=i64::MAX)?.unwrap_or_default();
            scan.stats.parts_pruned += u64::from(rows.is_empty());
            for rows in rows.chunk_by(|a, b| a / CHUNK_ROWS == b / CHUNK_ROWS) {
                let run = Run { rows: rows[0]..rows[rows.len() - 1] + 1, whole: false };
                let (found, batch) = scan.test_with(part, &run, &columns)?;
                let Some(batch) = batch.filter(|_| !found.is_empty()) else { continue };
                let seqs = scan.seqs(part, &found)?;
                track.add(found.iter().zip(seqs).filter_map(|(row, seq)| {
                    let at = (row - run.rows.start) as usize;
                    let (lon, lat) = centre(&batch, at)?;
                    let (start, _) = batch.interval(at);
                    (start > i64::MIN).then_some(TrackPoint { lon, lat, time: start, seq: Seq(seq) })
                }))?;
            }
        }
        track.stats = scan.stats;
        Ok(track)
    }

    /// Adds places, up to the limit of a track.
    pub(crate) fn add(&mut self, points: impl IntoIterator<Item = TrackPoint>) -> Result<(), QueryError> {
        self.points.extend(points);
        self.share.reach(self.points.len() * POINT_BYTES)?;
        if self.points.len() > TRACK_EVENTS_MAX {
            let detail = format!("the track has more than {TRACK_EVENTS_MAX} events: add datetime= to ask for a part");
            return Err(Invalid::field("track", detail).into());
        }
        Ok(())
    }

    /// Finishes the result: places in order of time, simplified as requested.
    pub fn finish(self, question: &Track, control: &Control) -> Result<TrackResult, QueryError> {
        let PartialTrack { mut points, stats, .. } = self;
        points.sort_unstable_by_key(|p| (p.time, p.seq));
        let events = points.len() as u64;
        if let Some(tolerance_m) = question.simplify_m {
            control.check()?;
            let line: Vec<(f64, f64)> = points.iter().map(|p| (p.lon, p.lat)).collect();
            let mut kept = keep_on_sphere(&line, tolerance_m, &|| control.check())?.into_iter();
            points.retain(|_| kept.next().unwrap_or(true));
        }
        Ok(TrackResult { points, events, stats })
    }
}
