//! Schema drift: distinguishes "nothing found" from a changed source. If all results were dropped, the source may have
//! renamed the fields that the question needs.

use super::Fault;
use crate::declaration::SourceDeclaration;
use crate::question::{Media, Question};

/// The fields that keywords are matched against.
const TEXTS: [&str; 2] = ["title", "text"];

/// Missing fields that may explain why all results were dropped.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaDrift {
    /// Fields that the question needs and no result has.
    keys: Vec<&'static str>,
    /// Whether no result has any text to match the keywords against.
    has_no_text: bool,
}

impl SchemaDrift {
    /// Compares the fields that a question needs with those that are mapped but missing in every result.
    pub fn of(question: &Question, declared: &SourceDeclaration, missing: &[&'static str]) -> Option<SchemaDrift> {
        let is_open = |part: &str| !declared.sure_of.iter().any(|sure| sure == part);
        let media = if question.media == Some(Media::Videos) { "videos" } else { "images" };
        let needed = |key: &str| match key {
            "title" | "text" if question.keywords.is_some() && is_open("keywords") => true,
            "title" | "text" | "language" => question.language.is_some() && is_open("language"),
            "author" => question.author.is_some() && is_open("author"),
            "time" => question.has_time() && is_open("time"),
            "images" | "videos" => question.media.is_some() && key == media,
            _ => question.area().is_some() && is_open("place"),
        };
        let keys: Vec<&str> = missing.iter().copied().filter(|key| needed(key)).collect();
        let mut texts = TEXTS.iter().filter(|key| declared.mapping.maps(key)).peekable();
        let has_no_text = question.keywords.is_some()
            && is_open("keywords")
            && texts.peek().is_some()
            && texts.all(|key| missing.contains(key));
        (!keys.is_empty()).then_some(SchemaDrift { keys, has_no_text })
    }

    /// Reports that all results were dropped: as an error if they could not be tested at all, else as a remark.
    pub fn report(&self, results: usize) -> Result<String, Fault> {
        let keys: Vec<String> = self.keys.iter().map(|key| format!("answer.map.{key}")).collect();
        let keys = keys.join(" and ");
        match self.has_no_text {
            true => Err(Fault::Error(format!(
                "none of {results} results has a text to look for the keywords in ({keys} finds nothing): its shape has changed"
            ))),
            false => Ok(format!(
                "all of {results} results were left out, and {keys} finds nothing in any of them: its shape may have changed"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use serde_json::{Value, json};

    #[test]
    fn only_what_the_question_needs_and_the_source_does_not_judge_is_doubted() {
        let declared = |map: &str, sure_of: &str| {
            let text = format!(
                "name = \"a\"\n[request]\nurl = \"http://a\"\n[answer]\nformat = \"json\"\nitems = \"\"\nsure_of = [{sure_of}]\n[answer.map]\nid = \"id\"\n{map}"
            );
            SourceDeclaration::parse(&text, &|_| None).expect("a declaration")
        };
        let all = "title = \"a\"\ntext = \"b\"\nauthor = \"c\"\nlon = \"d\"\nlat = \"e\"\ntime = \"f\"\nvideos = \"g\"";
        let missing = ["title", "text", "author", "lon", "time", "videos"];
        let drift = |question: Value, map: &str, sure_of: &str, missing: &[&'static str]| {
            let question = Question::read(&question, &Settings::default()).expect("a question");
            SchemaDrift::of(&question, &declared(map, sure_of), missing)
        };
        let some = |keys: &[&'static str], has_no_text| Some(SchemaDrift { keys: keys.to_vec(), has_no_text });
        let words = json!({"keywords": "flood"});
        assert_eq!(drift(words.clone(), all, "", &missing), some(&["title", "text"], true));
        assert_eq!(drift(words.clone(), all, "", &["text", "author"]), some(&["text"], false));
        assert_eq!(drift(words.clone(), all, "\"keywords\"", &missing), None);
        assert_eq!(drift(words.clone(), "text = \"b\"", "", &["text"]), some(&["text"], true));
        assert_eq!(drift(words, "author = \"c\"", "", &["author"]), None);
        let place = json!({"near": [4.8, 45.7], "author": "Ann", "media": "images"});
        assert_eq!(drift(place.clone(), all, "", &missing), some(&["author", "lon"], false));
        assert_eq!(drift(place, all, "\"author\", \"place\"", &missing), None);
        let report = SchemaDrift { keys: vec!["author", "lon"], has_no_text: false }.report(7).expect("a remark");
        assert!(report.contains("7 results") && report.contains("answer.map.author and answer.map.lon"), "{report}");
    }
}
