//! `/backup`: the whole store, as a tar for a backup folder.

use crate::body;
use crate::params::Params;
use crate::problem::{Kind, Problem, Result};
use crate::request::Context;
use crate::snapshot as edge;
use crate::state::AppState;
use crate::stream::{self, Sink};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use meridian_backend::StoreError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

/// Most backups that are sent at once.
pub const AT_ONCE: usize = 4;

/// When to ask again for one.
const RETRY: Duration = Duration::from_secs(30);

/// What the client has already.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Files of its backup folder, with their checksums (CRC32C).
    #[serde(default)]
    have: BTreeMap<String, u32>,
}

/// `POST /backup`: every collection as it is at one position, while writes and reads go on.
pub async fn post(State(state): State<AppState>, context: Context, body: Body) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let timeout = params.take_timeout()?;
    params.finish()?;
    let received = body::receive(&state, &context.headers, body).await?;
    let asked: Asked = match received.bytes.is_empty() {
        true => Asked::default(),
        false => serde_json::from_slice(&received.bytes).map_err(|e| {
            let expected = "expected {\"have\": {NAME: CRC32C}}, or nothing";
            Problem::new(Kind::InvalidBody, format!("the body does not read ({e}): {expected}"))
        })?,
    };
    drop(received);
    let turn = state.backups.clone().try_acquire_owned().map_err(|_| {
        let detail = format!("{AT_ONCE} backups are being sent, as many as may: try again");
        Problem::new(Kind::Overloaded, detail).retry_after(RETRY)
    })?;
    // A copy of everything takes what it takes; broken off, it goes on from where it was.
    let deadline = context.deadline(timeout, state.config.timeout_max)?;
    let run = context.lease.run(&state, deadline).await?;
    let backend = state.backend.clone();
    stream::stream_at_once(&state, run, context.arrived, move |sink, control| {
        let _turn = turn;
        let mut out = Out { sink, begun: false, failed: None };
        let sent = backend.backup(&asked.have, &mut out, &|| control.check().is_err());
        // What the connection said goes before what the backend makes of it.
        match (out.failed, sent) {
            (Some(problem), _) => Err(problem),
            (None, Ok(_)) => Ok(()),
            (None, Err(error)) => {
                control.check().map_err(edge::problem)?;
                Err(match error {
                    // Whoever keeps the server is told which file it is.
                    StoreError::Corrupt { .. } => Problem::new(Kind::StorageUnavailable, error.to_string()),
                    other => edge::store_problem(other),
                })
            }
        }
    })
    .await
}

/// The answer, begun with the first bytes: until then an error is a refusal.
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
                let said = problem.detail().to_owned();
                self.failed = Some(problem);
                Err(io::Error::other(said))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
