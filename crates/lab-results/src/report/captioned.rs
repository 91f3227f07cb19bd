//! A picture of the report with its caption, and the axis that pictures share.

use crate::picture::{Axis, Plot, Scale, Unit};

/// A picture, its file name, and its caption.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) name: String,
    pub(super) caption: String,
    pub(super) plot: Plot,
}

/// Returns the axis of time.
pub(super) fn time_axis(values: impl Iterator<Item = f64>) -> Axis {
    Axis::over("time of the trial", Unit::Micros, Scale::Linear, values)
}
