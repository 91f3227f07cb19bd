//! Requires a media type for every body.
//!
//! Without a preflight request, pages of other origins can only send bodies without a type, or with one of the three
//! types of forms. A route that accepts none of these cannot be reached by forms, whatever headers the browser sends.
//! Only routes that list the form type accept it, and only from pages of this server.

use crate::protocol::fields;
use crate::protocol::problem::{Kind, Problem, Result};
use axum::http::{HeaderMap, HeaderValue, Method, header};

/// The media types of forms.
const FORMS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// The form type that a route can list.
const FORM: &str = FORMS[0];

/// The possible senders of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A program, or a page after a preflight request.
    Program,
    /// Any page.
    MayBeForm,
}

/// Checks that a body has a type that its route accepts. `media_types` are the types in the route's description. The
/// route may accept related ones, which its handler checks.
///
/// # Errors
/// 415
pub fn check(method: &Method, headers: &HeaderMap, media_types: &[(&str, &str)]) -> Result<Sender> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(value) = values.next() else {
        return Err(refusal("a body without Content-Type", media_types));
    };
    if values.next().is_some() {
        return Err(refusal("a body with more than one Content-Type", media_types));
    }
    let text = String::from_utf8_lossy(value.as_bytes());
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is = |name: &&str| name.eq_ignore_ascii_case(essence);
    let named = media_types.iter().any(|(name, _)| is(name));
    if named && is(&FORM) {
        return Ok(Sender::MayBeForm);
    }
    // Forms cannot send PUT, so plain text is safe there.
    let safe = *method == Method::PUT && named;
    if essence.is_empty() || FORMS.iter().any(is) && !safe {
        return Err(refusal(&format!("{text:?}"), media_types));
    }
    Ok(Sender::Program)
}

/// Checks that a body has a coding that its route decodes: events may be compressed, documents are sent plain. Which
/// coding it is, its content says.
///
/// # Errors
/// 415 with the accepted codings in `Accept-Encoding` (RFC 9110, 15.5.16).
pub fn coding(headers: &HeaderMap, may_be_compressed: bool) -> Result<()> {
    if !fields::has(headers, &header::CONTENT_ENCODING) {
        return Ok(());
    }
    let (decoded, expected, accepted) = match may_be_compressed {
        true => (&["gzip", "x-gzip", "zstd", "identity"][..], "gzip, zstd or none", "gzip, zstd"),
        false => (&["identity"][..], "none, since only events are sent compressed", "identity"),
    };
    let is_decoded = |coding: &[u8]| decoded.iter().any(|name| coding.eq_ignore_ascii_case(name.as_bytes()));
    match fields::elements(headers, &header::CONTENT_ENCODING).collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        [coding] if is_decoded(coding) => Ok(()),
        codings => {
            let found = codings.iter().map(|coding| String::from_utf8_lossy(coding)).collect::<Vec<_>>().join(", ");
            let detail = format!("the body has the coding {found:?}: expected {expected}");
            Err(Problem::new(Kind::UnsupportedMediaType, detail)
                .header(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted)))
        }
    }
}

/// Checks that a body has no transfer coding besides `chunked`. The HTTP library accepts every list that ends with it,
/// and decodes nothing else. A proxy that decodes the rest would see another body.
///
/// # Errors
/// 501, and the connection ends (RFC 9112, 6.1).
pub fn transfer_coding(headers: &HeaderMap) -> Result<()> {
    match fields::only(headers, &header::TRANSFER_ENCODING) {
        None => Ok(()),
        Some((value, false)) if value.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        Some(_) => {
            let detail = "Transfer-Encoding has more than the word chunked: expected chunked alone";
            Err(Problem::new(Kind::NotImplemented, detail)
                .header(header::CONNECTION, HeaderValue::from_static("close")))
        }
    }
}

/// Returns a 415 with the accepted types in its detail and in `Accept`.
pub fn refusal(found: &str, media_types: &[(&str, &str)]) -> Problem {
    let accepted: Vec<&str> = media_types.iter().map(|(name, _)| *name).collect();
    let accepted = accepted.join(", ");
    let expected = if accepted.is_empty() { "no body".to_owned() } else { format!("one of {accepted}") };
    let problem =
        Problem::new(Kind::UnsupportedMediaType, format!("{found} is not accepted here: expected {expected}"));
    match HeaderValue::from_str(&accepted) {
        Ok(accepted) if !accepted.is_empty() => problem.header(header::ACCEPT, accepted),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_that_are_not_decoded_are_refused() {
        let of = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(value))]);
            (coding(&headers, true).is_ok(), coding(&headers, false).is_ok())
        };
        assert!(coding(&HeaderMap::new(), true).is_ok() && coding(&HeaderMap::new(), false).is_ok());
        assert_eq!((of("Identity"), of("")), ((true, true), (true, true)));
        assert_eq!((of(", identity,"), of(" ,")), ((true, true), (true, true)));
        let compressed = ["gzip", "GZIP", "x-gzip", "zstd", "gzip,", ", ,zstd"];
        assert!(compressed.into_iter().all(|value| of(value) == (true, false)));
        let others = ["br", "deflate", "gzip, gzip", "compress", "gzip,,identity", "\"gzip\"", "\"x,gzip\""];
        assert!(others.into_iter().all(|value| of(value) == (false, false)));
    }

    fn taken(method: Method, kind: Option<&'static str>, media_types: &[(&str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        check(&method, &headers, media_types).is_ok()
    }

    #[test]
    fn what_a_form_can_send_is_no_type() {
        let json: &[(&str, &str)] = &[("application/json", "")];
        for kind in FORMS.into_iter().chain(["", " ; charset=utf-8", "Text/Plain; x=application/json", "TEXT/PLAIN"]) {
            assert!(!taken(Method::POST, Some(kind), json), "{kind}");
            assert!(!taken(Method::DELETE, Some(kind), &[]), "{kind}");
        }
        assert!(!taken(Method::POST, None, json));
        let mut twice = HeaderMap::new();
        for kind in ["application/json", "text/plain"] {
            twice.append(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        assert!(check(&Method::POST, &twice, json).is_err());
        assert!(taken(Method::POST, Some("application/json"), json));
        assert!(taken(Method::POST, Some("Application/JSON; charset=utf-8"), json));
    }

    #[test]
    fn a_plain_text_is_taken_where_it_is_named_and_no_form_can_send_it() {
        let schema: &[(&str, &str)] = &[("application/json", ""), ("text/plain", "")];
        assert!(taken(Method::PUT, Some("text/plain; charset=utf-8"), schema));
        assert!(!taken(Method::POST, Some("text/plain"), schema));
        assert!(!taken(Method::PUT, Some("application/x-www-form-urlencoded"), schema));
    }

    #[test]
    fn a_form_is_taken_only_where_its_type_is_named_and_is_told_apart() {
        let login: &[(&str, &str)] = &[("application/json", ""), ("application/x-www-form-urlencoded", "")];
        let sender = |kind: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
            check(&Method::POST, &headers, login).ok()
        };
        assert_eq!(sender("application/x-www-form-urlencoded; charset=utf-8"), Some(Sender::MayBeForm));
        assert_eq!(sender("Application/X-WWW-Form-Urlencoded"), Some(Sender::MayBeForm));
        assert_eq!(sender("application/json"), Some(Sender::Program));
        assert_eq!((sender("text/plain"), sender("multipart/form-data")), (None, None));
    }
}
