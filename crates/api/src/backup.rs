//! `/backup`: the whole store, as a tar for a backup folder.

use crate::body;
use crate::errors;
use crate::params::Params;
use crate::problem::{Kind, Problem, Result};
use crate::request::Context;
use crate::scope::Scope;
use crate::stream::{self, Sink};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use meridian_backend::StoreError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

/// Max number of backups sent at once.
pub const RUNNING_MAX: usize = 4;

/// Retry interval when all are in use.
const RETRY: Duration = Duration::from_secs(30);

/// The request body: what the client has already.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct BackupRequest {
    /// Files of its backup folder, with their checksums (CRC32C).
    #[serde(default)]
    have: BTreeMap<String, u32>,
}

/// `POST /backup`: every collection as it is at one position, while writes and reads go on.
pub async fn post(state: Scope, context: Context, body: Body) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let timeout = params.take_timeout()?;
    params.finish()?;
    let received = body::receive(&state, &context.headers, body).await?;
    let request: BackupRequest = match received.bytes.is_empty() {
        true => BackupRequest::default(),
        false => serde_json::from_slice(&received.bytes).map_err(|e| {
            let expected = "expected {\"have\": {NAME: CRC32C}}, or nothing";
            Problem::new(Kind::InvalidBody, format!("the body cannot be parsed ({e}): {expected}"))
        })?,
    };
    drop(received);
    let permit = state.backups.clone().try_acquire_owned().map_err(|_| {
        let detail = format!("{RUNNING_MAX} backups are being sent, the limit: try again");
        Problem::new(Kind::Overloaded, detail).retry_after(RETRY)
    })?;
    // A complete copy may take up to the max timeout; if it breaks off, the client resumes it.
    let deadline = context.deadline(timeout, state.config.timeout_max)?;
    let run = context.lease.run(&state, deadline).await?;
    let backend = state.backend.clone();
    tracing::info!(by = &*state.caller().name, request = &*context.id, "a backup is sent");
    stream::stream_blocking(&state, run, context.arrived, move |sink, control| {
        let _permit = permit;
        let mut out = Out { sink, begun: false, failed: None };
        let sent = backend.backup(&request.have, &mut out, &|| control.check().is_err());
        // An error of the connection takes precedence over the backend's error that follows from it.
        match (out.failed, sent) {
            (Some(problem), _) => Err(problem),
            (None, Ok(_)) => Ok(()),
            (None, Err(error)) => {
                control.check().map_err(errors::query_problem)?;
                Err(match error {
                    // The operator needs to know which file it is.
                    StoreError::Corrupt { .. } => Problem::new(Kind::StorageUnavailable, error.to_string()),
                    other => errors::store_problem(other),
                })
            }
        }
    })
    .await
}

/// The response, started with the first bytes: until then an error gives a proper error status.
struct Out<'a> {
    sink: &'a mut Sink,
    begun: bool,
    failed: Option<Problem>,
}

impl Out<'_> {
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

impl Write for Out<'_> {
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
