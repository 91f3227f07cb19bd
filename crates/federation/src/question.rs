//! A search request, read from JSON once. Every error names the member and what was expected.

use crate::area::Area;
use crate::geojson;
use crate::keep_options::KeepOptions;
use crate::keywords::KeywordQuery;
use crate::members::{TEXT_BYTES_MAX, numbers, text, whole, word};
use crate::settings::Settings;
use geo::CoordsIter;
use geo_types::Geometry;
use meridian_model::policy::queue::Class;
use meridian_model::{Interval, Invalid, geometry};
use serde_json::{Map, Value};
use std::time::Duration;

/// Default radius around `address` and `near`, in metres.
pub const RADIUS_DEFAULT_M: f64 = 10_000.0;
/// Max radius in metres: half of the equator.
const RADIUS_MAX_M: f64 = 20_037_508.0;
/// Max providers that a question names.
const NAMES_MAX: usize = 100;
/// Max positions of a polygon: results and new events are tested against each of its edges.
const POSITIONS_MAX: usize = 2_000;

/// Restricts results to those with images or videos.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// At least one image.
    Images,
    /// At least one video.
    Videos,
}

/// The priority of a search in every queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A client waits for it.
    Quick,
    /// A poll of a saved search.
    Poll,
    /// No client waits for it.
    Background,
}

impl Priority {
    /// Returns the queue class of this priority.
    pub fn class(self) -> Class {
        match self {
            Priority::Quick => Class::Quick,
            Priority::Poll => Class::Default,
            Priority::Background => Class::Background,
        }
    }
}

/// The place of a question, as given.
#[derive(Debug, Clone, PartialEq)]
pub enum Location {
    /// A region of the globe.
    Area(Area),
    /// The surroundings of a named place, to be geocoded.
    Address {
        /// Address such as `Lyon`, `Springfield, Illinois` or `69001, FR`.
        name: String,
        /// Radius in metres.
        radius_m: f64,
    },
}

/// A search request.
#[derive(Debug, Clone)]
pub struct Question {
    /// The keywords that the text must match.
    pub keywords: Option<KeywordQuery>,
    /// The area.
    pub place: Option<Location>,
    /// The author.
    pub author: Option<String>,
    /// The providers to query; `None` for all that are enabled.
    pub providers: Option<Vec<String>>,
    /// The time interval; a missing end is unbounded.
    pub interval: Interval,
    /// The media that a result must have.
    pub media: Option<Media>,
    /// Language as ISO 639-1: `en`.
    pub language: Option<String>,
    /// Whether to detect the language of texts whose source does not state it. True if a language or `any` is
    /// requested, and if results are kept. Detection is the most expensive step for a result.
    pub detect_language: bool,
    /// Max results of each provider.
    pub limit: usize,
    /// Timeout of the whole search, from its arrival.
    pub deadline: Duration,
    /// Its priority in the queues.
    pub priority: Priority,
    /// Collection and retention for storing its results, if requested.
    pub keep: Option<KeepOptions>,
}

impl Question {
    /// The members of a question as JSON.
    pub const MEMBERS: [&'static str; 16] = [
        "keywords",
        "near",
        "radius",
        "bbox",
        "polygon",
        "address",
        "author",
        "providers",
        "start",
        "end",
        "media",
        "language",
        "limit",
        "timeout",
        "priority",
        "keep",
    ];

