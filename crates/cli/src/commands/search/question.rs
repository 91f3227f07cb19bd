//! The query as options; the server checks the rest.

use crate::args::numbers;
use crate::failure::Failure;
use crate::units;
use clap::Args;
use serde_json::{Map, Value, json};

/// The members of a question, see `docs/searches.md`.
#[derive(Args, Debug, Clone, Default)]
pub struct QuestionArgs {
    /// Words that must be in the text
    pub query: Option<String>,
    /// Source to ask; may be repeated [default: all enabled ones]; `meridian` means the server's collections
    #[arg(long = "provider", value_name = "NAME")]
    pub providers: Vec<String>,
    /// Around this position: longitude,latitude
    #[arg(long, value_name = "LON,LAT", allow_hyphen_values = true)]
    pub near: Option<String>,
    /// Metres around --near or --address [default: 10000]
    #[arg(long, value_name = "METRES")]
    pub radius: Option<f64>,
    /// In this box: west,south,east,north in degrees (west > east crosses the antimeridian)
    #[arg(long, value_name = "W,S,E,N", allow_hyphen_values = true)]
    pub bbox: Option<String>,
    /// Within these corners, in order: longitude,latitude and longitude,latitude and so on, with spaces between
    #[arg(long, value_name = "CORNERS", allow_hyphen_values = true)]
    pub polygon: Option<String>,
    /// Around a place by its name or postal code, such as "Lyon, FR"
    #[arg(long, value_name = "PLACE")]
    pub address: Option<String>,
    /// Only results of this author, by the name that the source uses
    #[arg(long, value_name = "NAME")]
    pub author: Option<String>,
    /// Not before this instant (RFC 3339) or date
    #[arg(long, value_name = "TIME")]
    pub start: Option<String>,
    /// Not after this instant or date
    #[arg(long, value_name = "TIME")]
    pub end: Option<String>,
    /// Only results with images, or with videos
    #[arg(long, value_name = "KIND")]
    pub media: Option<String>,
    /// Only results in this language, in two letters (ISO 639-1); `any` excludes none, but detects the language of each
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
    /// Max results of each source [default: 100]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Time for the whole search, such as 5s [default: 20s]
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    /// Keep the results in this collection, which is created if missing
    #[arg(long, value_name = "COLLECTION")]
    pub keep: Option<String>,
    /// Hours to keep them, which must match an existing collection [default: 24, or the collection's]
    #[arg(long, value_name = "HOURS", requires = "keep")]
    pub keep_hours: Option<u64>,
}

impl QuestionArgs {
    /// Returns the query as JSON.
    pub fn read(&self) -> Result<Value, Failure> {
        let mut question = Map::new();
        let texts = [
            ("keywords", &self.query),
            ("address", &self.address),
            ("author", &self.author),
            ("start", &self.start),
            ("end", &self.end),
            ("media", &self.media),
            ("language", &self.language),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                question.insert(name.to_owned(), json!(text));
            }
        }
        if let Some(near) = &self.near {
            let position =
                numbers("--near", near, &[2], "longitude,latitude, such as 4.83,45.76, and the metres in --radius")?;
            question.insert("near".to_owned(), json!(position));
        }
        if let Some(bbox) = &self.bbox {
            let sides = numbers("--bbox", bbox, &[4], "west,south,east,north in degrees, such as -10,35,5,45")?;
            question.insert("bbox".to_owned(), json!(sides));
        }
        if let Some(corners) = &self.polygon {
            question.insert("polygon".to_owned(), polygon(corners)?);
        }
        if let Some(radius) = self.radius {
            question.insert("radius".to_owned(), json!(radius));
        }
        if let Some(limit) = self.limit {
            question.insert("limit".to_owned(), json!(limit));
        }
        if let Some(timeout) = &self.timeout {
            let time = units::duration(timeout).map_err(|e| Failure::Usage(format!("--timeout: {e}")))?;
            // The API counts in milliseconds; people write 5s.
            question.insert("timeout".to_owned(), json!(time.as_millis() as u64));
        }
        if !self.providers.is_empty() {
            question.insert("providers".to_owned(), json!(self.providers));
        }
        if let Some(collection) = &self.keep {
            question.insert("keep".to_owned(), json!({"collection": collection, "hours": self.keep_hours}));
        }
        Ok(Value::Object(question))
    }
}

/// A GeoJSON Polygon with these corners, closed if necessary.
fn polygon(corners: &str) -> Result<Value, Failure> {
    let shape = "corners with spaces between, such as \"4,45 5,45 5,46\"";
    let one = |corner: &str| numbers("--polygon", corner, &[2], shape);
    let mut ring = corners.split_whitespace().map(one).collect::<Result<Vec<_>, _>>()?;
    if ring.len() < 3 {
        return Err(Failure::Usage(format!("--polygon {corners:?}: expected at least three {shape}")));
    }
    // RFC 7946 requires closed rings; people name each corner once.
    if ring.first() != ring.last() {
        ring.push(ring[0].clone());
    }
    Ok(json!({"type": "Polygon", "coordinates": [ring]}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_the_members_of_a_question() {
        let args = QuestionArgs {
            query: Some("flood".to_owned()),
            providers: vec!["wikipedia".to_owned()],
            near: Some("-4.5,45".to_owned()),
            radius: Some(500.0),
            timeout: Some("1500ms".to_owned()),
            limit: Some(3),
            keep: Some("floods".to_owned()),
            keep_hours: Some(48),
            ..QuestionArgs::default()
        };
        let expected = json!({"keywords": "flood", "near": [-4.5, 45.0], "radius": 500.0, "limit": 3, "timeout": 1500,
            "providers": ["wikipedia"], "keep": {"collection": "floods", "hours": 48}});
        assert_eq!(args.read().unwrap(), expected);
        let ring = json!([[-4.0, 45.0], [5.0, 45.0], [5.0, 46.0], [-4.0, 45.0]]);
        for corners in ["-4,45 5,45 5,46", "-4,45  5,45\n5,46 -4,45"] {
            let args = QuestionArgs { polygon: Some(corners.to_owned()), ..Default::default() };
            assert_eq!(args.read().unwrap(), json!({"polygon": {"type": "Polygon", "coordinates": [ring]}}));
        }
        for (args, option) in [
            (QuestionArgs { near: Some("1".to_owned()), ..Default::default() }, "--near"),
            (QuestionArgs { bbox: Some("1,2,3".to_owned()), ..Default::default() }, "--bbox"),
            (QuestionArgs { polygon: Some("1,2 3,4".to_owned()), ..Default::default() }, "--polygon"),
            (QuestionArgs { polygon: Some("1,2 3,4 5".to_owned()), ..Default::default() }, "--polygon"),
            (QuestionArgs { timeout: Some("soon".to_owned()), ..Default::default() }, "--timeout"),
        ] {
            let mistake = args.read().unwrap_err();
            assert_eq!(mistake.code(), 2);
            assert!(mistake.to_string().starts_with(option), "{mistake}");
        }
    }
}
