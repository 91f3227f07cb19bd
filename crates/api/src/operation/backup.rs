//! `/backup`: all data or one tenant, as a tar for a backup folder.

use crate::access::audit::AuditDetails;
use crate::access::records::RECORDS;
use crate::contract::bodies::Backup;
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::body;
use crate::request::context::Context;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::stream::{self, Sink};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use meridian_admission::identity;
use meridian_backend::{BackupKey, BackupOptions, BackupScope, StoreError};
use meridian_model::{Invalid, RecordPart};
use meridian_saved::SavedSlots;
use std::io::{self, Write};
use std::time::Duration;

/// Max number of concurrent backups.
pub const RUNNING_MAX: usize = 4;

/// Min retry time when all slots are in use.
const RETRY: Duration = Duration::from_secs(30);

/// `POST /backup`: backs up each collection at one position, while writes and reads continue.
pub async fn post(state: Scope, context: Context, body: Body) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let timeout = params.take_timeout()?;
    params.finish()?;
    let received = body::receive(&state, &context.headers, body).await?;
    let request: Backup = match received.bytes.is_empty() {
        true => Backup::default(),
        false => serde_json::from_slice(&received.bytes).map_err(|e| {
            let expected = "expected {\"have\": {NAME: CRC32C}, \"tenant\": NAME, \"key\": TEXT}, or nothing";
            Problem::new(Kind::InvalidBody, format!("the body cannot be parsed ({e}): {expected}"))
        })?,
    };
    drop(received);
    let key = request.key.as_deref().map(BackupKey::parse).transpose().map_err(Problem::invalid_body)?;
    let note = note(request.tenant.as_deref(), key.is_some());
    if let Some(tenant) = request.tenant.as_deref().filter(|tenant| state.registry.tenant(tenant).is_none()) {
        let detail = format!("there is no tenant {tenant:?}");
        return Err(Problem::invalid_body(Invalid::field("tenant", detail)));
    }
    let permit = state.backups.clone().try_acquire_owned().map_err(|_| {
        let detail = format!("{RUNNING_MAX} backups are being sent, the limit: try again");
        Problem::new(Kind::Overloaded, detail).retry_about(RETRY)
    })?;
    // A full copy may take up to the max timeout; if it is interrupted, the client resumes it.
    let deadline = context.deadline(timeout, state.config.timeout_max)?;
    let run = context.lease.run(&state, deadline).await?;
    let (backend, shared) = (state.backend.clone(), state.state().clone());
    tracing::info!(by = &*state.caller().name, request = &*context.id, "a backup is sent");
    let mut response = stream::stream_blocking(&state, run, context.arrived, move |sink, control| {
        let _permit = permit;
        let mut out = ResponseWriter { sink, begun: false, failed: None };
        let scope = scope(&shared.saved, request.tenant, key).map_err(errors::store_problem)?;
        let cancelled = || control.check().is_err();
        let what = BackupOptions { scope: &scope, have: &request.have, cancelled: &cancelled };
        let sent = backend.backup(&what, &mut out);
        if sent.is_err() && out.begun {
            // The reason is in the tar, and what the sink holds is dropped when the transfer is broken off.
            let _ = out.sink.flush();
        }
        // A connection error takes precedence over the backend error that follows from it.
        match (out.failed, sent) {
            (Some(problem), _) => Err(problem),
            (None, Ok(_)) => Ok(()),
            (None, Err(error)) => {
                control.check().map_err(errors::query_problem)?;
                Err(match error {
                    // The operator needs to know which file is damaged.
                    StoreError::Corrupt { .. } => Problem::new(Kind::StorageUnavailable, error.to_string()),
                    other => errors::store_problem(other),
                })
            }
        }
    })
    .await?;
    response.extensions_mut().insert(note);
    Ok(response)
}

/// Returns the scope of a backup; the crates that keep records decide which of them belong to it.
fn scope(saved: &SavedSlots, tenant: Option<String>, key: Option<BackupKey>) -> Result<BackupScope, StoreError> {
    let (only, parts) = (tenant.clone(), saved.backup_parts(tenant.as_deref())?);
    let part_of = move |folder: &str, name: &str, content: &[u8]| match folder {
        RECORDS => identity::backup_part(only.as_deref(), name, content),
        meridian_saved::RECORDS => parts.of(name, content),
        // Records of a newer program may hold secrets of any tenant.
        _ if only.is_none() => RecordPart::secret("unknown records", None),
        _ => RecordPart::absent(),
    };
    Ok(BackupScope { tenant, part_of: Box::new(part_of), key })
}

/// Describes the act for the audit log.
fn note(tenant: Option<&str>, sealed: bool) -> AuditDetails {
    let what = tenant.map_or_else(|| "everything".to_owned(), |tenant| format!("the tenant {tenant}"));
    let secrets = if sealed { "secrets sealed" } else { "without secrets" };
    AuditDetails { tenant: tenant.map(str::to_owned), target: None, change: Some(format!("{what}, {secrets}")) }
}

/// The response, started with the first bytes: until then a failure can still set the status.
struct ResponseWriter<'a> {
    sink: &'a mut Sink,
    begun: bool,
    failed: Option<Problem>,
}

impl ResponseWriter<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.begun {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
            self.sink.begin(headers);
            self.begun = true;
        }
        self.sink.buffer.extend_from_slice(bytes);
        self.sink.offer()
    }
}

impl Write for ResponseWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.put(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(problem) => {
                let detail = problem.detail().to_owned();
                self.failed = Some(problem);
                Err(io::Error::other(detail))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
