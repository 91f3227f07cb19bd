//! The kind of a result, and the language of its text.

use crate::question::Question;
use crate::search_result::SearchResult;
use whatlang::Lang;

/// Min letters to detect a language; shorter texts are too ambiguous.
const LETTERS_MIN: usize = 24;

/// Sets the kind of a result, and its language if the source gives none and the question needs it.
pub fn classify(found: &mut SearchResult, question: &Question) {
    found.kind = Some(kind(found));
    if found.language.is_none() && question.detect_language {
        found.language = language(found).map(str::to_owned);
    }
}

/// Returns the kind of a result.
pub(crate) fn kind(found: &SearchResult) -> &'static str {
    if !found.videos.is_empty() {
        "video"
    } else if !found.images.is_empty() {
        "image"
    } else if found.text.is_some() || found.title.is_some() {
        "text"
    } else {
        "event"
    }
}

fn language(found: &SearchResult) -> Option<&'static str> {
    let text: Vec<&str> = found.title.iter().chain(&found.text).map(String::as_str).collect();
    let text = text.join(". ");
    // One kilobyte is enough to detect the language.
    let text = &text[..text.floor_char_boundary(1_024)];
    if text.chars().filter(|c| c.is_alphabetic()).count() < LETTERS_MIN {
        return None;
    }
    let info = whatlang::detect(text)?;
    // An unreliable guess is worse than none: the result would be dropped by a search for another language.
    info.is_reliable().then(|| two_letters(info.lang())).flatten()
}

/// Returns the ISO 639-1 code of a detected language, if it has one.
fn two_letters(lang: Lang) -> Option<&'static str> {
    // Three-letter code to two-letter code.
    const CODES: [&str; 140] = [
        "afr", "af", "aka", "ak", "amh", "am", "ara", "ar", "aze", "az", "bel", "be", "ben", "bn", "bul", "bg", "cat",
        "ca", "ces", "cs", "cmn", "zh", "cym", "cy", "dan", "da", "deu", "de", "ell", "el", "eng", "en", "epo", "eo",
        "est", "et", "fin", "fi", "fra", "fr", "guj", "gu", "heb", "he", "hin", "hi", "hrv", "hr", "hun", "hu", "hye",
        "hy", "ind", "id", "ita", "it", "jav", "jv", "jpn", "ja", "kan", "kn", "kat", "ka", "khm", "km", "kor", "ko",
        "lat", "la", "lav", "lv", "lit", "lt", "mal", "ml", "mar", "mr", "mkd", "mk", "mya", "my", "nep", "ne", "nld",
        "nl", "nob", "no", "ori", "or", "pan", "pa", "pes", "fa", "pol", "pl", "por", "pt", "ron", "ro", "rus", "ru",
        "sin", "si", "slk", "sk", "slv", "sl", "sna", "sn", "spa", "es", "srp", "sr", "swe", "sv", "tam", "ta", "tel",
        "te", "tgl", "tl", "tha", "th", "tuk", "tk", "tur", "tr", "ukr", "uk", "urd", "ur", "uzb", "uz", "vie", "vi",
        "yid", "yi", "zul", "zu",
    ];
    CODES.as_chunks().0.iter().find(|[three, _]| *three == lang.code()).map(|[_, two]| *two)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_two_letters() {
        assert!(Lang::all().iter().all(|lang| two_letters(*lang).is_some()));
        let found = |text: &str| SearchResult { text: Some(text.to_owned()), ..SearchResult::default() };
        let german =
            "Nach dem schweren Unwetter stehen in der Stadt viele Keller unter Wasser, die Feuerwehr ist im Einsatz.";
        assert_eq!(language(&found(german)), Some("de"));
        assert_eq!(language(&found("OK!")), None);
        assert_eq!((kind(&found("x")), kind(&SearchResult::default())), ("text", "event"));
        for (asked, language) in [(None, None), (Some("any"), Some("de")), (Some("de"), Some("de"))] {
            let asked = serde_json::json!({"keywords": "keller", "language": asked});
            let question = Question::read(&asked, &crate::settings::Settings::default()).expect("a question");
            let mut told = found(german);
            classify(&mut told, &question);
            assert_eq!((told.language.as_deref(), told.kind), (language, Some("text")), "{asked}");
        }
    }
}