    /// Reads a question. An error names the member and states what was expected.
    pub fn read(value: &Value, settings: &Settings) -> Result<Question, Invalid> {
        let members =
            value.as_object().ok_or_else(|| Invalid::new("expected an object such as {\"keywords\":\"flood\"}"))?;
        // An unknown member is an error: a misspelt condition would otherwise widen the search without notice.
        if let Some(unknown) = members.keys().find(|name| !Question::MEMBERS.contains(&name.as_str())) {
            let known = Question::MEMBERS.join(", ");
            return Err(Invalid::field(
                unknown,
                format_args!("a question has no such member: expected one of {known}"),
            ));
        }
        let keywords = text(members, "keywords", crate::keywords::KEYWORDS_BYTES_MAX)?
            .map(|t| KeywordQuery::parse(&t))
            .transpose()?;
        let keep = KeepOptions::read(members)?;
        let (language, detect_language) = language(members)?;
        let question = Question {
            keywords,
            place: place(members)?,
            author: text(members, "author", TEXT_BYTES_MAX)?,
            providers: names(members)?,
            interval: interval(members)?,
            media: word(
                members,
                "media",
                &[("images", Some(Media::Images)), ("videos", Some(Media::Videos)), ("any", None)],
            )?
            .flatten(),
            language,
            // Kept results can be queried by language later, so it must be known now.
            detect_language: detect_language || keep.is_some(),
            limit: whole(members, "limit", 1, settings.limit_max as u64)?.map_or(settings.limit, |n| n as usize),
            deadline: whole(members, "timeout", 1, settings.deadline_max.as_millis() as u64)?
                .map_or(settings.deadline, Duration::from_millis),
            priority: word(members, "priority", &[("quick", Priority::Quick), ("background", Priority::Background)])?
                .unwrap_or(Priority::Quick),
            keep,
        };
        // A time or a medium alone would request everything that every provider has.
        if question.keywords.is_none() && question.place.is_none() && question.author.is_none() {
            return Err(Invalid::field("keywords", "the question is empty: expected keywords, a place or an author"));
        }
        Ok(question)
    }

    /// Returns the area, once an address has been geocoded.
    pub fn area(&self) -> Option<&Area> {
        match &self.place {
            Some(Location::Area(area)) => Some(area),
            _ => None,
        }
    }

    /// Returns the approximate size in memory, in bytes: a polygon and keywords may be large.
    pub(crate) fn bytes(&self) -> usize {
        let polygon = match self.area() {
            Some(Area::Polygon(polygon)) => polygon.coords_count() * size_of::<geo_types::Coord>(),
            _ => 0,
        };
        let names = self.providers.iter().flatten().map(|name| size_of::<String>() + name.len()).sum::<usize>();
        size_of::<Question>() + polygon + names + self.keywords.as_ref().map_or(0, KeywordQuery::bytes)
    }

    /// Returns whether the question restricts time.
    pub fn has_time(&self) -> bool {
        self.interval.start != i64::MIN || self.interval.end != i64::MAX
    }
}

fn names(members: &Map<String, Value>) -> Result<Option<Vec<String>>, Invalid> {
    let wrong = || {
        let expected = "expected an array of at most";
        let such = "such as [\"wikipedia\"]; GET /providers lists them";
        Invalid::field("providers", format_args!("{expected} {NAMES_MAX} names, {such}"))
    };
    match members.get("providers") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) if (1..=NAMES_MAX).contains(&list.len()) => {
            let mut names =
                list.iter().map(|n| n.as_str().map(str::to_owned).ok_or_else(wrong)).collect::<Result<Vec<_>, _>>()?;
            names.sort_unstable();
            names.dedup();
            Ok(Some(names))
        }
        Some(_) => Err(wrong()),
    }
}

/// Returns the language requested, and whether to detect languages.
fn language(members: &Map<String, Value>) -> Result<(Option<String>, bool), Invalid> {
    match text(members, "language", TEXT_BYTES_MAX)? {
        Some(code) if code == "any" => Ok((None, true)),
        Some(code) if code.len() == 2 && code.bytes().all(|b| b.is_ascii_lowercase()) => Ok((Some(code), true)),
        Some(code) => Err(Invalid::field(
            "language",
            format_args!("{code:?}: expected two small letters as in ISO 639-1, such as en, or any"),
        )),
        None => Ok((None, false)),
    }
}

