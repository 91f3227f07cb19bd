//! A batch's places, times and numbers as plain slices.
//!
//! `Batch::bounds` looks up the columns for every row; the loops of this crate run over millions of rows and look
//! them up once.

use arrow_array::{Array, Float64Array, TimestampMicrosecondArray};
use arrow_buffer::NullBuffer;
use meridian_model::layout::GeometryColumns;
use meridian_model::{Batch, Bounds, FieldColumn, TimeRole};

/// The boxes of a batch's rows.
pub(crate) struct Boxes<'a> {
    pub(crate) place: BoxColumns<'a>,
    pub(crate) time: Time<'a>,
}

/// Locations of the rows; rows marked in `nulls` are nowhere.
pub(crate) enum BoxColumns<'a> {
    Nowhere,
    /// Some rows have a position, some have none, and the tree does not distinguish them: see
    /// `ForestBuilder::over_time`.
    Unknown,
    Boxes {
        west: &'a [f64],
        south: &'a [f64],
        east: &'a [f64],
        north: &'a [f64],
        nulls: Option<&'a NullBuffer>,
    },
}

/// Times of the rows.
pub(crate) enum Time<'a> {
    Never,
    Instant(Instants<'a>),
    Interval { start: Instants<'a>, end: Instants<'a> },
}

/// Instants, with a substitute for missing ones.
pub(crate) struct Instants<'a> {
    times: Option<(&'a [i64], Option<&'a NullBuffer>)>,
    missing: i64,
}

impl Instants<'_> {
    /// Instants without missing ones.
    pub(crate) fn all(times: &[i64]) -> Instants<'_> {
        Instants { times: Some((times, None)), missing: 0 }
    }

    fn of<'a>(batch: &'a Batch, field: usize, missing: i64) -> Instants<'a> {
        let times = match batch.field(field) {
            Some(FieldColumn::Time(times)) => {
                let times: &'a TimestampMicrosecondArray = times;
                Some((&times.values()[..], times.nulls()))
            }
            _ => None,
        };
        Instants { times, missing }
    }

    #[inline]
    pub(crate) fn at(&self, row: usize) -> i64 {
        match self.times {
            Some((times, None)) => times[row],
            Some((times, Some(nulls))) if nulls.is_valid(row) => times[row],
            _ => self.missing,
        }
    }
}

impl<'a> Boxes<'a> {
    /// Looks up the columns. Absent ones make rows nowhere, or put them at the instants returned by
    /// `Batch::interval`.
    pub(crate) fn of(batch: &'a Batch) -> Boxes<'a> {
        let values = |column: &'a Float64Array| &column.values()[..];
        let place = match batch.layout().geometry {
            None => BoxColumns::Nowhere,
            Some(GeometryColumns::Points { .. }) => match batch.points() {
                None => BoxColumns::Nowhere,
                Some((lon, lat)) => BoxColumns::Boxes {
                    west: values(lon),
                    south: values(lat),
                    east: values(lon),
                    north: values(lat),
                    nulls: lon.nulls(),
                },
            },
            Some(GeometryColumns::Shapes { .. }) => match batch.sides() {
                None => BoxColumns::Nowhere,
                Some([west, south, east, north]) => BoxColumns::Boxes {
                    west: values(west),
                    south: values(south),
                    east: values(east),
                    north: values(north),
                    // The builder writes all four sides or none, so one null buffer is enough.
                    nulls: west.nulls(),
                },
            },
        };
        let time = match batch.schema().time {
            TimeRole::None => Time::Never,
            TimeRole::Instant(field) => Time::Instant(Instants::of(batch, field, 0)),
            // An open start or end is null; the extreme instants make every comparison treat it as open.
            TimeRole::Interval { start, end } => {
                Time::Interval { start: Instants::of(batch, start, i64::MIN), end: Instants::of(batch, end, i64::MAX) }
            }
        };
        Boxes { place, time }
    }

    /// First and last instant of a row.
    #[inline]
    pub(crate) fn interval(&self, row: usize) -> (i64, i64) {
        match &self.time {
            Time::Never => (0, 0),
            Time::Instant(times) => {
                let time = times.at(row);
                (time, time)
            }
            Time::Interval { start, end } => (start.at(row), end.at(row)),
        }
    }

    /// The box of a row, equal to `Batch::bounds`.
    #[inline]
    pub(crate) fn bounds(&self, row: usize) -> Bounds {
        let (start, end) = self.interval(row);
        match &self.place {
            BoxColumns::Boxes { west, south, east, north, nulls } if nulls.is_none_or(|n| n.is_valid(row)) => {
                Bounds { west: west[row], south: south[row], east: east[row], north: north[row], start, end }
            }
            _ => Bounds { start, end, ..Bounds::EMPTY },
        }
    }
}
