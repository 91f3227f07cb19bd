//! Searches, and the sources that they query.

use meridian_federation::provider::shipped;
use meridian_federation::{Question, Settings, SourceDeclaration, words};
use meridian_saved::{Definition, SavedSettings};
use serde_json::Value;
use std::sync::LazyLock;

/// A search, as sent by a client.
pub fn search(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(question) = Question::read(&value, &Settings::default())
        && let Some(keywords) = question.keywords
    {
        keywords.matches(&words::NormalizedText::of(["A flood in New York, 5° north of Łódź"]));
        keywords.required(&|word| word.len() as f64);
        keywords.plain();
        keywords.first();
    }
}

/// A saved search, as sent by a client and as stored.
pub fn saved_search(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    let (settings, saved) = (Settings::default(), SavedSettings::default());
    if let Ok(definition) = Definition::read(&value, &settings, &saved) {
        let written = Value::Object(definition.written());
        let again = Definition::read(&written, &settings, &saved).unwrap_or_else(|e| panic!("{written}: {e}"));
        assert_eq!(again.written(), definition.written());
        let shown = Value::Object(definition.shown());
        assert!(shown.pointer("/webhook/secret").is_none(), "{shown}");
    }
}

/// The file in which an operator declares a source.
pub fn provider(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(declared) = SourceDeclaration::parse(text, &shipped::text) {
        let answer = br#"{"items":[{"id":1,"title":"a","time":5,"lon":1,"lat":2}],"next":"x"}"#;
        let _ = declared.check_response("application/json", answer);
    }
}

/// The response of a source, read as each format.
pub fn provider_answer(bytes: &[u8]) {
    static DECLARED: LazyLock<Vec<SourceDeclaration>> = LazyLock::new(|| {
        let declared = |format: &str, items: &str| {
            let text = format!(
                "name = \"a\"\n[request]\nurl = \"http://a\"\n[answer]\nformat = \"{format}\"\nitems = \"{items}\"\n\
                 [answer.map]\nid = \"id\"\ntitle = \"title\"\ntext = \"text\"\nlink = \"link\"\ntime = \"time\"\n\
                 lon = \"lon\"\nlat = \"lat\"\n"
            );
            SourceDeclaration::parse(&text, &|_| None).unwrap()
        };
        let shipped = |name: &str| SourceDeclaration::parse(&shipped::text(name).unwrap(), &shipped::text).unwrap();
        let mut all = vec![declared("json", "items"), declared("xml", "rss.channel.item"), declared("csv", "")];
        all.extend(["usgs-earthquakes", "overpass", "mastodon"].map(shipped));
        all
    });
    for declared in DECLARED.iter() {
        if let Ok(check) = declared.check_response("", bytes) {
            assert!(check.found.len() <= check.items);
        }
        let _ = declared.mapping.read("text/xml; charset=iso-8859-2", bytes);
    }
}
