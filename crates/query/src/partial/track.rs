//! Places of a track, by partition.

use super::WireError;
use super::envelope::Kind;
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::memory::Share;
use crate::simplify::keep_on_sphere;
use crate::track::{POINT_BYTES, TRACK_EVENTS_MAX, Track, TrackPoint, TrackResult};
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Float64Array, Int64Array, RecordBatch, UInt64Array};
use meridian_model::{Invalid, Seq};
use std::sync::Arc;

const KIND: Kind = Kind { name: "track", version: 1 };

/// The places of one partition: all of them, unordered.
#[derive(Debug)]
pub struct PartialTrack {
    pub(crate) points: Vec<TrackPoint>,
    pub(crate) stats: Stats,
    /// The memory used by the places.
    pub(crate) share: Share,
}

impl PartialTrack {
    /// Adds the places of another partition.
    pub fn merge(&mut self, other: PartialTrack) -> Result<(), QueryError> {
        self.stats.merge(&other.stats);
        self.add(other.points)
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

    /// Encodes as an Arrow record batch: one row per place.
    pub fn to_arrow(&self) -> Result<RecordBatch, WireError> {
        let mut envelope = KIND.seal(&self.stats);
        envelope.column("time", Arc::new(self.points.iter().map(|p| p.time).collect::<Int64Array>()));
        envelope.column("seq", Arc::new(self.points.iter().map(|p| p.seq.0).collect::<UInt64Array>()));
        envelope.column("lon", Arc::new(self.points.iter().map(|p| p.lon).collect::<Float64Array>()));
        envelope.column("lat", Arc::new(self.points.iter().map(|p| p.lat).collect::<Float64Array>()));
        envelope.finish(self.points.len())
    }

    /// Decodes the output of [`PartialTrack::to_arrow`].
    pub fn from_arrow(batch: &RecordBatch, control: &Control) -> Result<PartialTrack, WireError> {
        let opened = KIND.open(batch)?;
        let (times, seqs) = (opened.numbers::<Int64Type>("time")?, opened.numbers::<UInt64Type>("seq")?);
        let (lons, lats) = (opened.numbers::<Float64Type>("lon")?, opened.numbers::<Float64Type>("lat")?);
        let point = |row: usize| {
            let (lon, lat) = (lons.value(row), lats.value(row));
            let is_place = lon.is_finite() && lat.is_finite();
            is_place.then(|| TrackPoint { lon, lat, time: times.value(row), seq: Seq(seqs.value(row)) })
        };
        let points: Option<Vec<TrackPoint>> = (0..opened.rows()).map(point).collect();
        let points = points.ok_or_else(|| opened.malformed("a place that is nowhere"))?;
        let mut track = PartialTrack { points: Vec::new(), stats: opened.stats()?, share: control.share() };
        track.add(points)?;
        Ok(track)
    }
}
