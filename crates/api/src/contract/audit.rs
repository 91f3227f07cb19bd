//! The record of administrative acts.

use super::Link;
use meridian_backend::{Act, RecordedAct};
use meridian_model::time;
use schemars::JsonSchema;
use serde::Serialize;

/// A line of the audit log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditLine {
    /// Its number, from 1.
    pub n: u64,
    /// When it was written.
    pub time: String,
    /// The id of the request.
    pub request: String,
    /// The caller: a token's id, `user:NAME`, `jwt:ISSUER:SUBJECT`, `socket`, `local` or `anonymous`.
    pub who: String,
    /// The tenant that it concerns; empty for the server.
    pub tenant: String,
    /// The client's address, or `socket`.
    pub from: String,
    /// The operation, by its name in this description.
    pub act: String,
    /// The object of the act, as a path.
    pub target: String,
    /// The collection, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// The request, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The status of the response; absent in the line that records the start of the act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The line that records the start of this act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// The number of this line when it was first written; that one was removed to make room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The lines up to this number were removed to make room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<u64>,
    /// Refused attempts before this line that got none of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<u64>,
    /// SHA-256 of the line before it in the log.
    pub previous: String,
}

/// A page of the audit log. It may be empty and have a `next` link: a page reads a bounded part of the log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditPage {
    /// Lines, oldest first.
    pub acts: Vec<AuditLine>,
    /// To the next page.
    pub links: Vec<Link>,
}

impl From<RecordedAct> for AuditLine {
    fn from(line: RecordedAct) -> AuditLine {
        let RecordedAct { n, time, act, previous, .. } = line;
        let Act {
            request,
            who,
            tenant,
            from,
            act,
            target,
            collection,
            change,
            status,
            began,
            first,
            trimmed,
            unrecorded,
        } = act;
        let (time, unrecorded) = (time::format_instant(time), Some(unrecorded).filter(|n| *n > 0));
        AuditLine {
            n,
            time,
            request,
            who,
            tenant,
            from,
            act,
            target,
            collection,
            change,
            status,
            began,
            first,
            trimmed,
            unrecorded,
            previous,
        }
    }
}
