//! From an answer to results, by paths: pure, so that a recorded answer is test enough.

use super::decode::{Format, decode, without_markup};
use super::path::{Path, text};
use super::template::Template;
use crate::found::Found;
use crate::shape;
use meridian_model::{geometry, time};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// `[answer.map]`: paths, or templates over paths where there is a brace: `https://example.org/{id}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MappingFile {
    id: Option<String>,
    title: Option<String>,
    text: Option<String>,
    link: Option<String>,
    author: Option<String>,
    language: Option<String>,
    time: Option<String>,
    time_format: Option<String>,
    lon: Option<String>,
    lat: Option<String>,
    point: Option<String>,
    geometry: Option<String>,
    images: Option<String>,
    videos: Option<String>,
}

/// How a source writes instants.
#[derive(Debug, Clone, PartialEq, Eq)]
enum When {
    /// RFC 3339, RFC 2822 or a plain date.
    Text,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// In strptime's letters; UTC where they name no offset.
    Letters(String),
}

#[derive(Debug, Clone)]
enum Value1 {
    Path(Path),
    Made(Template),
}

/// How a source says "nothing" other than by an empty list.
#[derive(Debug, Clone)]
enum Empty {
    /// By an object without members.
    Bare,
    /// By something that stands here.
    Sign(Path),
}

/// How an answer is read.
#[derive(Debug, Clone)]
pub struct Mapping {
    format: Format,
    items: Path,
    empty: Option<Empty>,
    error: Option<Path>,
    id: Option<Value1>,
    title: Option<Value1>,
    text: Option<Value1>,
    link: Option<Value1>,
    author: Option<Value1>,
    language: Option<Value1>,
    time: Option<Path>,
    when: When,
    lon_lat: Option<(Path, Path)>,
    point: Option<Path>,
    geometry: Option<Path>,
    images: Option<Value1>,
    videos: Option<Value1>,
    more: Vec<(String, Value1)>,
}

/// What an answer held.
#[derive(Debug)]
pub struct Mapped {
    /// The results.
    pub found: Vec<Found>,
    /// Items that held nothing that could be taken.
    pub unreadable: usize,
    /// The answer as a value, for whoever looks for the next page.
    pub value: Value,
}

