//! The first trial of one population, request by request, and counts over time intervals.

use super::Subsample;
use crate::record::{Micros, Outcome, Record};
use std::collections::BTreeMap;

pub(super) const BARS_MAX: usize = 400;

/// Max columns of a heat map; beyond it, each covers twice the time.
pub(super) const COLUMNS_MAX: usize = 160;

/// Latency classes of the heat map: eight per factor of ten, from 1 µs on.
pub(crate) const CLASSES_PER_DECADE: f64 = 8.0;

/// The first trial of one population at one target, request by request, in all phases.
#[derive(Debug)]
pub(crate) struct TimeLine {
    /// The trial.
    pub(crate) trial: u16,
    /// A thinned sample of the records.
    pub(crate) bars: Subsample<Bar>,
    /// Durations of sound responses over time, and end times of the others.
    pub(crate) heat: Heat,
    pub(crate) not_sound: Heat,
}

/// One request on the time line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bar {
    pub(crate) n: f64,
    pub(crate) intended: f64,
    pub(crate) sent: f64,
    pub(crate) first: Option<f64>,
    pub(crate) done: f64,
    pub(crate) outcome: Outcome,
}

/// Counts by time interval and latency class.
#[derive(Debug)]
pub(crate) struct Heat {
    /// Microseconds of a column.
    pub(crate) width: Micros,
    pub(crate) columns: Vec<BTreeMap<u16, u32>>,
}

impl TimeLine {
    pub(super) fn of(trial: u16) -> TimeLine {
        let heat = || Heat { width: 50_000, columns: Vec::new() };
        TimeLine { trial, bars: Subsample::new(BARS_MAX), heat: heat(), not_sound: heat() }
    }

    pub(super) fn add(&mut self, record: &Record) {
        let heat = if record.outcome == Outcome::Sound { &mut self.heat } else { &mut self.not_sound };
        if let Some(latency) = record.latency() {
            heat.add(record.intended, latency);
        }
        let done = record.done.unwrap_or(record.intended) as f64;
        self.bars.add(Bar {
            n: f64::from(record.n),
            intended: record.intended as f64,
            sent: record.sent.map_or(done, |sent| sent as f64),
            first: record.first_result.map(|first| first as f64),
            done,
            outcome: record.outcome,
        });
    }
}

impl Heat {
    pub(super) fn add(&mut self, at: Micros, latency: Micros) {
        let column = fit(&mut self.width, &mut self.columns, at, |into, from| {
            from.into_iter().for_each(|(class, n)| *into.entry(class).or_insert(0) += n);
        });
        let class = ((latency.max(1) as f64).log10() * CLASSES_PER_DECADE) as u16;
        *column.entry(class).or_insert(0) += 1;
    }
}

/// Counts by time interval and outcome, by the intended time of requests.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Microseconds of an interval.
    pub(crate) width: Micros,
    pub(crate) stretches: Vec<[u64; Outcome::ALL.len()]>,
}

/// Returns the entry of a row of intervals for a time; intervals are doubled until there are few enough.
pub(super) fn fit<'a, T: Default>(
    width: &mut Micros,
    stretches: &'a mut Vec<T>,
    at: Micros,
    mut join: impl FnMut(&mut T, T),
) -> &'a mut T {
    let at = at.max(0);
    // Doubled rather than chosen at the start: the length of a run is unknown while it runs.
    while at / *width >= COLUMNS_MAX as Micros {
        let mut joined: Vec<T> = Vec::with_capacity(COLUMNS_MAX / 2);
        for (i, stretch) in std::mem::take(stretches).into_iter().enumerate() {
            match joined.last_mut() {
                Some(last) if i % 2 == 1 => join(last, stretch),
                _ => joined.push(stretch),
            }
        }
        *stretches = joined;
        *width *= 2;
    }
    let index = (at / *width) as usize;
    if stretches.len() <= index {
        stretches.resize_with(index + 1, T::default);
    }
    &mut stretches[index]
}