fn interval(members: &Map<String, Value>) -> Result<Interval, Invalid> {
    let read = |name: &str| match text(members, name, TEXT_BYTES_MAX)? {
        Some(text) if text.contains('/') => {
            Err(Invalid::field(name, format_args!("{text:?}: expected one instant or date")))
        }
        // A date covers a whole day: `start` takes its first instant, `end` its last.
        Some(text) => Interval::parse(&text).map_err(|e| Invalid::field(name, e.detail)),
        None => Ok(Interval::ALWAYS),
    };
    let interval = Interval { start: read("start")?.start, end: read("end")?.end };
    if interval.start > interval.end {
        return Err(Invalid::field("end", "it is before start: expected an instant after it"));
    }
    Ok(interval)
}

fn place(members: &Map<String, Value>) -> Result<Option<Location>, Invalid> {
    let given: Vec<&str> = ["near", "bbox", "polygon", "address"]
        .into_iter()
        .filter(|n| members.get(*n).is_some_and(|v| !v.is_null()))
        .collect();
    if let [_, second, ..] = given[..] {
        return Err(Invalid::field(second, format_args!("{} are given: expected one place", given.join(" and "))));
    }
    let radius = match members.get("radius") {
        None | Some(Value::Null) => None,
        Some(value) => match value.as_f64() {
            Some(metres) if metres > 0.0 && metres <= RADIUS_MAX_M => Some(metres),
            _ => {
                return Err(Invalid::field(
                    "radius",
                    format_args!("{value}: expected metres, above 0 and at most {RADIUS_MAX_M}"),
                ));
            }
        },
    };
    if radius.is_some() && !matches!(given[..], ["near" | "address"]) {
        return Err(Invalid::field("radius", "a radius goes with near or address: expected one of them"));
    }
    let radius_m = radius.unwrap_or(RADIUS_DEFAULT_M);
    let Some(&name) = given.first() else { return Ok(None) };
    let value = &members[name];
    let named = |e: Invalid| Invalid::field(name, e.detail);
    let area = match name {
        "near" => {
            let [lon, lat] =
                numbers(value).ok_or_else(|| Invalid::field(name, "expected [longitude, latitude] in degrees"))?;
            geometry::validate_position(lon, lat).map_err(named)?;
            Area::Circle { lon, lat, radius_m }
        }
        "bbox" => {
            let sides: [f64; 4] =
                numbers(value).ok_or_else(|| Invalid::field(name, "expected [west, south, east, north] in degrees"))?;
            geometry::validate_position(sides[0], sides[1]).map_err(named)?;
            geometry::validate_position(sides[2], sides[3]).map_err(named)?;
            if sides[1] > sides[3] {
                return Err(Invalid::field(name, "the south is north of the north: expected west, south, east, north"));
            }
            Area::Box(sides)
        }
        "polygon" => match geojson::read(value).map_err(named)? {
            Geometry::Polygon(polygon) if polygon.coords_count() <= POSITIONS_MAX => Area::Polygon(polygon),
            Geometry::Polygon(polygon) => {
                let count = polygon.coords_count();
                return Err(Invalid::field(name, format_args!("{count} positions: expected at most {POSITIONS_MAX}")));
            }
            _ => return Err(Invalid::field(name, "expected a GeoJSON Polygon")),
        },
        _ => {
            let name = text(members, "address", TEXT_BYTES_MAX)?.unwrap_or_default();
            return Ok(Some(Location::Address { name, radius_m }));
        }
    };
    Ok(Some(Location::Area(area)))
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_whole_question_is_read() {
        let question = Question::read(
            &json!({"keywords": "flood OR fire", "bbox": [170, -20, -170, -10], "author": "Ann", "providers": ["b", "a", "b"],
                "start": "2026-01-01", "end": "2026-02-01T00:00:00Z", "media": "images", "language": "en", "limit": 5,
                "timeout": 1500, "priority": "background"}),
            &Settings::default(),
        )
        .expect("a question");
        assert_eq!(question.area(), Some(&Area::Box([170.0, -20.0, -170.0, -10.0])));
        assert_eq!(question.providers, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(
            (question.limit, question.deadline, question.media),
            (5, Duration::from_millis(1500), Some(Media::Images))
        );
        assert!(question.has_time() && question.priority == Priority::Background);
    }

    #[test]
    fn a_language_is_sought_or_only_told_or_neither() {
        for (more, sought, told) in [
            (json!({}), None, false),
            (json!({"language": "en"}), Some("en"), true),
            (json!({"language": "any"}), None, true),
            (json!({"keep": {"collection": "kept"}}), None, true),
        ] {
            let mut asked = json!({"keywords": "flood"});
            asked.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let question = Question::read(&asked, &Settings::default()).expect("a question");
            assert_eq!((question.language.as_deref(), question.detect_language), (sought, told), "{asked}");
        }
    }

    #[test]
    fn every_mistake_names_its_member() {
        let ring = json!([[0, 0], [1, 0], [1, 1], [0, 0]]);
        let circle = |n: usize| (0..n).map(move |i| (i as f64 / n as f64 * std::f64::consts::TAU).sin_cos());
        let many: Vec<_> = circle(2_000).chain(circle(1)).map(|(x, y)| json!([x, y])).collect();
        for (question, field, part) in [
            (json!([]), None, "expected an object"),
            (json!({}), Some("keywords"), "the question is empty"),
            (json!({"start": "2026-01-01"}), Some("keywords"), "the question is empty"),
            (json!({"keyword": "a"}), Some("keyword"), "expected one of keywords"),
            (json!({"keywords": "(a"}), Some("keywords"), "not closed"),
            (json!({"keywords": 5}), Some("keywords"), "expected a text"),
            (json!({"keywords": " "}), Some("keywords"), "empty"),
            (json!({"near": [1]}), Some("near"), "[longitude, latitude]"),
            (json!({"near": [1, 99]}), Some("near"), "99"),
            (json!({"near": [1, 2], "radius": -1}), Some("radius"), "metres"),
            (json!({"keywords": "a", "radius": 5}), Some("radius"), "goes with"),
            (json!({"near": [1, 2], "bbox": [0, 0, 1, 1]}), Some("bbox"), "one place"),
            (json!({"bbox": [0, 5, 1, 1]}), Some("bbox"), "north of the north"),
            (
                json!({"polygon": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0]]]}}),
                Some("polygon"),
                "3 distinct points",
            ),
            (json!({"polygon": {"type": "LineString", "coordinates": ring}}), Some("polygon"), "GeoJSON Polygon"),
            (json!({"polygon": "here"}), Some("polygon"), "GeoJSON"),
            (json!({"polygon": {"type": "Polygon", "coordinates": [many]}}), Some("polygon"), "at most 2000"),
            (json!({"keywords": "a", "providers": "x"}), Some("providers"), "array"),
            (json!({"keywords": "a", "providers": vec!["x"; 101]}), Some("providers"), "at most 100"),
            (json!({"keywords": "a", "start": "soon"}), Some("start"), ""),
            (json!({"keywords": "a", "start": "2026-02-01", "end": "2026-01-01"}), Some("end"), "before start"),
            (json!({"keywords": "a", "media": "sound"}), Some("media"), "images, videos, any"),
            (json!({"keywords": "a", "language": "English"}), Some("language"), "ISO 639-1"),
            (json!({"keywords": "a", "limit": 0}), Some("limit"), "from 1 to 1000"),
            (json!({"keywords": "a", "timeout": 1e9}), Some("timeout"), "120000"),
            (json!({"keywords": "a", "keep": "x"}), Some("keep"), "expected an object"),
            (json!({"keywords": "a", "keep": {"hours": 1}}), Some("keep"), "name of a collection"),
            (json!({"keywords": "a", "keep": {"collection": "../x"}}), Some("keep"), "is not a valid name"),
            (json!({"keywords": "a", "keep": {"collection": "x", "hours": 0}}), Some("keep"), "from 1 to 8784"),
            (json!({"keywords": "a", "keep": {"collection": "x", "days": 1}}), Some("keep"), "no member \"days\""),
        ] {
            let mistake = Question::read(&question, &Settings::default()).expect_err(&question.to_string());
            assert_eq!(mistake.field.as_deref(), field, "{question}");
            assert!(mistake.detail.contains(part), "{question}: {mistake}");
        }
    }
}