impl Mapping {
    /// Takes the paths of a declaration apart.
    pub fn new(
        format: Format,
        items: &str,
        empty: Option<&str>,
        error: Option<&str>,
        map: &MappingFile,
        more: &BTreeMap<String, String>,
    ) -> Result<Mapping, String> {
        let value = |key: &str, text: &Option<String>| {
            text.as_deref().map(|text| value(text).map_err(|e| format!("answer.map.{key}: {e}"))).transpose()
        };
        let path = |text: &Option<String>| text.as_deref().map(Path::parse);
        let when = match map.time_format.as_deref() {
            None => When::Text,
            Some("unix") => When::Seconds,
            Some("unix-ms") => When::Millis,
            Some(letters) => {
                // What cannot be written cannot be read either.
                let written =
                    jiff::fmt::strtime::format(letters, &jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC));
                written.map_err(|e| format!("answer.map.time_format = {letters:?}: {e}"))?;
                When::Letters(letters.to_owned())
            }
        };
        let lon_lat = match (&map.lon, &map.lat) {
            (Some(lon), Some(lat)) => Some((Path::parse(lon), Path::parse(lat))),
            (None, None) => None,
            _ => return Err("answer.map: lon and lat go together".to_owned()),
        };
        let more = more
            .iter()
            .map(|(name, text)| Ok((name.clone(), self::value(text).map_err(|e| format!("answer.more.{name}: {e}"))?)));
        Ok(Mapping {
            format,
            items: Path::parse(items),
            empty: empty.map(|sign| if sign == "{}" { Empty::Bare } else { Empty::Sign(Path::parse(sign)) }),
            error: error.map(Path::parse),
            id: value("id", &map.id)?,
            title: value("title", &map.title)?,
            text: value("text", &map.text)?,
            link: value("link", &map.link)?,
            author: value("author", &map.author)?,
            language: value("language", &map.language)?,
            time: path(&map.time),
            when,
            lon_lat,
            point: path(&map.point),
            geometry: path(&map.geometry),
            images: value("images", &map.images)?,
            videos: value("videos", &map.videos)?,
            more: more.collect::<Result<_, String>>()?,
        })
    }

    /// Reads an answer. The error is a sentence about the source: what came is not what its declaration says.
    pub fn read(&self, content_type: &str, bytes: &[u8]) -> Result<Mapped, String> {
        let value = decode(self.format, content_type, bytes)?;
        if let Some(said) = self.error.as_ref().and_then(|path| path.text(&value)) {
            return Err(format!("it answered with an error: {}", cut(&said)));
        }
        let items: Vec<&Value> = match &self.items.all(&value)[..] {
            [Value::Array(list)] => list.iter().collect(),
            found => found.to_vec(),
        };
        if items.is_empty() && !self.is_empty(&value) {
            return Err("the answer has no list of results where it should stand: its shape has changed".to_owned());
        }
        let found: Vec<Found> = items.iter().filter_map(|item| self.one(item)).collect();
        let unreadable = items.len() - found.len();
        if found.is_empty() && unreadable > 0 {
            return Err(format!(
                "none of {unreadable} results has an id, a link, a title or a text: its shape has changed"
            ));
        }
        Ok(Mapped { found, unreadable, value })
    }

    /// Whether an answer without results says that there are none: by an empty list, by the sign that the declaration names, or
    /// (XML has no empty lists) by what the list would stand in.
    fn is_empty(&self, value: &Value) -> bool {
        let empty_list =
            self.items.first(value).is_some_and(|list| matches!(list, Value::Array(list) if list.is_empty()));
        let sign = match &self.empty {
            Some(Empty::Sign(path)) => path.first(value).is_some(),
            Some(Empty::Bare) => value.as_object().is_some_and(|members| members.is_empty()),
            None => false,
        };
        let around = match self.format {
            Format::Json => false,
            Format::Xml => self.items.parent().first(value).is_some_and(Value::is_object),
            Format::Csv => value.is_array(),
        };
        empty_list || sign || around
    }

    fn one(&self, item: &Value) -> Option<Found> {
        let get = |value: &Option<Value1>| value.as_ref().and_then(|value| value.text(item));
        let clean =
            |value: &Option<Value1>| get(value).map(|text| without_markup(&text)).filter(|text| !text.is_empty());
        let list = |value: &Option<Value1>| value.as_ref().map(|value| value.texts(item)).unwrap_or_default();
        let (title, body, link, id) = (clean(&self.title), clean(&self.text), get(&self.link), get(&self.id));
        let id = match (id, &link) {
            (Some(id), _) => id,
            (None, Some(link)) => link.clone(),
            (None, None) if title.is_none() && body.is_none() => return None,
            (None, None) => fingerprint(title.as_deref().unwrap_or_default(), body.as_deref().unwrap_or_default()),
        };
        let (place, shape) = self.place(item).unzip();
        Some(Found {
            id,
            place,
            shape,
            time: self.time.as_ref().and_then(|path| self.when.read(path.first(item)?)),
            title,
            text: body,
            link,
            author: clean(&self.author),
            language: get(&self.language)
                .map(|code| code.to_lowercase().chars().take_while(|c| c.is_alphabetic()).collect()),
            images: list(&self.images),
            videos: list(&self.videos),
            more: self.more.iter().filter_map(|(name, value)| Some((name.clone(), value.value(item)?))).collect(),
            ..Found::default()
        })
    }

    fn place(&self, item: &Value) -> Option<(Value, geo_types::Geometry<f64>)> {
        if let Some(value) = self.geometry.as_ref().and_then(|path| path.first(item)) {
            return Some((value.clone(), shape::read(value).ok()?));
        }
        let number = |path: &Path| path.text(item)?.parse::<f64>().ok();
        let apart = self.lon_lat.as_ref().and_then(|(lon, lat)| Some((number(lon)?, number(lat)?)));
        let (lon, lat) = match apart {
            Some(position) => position,
            // GeoRSS writes the latitude first.
            None => {
                let text = self.point.as_ref()?.text(item)?;
                let mut numbers = text.split([' ', ',']).filter(|n| !n.is_empty()).map(str::parse::<f64>);
                let (lat, lon) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
                (lon, lat)
            }
        };
        // Where sources do not know, many of them write 0, 0.
        let known = (lon, lat) != (0.0, 0.0) && geometry::validate_position(lon, lat).is_ok();
        known.then(|| (shape::point(lon, lat), geo_types::Geometry::Point(geo_types::Point::new(lon, lat))))
    }
}

fn value(text: &str) -> Result<Value1, String> {
    if text.contains(['{', '}']) {
        return Template::parse(text, |name| !name.is_empty()).map(Value1::Made);
    }
    Ok(Value1::Path(Path::parse(text)))
}

impl Value1 {
    fn text(&self, item: &Value) -> Option<String> {
        match self {
            Value1::Path(path) => path.text(item),
            Value1::Made(template) => template.fill(&|name, _| Path::parse(name).text(item)),
        }
    }

    fn texts(&self, item: &Value) -> Vec<String> {
        match self {
            Value1::Path(path) => path.all(item).into_iter().filter_map(text).collect(),
            Value1::Made(_) => self.text(item).into_iter().collect(),
        }
    }

