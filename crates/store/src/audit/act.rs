//! The content of a line of the audit log.

use crate::error::StoreError;
use meridian_model::time;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Max bytes of a text in a line; longer texts are cut.
const TEXT_BYTES_MAX: usize = 512;
/// Max bytes of the text of a request. It fits the longest collection pattern: a part that is cut off could be the one
/// that matters.
const CHANGE_BYTES_MAX: usize = 2048;

/// An administrative act or one step of it. It never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Act {
    /// The id of the request.
    pub request: String,
    /// The actor: a token's id, `user:NAME`, `jwt:ISSUER:SUBJECT`, `socket`, `local`, `anonymous`, or `nobody` if it
    /// was refused before that was known.
    pub who: String,
    /// The tenant concerned; empty for the server itself.
    pub tenant: String,
    /// The client's address, or `socket`.
    pub from: String,
    /// The operation, by its name in the API description.
    pub act: String,
    /// The object of the act, as a path.
    pub target: String,
    /// The collection, if the object is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// The request, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// Status of the response. A line without one records the start of the act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Number of the line that recorded the start of this act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// Number of this line when it was first written; that copy was removed to make room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Number up to which lines were removed to make room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<u64>,
    /// Number of refused attempts before this line that have no line of their own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unrecorded: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Act {
    /// Returns the same act with its texts cut to their max length: some come from clients.
    fn bounded(&self) -> Act {
        let mut act = self.clone();
        let texts = [&mut act.request, &mut act.who, &mut act.tenant, &mut act.from, &mut act.act, &mut act.target];
        let texts = texts.into_iter().chain(&mut act.collection).map(|text| (text, TEXT_BYTES_MAX));
        for (text, max) in texts.chain(act.change.as_mut().map(|change| (change, CHANGE_BYTES_MAX))) {
            if text.len() > max {
                text.truncate(text.floor_char_boundary(max));
                text.push('…');
            }
        }
        act
    }
}

/// A line to be written.
pub(super) struct Line<'a> {
    pub n: u64,
    pub time: i64,
    pub act: &'a Act,
    pub previous: [u8; 32],
    /// Number of the first line of the group that is synced together.
    pub group: u64,
}

#[derive(Serialize, Deserialize)]
struct Text {
    n: u64,
    time: String,
    #[serde(flatten)]
    act: Act,
    /// Number of the first line of the sync group; set in all of its other lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u64>,
    previous: String,
}

impl Line<'_> {
    /// Encodes the line, without a line ending.
    pub fn encode(&self) -> Result<Vec<u8>, StoreError> {
        let (time, previous) = (time::format_instant(self.time), hex(&self.previous));
        let group = Some(self.group).filter(|first| *first < self.n);
        let text = Text { n: self.n, time, act: self.act.bounded(), group, previous };
        serde_json::to_vec(&text).map_err(|e| StoreError::corrupt(Path::new(super::FOLDER), e.to_string()))
    }
}

/// A line read back from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedAct {
    /// Its number in the log, from 1.
    pub n: u64,
    /// When it was written, in microseconds since 1970.
    pub time: i64,
    /// Its content.
    pub act: Act,
    /// SHA-256 of the line before it, in hexadecimal.
    pub previous: String,
    /// The line itself.
    pub text: String,
}

impl RecordedAct {
    /// Parses a line; `None` if it is malformed or has another number.
    pub(super) fn read(n: u64, line: &[u8]) -> Option<RecordedAct> {
        let text = std::str::from_utf8(line).ok()?;
        let Text { n: found, time, act, previous, .. } = serde_json::from_str(text).ok()?;
        let time = time::parse_instant(&time, None).ok()?;
        (found == n).then(|| RecordedAct { n, time, act, previous, text: text.to_owned() })
    }
}

/// The fields that link lines into a chain.
#[derive(Deserialize)]
struct ChainFields<'a> {
    n: u64,
    previous: &'a str,
}

/// Returns the number of a line and the SHA-256 of the previous line in hexadecimal; `None` if it is not a line.
pub(super) fn chained(line: &[u8]) -> Option<(u64, &str)> {
    let ChainFields { n, previous } = serde_json::from_slice(line).ok()?;
    Some((n, previous))
}

/// Returns the first line of this line's sync group; `None` if this is the first line itself, or not a line.
pub(super) fn group(line: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Text>(line).ok()?.group
}

/// Returns true if `text` is `bytes` in hexadecimal.
pub(super) fn is_hex(text: &str, bytes: &[u8]) -> bool {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    text.chars().map(Some).eq(digits.map(|digit| char::from_digit(digit.into(), 16)))
}

/// Encodes bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
