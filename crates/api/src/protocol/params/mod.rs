//! Query parameters, parsed strictly: a name unknown to the route is an error.

mod cql_text;
pub mod crs;
pub mod format;
pub mod page;
pub mod selection;

use crate::protocol::problem::{Kind, Problem, Result};
use percent_encoding::percent_decode_str;
use std::time::Duration;

/// The parameters of one request. The handler takes them one by one; any left at the end are unknown.
#[derive(Debug, Clone, Default)]
pub struct Params {
    pairs: Vec<(String, String)>,
    /// All names requested by the handler, for the message about unknown ones.
    known: Vec<&'static str>,
}

impl Params {
    /// Splits and decodes a query string. A repeated name is refused, since either value could be meant.
    pub fn parse(query: Option<&str>) -> Result<Params> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in query.unwrap_or_default().split('&').filter(|p| !p.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if pairs.iter().any(|(n, _)| *n == name) {
                return Err(Problem::parameter(&name, format!("the parameter {name:?} is given twice")));
            }
            pairs.push((name, value));
        }
        Ok(Params { pairs, known: Vec::new() })
    }

    /// Takes a parameter, if the request has it.
    pub fn take(&mut self, name: &'static str) -> Option<String> {
        // Recorded even if absent: the message about an unknown parameter lists all that the route accepts.
        self.known.push(name);
        self.take_other(name)
    }

    /// Takes a parameter whose name is not fixed, such as a queryable.
    pub fn take_other(&mut self, name: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(n, _)| n == name)?;
        Some(self.pairs.remove(at).1)
    }

    /// Takes a whole number of at least 1, capped at `max`.
    pub fn take_count(&mut self, name: &'static str, max: usize) -> Result<Option<usize>> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let wrong =
            || Problem::parameter(name, format!("{text:?} is not a whole number from 1 up (at most {max} count)"));
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits {
            return Err(wrong());
        }
        // A number with more digits than the type holds still exceeds the cap.
        let count = text.parse::<u64>().map_or(max, |n| usize::try_from(n).unwrap_or(max).min(max));
        if count == 0 { Err(wrong()) } else { Ok(Some(count)) }
    }

    /// Takes `true` or `false`.
    pub fn take_flag(&mut self, name: &'static str) -> Result<bool> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Problem::parameter(name, format!("{other:?}: expected true or false"))),
        }
    }

    /// Takes a finite number.
    pub fn take_number(&mut self, name: &'static str) -> Result<Option<f64>> {
        self.take(name).map(|text| number(name, &text)).transpose()
    }

    /// Takes `timeout` in milliseconds.
    pub fn take_timeout(&mut self) -> Result<Option<Duration>> {
        self.take("timeout").map(|text| timeout("timeout", &text)).transpose()
    }

    /// Iterates over the names that were not taken.
    pub fn remaining(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(n, _)| n.as_str())
    }

    /// Returns the parameters that were not taken, in order of appearance.
    pub fn rest(self) -> Vec<(String, String)> {
        self.pairs
    }

    /// Refuses parameters that were not taken; the problem names the first and lists those known to the route.
    pub fn finish(self) -> Result<()> {
        self.finish_with(&[])
    }

    /// Like [`Params::finish`], with more names known to the route (its collection's queryables).
    pub fn finish_with(mut self, more: &[&str]) -> Result<()> {
        let Some((name, _)) = self.pairs.first() else { return Ok(()) };
        self.known.sort_unstable();
        self.known.dedup();
        let known: Vec<&str> = self.known.iter().copied().chain(more.iter().copied()).collect();
        let expected = match known.len() {
            0 => "this resource takes no parameters".to_owned(),
            _ => format!("expected one of {}", known.join(", ")),
        };
        Err(Problem::new(Kind::UnknownParameter, format!("the parameter {name:?} is not known here: {expected}"))
            .with("field", name.as_str())
            .with("known", known))
    }
}

/// Decodes a part of a query string: percent escapes, and `+` as a space.
fn decode(part: &str) -> Result<String> {
    let spaced = part.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().map(|text| text.into_owned()).map_err(|_| {
        Problem::parameter(part, format!("the parameter {part:?} is not UTF-8 once its percent escapes are read"))
    })
}

/// Parses a finite number.
pub fn number(name: &str, text: &str) -> Result<f64> {
    match text.trim().parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => Err(Problem::parameter(name, format!("{text:?} is not a finite number"))),
    }
}

/// Parses finite numbers separated by commas.
pub fn numbers(name: &str, text: &str) -> Result<Vec<f64>> {
    text.split(',').map(|part| number(name, part)).collect()
}

/// Parses a longitude and a latitude.
pub fn position(name: &str, text: &str) -> Result<(f64, f64)> {
    match numbers(name, text)?[..] {
        [lon, lat] => {
            meridian_model::geometry::validate_position(lon, lat).map_err(|e| Problem::parameter(name, e.detail))?;
            Ok((lon, lat))
        }
        ref other => {
            Err(Problem::parameter(name, format!("{} numbers: expected two, longitude,latitude", other.len())))
        }
    }
}

/// Parses a duration in whole milliseconds, at least 1.
pub fn timeout(name: &str, text: &str) -> Result<Duration> {
    match text.parse::<u64>() {
        Ok(ms) if ms > 0 => Ok(Duration::from_millis(ms)),
        _ => Err(Problem::parameter(name, format!("{text:?} is not a whole number of milliseconds from 1 up"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_parameter_is_named_with_the_known_ones() {
        let mut params = Params::parse(Some("limit=3&lmit=4")).unwrap();
        assert_eq!(params.take_count("limit", 10).unwrap(), Some(3));
        params.take("bbox");
        let problem = params.finish_with(&["mag"]).unwrap_err();
        assert_eq!(problem.kind(), Kind::UnknownParameter);
        assert!(problem.detail().contains("\"lmit\""), "{}", problem.detail());
        assert!(problem.detail().contains("bbox, limit, mag"), "{}", problem.detail());
    }

    #[test]
    fn counts_are_from_one_up_and_capped() {
        let read = |text: &str| Params::parse(Some(&format!("limit={text}"))).unwrap().take_count("limit", 10_000);
        assert_eq!(read("10000").unwrap(), Some(10_000));
        assert_eq!(read("10001").unwrap(), Some(10_000));
        assert_eq!(read("99999999999999999999999").unwrap(), Some(10_000));
        for bad in ["0", "-1", "x", "", "1.5", "%2B1", "1e3"] {
            assert_eq!(read(bad).unwrap_err().kind(), Kind::InvalidParameter, "{bad}");
        }
    }

    #[test]
    fn escapes_are_read_and_bad_ones_refused() {
        let mut params = Params::parse(Some("filter=name%3D%27a+b%27&x=%C3%A9")).unwrap();
        assert_eq!(params.take("filter").unwrap(), "name='a b'");
        assert_eq!(params.take("x").unwrap(), "é");
        assert!(Params::parse(Some("x=%ff")).is_err());
        assert!(Params::parse(Some("x=1&x=2")).is_err());
    }

    #[test]
    fn positions_and_timeouts() {
        assert_eq!(position("near", "1.5,-2").unwrap(), (1.5, -2.0));
        for bad in ["1", "1,2,3", "a,b", "181,0", "10,91", "NaN,0", "inf,0"] {
            assert!(position("near", bad).is_err(), "{bad}");
        }
        assert_eq!(timeout("timeout", "250").unwrap(), Duration::from_millis(250));
        for bad in ["0", "-5", "1s", ""] {
            assert!(timeout("timeout", bad).is_err(), "{bad}");
        }
    }
}