    fn value(&self, item: &Value) -> Option<Value> {
        match self {
            Value1::Path(path) => path.first(item).cloned(),
            Value1::Made(_) => self.text(item).map(Value::from),
        }
    }
}

impl When {
    fn read(&self, value: &Value) -> Option<i64> {
        let written = text(value)?;
        let scaled = |scale: f64| {
            let micros = written.parse::<f64>().ok()? * scale;
            (micros.abs() < 9e18).then_some(micros as i64)
        };
        let micros = match self {
            When::Seconds => scaled(1e6)?,
            When::Millis => scaled(1e3)?,
            When::Letters(letters) => {
                let read = jiff::fmt::strtime::parse(letters, &written).ok()?;
                let at = read.to_timestamp().or_else(|e| match read.to_datetime() {
                    Ok(local) => local.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp()),
                    Err(_) => read.to_date().map_err(|_| e)?.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp()),
                });
                at.ok()?.as_microsecond()
            }
            When::Text => match time::parse_instant(&written, Some(&jiff::tz::TimeZone::UTC)) {
                Ok(micros) => micros,
                Err(_) => jiff::fmt::rfc2822::parse(&written).ok()?.timestamp().as_microsecond(),
            },
        };
        time::in_range(micros, &written).ok()
    }
}

fn fingerprint(title: &str, text: &str) -> String {
    let hash = twox_hash::XxHash3_128::oneshot(format!("{title}\0{text}").as_bytes());
    format!("{hash:032x}")
}

/// A source's words, short enough to be passed on.
fn cut(said: &str) -> String {
    said.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::super::declaration::Declared;
    use serde_json::json;

    fn mapping(map: &str, format: &str, items: &str) -> super::Mapping {
        let text = format!(
            "name = \"a\"\n[request]\nurl = \"http://a\"\n[answer]\nformat = \"{format}\"\nitems = \"{items}\"\nempty = \"none\"\nerror = \"error.info\"\n[answer.map]\n{map}"
        );
        Declared::parse(&text, &|_| None).expect("a declaration").mapping
    }

    #[test]
    fn nothing_found_and_broken_are_different() {
        let map = mapping("id = \"id\"", "json", "list");
        let read = |value: serde_json::Value| map.read("application/json", value.to_string().as_bytes());
        assert_eq!(read(json!({"list": []})).expect("none").found.len(), 0);
        assert_eq!(read(json!({"none": true})).expect("none").found.len(), 0);
        assert!(read(json!({"items": []})).expect_err("broken").contains("shape has changed"));
        assert!(read(json!({"list": [{"key": 1}]})).expect_err("broken").contains("none of 1"));
        assert!(read(json!({"error": {"info": "quota"}})).expect_err("said so").contains("quota"));
        let mixed = read(json!({"list": [{"key": 1}, {"id": 1}]})).expect("some");
        assert_eq!((mixed.found.len(), mixed.unreadable), (1, 1));
        let feed = mapping("title = \"title\"", "xml", "rss.channel.item");
        assert_eq!(feed.read("", b"<rss><channel><title>x</title></channel></rss>").expect("none").found.len(), 0);
        assert!(feed.read("", b"<feed><title>x</title></feed>").is_err());
    }

    #[test]
    fn instants_and_places_are_read_as_sources_write_them() {
        for (format, written, micros) in [
            ("unix", json!(1.5), 1_500_000),
            ("unix-ms", json!("1500"), 1_500_000),
            ("%Y%m%dT%H%M%SZ", json!("19700102T000001Z"), 86_401_000_000),
            ("%Y-%m-%d %H:%M:%S", json!("1970-01-01 00:00:01"), 1_000_000),
        ] {
            let map = mapping(&format!("id = \"id\"\ntime = \"t\"\ntime_format = \"{format}\""), "json", "");
            let read = map.read("", json!([{"id": 1, "t": written}]).to_string().as_bytes()).expect("one");
            assert_eq!(read.found[0].time, Some(micros), "{format}");
        }
        let map = mapping("id = \"id\"\ntime = \"t\"\npoint = \"p\"\nlink = \"https://x/{id}\"", "json", "");
        let read = |t: &str, p: &str| {
            map.read("", json!([{"id": 1, "t": t, "p": p}]).to_string().as_bytes()).expect("one").found.remove(0)
        };
        let found = read("Thu, 01 Jan 1970 00:00:01 GMT", "45.5 -120");
        assert_eq!(
            (found.time, found.place, found.link.as_deref()),
            (Some(1_000_000), Some(crate::shape::point(-120.0, 45.5)), Some("https://x/1"))
        );
        let found = read("1970-01-01", "0 0");
        assert_eq!((found.time, found.place), (Some(0), None));
    }
}
