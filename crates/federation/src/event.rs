//! An event in the form that the matcher of saved searches and the local provider test. Each part is decoded when the
//! first test needs it.

use crate::classification::{classify, kind};
use crate::matching::{has_media, plain_author};
use crate::question::Question;
use crate::search_result::SearchResult;
use crate::seen::hash;
use crate::words::NormalizedText;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ListArray, StringArray};
use geo_types::Geometry;
use meridian_formats::{FeatureWriter, Features};
use meridian_model::{Batch, FieldColumn, FieldType, Interval, Schema, Seq, TimeRole};
use serde_json::{Map, Value};
use std::cell::OnceCell;

/// The events of one write.
pub struct Events<'a> {
    collection: &'a str,
    batch: &'a Batch,
    features: Features<'a>,
    texts: Vec<&'a StringArray>,
    lists: Vec<&'a ListArray>,
    author: Option<&'a StringArray>,
    object: Option<FieldColumn<'a>>,
}

impl<'a> Events<'a> {
    /// Resolves the columns once for all events.
    pub fn of(collection: &'a str, batch: &'a Batch, writer: &'a FeatureWriter, seqs: &'a [Seq]) -> Events<'a> {
        let text = |field: usize| match batch.field(field) {
            Some(FieldColumn::Text(column)) => Some(column),
            _ => None,
        };
        let list = |field: usize| match batch.field(field) {
            Some(FieldColumn::TextList(column)) => Some(column),
            _ => None,
        };
        let schema = batch.schema();
        Events {
            collection,
            batch,
            features: writer.rows(batch, seqs),
            texts: (0..schema.fields.len()).filter_map(text).collect(),
            lists: (0..schema.fields.len()).filter_map(list).collect(),
            author: schema.field_index("author").and_then(text),
            object: schema.object.and_then(|field| batch.field(field)),
        }
    }

    /// Returns the event of a row.
    pub fn event(&self, row: usize) -> Event<'_> {
        Event {
            of: self,
            row,
            shape: OnceCell::new(),
            texts: OnceCell::new(),
            found: OnceCell::new(),
            with_language: OnceCell::new(),
        }
    }
}

/// One event.
pub struct Event<'a> {
    of: &'a Events<'a>,
    row: usize,
    shape: OnceCell<Option<Geometry<f64>>>,
    texts: OnceCell<NormalizedText>,
    found: OnceCell<SearchResult>,
    with_language: OnceCell<SearchResult>,
}

