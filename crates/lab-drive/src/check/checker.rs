//! Decides whether a response is sound.

use super::truth::Truth;
use crate::protocol::scan::{Scan, State};
use crate::scenario::{Check, Request, ResultUnit};
use data_encoding::HEXLOWER;
use meridian_lab_results::record::{Outcome, Record};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::path::Path;

/// The checks of one request, ready to run.
#[derive(Debug)]
pub struct Checker {
    check: Check,
    unit: ResultUnit,
    follow: Option<String>,
    truth: Option<Truth>,
    digests: Option<HashMap<String, String>>,
}

/// A verdict other than sound.
type Judgement = (Outcome, String);

impl Checker {
    /// Reads the files that the checks need. Errors name the key.
    pub fn new(request: &Request) -> Result<Checker, String> {
        let truth = Truth::of(request)?;
        let digests = match &request.check.digests {
            Some(path) => Some(digests(path).map_err(|e| format!("request {}: check.digests: {e}", request.name))?),
            None => None,
        };
        Ok(Checker {
            check: request.check.clone(),
            unit: request.result.clone(),
            follow: request.follow.clone(),
            truth,
            digests,
        })
    }

    /// Returns the part of the response that must be kept.
    pub fn needs_body(&self) -> bool {
        self.check.needs_body()
    }

    /// Returns the digest to compute while the body arrives, if a check needs it.
    pub fn digest(&self) -> Option<Sha256> {
        self.digests.as_ref().map(|_| Sha256::new())
    }

    /// Returns the unit in which results are counted.
    pub fn unit(&self) -> &ResultUnit {
        &self.unit
    }

    /// Returns the pointer to the stream address in the response, if it is to be followed.
    pub fn follow(&self) -> Option<&str> {
        self.follow.as_deref()
    }

    /// Returns the target that must respond alike, and how often it is queried.
    pub fn same_as(&self) -> Option<(&str, u32)> {
        self.check.same_as.as_deref().map(|target| (target, self.check.same_every.max(1)))
    }

    /// Writes the outcome of a response that is complete by its protocol. Also writes its own count of results, if a
    /// check relies on it.
    pub fn judge(&self, path: &str, scan: &Scan, record: &mut Record) {
        if let Err((outcome, detail)) = self.verdict(path, scan, record) {
            record.outcome = outcome;
            record.detail = Some(detail);
        } else {
            record.outcome = Outcome::Sound;
        }
    }

    fn verdict(&self, path: &str, scan: &Scan, record: &mut Record) -> Result<(), Judgement> {
        self.status(record.status)?;
        match scan.state {
            Some(State::Partial) => return Err((Outcome::Partial, "the answer said that it is partial".to_owned())),
            Some(State::Absent) => return Err((Outcome::Absent, "the answer said that it holds nothing".to_owned())),
            Some(State::Complete) => {}
            None if self.unit == ResultUnit::Packet => {
                let (outcome, text) = if scan.packets > 0 {
                    (Outcome::Partial, "the stream ended early")
                } else {
                    (Outcome::Absent, "no packet came")
                };
                return Err((outcome, text.to_owned()));
            }
            None => {}
        }
        let unsound = |text: &str| Err((Outcome::Unsound, text.to_owned()));
        if scan.too_large {
            return unsound("the body is larger than 64 MiB, checks need it whole");
        }
        let json = if self.check.fields.is_empty() && self.check.count.is_none() {
            None
        } else {
            match serde_json::from_slice::<Json>(scan.body.as_deref().unwrap_or_default()) {
                Ok(json) => Some(json),
                Err(_) => return unsound("the body is not JSON"),
            }
        };
        if let Some(end) = &self.check.ends_with
            && !scan.body.as_deref().unwrap_or_default().trim_ascii_end().ends_with(end.as_bytes())
        {
            return Err((Outcome::Partial, "the body does not end as a whole one does".to_owned()));
        }
        for field in &self.check.fields {
            field_is_there(json.as_ref(), field)?;
        }
        if let (Some(digests), Some(digest)) = (&self.digests, &scan.digest) {
            let found = HEXLOWER.encode(&digest.clone().finalize());
            match digests.get(path) {
                None => return unsound("the digests file does not know this path"),
                Some(due) if due.eq_ignore_ascii_case(&found) => {}
                Some(_) => return unsound("the body differs from the one whose digest is known"),
            }
        }
        let mut count = scan.results;
        if let (Some(pointer), Some(json)) = (&self.check.count, &json) {
            let own = json.pointer(pointer).and_then(Json::as_u64);
            count = own.ok_or_else(|| (Outcome::Unsound, format!("{pointer} is no count")))?;
            record.results = count;
        }
        self.counted(path, count)
    }

