//! Maps errors of the backend and refusals of searches to the problems that clients receive.

use crate::protocol::problem::{Kind, Problem};
use crate::request::quota::{self, NARROWER};
use crate::state::AppState;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use meridian_admission::identity::Fault;
use meridian_backend::{Collection, Damaged, DeleteFault, PartialDelete, StoreError, WriteError};
use meridian_federation::Refusal;
use meridian_query::QueryError;
use std::io;
use std::time::Duration;

/// Returns the problem for a failed query.
pub fn query_problem(error: QueryError) -> Problem {
    match error {
        QueryError::Deadline => Problem::new(
            Kind::DeadlineExceeded,
            "the query did not finish within its time: ask for less, or give more time with timeout= (milliseconds)",
        ),
        QueryError::Cancelled => Problem::new(Kind::Overloaded, "the query was cancelled"),
        QueryError::Busy { limit } => Problem::new(
            Kind::Overloaded,
            format!("the running queries use all of the {limit} bytes set aside for them: try again, or ask for less"),
        ),
        QueryError::TooLarge { events, bytes, limit } => too_large(events, bytes, limit),
        QueryError::Gone(gone) => Problem::new(Kind::Gone, gone.to_string()),
        QueryError::Invalid(invalid) => {
            let field = invalid.field.clone().unwrap_or_default();
            Problem::invalid_parameter(&field, invalid)
        }
        QueryError::Store(error) => store_problem(error),
    }
}

/// Returns the problem for a query that reads too much. `limit` is the quota; `None` if the time is too short.
fn too_large(events: u64, bytes: u64, limit: Option<u64>) -> Problem {
    let size = match events {
        // The query was stopped while it ran.
        0 => format!("the query has read {bytes} bytes of events"),
        _ => format!("the query reads at least {events} events, of {bytes} bytes"),
    };
    let problem = match limit {
        Some(limit) => quota::read_too_much(limit, &size),
        None => Problem::new(
            Kind::DeadlineExceeded,
            format!(
                "{size}, more than can be read within its time: ask for less with {NARROWER}, or give more time with timeout="
            ),
        ),
    };
    match events {
        0 => problem.with("bytes", bytes),
        _ => problem.with("bytes", bytes).with("events", events),
    }
}

/// Returns the problem for a collection that cannot be opened: the file, its error, and the repair. If its process
/// tries again by itself, the client may too.
pub fn damaged_problem(damaged: &Damaged) -> Problem {
    let kind = if damaged.is_retried() { Kind::Overloaded } else { Kind::Damaged };
    Problem::new(kind, damaged.to_string()).with("collection", damaged.name.as_str())
}

/// Returns the problem for a name that such a collection has: 409, unless a later request may find it open.
pub fn taken_problem(damaged: &Damaged) -> Problem {
    let problem = damaged_problem(damaged);
    if damaged.is_retried() { problem } else { problem.with_status(StatusCode::CONFLICT) }
}

/// Returns the problem for an error of the store.
pub fn store_problem(error: StoreError) -> Problem {
    match error {
        StoreError::Invalid(invalid) => Problem::invalid_body(invalid),
        StoreError::Exists { name, .. } => {
            Problem::new(Kind::Conflict, format!("there is a collection {name:?} already"))
        }
        StoreError::Damaged(damaged) => damaged_problem(&damaged),
        StoreError::Corrupt { path, detail } => {
            tracing::error!(path = %path.display(), detail, "events that a query needs cannot be read");
            // Only the file name: clients have no need for the server's paths.
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let detail = format!(
                "events that the request needs cannot be read ({file}: {detail}): `meridian check` lists the damage; of a data folder `meridian check --repair` keeps what can be read"
            );
            Problem::new(Kind::Damaged, detail)
        }
        StoreError::ReadOnly { .. } => {
            Problem::new(Kind::StorageUnavailable, "the server's data folder cannot be written to")
        }
        error @ StoreError::Changed => Problem::new(Kind::PreconditionFailed, error),
        StoreError::Busy(detail) | StoreError::Unknown(detail) => Problem::new(Kind::Overloaded, detail),
        StoreError::Closed => Problem::new(Kind::NotFound, "the collection was removed"),
        error if error.is_full() => {
            tracing::error!(%error, "the disk is full");
            Problem::new(Kind::StorageUnavailable, "the server's disk is full")
        }
        StoreError::Io { action, ref path, ref source } if is_read(action, source) => {
            tracing::error!(path = %path.display(), action, error = %source, "the storage did not deliver");
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let detail = format!("the storage did not deliver {file}, which the request needs: try again");
            Problem::new(Kind::Overloaded, detail)
        }
        // Not logged: it voids a try of a short query, which then runs on another thread (`brief.rs`).
        error @ StoreError::MustNotWait => Problem::new(Kind::Internal, error),
        other => Problem::internal(other),
    }
}

