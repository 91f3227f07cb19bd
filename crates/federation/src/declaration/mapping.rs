//! Maps a response to results by rules. It is pure, so that recorded responses suffice as tests.

use super::decode::{ResponseFormat, decode, without_markup};
use super::join::{Join, join};
use super::mapping_file::AnswerFile;
use super::path::Path;
use super::rule::Rule;
use super::time_format::TimeFormat;
use crate::geojson;
use crate::search_result::SearchResult;
use meridian_model::{Interval, geometry};
use serde_json::Value;

/// How a source marks an empty result, besides an empty list.
#[derive(Debug, Clone)]
enum EmptyMarker {
    /// By an empty object.
    Bare,
    /// By a value at this path.
    Sign(Path),
}

/// The mapping of a response.
#[derive(Debug, Clone)]
pub struct ResponseMapping {
    format: ResponseFormat,
    items: Path,
    empty: Option<EmptyMarker>,
    error: Option<Path>,
    joins: Vec<Join>,
    id: Option<Rule>,
    title: Option<Rule>,
    text: Option<Rule>,
    link: Option<Rule>,
    author: Option<Rule>,
    language: Option<Rule>,
    time: Option<Path>,
    when: TimeFormat,
    lon_lat: Option<(Path, Path)>,
    point: Option<Path>,
    geometry: Option<Path>,
    images: Option<Rule>,
    videos: Option<Rule>,
    more: Vec<(String, Rule)>,
}

