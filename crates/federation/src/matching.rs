//! Whether a result matches a question.

use crate::question::{Media, Question};
use crate::search_result::SearchResult;
use crate::words::NormalizedText;
use meridian_model::caseless::fold;

/// Normalises an author's name for comparison.
pub fn plain_author(name: &str) -> String {
    fold(name.trim_start_matches('@')).into_owned()
}

/// Returns whether a result has the images or videos that the question requires.
pub(crate) fn has_media(found: &SearchResult, question: &Question) -> bool {
    match question.media {
        None => true,
        Some(Media::Images) => !found.images.is_empty(),
        Some(Media::Videos) => !found.videos.is_empty(),
    }
}

/// Returns whether a result matches the question. `sure_of` names the parts that its source has already checked. A
/// result without a time or place matches only if its source is sure of that part.
pub fn matches(found: &SearchResult, question: &Question, sure_of: &[String]) -> bool {
    let sure = |part: &str| sure_of.iter().any(|p| p == part);
    let place = match (question.area(), &found.shape) {
        (Some(area), Some(shape)) => sure("place") || area.holds(shape),
        (Some(_), None) => sure("place"),
        (None, _) => true,
    };
    let time = match found.time {
        _ if !question.has_time() => true,
        // As in queries of collections, an interval matches if it overlaps.
        Some(time) => time.meets(&question.interval),
        None => sure("time"),
    };
    let author = question.author.as_ref().is_none_or(|sought| {
        sure("author") || found.author.as_ref().is_some_and(|name| plain_author(name) == plain_author(sought))
    });
    let media = has_media(found, question);
    let words = || {
        question
            .keywords
            .as_ref()
            .is_none_or(|words| sure("keywords") || words.matches(&NormalizedText::of(found.texts())))
    };
    // Words last: preparing the text costs more than all other tests.
    place && time && author && media && words()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use meridian_model::Interval;
    use serde_json::json;

    #[test]
    fn what_does_not_match_is_left_out_unless_the_source_is_sure() {
        let found = SearchResult {
            title: Some("Flood in Lyon".to_owned()),
            author: Some("Ann".to_owned()),
            time: Some(Interval::at(1_000_000)),
            shape: Some(geo_types::Geometry::Point(geo_types::Point::new(4.8, 45.7))),
            images: vec!["https://a/b.jpg".to_owned()],
            ..SearchResult::default()
        };
        let bare = SearchResult::default();
        for (question, whole, unsure, part) in [
            (json!({"keywords": "flood"}), true, false, "keywords"),
            (json!({"keywords": "fire"}), false, false, "keywords"),
            (json!({"near": [4.8, 45.7], "radius": 10}), true, false, "place"),
            (json!({"near": [5.8, 45.7], "radius": 10}), false, false, "place"),
            (json!({"author": "@ann"}), true, false, "author"),
            (json!({"author": "Bob"}), false, false, "author"),
            (json!({"keywords": "flood", "start": "1970-01-01", "end": "1970-01-02"}), true, false, "time"),
            (json!({"keywords": "flood", "start": "1970-01-02"}), false, false, "time"),
            (json!({"keywords": "flood", "media": "images"}), true, false, "media"),
            (json!({"keywords": "flood", "media": "videos"}), false, false, "media"),
        ] {
            let asked = Question::read(&question, &Settings::default()).expect("a question");
            assert_eq!(matches(&found, &asked, &[]), whole, "{question}");
            assert_eq!(matches(&bare, &asked, &[]), unsure, "{question}");
            let sure = vec!["keywords".to_owned(), part.to_owned()];
            assert_eq!(matches(&bare, &asked, &sure), part != "media", "{question}");
        }
    }
}
