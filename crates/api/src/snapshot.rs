//! What was read, and what went wrong below, as clients are told.

use crate::problem::{Kind, Problem};
use crate::respond;
use axum::http::{HeaderMap, HeaderName};
use meridian_backend::{Collection, Damaged, Head, StoreError, WriteError};
use meridian_query::QueryError;
use std::time::Duration;

/// Says that some events could not be read because files are damaged: the answer is not whole.
pub static MISSING: HeaderName = HeaderName::from_static("meridian-missing");

/// Sets the headers that every read carries.
pub fn set_headers(headers: &mut HeaderMap, head: &Head, now: i64, consistency: &'static str) {
    let age = Duration::from_micros(now.saturating_sub(head.taken_at).max(0) as u64);
    respond::set_snapshot(headers, head.seq, age, consistency);
    if !head.missing.is_empty() {
        respond::insert(headers, MISSING.clone(), &format!("{} damaged files", head.missing.len()));
    }
}

/// A query's error as the client sees it.
pub fn problem(error: QueryError) -> Problem {
    match error {
        QueryError::Deadline => Problem::new(
            Kind::DeadlineExceeded,
            "the question was not answered within its time: ask for less, or give more with timeout= (milliseconds)",
        ),
        QueryError::Cancelled => Problem::new(Kind::Overloaded, "the question was called off"),
        QueryError::Busy { limit } => Problem::new(
            Kind::Overloaded,
            format!(
                "the questions at work take all of the {limit} bytes set aside for them: try again, or ask for less"
            ),
        )
        .retry_after(Duration::from_secs(1)),
        QueryError::Gone(gone) => Problem::new(Kind::Gone, gone.to_string()),
        QueryError::Invalid(invalid) => {
            let field = invalid.field.clone().unwrap_or_default();
            Problem::invalid_parameter(&field, invalid)
        }
        QueryError::Store(error) => store_problem(error),
    }
}

/// A collection that cannot be opened as the client sees it: what is wrong with which file, and what repairs it.
pub fn damaged_problem(damaged: &Damaged) -> Problem {
    Problem::new(Kind::Damaged, damaged.to_string()).with("collection", damaged.name.as_str())
}

/// A store's error as the client sees it.
pub fn store_problem(error: StoreError) -> Problem {
    match error {
        StoreError::Invalid(invalid) => Problem::invalid_body(invalid),
        StoreError::Exists { name, .. } => {
            Problem::new(Kind::Conflict, format!("there is a collection {name:?} already"))
        }
        StoreError::Damaged(damaged) => damaged_problem(&damaged),
        StoreError::Corrupt { path, detail } => {
            tracing::error!(path = %path.display(), detail, "events that a question needs do not read");
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let detail = format!(
                "events that this needs do not read ({file}: {detail}): `meridian check --repair` keeps what reads, and says what is missing"
            );
            Problem::new(Kind::Damaged, detail)
        }
        StoreError::ReadOnly { .. } => {
            Problem::new(Kind::StorageUnavailable, "the server's data folder cannot be written to")
        }
        StoreError::Busy(detail) => Problem::new(Kind::Overloaded, detail),
        StoreError::Closed => {
            Problem::new(Kind::NotFound, "the collection was removed, or the server is shutting down")
        }
        error if error.is_full() => {
            tracing::error!(%error, "the disk is full");
            Problem::new(Kind::StorageUnavailable, "the server's disk is full")
        }
        other => Problem::internal(other),
    }
}

/// A refused or failed write as the client sees it.
pub fn write_problem(collection: &dyn Collection, error: WriteError) -> Problem {
    let no_writes = |why: &str| format!("the collection {} takes no writes: {why}", collection.name());
    match error {
        WriteError::Invalid(list) => Problem::invalid_bodies(list),
        WriteError::Conflict { ids, total } => {
            let shown = ids.iter().take(5).map(|id| format!("{id:?}")).collect::<Vec<_>>().join(", ");
            let more = if total > 5 { ", …" } else { "" };
            Problem::new(
                Kind::Conflict,
                format!("{total} of the ids are in the collection already, nothing was written: {shown}{more}"),
            )
            .with("ids", ids)
            .with("total", total)
        }
        WriteError::KeyReused { position, events } => Problem::new(
            Kind::KeyReused,
            format!("the Idempotency-Key came with other events before, as write {position}: nothing was written; send the same events again, or another key"),
        )
        .with("position", position.to_string())
        .with("events", events),
        WriteError::Changed => Problem::new(
            Kind::Conflict,
            "other writes changed the event again and again while this one was worked out: read it and try again",
        ),
        WriteError::TooLarge { bytes, limit } => Problem::new(
            Kind::TooLarge,
            format!("the events take {bytes} bytes: at most {limit} are taken at once, send smaller batches"),
        )
        .with("limit_bytes", limit),
        WriteError::Busy(why) => Problem::new(Kind::Overloaded, why).retry_after(Duration::from_secs(1)),
        WriteError::Full(why) => Problem::new(Kind::StorageUnavailable, why).retry_after(Duration::from_secs(10)),
        WriteError::Refused(why) => Problem::new(Kind::StorageUnavailable, no_writes(&why)),
        WriteError::Failed(why) => {
            tracing::error!(%why, "a write failed");
            Problem::new(
                Kind::StorageUnavailable,
                format!("{}; only then is it known whether this write is stored", no_writes(&why)),
            )
        }
        WriteError::Closed => {
            Problem::new(Kind::NotFound, "the collection was removed, or the server is shutting down")
        }
    }
}
