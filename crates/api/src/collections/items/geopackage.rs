//! `f=gpkg`: a page or a complete result as a GeoPackage, which is a database.
//!
//! It is whole before its first byte is sent. So the query writes it to a file without a name, with its permit and in
//! its turns, until its deadline and for as long as its client waits. The file is then sent as other results are, with
//! its length. It is gone once the response has ended, in whatever way.
//!
//! For HEAD no file is made. Its response lacks the length, which is known only of a whole file (RFC 9110, 9.3.2).

use super::{ItemsRequest, fields_of, head, link_next, pace, query};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::blocking::Run;
use crate::request::context::Context;
use crate::request::errors;
use crate::request::quota::NARROWER;
use crate::request::scope::Scope;
use crate::response::stream::{self, Sink, Source};
use crate::state::answer_files::{FileShare, Overrun};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use meridian_backend::{Collection, Rows};
use meridian_formats::export::UnnamedGeoPackage;
use meridian_observe::{self as observe, Stage};
use meridian_query::Control;
use std::fmt::Display;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are read of a file at a time.
const READ_BYTES: u64 = 64 << 10;
/// Retry interval while other files use all the disk set aside for them.
const RETRY: Duration = Duration::from_secs(30);

pub(super) async fn answer(
    state: &Scope,
    context: &Context,
    run: Run,
    collection: Arc<dyn Collection>,
    request: ItemsRequest,
) -> Result<Response> {
    let now = state.now();
    let shared = state.clone();
    let (url, is_head) = (context.this_url(), context.is_head);
    stream::stream(state, run, context.arrived, move |sink, control| {
        let headers = |rows: &dyn Rows| {
            let mut headers = head(&request, &*collection, rows.head(), now);
            if !request.is_streamed() {
                link_next(&mut headers, &shared, &request, rows, &url);
            }
            headers
        };
        if is_head {
            let mut rows = query(&request, &*collection, control)?;
            // Where a page ends is known once its events are.
            if !request.is_streamed() {
                rows.try_for_each(|hits| hits.map(drop)).map_err(errors::query_problem)?;
            }
            sink.begin(headers(&*rows));
            return Ok(None);
        }
        let refused = |overrun| refused(overrun, collection.name());
        // First, so that a server without room for it reads nothing.
        let mut share = shared.files.begin(&shared.caller().tenant).map_err(refused)?;
        let mut memory = control.share();
        memory.reach(UnnamedGeoPackage::MEMORY_BYTES).map_err(errors::query_problem)?;
        let mut rows = query(&request, &*collection, control)?;
        let schema = rows.head().schema.clone();
        let folder = shared.files.folder(&*shared.disk).map_err(unwritable)?;
        let fields = fields_of(&request, &schema);
        let as_of = rows.head().taken_at;
        let file = UnnamedGeoPackage::begin(&folder, collection.name(), &schema, fields.as_deref(), as_of);
        let (mut file, mut bytes) = (file.map_err(unwritable)?, 0);
        while let Some(hits) = rows.next() {
            let hits = hits.map_err(errors::query_problem)?;
            let encode = observe::stage(Stage::Encode);
            file.write(&hits.batch, &hits.seqs).map_err(unwritable)?;
            drop(encode);
            let before = bytes;
            bytes = file.bytes().map_err(unwritable)?;
            share.reach(bytes).map_err(refused)?;
            pace(rows.as_mut(), hits.batch.rows(), bytes.saturating_sub(before) as usize);
        }
        let mut headers = headers(&*rows);
        drop((rows, memory));
        let file = file.finish().map_err(unwritable)?;
        let length = file.metadata().map_err(unwritable)?.len();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        sink.begin(headers);
        Ok(Some(Box::new(FinishedFile { file, read: 0, length, _share: share })))
    })
    .await
}

/// A whole file while it is sent.
struct FinishedFile {
    file: File,
    /// Bytes read so far.
    read: u64,
    length: u64,
    _share: FileShare,
}

impl Source for FinishedFile {
    fn step(&mut self, sink: &mut Sink, control: &Control) -> Result<bool> {
        control.check().map_err(errors::query_problem)?;
        let more = READ_BYTES.min(self.length - self.read);
        let from = sink.buffer.len();
        sink.buffer.resize(from + more as usize, 0);
        self.file.read_exact_at(&mut sink.buffer[from..], self.read).map_err(Problem::internal)?;
        self.read += more;
        // The last bytes are sent together with the end.
        if self.read == self.length {
            return Ok(false);
        }
        sink.offer()?;
        Ok(true)
    }

    fn park(&mut self) -> usize {
        // It holds no memory, and its disk is its own share.
        0
    }
}

/// Returns the problem for a file that may not grow.
fn refused(overrun: Overrun, collection: &str) -> Problem {
    match overrun {
        Overrun::TooLarge(limit) => Problem::parameter(
            "f",
            format!(
                "the events take more than {limit} bytes as a GeoPackage, the limit of this server (answers.file_bytes): \
                 ask for less with {NARROWER}, or write the file with `meridian export {collection} {collection}.gpkg`, \
                 which has no limit"
            ),
        )
        .with("limit_bytes", limit),
        Overrun::Full(total) => Problem::new(
            Kind::Overloaded,
            format!(
                "files that other responses are made in use the {total} bytes of disk set aside for them \
                 (answers.file_bytes_total), or the tenant's part of it: try again"
            ),
        )
        .retry_after(RETRY),
    }
}

/// Returns the problem for a file that cannot be written: the cause has paths, so only the log has it.
fn unwritable(cause: impl Display) -> Problem {
    tracing::error!(%cause, "a GeoPackage could not be written");
    Problem::new(
        Kind::StorageUnavailable,
        "the server cannot write the file that a GeoPackage is made in: its disk may be full, or its folder for temporary \
         files absent; its log has the cause",
    )
}
