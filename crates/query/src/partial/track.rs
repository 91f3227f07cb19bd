//! Places of a track, by partition.

use super::envelope::Kind;
use crate::control::Control;
use crate::error::QueryError;
use crate::track::{PartialTrack, TrackPoint};
use crate::wire::WireError;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Float64Array, Int64Array, RecordBatch, UInt64Array};
use meridian_model::Seq;
use std::sync::Arc;

const KIND: Kind = Kind { name: "track", version: 1 };

impl PartialTrack {
    /// Adds the places of another partition.
    pub fn merge(&mut self, other: PartialTrack) -> Result<(), QueryError> {
        self.stats.merge(&other.stats);
        self.add(other.points)
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