/// Returns whether a read failed that may succeed later. A file that is missing stays so.
fn is_read(action: &str, error: &io::Error) -> bool {
    ["list", "open", "read"].contains(&action) && error.kind() != io::ErrorKind::NotFound
}

/// Returns the problem for a refused or failed write.
pub fn write_problem(collection: &dyn Collection, error: WriteError) -> Problem {
    let no_writes = |why: &str| format!("the collection {} accepts no writes: {why}", collection.name());
    match error {
        // What is stored are events, whatever the lines that they came in.
        WriteError::Invalid(list) => Problem::invalid_features(list),
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
        WriteError::KeyReused { position, partition, events } => {
            let of = partition.map_or(String::new(), |partition| format!(" of partition {partition}"));
            let detail = format!(
                "the Idempotency-Key was used with other events before, as write {position}{of}: nothing was written; send the same events again, or another key"
            );
            Problem::new(Kind::KeyReused, detail).with("position", position.to_string()).with("events", events)
        }
        WriteError::Changed => Problem::new(
            Kind::Conflict,
            "other writes changed the event repeatedly while this one was prepared: read it and try again",
        ),
        WriteError::TooLarge { bytes, limit } => Problem::new(
            Kind::TooLarge,
            format!("the events take {bytes} bytes: at most {limit} are accepted at once, send smaller batches"),
        )
        .with("limit_bytes", limit),
        WriteError::Busy(why) => Problem::new(Kind::Overloaded, why),
        // Nobody knows when its writers pause.
        WriteError::Late(why) => Problem::new(Kind::TooManyWrites, why).retry_about(Duration::from_secs(1)),
        // A disk is freed by people or by retention, which takes longer than a flush.
        WriteError::Full(why) => Problem::new(Kind::StorageUnavailable, why).retry_about(Duration::from_secs(10)),
        WriteError::Refused(why) => Problem::new(Kind::StorageUnavailable, no_writes(&why)),
        WriteError::Failed(why) => {
            tracing::error!(%why, "a write failed");
            Problem::new(
                Kind::StorageUnavailable,
                format!("{}; only then is it known whether this write is stored", no_writes(&why)),
            )
        }
        // With an Idempotency-Key a retry is safe, and its response shows whether the events are stored.
        unknown @ WriteError::Unknown(_) => Problem::new(Kind::Overloaded, unknown.to_string()),
        // The same write under the same key stores what is missing.
        WriteError::Partly { stored, why } => write_problem(collection, *why)
            .prefix(&format!("{stored} of the events are stored. Of the others: "))
            .with("stored", stored),
        WriteError::Closed => Problem::new(Kind::NotFound, "the collection was removed"),
    }
}

/// Returns the problem for a deletion that stopped early.
pub fn delete_problem(collection: &dyn Collection, partial: PartialDelete) -> Problem {
    let is_unknown = matches!(
        partial.why,
        DeleteFault::Query(QueryError::Store(StoreError::Unknown(_))) | DeleteFault::Write(WriteError::Unknown(_))
    );
    let problem = match partial.why {
        DeleteFault::Query(error) => query_problem(error),
        DeleteFault::Write(error) => write_problem(collection, error),
    };
    let done = match (partial.deleted, partial.matched) {
        (n, _) if is_unknown => {
            format!("{n} events are deleted, and perhaps more; the same deletion can be sent again:  ")
        }
        (0, _) => return problem,
        (n, Some(matched)) => format!("{n} of {matched} events are deleted, the others are unchanged:  "),
        (n, None) => format!("{n} events are deleted, the others are unchanged:  "),
    };
    problem.prefix(&done).with("deleted", partial.deleted)
}

/// Returns the problem for a change of tokens, tenants, users or sessions that was not made.
pub fn access_problem(fault: Fault) -> Problem {
    match fault {
        Fault::Invalid(invalid) => Problem::invalid_body(invalid),
        absent @ Fault::Absent(..) => Problem::not_found(absent.to_string()),
        conflict @ (Fault::Exists(..) | Fault::Changed(..)) => Problem::new(Kind::Conflict, conflict.to_string()),
        busy @ Fault::Moved => Problem::new(Kind::Overloaded, busy.to_string()),
        Fault::Unknown(why) => {
            tracing::error!(%why, "tokens, tenants, users or sessions may have been written, or not");
            Problem::new(Kind::Overloaded, "whether it was done is not known: look, and try again")
        }
        Fault::Vault(why) => {
            tracing::error!(%why, "tokens, tenants, users or sessions could not be written");
            Problem::new(Kind::StorageUnavailable, "tokens, tenants, users and sessions cannot be written now")
        }
    }
}