    fn status(&self, status: u16) -> Result<(), Judgement> {
        match (self.check.status, status) {
            // A protocol without statuses.
            (_, 0) => Ok(()),
            (Some(due), got) if due == got => Ok(()),
            // 101: the switch to WebSocket was accepted.
            (None, 101 | 200..=299) => Ok(()),
            (_, 429 | 503) => Err((Outcome::Refused, format!("status {status}"))),
            (_, 200..=299) => Err((Outcome::Unsound, format!("status {status}"))),
            _ => Err((Outcome::Failed, format!("status {status}"))),
        }
    }

    fn counted(&self, path: &str, count: u64) -> Result<(), Judgement> {
        if self.check.results_at_least.is_some_and(|min| count < min) {
            let outcome = if count == 0 { Outcome::Absent } else { Outcome::Unsound };
            return Err((outcome, "too few results".to_owned()));
        }
        if self.check.results_at_most.is_some_and(|most| count > most) {
            return Err((Outcome::Unsound, "too many results".to_owned()));
        }
        let Some(truth) = &self.truth else { return Ok(()) };
        match truth.due(path, self.check.count.is_some()) {
            Err(why) => Err((Outcome::Unsound, why.to_owned())),
            Ok(due) if due == count => Ok(()),
            Ok(due) if count < due => Err((Outcome::Unsound, "fewer results than the truth".to_owned())),
            Ok(_) => Err((Outcome::Unsound, "more results than the truth".to_owned())),
        }
    }

    /// Returns whether another target's response is equal.
    pub fn same(&self, mine: &Scan, other: &Scan) -> bool {
        let json = |scan: &Scan| serde_json::from_slice::<Json>(scan.body.as_deref().unwrap_or_default()).ok();
        match &self.check.count {
            Some(pointer) => match (json(mine), json(other)) {
                (Some(mine), Some(other)) => mine.pointer(pointer) == other.pointer(pointer),
                _ => false,
            },
            None if self.unit == ResultUnit::Body => mine.body == other.body,
            None => mine.results == other.results,
        }
    }
}

/// Digests by path.
fn digests(path: &Path) -> Result<HashMap<String, String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: expected an object of paths and digests: {e}", path.display()))
}

fn field_is_there(json: Option<&Json>, field: &str) -> Result<(), Judgement> {
    let (pointer, kind) = field.split_once('=').map_or((field, None), |(pointer, kind)| (pointer, Some(kind)));
    let Some(values) = json.and_then(|json| values_at(json, pointer)) else {
        return Err((Outcome::Unsound, format!("{pointer} is missing")));
    };
    let is = |value: &Json| match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    match kind {
        Some(due) if values.iter().any(|value| is(value) != due) => {
            Err((Outcome::Unsound, format!("{pointer} is not of type {due}")))
        }
        _ => Ok(()),
    }
}