impl Event<'_> {
    /// Returns west, south, east, north; `None` for an event without a geometry.
    pub fn sides(&self) -> Option<[f64; 4]> {
        let bounds = self.of.batch.bounds(self.row);
        (!bounds.is_nowhere()).then_some([bounds.west, bounds.south, bounds.east, bounds.north])
    }

    /// Returns its time; `None` if neither end is known.
    pub fn time(&self) -> Option<Interval> {
        time_of(self.of.batch, self.row)
    }

    /// Returns its end, in microseconds since 1970. The newer of two events of an object is the one that ends later,
    /// as in collections of mode `latest`. Events without a time are ordered by arrival.
    pub fn ends(&self) -> i64 {
        self.of.batch.interval(self.row).1
    }

    /// Returns all its texts, including those in lists.
    pub fn texts(&self) -> &NormalizedText {
        self.texts.get_or_init(|| {
            let texts = self.of.texts.iter().filter(|column| column.is_valid(self.row));
            NormalizedText::of(texts.map(|column| column.value(self.row)).chain(self.listed()))
        })
    }

    /// Returns the texts in its list fields.
    fn listed(&self) -> impl Iterator<Item = &str> {
        self.of.lists.iter().filter(|column| column.is_valid(self.row)).flat_map(|column| {
            let offsets = column.value_offsets();
            let items = offsets[self.row] as usize..offsets[self.row + 1] as usize;
            let texts = column.values().as_string_opt::<i32>();
            texts.into_iter().flat_map(move |texts| {
                items.clone().filter(move |&item| texts.is_valid(item)).map(move |item| texts.value(item))
            })
        })
    }

    /// Returns its author, normalised for comparison.
    pub fn author(&self) -> Option<String> {
        let column = self.of.author.filter(|column| column.is_valid(self.row))?;
        Some(plain_author(column.value(self.row)))
    }

    /// Returns a hash of its collection and object id, for a moving object.
    pub fn object(&self) -> Option<u64> {
        let name = match self.of.object? {
            FieldColumn::Text(column) if column.is_valid(self.row) => column.value(self.row).to_owned(),
            FieldColumn::Int(column) if column.is_valid(self.row) => column.value(self.row).to_string(),
            _ => return None,
        };
        // Includes the collection, since objects of two collections may have the same name.
        Some(hash(&[self.of.collection, &name]))
    }

    /// Returns the event as a search result.
    pub fn found(&self, question: &Question) -> &SearchResult {
        if question.detect_language { self.with_language(question) } else { self.plain() }
    }

    /// Returns the event as a search result if it matches the question. Its language is detected only if the question
    /// requires it.
    pub fn answer(self, question: &Question) -> Option<SearchResult> {
        if !self.answers(question) {
            return None;
        }
        self.plain();
        self.with_language.into_inner().or(self.found.into_inner())
    }

    fn plain(&self) -> &SearchResult {
        self.found.get_or_init(|| {
            let mut text = Vec::new();
            self.of.features.feature(self.row, &mut text);
            let feature = serde_json::from_slice(&text).unwrap_or_default();
            let mut found = of_feature(feature, self.of.collection, self.of.batch, self.row);
            found.kind = Some(kind(&found));
            found
        })
    }

    /// Adds its language, for a question that requires it.
    fn with_language(&self, question: &Question) -> &SearchResult {
        self.with_language.get_or_init(|| {
            let mut found = self.plain().clone();
            classify(&mut found, question);
            found
        })
    }

    /// Returns whether the event matches the question, by the same rules as a search.
    pub fn answers(&self, question: &Question) -> bool {
        let time = || !question.has_time() || self.time().is_some_and(|time| time.meets(&question.interval));
        let place = || {
            let shape = || self.shape.get_or_init(|| self.of.batch.geometry(self.row)).as_ref();
            question.area().is_none_or(|area| shape().is_some_and(|shape| area.holds(shape)))
        };
        let author = || question.author.as_ref().is_none_or(|sought| self.author() == Some(plain_author(sought)));
        let words = || question.keywords.as_ref().is_none_or(|words| words.matches(self.texts()));
        let media = || question.media.is_none() || has_media(self.plain(), question);
        let language = || {
            question
                .language
                .as_ref()
                .is_none_or(|sought| self.with_language(question).language.as_ref() == Some(sought))
        };
        // From cheap to expensive: most events fail the test of time or place, before any text is decoded.
        time() && place() && author() && words() && media() && language()
    }
}

/// Converts a row to a result; `feature` is its GeoJSON.
fn of_feature(mut feature: Value, collection: &str, batch: &Batch, row: usize) -> SearchResult {
    let mut more: Map<String, Value> = match feature["properties"].take() {
        Value::Object(properties) => properties,
        _ => Map::new(),
    };
    more.retain(|_, value| !value.is_null());
    let mut text = |name: &str| match more.get(name) {
        Some(Value::String(_)) => more.remove(name).and_then(|v| v.as_str().map(str::to_owned)),
        _ => None,
    };
    let (title, body, link, author, language) =
        (text("title"), text("text"), text("link"), text("author"), text("language"));
    let mut list = |name: &str| match more.remove(name) {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.into_iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        Some(other) => {
            more.insert(name.to_owned(), other);
            Vec::new()
        }
        None => Vec::new(),
    };
    let (images, videos) = (list("images"), list("videos"));
    more.insert("collection".to_owned(), collection.into());
    SearchResult {
        id: format!("{collection}/{}", feature["id"].as_str().unwrap_or_default()),
        place: Some(feature["geometry"].take()).filter(|place| !place.is_null()),
        shape: batch.geometry(row),
        time: time_of(batch, row),
        is_day: begins_on_a_day(batch.schema()),
        title,
        text: body,
        link,
        author,
        language,
        images,
        videos,
        more,
        ..SearchResult::default()
    }
}

/// Returns whether the time of events, or its start, is a plain date.
fn begins_on_a_day(schema: &Schema) -> bool {
    match schema.time {
        TimeRole::Instant(field) | TimeRole::Interval { start: field, .. } => {
            schema.fields[field].kind == FieldType::Date
        }
        TimeRole::None => false,
    }
}

/// Returns the time of the event in a row; an open end is unbounded. `None` in a collection without time, and for an
/// event with neither start nor end.
fn time_of(batch: &Batch, row: usize) -> Option<Interval> {
    let (start, end) = batch.interval(row);
    Some(Interval { start, end }).filter(|time| batch.schema().has_time() && *time != Interval::ALWAYS)
}
