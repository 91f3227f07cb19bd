//! "Nothing found", or broken: where all results were left out, none of them may have what the question was held against,
//! because the source calls it otherwise now.

use super::{Declared, Fault};
use crate::question::{Media, Question};

/// The fields that keywords are looked for in.
const TEXTS: [&str; 2] = ["title", "text"];

/// What is suspicious about results that were all left out.
#[derive(Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The fields that the question needs and none of them has.
    keys: Vec<&'static str>,
    /// Whether they have nothing at all to look for its keywords in.
    is_mute: bool,
}

impl Doubt {
    /// Of a question, and the fields that a declaration maps and no result has.
    pub fn of(question: &Question, declared: &Declared, missing: &[&'static str]) -> Option<Doubt> {
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
        let is_mute = question.keywords.is_some()
            && is_open("keywords")
            && texts.peek().is_some()
            && texts.all(|key| missing.contains(key));
        (!keys.is_empty()).then_some(Doubt { keys, is_mute })
    }

    /// What is said where all of so many results were left out: of what could not be judged that it is broken, else a remark.
    pub fn told(&self, results: usize) -> Result<String, Fault> {
        let keys: Vec<String> = self.keys.iter().map(|key| format!("answer.map.{key}")).collect();
        let keys = keys.join(" and ");
        match self.is_mute {
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
            Declared::parse(&text, &|_| None).expect("a declaration")
        };
        let all = "title = \"a\"\ntext = \"b\"\nauthor = \"c\"\nlon = \"d\"\nlat = \"e\"\ntime = \"f\"\nvideos = \"g\"";
        let missing = ["title", "text", "author", "lon", "time", "videos"];
        let doubt = |question: Value, map: &str, sure_of: &str, missing: &[&'static str]| {
            let question = Question::read(&question, &Settings::default()).expect("a question");
            Doubt::of(&question, &declared(map, sure_of), missing)
        };
        let some = |keys: &[&'static str], is_mute| Some(Doubt { keys: keys.to_vec(), is_mute });
        let words = json!({"keywords": "flood"});
        assert_eq!(doubt(words.clone(), all, "", &missing), some(&["title", "text"], true));
        assert_eq!(doubt(words.clone(), all, "", &["text", "author"]), some(&["text"], false));
        assert_eq!(doubt(words.clone(), all, "\"keywords\"", &missing), None);
        assert_eq!(doubt(words.clone(), "text = \"b\"", "", &["text"]), some(&["text"], true));
        assert_eq!(doubt(words, "author = \"c\"", "", &["author"]), None);
        let place = json!({"near": [4.8, 45.7], "author": "Ann", "media": "images"});
        assert_eq!(doubt(place.clone(), all, "", &missing), some(&["author", "lon"], false));
        assert_eq!(doubt(place, all, "\"author\", \"place\"", &missing), None);
        let told = Doubt { keys: vec!["author", "lon"], is_mute: false }.told(7).expect("a remark");
        assert!(told.contains("7 results") && told.contains("answer.map.author and answer.map.lon"), "{told}");
    }
}