/// Returns the values at a pointer, where `*` is every element of a list; `None` if any of it is missing.
fn values_at<'a>(json: &'a Json, pointer: &str) -> Option<Vec<&'a Json>> {
    let mut found = vec![json];
    for segment in pointer.split('/').skip(1) {
        let step = format!("/{segment}");
        let mut next: Vec<&Json> = Vec::new();
        for value in found {
            match value {
                Json::Array(elements) if segment == "*" => next.extend(elements),
                _ => next.push(value.pointer(&step)?),
            }
        }
        found = next;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(check: &str, status: u16, body: &str) -> (Outcome, Option<String>) {
        let mut request = Request::plain("GET", "/");
        request.check = toml::from_str(check).expect("a check");
        let mut scan = Scan::default();
        request.result = ResultUnit::Feature;
        let checker = Checker::new(&request).expect("ready");
        scan.reset(&ResultUnit::Feature, true);
        scan.digest = checker.digest();
        // In two pieces, as a body arrives.
        let (first, second) = body.as_bytes().split_at(body.len() / 2);
        scan.take(first, 1);
        scan.take(second, 1);
        scan.end(2);
        let mut record = Record { status, ..Record::default() };
        checker.judge("/", &scan, &mut record);
        (record.outcome, record.detail)
    }

    #[test]
    fn answers_are_sound_only_where_every_check_holds() {
        let two = r#"{"features":[{"type":"Feature"},{"type":"Feature"}],"numberMatched":7}"#;
        let cases = [
            ("", 200, two, Outcome::Sound),
            ("", 500, two, Outcome::Failed),
            ("", 503, "", Outcome::Refused),
            ("status = 404", 404, "", Outcome::Sound),
            ("status = 201", 200, two, Outcome::Unsound),
            ("fields = [\"/features/1\", \"/numberMatched=number\"]", 200, two, Outcome::Sound),
            ("fields = [\"/features/2\"]", 200, two, Outcome::Unsound),
            ("fields = [\"/numberMatched=string\"]", 200, two, Outcome::Unsound),
            ("fields = [\"/features/*/type=string\"]", 200, two, Outcome::Sound),
            ("fields = [\"/features/*/type=object\"]", 200, two, Outcome::Unsound),
            ("fields = [\"/features/*/type\"]", 200, r#"{"features":[{"type":"Feature"},{}]}"#, Outcome::Unsound),
            ("fields = [\"/features/*/type\"]", 200, r#"{"features":[]}"#, Outcome::Sound),
            ("fields = [\"/features/*\"]", 200, "{}", Outcome::Unsound),
            ("fields = [\"/features/*\"]", 200, r#"{"features":{"type":"Feature"}}"#, Outcome::Unsound),
            (
                "fields = [\"/a/*/b/*/c=number\"]",
                200,
                r#"{"a":[{"b":[{"c":1}]},{"b":[{"c":2},{"c":3}]}]}"#,
                Outcome::Sound,
            ),
            ("fields = [\"/a/*/b/*/c=number\"]", 200, r#"{"a":[{"b":[{"c":1}]},{"b":[{"c":"2"}]}]}"#, Outcome::Unsound),
            ("fields = [\"/x~1y/*=null\", \"/*\"]", 200, r#"{"x/y":[null],"*":1}"#, Outcome::Sound),
            ("fields = [\"\"]", 200, "{\"features\":", Outcome::Unsound),
            ("results_at_least = 2\nresults_at_most = 2", 200, two, Outcome::Sound),
            ("results_at_least = 3", 200, two, Outcome::Unsound),
            ("results_at_least = 1", 200, "{}", Outcome::Absent),
            ("results_at_most = 1", 200, two, Outcome::Unsound),
            ("count = \"/numberMatched\"\nresults_at_least = 7", 200, two, Outcome::Sound),
            ("ends_with = \"}\"", 200, two, Outcome::Sound),
            ("ends_with = \"]}\"", 200, two, Outcome::Partial),
        ];
        for (check, status, body, outcome) in cases {
            assert_eq!(judged(check, status, body).0, outcome, "{check} {status}");
        }
    }

    #[test]
    fn a_truth_file_says_how_many_results_are_due_at_a_path() {
        let two = r#"{"features":[{"type":"Feature"},{"type":"Feature"}]}"#;
        let file = tempfile::NamedTempFile::new().expect("a file");
        let check = format!("truth = {:?}", file.path());
        for (truth, outcome, why) in [
            (r#"{"/":2,"/x":9}"#, Outcome::Sound, None),
            (r#"{"/":3}"#, Outcome::Unsound, Some("fewer results than the truth")),
            (r#"{"/":1}"#, Outcome::Unsound, Some("more results than the truth")),
            (r#"{"/x":2}"#, Outcome::Unsound, Some("the truth file does not know this path")),
        ] {
            std::fs::write(file.path(), truth).expect("written");
            let (came, detail) = judged(&check, 200, two);
            assert_eq!((came, detail.as_deref()), (outcome, why), "{truth}");
        }
    }

    #[test]
    fn a_digests_file_says_which_body_is_due_at_a_path() {
        // SHA-256 of the two letters.
        let due = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        let file = tempfile::NamedTempFile::new().expect("a file");
        let check = format!("digests = {:?}", file.path());
        for (path, body, outcome, why) in [
            ("/", "{}", Outcome::Sound, None),
            ("/", "[]", Outcome::Unsound, Some("the body differs from the one whose digest is known")),
            ("/x", "{}", Outcome::Unsound, Some("the digests file does not know this path")),
        ] {
            std::fs::write(file.path(), format!("{{\"{path}\":\"{due}\"}}")).expect("written");
            let (came, detail) = judged(&check, 200, body);
            assert_eq!((came, detail.as_deref()), (outcome, why), "{path} {body}");
        }
        std::fs::write(file.path(), "[]").expect("written");
        let mut request = Request::plain("GET", "/");
        request.check = toml::from_str(&check).expect("a check");
        let error = Checker::new(&request).expect_err("refused");
        assert!(error.contains("check.digests"), "{error}");
    }
}
