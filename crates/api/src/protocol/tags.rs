//! Entity tags (RFC 9110, 8.8.3), and the conditions on them (13.1).
//!
//! A tag names one state of a resource. The tag of a compressed response has the name of its coding as a suffix, since
//! its bytes differ. Conditions are about states, so they ignore that suffix.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use meridian_backend::{Collection, Definition, Head};
use meridian_model::{Schema, Seq};
use meridian_query::question_hash;

/// The suffixes added by [`mark`].
const CODINGS: [&str; 3] = ["-zstd", "-br", "-gzip"];

/// Appends the name of a coding to a strong tag. A weak tag does not identify bytes.
pub fn mark(headers: &mut HeaderMap, coding: &str) {
    let Some(tag) = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()) else { return };
    let marked = tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(|tag| format!("\"{tag}-{coding}\""));
    if let Some(Ok(marked)) = marked.map(|tag| HeaderValue::from_str(&tag)) {
        headers.insert(header::ETAG, marked);
    }
}

/// A tag in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    is_weak: bool,
    /// Without its quotes and the coding's suffix.
    state: String,
}

/// The tags listed in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    /// `*`: any state, if one exists.
    Any,
    /// The listed tags.
    Listed(Vec<Tag>),
}

impl Tags {
    /// Parses the tags of all header fields with a name; `None` if there is no such field.
    ///
    /// # Errors
    /// The text that is not a list of tags.
    pub fn of(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, String> {
        let (mut listed, mut is_present) = (Vec::new(), false);
        for value in headers.get_all(name) {
            is_present = true;
            let text = value.to_str().map_err(|_| "it is not ASCII text".to_owned())?;
            if text.trim() == "*" {
                return Ok(Some(Tags::Any));
            }
            read(text, &mut listed)?;
        }
        Ok(is_present.then_some(Tags::Listed(listed)))
    }

    /// Returns whether `is` holds for a listed tag, or any state matches.
    pub fn have(&self, is: impl Fn(&str) -> bool) -> bool {
        match self {
            Tags::Any => true,
            Tags::Listed(list) => list.iter().any(|tag| is(&tag.state)),
        }
    }

    /// Like [`Tags::have`], for strong tags only: a state to be overwritten must be known byte by byte (RFC 9110,
    /// 13.1.1).
    pub fn have_strong(&self, is: impl Fn(&str) -> bool) -> bool {
        match self {
            Tags::Any => true,
            Tags::Listed(list) => list.iter().any(|tag| !tag.is_weak && is(&tag.state)),
        }
    }

    /// Returns whether a tag names the same state as a response's tag, or any state matches.
    pub fn name(&self, response: &HeaderValue) -> bool {
        opaque(response).is_some_and(|state| self.have(|tag| tag == state))
    }
}

/// Returns a tag without its quotes.
pub fn opaque(tag: &HeaderValue) -> Option<&str> {
    let tag = tag.to_str().ok()?;
    tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')
}

/// Sets the strong tag of a document, derived from its bytes.
pub fn of_bytes(headers: &mut HeaderMap, bytes: &[u8]) {
    // FNV-1a: two versions of a document collide with probability 2^-64.
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    insert(headers, &format!("\"{hash:016x}\""));
}

/// Returns the name of a collection's definition in tags. It leaves out counts: they change with every write.
///
/// # Errors
/// A definition that cannot be written as JSON.
pub fn definition_name(created: i64, definition: &Definition) -> serde_json::Result<String> {
    let text = serde_json::to_string(definition)?;
    Ok(format!("{created:x}.{:x}", question_hash([text.as_str()])))
}

/// Adds the name of a definition to the strong tag of a document that shows it.
pub fn of_definition(headers: &mut HeaderMap, name: &str) {
    let Some(document) = headers.get(header::ETAG).and_then(opaque) else { return };
    let tag = format!("\"{name}.{document}\"");
    insert(headers, &tag);
}

/// Returns whether a collection's tag has this name of a definition.
pub fn is_of_definition(tag: &str, name: &str) -> bool {
    tag.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

/// Sets the strong tag of one event: its version, then the number of fields shown. A version number is unique only
/// within the content that began at `began`: a later collection of the name, or a restored one, reuses it.
pub fn of_event(headers: &mut HeaderMap, began: i64, seq: Seq, schema: &Schema) {
    insert(headers, &format!("\"{began:x}.{}.{:x}\"", seq.to_id(), schema.fields.len()));
}

/// Returns whether an event's tag names this version.
pub fn is_of_version(tag: &str, began: i64, seq: Seq) -> bool {
    let mut parts = tag.split('.');
    parts.next() == Some(&*format!("{began:x}")) && parts.next() == Some(&*seq.to_id())
}

/// Sets the weak tag of a query's result, derived from the snapshot that it reads. It is weak because the order among
/// equals, the last bit of a sum and the time of the response may differ.
///
/// The tag includes the number of rows: retention removes segments without a write. The media type must already be set.
pub fn of_read(headers: &mut HeaderMap, collection: &dyn Collection, head: &Head) {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let (began, seq, rows) = (collection.began(), head.seq.to_id(), head.rows);
    let (fields, kind) = (head.schema.fields.len() + head.missing.len(), question_hash([kind]));
    insert(headers, &format!("W/\"{began:x}.{seq}.{rows:x}.{fields:x}.{kind:x}\""));
}

/// Adds the target of the request to a weak tag.
///
/// The tag of a read is its snapshot's, which all queries of a collection share. That is enough for HTTP, which
/// compares the tags of one URL. MapLibre, however, compares a tile with the one that it replaces, whatever the URL. It
/// would keep a tile that lacks a newly requested field.
pub fn of_target(headers: &mut HeaderMap, target: &Uri) {
    of_path(headers, target.path(), target.query().unwrap_or_default());
}

/// Like [`of_target`], for a target given by its parts.
pub fn of_path(headers: &mut HeaderMap, path: &str, query: &str) {
    let Some(tag) = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()) else { return };
    if let Some(state) = tag.strip_prefix("W/\"").and_then(|tag| tag.strip_suffix('"')) {
        let hash = question_hash([path, query]);
        let tag = format!("W/\"{state}.{hash:x}\"");
        insert(headers, &tag);
    }
}

fn insert(headers: &mut HeaderMap, tag: &str) {
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
}

/// Parses a list such as `"a", W/"b,c"`. Commas may be within quotes.
fn read(text: &str, into: &mut Vec<Tag>) -> Result<(), String> {
    let wrong = || format!("{text:?} is not a list of entity tags: expected one such as \"0a1b2c\", or *");
    let mut rest = text.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let (is_weak, quoted) = rest.strip_prefix("W/").map_or((false, rest), |quoted| (true, quoted));
        let (tag, after) = quoted.strip_prefix('"').and_then(|tag| tag.split_once('"')).ok_or_else(wrong)?;
        let state = CODINGS.iter().find_map(|coding| tag.strip_suffix(coding)).unwrap_or(tag);
        into.push(Tag { is_weak, state: state.to_owned() });
        let after = after.trim_start_matches([' ', '\t']);
        if !after.is_empty() && !after.starts_with(',') {
            return Err(wrong());
        }
        rest = after.trim_start_matches([' ', '\t', ',']);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_backend::Settings;

    fn of(values: &[&str]) -> Result<Option<Tags>, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, value.parse().unwrap());
        }
        Tags::of(&headers, &header::IF_MATCH)
    }

    #[test]
    fn a_list_is_read_whatever_its_tags_contain() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[" * "]), Ok(Some(Tags::Any)));
        let tags = of(&["\"a,b\" , W/\"c\",", "\"d-gzip\", \"\""]).unwrap().unwrap();
        for (tag, weak, strong) in
            [("a,b", true, true), ("c", true, false), ("d", true, true), ("", true, true), ("a", false, false)]
        {
            let is = |one: &str| one == tag;
            assert_eq!((tags.have(is), tags.have_strong(is)), (weak, strong), "{tag}");
        }
        for wrong in ["a", "\"a", "\"a\"\"b\"", "w/\"a\"", "\"a\" \"b\"", "*, \"a\""] {
            assert!(of(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_tag_of_a_collection_has_its_definition_and_its_document() {
        let definition = Definition { schema: Schema::default(), settings: Settings::default() };
        let name = definition_name(0x5eed, &definition).unwrap();
        let mut headers = HeaderMap::new();
        of_bytes(&mut headers, b"{}");
        let document = headers[header::ETAG].clone();
        of_definition(&mut headers, &name);
        let tag = opaque(&headers[header::ETAG]).unwrap();
        assert!(is_of_definition(tag, &name) && tag.ends_with(opaque(&document).unwrap()), "{tag}");
        let settings = Settings { retention_bytes: Some(1), ..Settings::default() };
        let changed = Definition { settings, ..definition };
        let later = definition_name(0x5eee, &changed).unwrap();
        assert_ne!(name, definition_name(0x5eed, &changed).unwrap());
        for other in [definition_name(0x5eed, &changed).unwrap(), later, name[..name.len() - 1].to_owned()] {
            assert!(!is_of_definition(tag, &other), "{tag} {other}");
        }
    }

    #[test]
    fn weak_tags_differ_by_what_was_asked_for() {
        let of = |tag: &'static str, target: &str| {
            let mut headers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static(tag))]);
            of_target(&mut headers, &target.parse().unwrap());
            headers[header::ETAG].clone()
        };
        let tag = of("W/\"x\"", "/tiles/1?properties=a");
        assert_eq!(tag, of("W/\"x\"", "https://host/tiles/1?properties=a"));
        for other in ["/tiles/1?properties=b", "/tiles/1", "/tiles/1properties=a"] {
            assert_ne!(tag, of("W/\"x\"", other), "{other}");
        }
        assert_eq!(of("\"x\"", "/tiles/1"), "\"x\"");
    }

    #[test]
    fn a_coding_is_marked_on_strong_tags_and_not_seen_by_conditions() {
        for coding in CODINGS {
            let mut headers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"x\""))]);
            mark(&mut headers, &coding[1..]);
            assert_eq!(headers[header::ETAG], format!("\"x{coding}\""));
            headers.insert(header::IF_MATCH, headers[header::ETAG].clone());
            assert!(Tags::of(&headers, &header::IF_MATCH).unwrap().unwrap().have_strong(|tag| tag == "x"));
        }
        let mut weak = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("W/\"x\""))]);
        mark(&mut weak, "br");
        assert_eq!(weak[header::ETAG], "W/\"x\"");
    }
}