/// A field that questions test: its key, whether it is mapped, and whether a result has it.
type MappedField = (&'static str, bool, fn(&SearchResult) -> bool);

/// The contents of a response.
#[derive(Debug)]
pub struct MappedResponse {
    /// The results.
    pub found: Vec<SearchResult>,
    /// Items that could not be mapped.
    pub unreadable: usize,
    /// The decoded response, for finding the next page.
    pub value: Value,
}

impl ResponseMapping {
    /// Parses the rules of a declaration; `fixed` inserts the values of `[set]`. The error names the key, also for a
    /// rule that could never match.
    pub fn new(file: &AnswerFile, fixed: &dyn Fn(&str) -> String) -> Result<ResponseMapping, String> {
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
        let when = TimeFormat::parse(map.time_format.as_deref()).map_err(|e| {
            format!("answer.map.time_format = {:?}: {e}", map.time_format.as_deref().unwrap_or_default())
        })?;
        // Most likely a misspelt key, which would go unnoticed: results would just lack a time.
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
        let mapping = ResponseMapping {
            format: file.format,
            items: top("items", &file.items)?,
            empty: match file.empty.as_deref() {
                None => None,
                Some("{}") => Some(EmptyMarker::Bare),
                Some(sign) => Some(EmptyMarker::Sign(top("empty", sign)?)),
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

    /// Checks that every join is used, and that every used join exists.
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

    /// Returns the mapped fields by their keys in the file, each with its paths.
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

    fn mapped_fields(&self) -> [MappedField; 10] {
        let has_place = |found: &SearchResult| found.shape.is_some();
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

    /// Returns whether a field that questions test is mapped.
    pub(crate) fn maps(&self, key: &str) -> bool {
        self.mapped_fields().iter().any(|(known, is_mapped, _)| *is_mapped && *known == key)
    }

    /// Returns the keys of fields that are mapped and that no result has.
    pub fn missing(&self, found: &[SearchResult]) -> Vec<&'static str> {
        let is_missing = |(_, is_mapped, has): &MappedField| *is_mapped && !found.iter().any(has);
        self.mapped_fields().into_iter().filter(is_missing).map(|(key, ..)| key).collect()
    }

    /// Maps a response. The error is a sentence about the source: its response is not as declared.
    pub fn read(&self, content_type: &str, bytes: &[u8]) -> Result<MappedResponse, String> {
        let value = decode(self.format, content_type, bytes)?;
        let (found, unreadable) = self.with_items(&value, bytes.len(), |items| {
            let found: Vec<SearchResult> = items.iter().filter_map(|item| self.one(item)).collect();
            let unreadable = items.len() - found.len();
            (found, unreadable)
        })?;
        // A source that changes its format must show up as a failure, not as a search without results.
        if found.is_empty() && unreadable > 0 {
            return Err(format!(
                "none of {unreadable} results has an id, a link, a title or a text: its shape has changed"
            ));
        }
        Ok(MappedResponse { found, unreadable, value })
    }

    /// Decodes a response and passes its items, joined, to `inspect`.
    pub(super) fn inspect<T>(
        &self,
        content_type: &str,
        bytes: &[u8],
        inspect: impl FnOnce(&[&Value]) -> T,
    ) -> Result<T, String> {
        self.with_items(&decode(self.format, content_type, bytes)?, bytes.len(), inspect)
    }

    fn with_items<T>(&self, value: &Value, bytes: usize, inspect: impl FnOnce(&[&Value]) -> T) -> Result<T, String> {
        if let Some(said) = self.error.as_ref().and_then(|path| path.text(value)) {
            return Err(format!("it answered with an error: {}", cut(&said)));
        }
        let items: Vec<&Value> = match &self.items.all(value)[..] {
            // The path may lead to the list itself or to its elements; both are common in declarations.
            [Value::Array(list)] => list.iter().collect(),
            found => found.to_vec(),
        };
        // A missing list may mean an error page or another format. Only the declared markers count as no results.
        if items.is_empty() && !self.is_empty(value) {
            return Err("the response has no list of results at the declared path: its shape has changed".to_owned());
        }
        if self.joins.is_empty() {
            return Ok(inspect(&items));
        }
        let joined = join(&self.joins, value, bytes, &items);
        Ok(inspect(&joined.iter().collect::<Vec<_>>()))
    }

    /// Returns whether a response without items is an empty result. It is one if it has an empty list, the declared
    /// marker, or the parent of the list, since XML has no empty lists.
    fn is_empty(&self, value: &Value) -> bool {
        let empty_list =
            self.items.first(value).is_some_and(|list| matches!(list, Value::Array(list) if list.is_empty()));
        let sign = match &self.empty {
            Some(EmptyMarker::Sign(path)) => path.first(value).is_some(),
            Some(EmptyMarker::Bare) => value.as_object().is_some_and(|members| members.is_empty()),
            None => false,
        };
        let around = match self.format {
            ResponseFormat::Json => false,
            // XML has no empty list: without elements only their parent exists.
            ResponseFormat::Xml => self.items.parent().first(value).is_some_and(Value::is_object),
            ResponseFormat::Csv => value.is_array(),
        };
        empty_list || sign || around
    }

    /// Returns the result of one item; `None` if nothing identifies the item.
    pub(super) fn one(&self, item: &Value) -> Option<SearchResult> {
        let get = |rule: &Option<Rule>| rule.as_ref().and_then(|rule| rule.text(item));
        let clean = |rule: &Option<Rule>| get(rule).map(|text| without_markup(&text)).filter(|text| !text.is_empty());
        let list = |rule: &Option<Rule>| rule.as_ref().map(|rule| rule.texts(item)).unwrap_or_default();
        let (title, body, link, id) = (clean(&self.title), clean(&self.text), get(&self.link), get(&self.id));
        let id = match (id, &link) {
            (Some(id), _) => id,
            (None, Some(link)) => link.clone(),
            (None, None) if title.is_none() && body.is_none() => return None,
            // The same text has the same id at every poll, so that a saved search reports it once.
            (None, None) => fingerprint(title.as_deref().unwrap_or_default(), body.as_deref().unwrap_or_default()),
        };
        let (place, shape) = self.place(item).unzip();
        Some(SearchResult {
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
            ..SearchResult::default()
        })
    }

    fn place(&self, item: &Value) -> Option<(Value, geo_types::Geometry<f64>)> {
        if let Some(value) = self.geometry.as_ref().and_then(|path| path.first(item)) {
            return Some((value.clone(), geojson::read(value).ok()?));
        }
        let number = |path: &Path| path.text(item)?.parse::<f64>().ok();
        let apart = self.lon_lat.as_ref().and_then(|(lon, lat)| Some((number(lon)?, number(lat)?)));
        let (lon, lat) = match apart {
            Some(position) => position,
            // GeoRSS puts the latitude first.
            None => {
                let text = self.point.as_ref()?.text(item)?;
                let mut numbers = text.split([' ', ',']).filter(|n| !n.is_empty()).map(str::parse::<f64>);
                let (lat, lon) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
                (lon, lat)
            }
        };
        // Many sources write 0, 0 for an unknown position.
        let known = (lon, lat) != (0.0, 0.0) && geometry::validate_position(lon, lat).is_ok();
        known.then(|| (geojson::point(lon, lat), geo_types::Geometry::Point(geo_types::Point::new(lon, lat))))
    }
}

fn fingerprint(title: &str, text: &str) -> String {
    let hash = twox_hash::XxHash3_128::oneshot(format!("{title}\0{text}").as_bytes());
    format!("{hash:032x}")
}

/// Truncates a message of a source.
fn cut(said: &str) -> String {
    said.chars().take(200).collect()
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::super::SourceDeclaration;
    use serde_json::json;

    pub(super) fn mapping(map: &str, format: &str, items: &str) -> super::ResponseMapping {
        let text = format!(
            "name = \"a\"\n[request]\nurl = \"http://a\"\n[answer]\nformat = \"{format}\"\nitems = \"{items}\"\nempty = \"none\"\nerror = \"error.info\"\n[answer.map]\n{map}"
        );
        SourceDeclaration::parse(&text, &|_| None).expect("a declaration").mapping
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
            (Some(1_000_000), Some(crate::geojson::point(-120.0, 45.5)), Some("https://x/1"))
        );
        let found = read("1970-01-01", "0 0");
        assert_eq!((found.start(), found.place), (Some(0), None));
    }
}
