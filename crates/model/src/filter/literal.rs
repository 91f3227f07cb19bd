//! Literals shared by text and JSON: numbers, times and geometry checks.

use super::expr::IntervalEnd;
use crate::civil::DAY_US;
use crate::time::{date_start, parse_instant};
use geo_types::{Coord, LineString, Polygon};
use jiff::civil;

/// Parses a date such as `2026-01-31`.
pub(crate) fn date(text: &str) -> Result<civil::Date, String> {
    let shape = text.len() == 10 && text.bytes().enumerate().all(|(i, b)| (b == b'-') == (i == 4 || i == 7));
    match text.parse::<civil::Date>() {
        Ok(date) if shape => date_start(date).map(|_| date).map_err(|e| e.detail),
        _ => Err(format!("{:?} is not a date: expected one such as 2026-01-31", crate::error::shorten(text))),
    }
}

/// Parses an RFC 3339 instant.
pub(crate) fn timestamp(text: &str) -> Result<i64, String> {
    parse_instant(text, None).map_err(|e| e.detail)
}

/// Parses an end of an interval: `..`, a date or an instant.
pub(crate) fn interval_end(text: &str) -> Result<IntervalEnd, String> {
    if text == ".." {
        return Ok(IntervalEnd::Open);
    }
    if text.len() <= 10 { date(text).map(IntervalEnd::Date) } else { timestamp(text).map(IntervalEnd::Timestamp) }
        .map_err(|e| format!("{e} (or '..' for an open end)"))
}

/// First and last instant of a day in UTC.
pub(crate) fn day(date: civil::Date) -> (i64, i64) {
    // A parsed date is in range, see `date`; a constructed one may not be, and is then clamped.
    let start = date_start(date).unwrap_or(if date.year() < 0 { i64::MIN } else { i64::MAX - DAY_US });
    (start, start + DAY_US - 1)
}

/// First instant of an interval's start; `None` for a property.
pub(crate) fn start_instant(end: &IntervalEnd) -> Option<i64> {
    match end {
        IntervalEnd::Open => Some(i64::MIN),
        IntervalEnd::Date(date) => Some(day(*date).0),
        IntervalEnd::Timestamp(t) => Some(*t),
        IntervalEnd::Property(_) => None,
    }
}

/// Last instant of an interval's end; `None` for a property.
pub(crate) fn end_instant(end: &IntervalEnd) -> Option<i64> {
    match end {
        IntervalEnd::Open => Some(i64::MAX),
        IntervalEnd::Date(date) => Some(day(*date).1),
        IntervalEnd::Timestamp(t) => Some(*t),
        IntervalEnd::Property(_) => None,
    }
}

/// Checks that an interval of literals does not end before it starts.
pub(crate) fn check_interval(start: &IntervalEnd, end: &IntervalEnd) -> Result<(), String> {
    match (start_instant(start), end_instant(end)) {
        (Some(from), Some(to)) if from > to => Err("the interval ends before it starts".to_owned()),
        _ => Ok(()),
    }
}

/// A line of at least two positions.
pub(crate) fn line(positions: Vec<Coord<f64>>) -> Result<LineString<f64>, String> {
    if positions.len() < 2 {
        return Err("a line needs at least two positions".to_owned());
    }
    Ok(LineString(positions))
}

/// A polygon of closed rings, the outer one first.
pub(crate) fn polygon(rings: Vec<Vec<Coord<f64>>>) -> Result<Polygon<f64>, String> {
    for ring in &rings {
        if ring.len() < 4 {
            return Err("a ring of a polygon needs at least four positions".to_owned());
        }
        if ring.first() != ring.last() {
            return Err("a ring of a polygon must end where it begins".to_owned());
        }
    }
    let mut rings = rings.into_iter().map(LineString);
    let outer = rings.next().ok_or("a polygon needs at least one ring")?;
    Ok(Polygon::new(outer, rings.collect()))
}

/// A box of 4 numbers, or of 6 with heights, which are dropped.
pub(crate) fn bbox(numbers: &[f64]) -> Result<[f64; 4], String> {
    match *numbers {
        [w, s, e, n] | [w, s, _, e, n, _] => Ok([w, s, e, n]),
        _ => Err(format!("a box of {} numbers, expected 4 (or 6 with heights)", numbers.len())),
    }
}

/// Parses a signed number: whole numbers that fit 64 bits stay whole.
pub(crate) fn number(negative: bool, digits: &str) -> Option<super::expr::Operand> {
    let text = if negative { format!("-{digits}") } else { digits.to_owned() };
    if let Ok(n) = text.parse::<i64>() {
        return Some(super::expr::Operand::Int(n));
    }
    text.parse::<f64>().ok().filter(|x| x.is_finite()).map(super::expr::Operand::Float)
}
