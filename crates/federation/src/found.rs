//! A result on its way through the pipeline.

use geo_types::Geometry;
use meridian_labels::Labels;
use meridian_model::{Interval, time};
use serde_json::{Map, Value, json};

/// One result, as every source's answer is mapped to.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The source's own name for it; a link or a fingerprint where it has none.
    pub id: String,
    /// Where, as GeoJSON.
    pub place: Option<Value>,
    /// The same as a shape.
    pub shape: Option<Geometry<f64>>,
    /// When: an instant, or from one to another.
    pub time: Option<Interval>,
    /// Headline.
    pub title: Option<String>,
    /// What it says, without markup.
    pub text: Option<String>,
    /// Address of the thing itself.
    pub link: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// ISO 639-1, as the source says or as the text sounds.
    pub language: Option<String>,
    /// Addresses of pictures.
    pub images: Vec<String>,
    /// Addresses of films.
    pub videos: Vec<String>,
    /// What the first picture shows, as a model guesses.
    pub image_labels: Option<Labels>,
    /// The name of the place, where `place` is a guess from the text.
    pub place_name: Option<String>,
    /// What kind of thing it is; set by the stage that classifies.
    pub kind: Option<&'static str>,
    /// Whatever else the source says.
    pub more: Map<String, Value>,
}

impl Found {
    /// The texts that keywords are looked for in, those in lists too.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let own = self.title.iter().chain(&self.text).map(String::as_str);
        own.chain(self.more.values().flat_map(|value| {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            value.as_str().into_iter().chain(list.iter().filter_map(Value::as_str))
        }))
    }

    /// Its first instant in microseconds since 1970, where it has one.
    pub fn start(&self) -> Option<i64> {
        self.time.map(|time| time.start).filter(|start| *start != i64::MIN)
    }

    /// As a GeoJSON feature.
    pub fn feature(&self) -> Value {
        let mut properties = Map::new();
        let texts = [("title", &self.title), ("text", &self.text), ("link", &self.link), ("author", &self.author)];
        for (name, text) in texts {
            if let Some(text) = text {
                properties.insert(name.to_owned(), text.as_str().into());
            }
        }
        if let Some(at) = self.start() {
            properties.insert("time".to_owned(), time::format_instant(at).into());
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

    /// As the text of a feature of at most so many bytes. What is over is cut: first whatever else the source says, then
    /// lists, then texts; `cut` says so. `None` where not even the bare feature fits.
    pub fn feature_within(mut self, bytes: usize) -> Option<String> {
        let whole = self.feature().to_string();
        if whole.len() <= bytes {
            return Some(whole);
        }
        self.more.clear();
        self.more.insert("cut".to_owned(), true.into());
        self.images.truncate(1);
        self.videos.truncate(1);
        // A sign of text takes up to six bytes of JSON, so what is too long is halved until it fits.
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
            let found = Found { id: "a".to_owned(), text: Some(text), title: Some(title), ..Found::default() };
            let whole = found.feature().to_string();
            let cut = found.feature_within(bytes).expect("it fits");
            prop_assert!(cut.len() <= bytes);
            let read: Value = serde_json::from_str(&cut).expect("JSON");
            prop_assert_eq!(read["properties"]["cut"].as_bool().unwrap_or(false), whole.len() > bytes);
        }
    }
}
