//! A type for every body.
//!
//! A page of another origin can send a body without asking first, but only of the three types that forms have, or of none.
//! A route that takes none of these is closed to forms, whatever a browser tells of where they come from.

use crate::problem::{Kind, Problem, Result};
use axum::http::{HeaderMap, HeaderValue, Method, header};

/// What forms can send.
const FORMS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// Whether a body has a type that its route may take; else 415. `takes` are the types that the route's description names; it
/// may take others of their kind, which its handler knows.
pub fn check(method: &Method, headers: &HeaderMap, takes: &[(&str, &str)]) -> Result<()> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(value) = values.next() else {
        return Err(refusal("a body without Content-Type", takes));
    };
    if values.next().is_some() {
        return Err(refusal("a body with more than one Content-Type", takes));
    }
    let text = String::from_utf8_lossy(value.as_bytes());
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is = |name: &&str| name.eq_ignore_ascii_case(essence);
    // Forms have no PUT: there a plain text is as good as any type.
    let named = *method == Method::PUT && takes.iter().any(|(name, _)| is(name));
    if essence.is_empty() || FORMS.iter().any(is) && !named {
        return Err(refusal(&format!("{text:?}"), takes));
    }
    Ok(())
}

/// 415, with what is taken in its sentence and in `Accept`.
pub fn refusal(found: &str, takes: &[(&str, &str)]) -> Problem {
    let taken: Vec<&str> = takes.iter().map(|(name, _)| *name).collect();
    let taken = taken.join(", ");
    let expected = if taken.is_empty() { "no body".to_owned() } else { format!("one of {taken}") };
    let problem = Problem::new(Kind::UnsupportedMediaType, format!("{found} is not taken here: expected {expected}"));
    match HeaderValue::from_str(&taken) {
        Ok(taken) if !taken.is_empty() => problem.header(header::ACCEPT, taken),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(method: Method, kind: Option<&'static str>, takes: &[(&str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        check(&method, &headers, takes).is_ok()
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
}