/// Returns the problem for a refused request.
pub fn refusal_problem(refusal: Refusal, state: &AppState) -> Problem {
    match refusal {
        Refusal::Invalid(invalid) => Problem::invalid_body(invalid),
        Refusal::Forbidden(why) => Problem::new(Kind::Forbidden, why),
        // It was created just before, but has been removed since.
        Refusal::Absent(_) => Problem::new(Kind::Conflict, format!("{refusal} any more: ask again")),
        Refusal::Quota(exceeded) => quota::exceeded(state, exceeded),
        Refusal::TooMany { running, retry } => {
            let policy = format!("\"searches\";q={};qu=\"concurrent-requests\"", state.config.search.searches_max);
            let problem =
                Problem::new(Kind::TooManySearches, format!("{running} searches are running, the limit: try again"))
                    .retry_after(retry)
                    .header(HeaderName::from_static("ratelimit"), HeaderValue::from_static("\"searches\";r=0"));
            match HeaderValue::from_str(&policy) {
                Ok(policy) => problem.header(HeaderName::from_static("ratelimit-policy"), policy),
                Err(_) => problem,
            }
        }
        Refusal::Busy { retry, .. } | Refusal::Early { retry } => {
            Problem::new(Kind::TooManySearches, format!("{refusal}: try again")).retry_after(retry)
        }
        Refusal::TooManySaved { most: max } => {
            let detail = format!(
                "there is no room for it: the server keeps {max} saved searches, and guarantees each tenant a part; \
                 a large one counts as several: delete one"
            );
            Problem::new(Kind::TooManySearches, detail)
        }
        Refusal::DiskFull(why) => {
            tracing::error!(%why, "the disk is full");
            Problem::new(
                Kind::StorageUnavailable,
                "the server's disk is full: nothing can be stored until there is space",
            )
        }
        Refusal::Unavailable(why) => Problem::new(Kind::Overloaded, why),
        Refusal::Failed(why) => Problem::internal(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_backend::{Backend, Embedded, Seams, Settings};
    use meridian_model::schema_spec;
    use meridian_store::{Options, Store};
    use std::path::PathBuf;
    use std::sync::Arc;

    #[test]
    fn what_may_pass_is_neither_damage_nor_a_fault_of_the_server() {
        let failed = |action, kind| {
            let path = PathBuf::from("/secret/p0/segments/7.rows");
            store_problem(StoreError::Io { action, path, source: io::Error::from(kind) })
        };
        let late = failed("read", io::ErrorKind::TimedOut);
        assert_eq!(late.kind(), Kind::Overloaded);
        assert!(late.detail().contains("did not deliver 7.rows") && !late.detail().contains("secret"), "{late:?}");
        assert_eq!(failed("read", io::ErrorKind::NotFound).kind(), Kind::Internal);
        assert_eq!(failed("sync", io::ErrorKind::TimedOut).kind(), Kind::Internal);
        assert_eq!(failed("open", io::ErrorKind::StorageFull).kind(), Kind::StorageUnavailable);
        for (cure, kind, status) in [
            ("this server tries again by itself", Kind::Overloaded, 503),
            ("put the object back from a copy of the bucket", Kind::Damaged, 409),
        ] {
            let problem = meridian_store::Problem { path: PathBuf::from("MANIFEST"), detail: "late".to_owned() };
            let damaged =
                Damaged { tenant: "t".to_owned(), name: "c".to_owned(), problem, cure: cure.to_owned().into() };
            assert_eq!(damaged_problem(&damaged).kind(), kind);
            assert_eq!(taken_problem(&damaged).document()["status"], status);
        }
    }

    #[test]
    fn a_deletion_in_doubt_claims_nothing_of_the_other_events() {
        let backend = Embedded::new(Arc::new(Store::open(Options::ephemeral(), Seams::real()).unwrap()));
        let schema = schema_spec::parse("n:Integer,*geom:Point").unwrap();
        let collection = backend.create("default", "events", schema, Settings::default()).unwrap();
        let stopped =
            |matched, why| delete_problem(&*collection, PartialDelete { deleted: 3, matched, why }).document();
        let said = |why| stopped(Some(9), why);
        let late = said(DeleteFault::Query(QueryError::Deadline))["detail"].to_string();
        assert!(late.contains("3 of 9 events are deleted, the others are unchanged"), "{late}");
        let unreached = stopped(None, DeleteFault::Query(QueryError::Deadline));
        assert!(unreached["detail"].as_str().unwrap().starts_with("3 events are deleted, the others"), "{unreached}");
        let gone = || "gone".to_owned();
        let (of_query, of_write) = (StoreError::Unknown(gone()), WriteError::Unknown(gone()));
        for why in [DeleteFault::Query(of_query.into()), DeleteFault::Write(of_write)] {
            let doubt = said(why);
            let detail = doubt["detail"].to_string();
            assert!(detail.contains("perhaps more") && !detail.contains("unchanged"), "{detail}");
            assert_eq!(doubt["deleted"], 3);
        }
    }
}
