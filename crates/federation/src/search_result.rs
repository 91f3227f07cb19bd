//! A result on its way through the pipeline.

use geo_types::Geometry;
use meridian_labels::Labels;
use meridian_model::{Interval, time};
use serde_json::{Map, Value, json};

/// One result, in the form that every source's response is mapped to.
#[derive(Debug, Clone, Default)]
pub struct SearchResult {
    /// The source's id; else its link or a hash.
    pub id: String,
    /// Its geometry as GeoJSON.
    pub place: Option<Value>,
    /// The same geometry, parsed.
    pub shape: Option<Geometry<f64>>,
    /// Its time: an instant or an interval.
    pub time: Option<Interval>,
    /// Whether its time is a day, without a time of day.
    pub is_day: bool,
    /// Headline.
    pub title: Option<String>,
    /// Its text, without markup.
    pub text: Option<String>,
    /// URL of the item.
    pub link: Option<String>,
    /// Its author.
    pub author: Option<String>,
    /// ISO 639-1, from the source or detected from the text.
    pub language: Option<String>,
    /// URLs of images.
    pub images: Vec<String>,
    /// URLs of videos.
    pub videos: Vec<String>,
    /// Labels of the first image, guessed by a model.
    pub image_labels: Option<Labels>,
    /// Name of the place, if `place` was guessed from the text.
    pub place_name: Option<String>,
    /// The kind of item, set by the classify stage.
    pub kind: Option<&'static str>,
    /// Further members from the source.
    pub more: Map<String, Value>,
}

impl SearchResult {
    /// Returns the texts that keywords are matched against, including those in lists.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let own = self.title.iter().chain(&self.text).map(String::as_str);
        own.chain(self.more.values().flat_map(|value| {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            value.as_str().into_iter().chain(list.iter().filter_map(Value::as_str))
        }))
    }

    /// Returns its start in microseconds since 1970, if known.
    pub fn start(&self) -> Option<i64> {
        self.time.map(|time| time.start).filter(|start| *start != i64::MIN)
    }

    /// Returns the result as a GeoJSON feature.
    pub fn feature(&self) -> Value {
        let mut properties = Map::new();
        let texts = [("title", &self.title), ("text", &self.text), ("link", &self.link), ("author", &self.author)];
        for (name, text) in texts {
            if let Some(text) = text {
                properties.insert(name.to_owned(), text.as_str().into());
            }
        }
        if let Some(at) = self.start() {
            let shown = if self.is_day { time::format_date(at) } else { time::format_instant(at) };
            properties.insert("time".to_owned(), shown.into());
        }
        for (name, text) in [("language", self.language.as_deref()), ("kind", self.kind)] {
            if let Some(text) = text {
                properties.insert(name.to_owned(), text.into());
            }
        }
        if let Some(name) = &self.place_name {
            properties.insert("place_from".to_owned(), "text".into());
            properties.insert("place_name".to_owned(), name.as_str().into());
        }
        for (name, list) in [("images", &self.images), ("videos", &self.videos)] {
            if !list.is_empty() {
                properties.insert(name.to_owned(), list.as_slice().into());
            }
        }
        if let Some(Labels { model, labels }) = &self.image_labels {
            let labels: Vec<Value> = labels.iter().map(|l| json!({ "label": l.label, "score": l.score })).collect();
            properties.insert("image_labels".to_owned(), labels.into());
            properties.insert("image_labels_from".to_owned(), model.as_str().into());
        }
        for (name, value) in &self.more {
            properties.entry(name.as_str()).or_insert_with(|| value.clone());
        }
        json!({ "type": "Feature", "id": self.id, "geometry": self.place, "properties": properties })
    }

    /// Returns the result as the text of a feature of at most `bytes` bytes. Excess is cut in this order: further
    /// members, lists, texts. The member `cut` marks it. `None` if even the bare feature does not fit.
    pub fn feature_within(mut self, bytes: usize) -> Option<String> {
        let whole = self.feature().to_string();
        if whole.len() <= bytes {
            return Some(whole);
        }
        self.more.clear();
        self.more.insert("cut".to_owned(), true.into());
        self.images.truncate(1);
        self.videos.truncate(1);
        // A character may take six bytes of JSON, so an excess text is halved until it fits.
        loop {
            let text = self.feature().to_string();
            if text.len() <= bytes {
                return Some(text);
            }
            let shape_is_large = !matches!(self.shape, None | Some(Geometry::Point(_)));
            let longest = [&mut self.text, &mut self.title, &mut self.author]
                .into_iter()
                .flatten()
                .max_by_key(|text| text.len())
                .filter(|text| text.len() > 16);
            match longest {
                Some(text) => text.truncate(text.floor_char_boundary(text.len() / 2)),
                None if shape_is_large && self.place.is_some() => self.place = None,
                None if self.image_labels.is_some() => self.image_labels = None,
                None if !self.images.is_empty() || !self.videos.is_empty() || self.link.is_some() => {
                    self.images.clear();
                    self.videos.clear();
                    self.link = None;
                }
                None => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_feature_is_cut_to_what_fits(text in "\\PC{0,3000}", title in "\\PC{0,300}", bytes in 300..2_000_usize) {
            let found = SearchResult { id: "a".to_owned(), text: Some(text), title: Some(title), ..SearchResult::default() };
            let whole = found.feature().to_string();
            let cut = found.feature_within(bytes).expect("it fits");
            prop_assert!(cut.len() <= bytes);
            let read: Value = serde_json::from_str(&cut).expect("JSON");
            prop_assert_eq!(read["properties"]["cut"].as_bool().unwrap_or(false), whole.len() > bytes);
        }
    }
}
