//! Headers that describe a request's body: its reference system, and whether values that cannot be stored may be
//! dropped.

use crate::contract::LeftOut;
use crate::protocol::fields;
use crate::protocol::params::crs::{self, Crs};
use crate::protocol::problem::{Problem, Result};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use meridian_formats::{Format, ReadOptions, Report, Unknown};

static PREFER: HeaderName = HeaderName::from_static("prefer");
static PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// The preference (RFC 7240) to accept a body without the values that cannot be stored.
const LENIENT: &str = "handling=lenient";

/// How a body is read.
#[derive(Debug, Clone)]
pub(super) struct Intake {
    /// Options for the body's reader.
    pub(super) options: ReadOptions,
    lenient: bool,
}

impl Intake {
    /// Parses `Content-Crs` and `Prefer`.
    pub(super) fn of(headers: &HeaderMap, format: Format) -> Result<Intake> {
        let crs = crs::of_body(headers)?;
        if crs != Crs::Crs84 && !matches!(format, Format::GeoJson | Format::GeoJsonSeq | Format::NdJson) {
            let detail =
                format!("{} is accepted for GeoJSON only: positions in {format} are longitude and latitude", crs.uri());
            return Err(Problem::parameter("Content-Crs", detail));
        }
        let lenient = is_lenient(headers);
        let surplus = if lenient { Unknown::Ignore } else { Unknown::Refuse };
        Ok(Intake { options: ReadOptions { crs, heights: surplus, ids: surplus, ..ReadOptions::default() }, lenient })
    }

    /// Like [`Intake::of`], for one event at the URL with this `id`.
    pub(super) fn of_event(headers: &HeaderMap, id: &str) -> Result<Intake> {
        let mut intake = Intake::of(headers, Format::GeoJson)?;
        intake.options.id_if_absent = Some(id.to_owned());
        Ok(intake)
    }

    /// Confirms in a header that the preference was applied.
    pub(super) fn set_header(&self, headers: &mut HeaderMap) {
        if self.lenient {
            headers.insert(PREFERENCE_APPLIED.clone(), HeaderValue::from_static(LENIENT));
        }
    }

    /// Returns the dropped values, for the response to a lenient write.
    pub(super) fn left_out(&self, report: &Report) -> Option<LeftOut> {
        let left_out = LeftOut { heights: report.heights_dropped, ids: report.ids_dropped };
        self.lenient.then_some(left_out)
    }
}

fn is_lenient(headers: &HeaderMap) -> bool {
    fields::elements(headers, &PREFER).any(|preference| {
        // A semicolon begins the parameters of the preference.
        let preference = preference.split(|&byte| byte == b';').next().unwrap_or_default();
        let is_plain = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'"';
        let plain: Vec<u8> = preference.iter().copied().filter(is_plain).collect();
        plain.eq_ignore_ascii_case(LENIENT.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lenient_is_a_preference_of_its_own() {
        for (prefer, expected) in [
            ("handling=lenient", true),
            ("return=minimal,, Handling = \"lenient\"; a=b", true),
            ("handling=strict", false),
            ("x=\"a, handling=lenient\"", false),
            ("x=\"a; handling=lenient; b\"", false),
            ("x; handling=lenient", false),
        ] {
            let headers = HeaderMap::from_iter([(PREFER.clone(), HeaderValue::from_static(prefer))]);
            assert_eq!(is_lenient(&headers), expected, "{prefer}");
        }
    }
}
