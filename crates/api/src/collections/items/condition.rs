//! Conditional writes of one event: `If-Match` and `If-None-Match` (RFC 9110, 13.1).
//!
//! The tested version is part of the write, which replaces only that version. The condition therefore holds at the
//! moment of the write, whichever process performs it. If another write comes between, the condition is tested again.

use crate::protocol::problem::{Kind, Problem, Result};
use crate::protocol::tags::{Tags, is_of_version};
use axum::http::{HeaderMap, header};
use meridian_model::Seq;

/// The conditions of a write.
pub struct Condition {
    matches: Option<Tags>,
    none: Option<Tags>,
}

impl Condition {
    /// Parses the conditions in these headers.
    ///
    /// # Errors
    /// 400 for a value that is not a list of tags: it must not be ignored.
    pub fn of(headers: &HeaderMap) -> Result<Condition> {
        let read = |name| Tags::of(headers, &name).map_err(|why| Problem::parameter(name.as_str(), why));
        Ok(Condition { matches: read(header::IF_MATCH)?, none: read(header::IF_NONE_MATCH)? })
    }

    /// Returns whether there is any condition.
    pub fn is_set(&self) -> bool {
        self.matches.is_some() || self.none.is_some()
    }

    /// Tests the current version of an event, in content that began at `began`; `None` if there is no such event.
    ///
    /// # Errors
    /// 412
    pub fn test(&self, began: i64, version: Option<Seq>) -> Result<()> {
        let fails = |detail: &str| Err(Problem::new(Kind::PreconditionFailed, detail));
        match (&self.matches, version) {
            (Some(_), None) => return fails("there is no such event, and If-Match asks for one"),
            (Some(tags), Some(seq)) if !tags.have_strong(|tag| is_of_version(tag, began, seq)) => {
                return fails("the event is another version than If-Match names: read it, and decide again");
            }
            _ => {}
        }
        match (&self.none, version) {
            (Some(tags), Some(seq)) if tags.have(|tag| is_of_version(tag, began, seq)) => {
                fails("there is such an event, and If-None-Match asks for none")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_tested_by_its_number_whatever_it_is_shown_with() {
        let (present, other, began) = (Seq(70_000), Seq(70_001), 0x5eed);
        let tests = |name, value: &str, version: Option<Seq>| {
            let headers = HeaderMap::from_iter([(name, value.parse().unwrap())]);
            Condition::of(&headers).unwrap().test(began, version).is_ok()
        };
        let tag = |seq: Seq, rest: &str| format!("\"{began:x}.{}{rest}\"", seq.to_id());
        for rest in ["", ".3", ".4-gzip"] {
            assert!(tests(header::IF_MATCH, &tag(present, rest), Some(present)), "{rest}");
            assert!(!tests(header::IF_MATCH, &tag(other, rest), Some(present)), "{rest}");
            assert!(!tests(header::IF_NONE_MATCH, &tag(present, rest), Some(present)), "{rest}");
            assert!(tests(header::IF_NONE_MATCH, &tag(other, rest), Some(present)), "{rest}");
        }
        let former = format!("\"{:x}.{}.3\"", began - 1, present.to_id());
        assert!(!tests(header::IF_MATCH, &former, Some(present)), "of another collection of the name");
        assert!(!tests(header::IF_MATCH, &format!("W/{}", tag(present, "")), Some(present)));
        assert!(tests(header::IF_MATCH, &format!("{}, {}", tag(other, ""), tag(present, "")), Some(present)));
        assert!(tests(header::IF_MATCH, "*", Some(present)) && !tests(header::IF_MATCH, "*", None));
        assert!(!tests(header::IF_NONE_MATCH, "*", Some(present)) && tests(header::IF_NONE_MATCH, "*", None));
        assert!(!tests(header::IF_MATCH, &tag(present, ""), None));
        let headers = HeaderMap::from_iter([(header::IF_MATCH, "unquoted".parse().unwrap())]);
        assert_eq!(Condition::of(&headers).err().unwrap().kind(), Kind::InvalidParameter);
    }
}
