//! From an answer to results, by rules: pure, so that a recorded answer is test enough.

use super::decode::{Format, decode, without_markup};
use super::join::{Join, JoinFile, join};
use super::path::Path;
use super::rule::Rule;
use super::when::When;
use crate::found::Found;
use crate::shape;
use meridian_model::{Interval, geometry};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// `[answer]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerFile {
    format: Format,
    items: String,
    #[serde(default)]
    empty: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    pub(super) sure_of: Vec<String>,
    #[serde(default)]
    join: BTreeMap<String, JoinFile>,
    map: MappingFile,
    #[serde(default)]
    more: BTreeMap<String, String>,
}

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
    joins: Vec<Join>,
    id: Option<Rule>,
    title: Option<Rule>,
    text: Option<Rule>,
    link: Option<Rule>,
    author: Option<Rule>,
    language: Option<Rule>,
    time: Option<Path>,
    when: When,
    lon_lat: Option<(Path, Path)>,
    point: Option<Path>,
    geometry: Option<Path>,
    images: Option<Rule>,
    videos: Option<Rule>,
    more: Vec<(String, Rule)>,
}

/// A field that questions are held against: its key, whether it is mapped, and whether a result has it.
type Judged = (&'static str, bool, fn(&Found) -> bool);

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
    /// Takes the rules of a declaration apart; `fixed` puts the values of `[set]` in. The error names the key, also of a rule
    /// that could never find anything.
    pub fn new(file: &AnswerFile, fixed: &dyn Fn(&str) -> String) -> Result<Mapping, String> {
        let map = &file.map;
        let rule = |key: &str, text: &Option<String>| {
            let read = |text: &String| Rule::parse(&fixed(text)).map_err(|e| format!("answer.map.{key}: {e}"));
            text.as_ref().map(read).transpose()
        };
        let path = |key: &str, text: &Option<String>| {
            let read = |text: &String| match text.as_str() {
                "" => Err(format!("answer.map.{key}: it is empty: expected a path, or leave it out")),
                text => Path::parse(text).map_err(|e| format!("answer.map.{key}: {e}")),
            };
            text.as_ref().map(read).transpose()
        };
        let top = |key: &str, text: &str| Path::parse(text).map_err(|e| format!("answer.{key}: {e}"));
        let when = When::parse(map.time_format.as_deref()).map_err(|e| {
            format!("answer.map.time_format = {:?}: {e}", map.time_format.as_deref().unwrap_or_default())
        })?;
        if map.time_format.is_some() && map.time.is_none() {
            return Err("answer.map.time_format: there is no time that it could be the format of".to_owned());
        }
        if [&map.id, &map.link, &map.title, &map.text].iter().all(|rule| rule.is_none()) {
            return Err(
                "answer.map: expected at least one of id, link, title and text: without them no result can be read"
                    .to_owned(),
            );
        }
        let more = file.more.iter().map(|(name, text)| {
            Ok((name.clone(), Rule::parse(&fixed(text)).map_err(|e| format!("answer.more.{name}: {e}"))?))
        });
        let mapping = Mapping {
            format: file.format,
            items: top("items", &file.items)?,
            empty: match file.empty.as_deref() {
                None => None,
                Some("{}") => Some(Empty::Bare),
                Some(sign) => Some(Empty::Sign(top("empty", sign)?)),
            },
            error: file.error.as_deref().map(|path| top("error", path)).transpose()?,
            joins: file.join.iter().map(|(name, file)| Join::new(name, file, fixed)).collect::<Result<_, _>>()?,
            id: rule("id", &map.id)?,
            title: rule("title", &map.title)?,
            text: rule("text", &map.text)?,
            link: rule("link", &map.link)?,
            author: rule("author", &map.author)?,
            language: rule("language", &map.language)?,
            time: path("time", &map.time)?,
            when,
            lon_lat: match (path("lon", &map.lon)?, path("lat", &map.lat)?) {
                (Some(lon), Some(lat)) => Some((lon, lat)),
                (None, None) => None,
                _ => return Err("answer.map: lon and lat go together".to_owned()),
            },
            point: path("point", &map.point)?,
            geometry: path("geometry", &map.geometry)?,
            images: rule("images", &map.images)?,
            videos: rule("videos", &map.videos)?,
            more: more.collect::<Result<_, String>>()?,
        };
        mapping.check_joins()?;
        Ok(mapping)
    }

    /// Every join is used, and what is used is there.
    fn check_joins(&self) -> Result<(), String> {
        let mut used = Vec::new();
        for (field, paths) in self.fields() {
            for (first, second) in paths.into_iter().flat_map(Path::roots) {
                if first == "join" {
                    let name = second.unwrap_or_default();
                    if !self.joins.iter().any(|join| join.name() == name) {
                        return Err(format!("{field}: there is no [answer.join.{name}]"));
                    }
                    used.push(name.to_owned());
                }
            }
        }
        match self.joins.iter().find(|join| !used.iter().any(|name| name == join.name())) {
            Some(join) => {
                let name = join.name();
                Err(format!("answer.join.{name}: nothing in [answer.map] and [answer.more] names join.{name}"))
            }
            None => Ok(()),
        }
    }

    /// The fields that it fills, by their keys in the file, each with the paths that it is read from.
    pub(super) fn fields(&self) -> Vec<(String, Vec<&Path>)> {
        let rules = [
            ("id", &self.id),
            ("title", &self.title),
            ("text", &self.text),
            ("link", &self.link),
            ("author", &self.author),
            ("language", &self.language),
            ("images", &self.images),
            ("videos", &self.videos),
        ];
        let rules = rules.into_iter().filter_map(|(name, rule)| Some((name, rule.as_ref()?.paths())));
        let (lon, lat) = self.lon_lat.as_ref().map(|(lon, lat)| (lon, lat)).unzip();
        let paths = [
            ("time", self.time.as_ref()),
            ("lon", lon),
            ("lat", lat),
            ("point", self.point.as_ref()),
            ("geometry", self.geometry.as_ref()),
        ];
        let paths = paths.into_iter().filter_map(|(name, path)| Some((name, vec![path?])));
        let map = rules.chain(paths).map(|(name, paths)| (format!("answer.map.{name}"), paths));
        map.chain(self.more.iter().map(|(name, rule)| (format!("answer.more.{name}"), rule.paths()))).collect()
    }

    fn judged(&self) -> [Judged; 10] {
        let has_place = |found: &Found| found.shape.is_some();
        [
            ("title", self.title.is_some(), |found| found.title.is_some()),
            ("text", self.text.is_some(), |found| found.text.is_some()),
            ("author", self.author.is_some(), |found| found.author.is_some()),
            ("language", self.language.is_some(), |found| found.language.is_some()),
            ("time", self.time.is_some(), |found| found.time.is_some()),
            ("lon", self.lon_lat.is_some(), has_place),
            ("point", self.point.is_some(), has_place),
            ("geometry", self.geometry.is_some(), has_place),
            ("images", self.images.is_some(), |found| !found.images.is_empty()),
            ("videos", self.videos.is_some(), |found| !found.videos.is_empty()),
        ]
    }

    /// Whether a field that questions are held against is mapped.
    pub(super) fn maps(&self, key: &str) -> bool {
        self.judged().iter().any(|(known, is_mapped, _)| *is_mapped && *known == key)
    }

    /// The keys of fields that are mapped, and that none of these results has.
    pub fn missing(&self, found: &[Found]) -> Vec<&'static str> {
        let is_missing = |(_, is_mapped, has): &Judged| *is_mapped && !found.iter().any(has);
        self.judged().into_iter().filter(is_missing).map(|(key, ..)| key).collect()
    }

    /// Reads an answer. The error is a sentence about the source: what came is not what its declaration says.
    pub fn read(&self, content_type: &str, bytes: &[u8]) -> Result<Mapped, String> {
        let value = decode(self.format, content_type, bytes)?;
        let (found, unreadable) = self.with_items(&value, bytes.len(), |items| {
            let found: Vec<Found> = items.iter().filter_map(|item| self.one(item)).collect();
            let unreadable = items.len() - found.len();
            (found, unreadable)
        })?;
        if found.is_empty() && unreadable > 0 {
            return Err(format!(
                "none of {unreadable} results has an id, a link, a title or a text: its shape has changed"
            ));
        }
        Ok(Mapped { found, unreadable, value })
    }

    /// Decodes an answer, and gives its items, joined, to `look`.
    pub(super) fn look<T>(
        &self,
        content_type: &str,
        bytes: &[u8],
        look: impl FnOnce(&[&Value]) -> T,
    ) -> Result<T, String> {
        self.with_items(&decode(self.format, content_type, bytes)?, bytes.len(), look)
    }

    fn with_items<T>(&self, value: &Value, bytes: usize, look: impl FnOnce(&[&Value]) -> T) -> Result<T, String> {
        if let Some(said) = self.error.as_ref().and_then(|path| path.text(value)) {
            return Err(format!("it answered with an error: {}", cut(&said)));
        }
        let items: Vec<&Value> = match &self.items.all(value)[..] {
            [Value::Array(list)] => list.iter().collect(),
            found => found.to_vec(),
        };
        if items.is_empty() && !self.is_empty(value) {
            return Err("the answer has no list of results where it should stand: its shape has changed".to_owned());
        }
        if self.joins.is_empty() {
            return Ok(look(&items));
        }
        let joined = join(&self.joins, value, bytes, &items);
        Ok(look(&joined.iter().collect::<Vec<_>>()))
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

    /// A result of one item; `None` where it has nothing to know it by.
    pub(super) fn one(&self, item: &Value) -> Option<Found> {
        let get = |rule: &Option<Rule>| rule.as_ref().and_then(|rule| rule.text(item));
        let clean = |rule: &Option<Rule>| get(rule).map(|text| without_markup(&text)).filter(|text| !text.is_empty());
        let list = |rule: &Option<Rule>| rule.as_ref().map(|rule| rule.texts(item)).unwrap_or_default();
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
            time: self.time.as_ref().and_then(|path| self.when.read(path.first(item)?)).map(Interval::at),
            title,
            text: body,
            link,
            author: clean(&self.author),
            language: get(&self.language)
                .map(|code| code.to_lowercase().chars().take_while(|c| c.is_alphabetic()).collect()),
            images: list(&self.images),
            videos: list(&self.videos),
            more: self.more.iter().filter_map(|(name, rule)| Some((name.clone(), rule.value(item)?))).collect(),
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
            assert_eq!(read.found[0].start(), Some(micros), "{format}");
        }
        let map = mapping("id = \"id\"\ntime = \"t\"\npoint = \"p\"\nlink = \"https://x/{id}\"", "json", "");
        let read = |t: &str, p: &str| {
            map.read("", json!([{"id": 1, "t": t, "p": p}]).to_string().as_bytes()).expect("one").found.remove(0)
        };
        let found = read("Thu, 01 Jan 1970 00:00:01 GMT", "45.5 -120");
        assert_eq!(
            (found.start(), found.place, found.link.as_deref()),
            (Some(1_000_000), Some(crate::shape::point(-120.0, 45.5)), Some("https://x/1"))
        );
        let found = read("1970-01-01", "0 0");
        assert_eq!((found.start(), found.place), (Some(0), None));
    }
}
