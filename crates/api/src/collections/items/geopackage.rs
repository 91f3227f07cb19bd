//! `f=gpkg`: a page or a complete result as a GeoPackage, which is a database.
//!
//! It is whole before its first byte is sent. So the query writes it to a file without a name, with its permit and in
//! its turns, until its deadline and for as long as its client waits. The file is then sent with its length, without a
//! permit and without a deadline. It is gone once the response has ended, in whatever way.
//!
//! For HEAD no file is made. Its response lacks the length, which is known only of a whole file (RFC 9110, 9.3.2).

use super::{ItemsRequest, fields_of, head, link_next, pace, query};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::blocking::Run;
use crate::request::context::Context;
use crate::request::errors;
use crate::request::quota::NARROWER;
use crate::request::scope::Scope;
use crate::response::stream::{self, WholeFile};
use crate::state::answer_files::Overrun;
use axum::response::Response;
use meridian_backend::{Collection, Rows};
use meridian_formats::WriteError;
use meridian_formats::export::UnnamedGeoPackage;
use meridian_observe::{self as observe, Stage};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// Min retry time while other files use all the disk set aside for them.
const RETRY: Duration = Duration::from_secs(30);

pub(super) async fn answer(
    state: &Scope,
    context: &Context,
    run: Run,
    collection: Arc<dyn Collection>,
    request: ItemsRequest,
) -> Result<Response> {
    let now = state.now();
    let (shared, state_of_links) = (state.clone(), state.clone());
    let url = context.this_url();
    let headers = move |request: &ItemsRequest, collection: &dyn Collection, rows: &dyn Rows| {
        let mut headers = head(request, collection, rows.head(), now);
        if !request.is_streamed() {
            link_next(&mut headers, &state_of_links, request, rows, &url);
        }
        headers
    };
    if context.is_head {
        return stream::stream(state, run, context.arrived, move |sink, control| {
            let mut rows = query(&request, &*collection, control)?;
            // Where a page ends is known once its events are.
            if !request.is_streamed() {
                rows.try_for_each(|hits| hits.map(drop)).map_err(errors::query_problem)?;
            }
            sink.begin(headers(&request, &*collection, &*rows));
            Ok(None)
        })
        .await;
    }
    stream::made_in_file(state, run, context.arrived, move |control| {
        let refused = |overrun| refused(overrun, collection.name());
        // First, so that a server without room for it reads nothing.
        let mut share = shared.files.begin(&shared.caller().tenant).map_err(refused)?;
        let mut memory = control.share();
        memory.reach(UnnamedGeoPackage::MEMORY_BYTES).map_err(errors::query_problem)?;
        let mut rows = query(&request, &*collection, control)?;
        let schema = rows.head().schema.clone();
        let fields = fields_of(&request, &schema);
        let file = UnnamedGeoPackage::begin(
            share.folder(),
            collection.name(),
            &schema,
            fields.as_deref(),
            rows.head().taken_at,
        );
        let (mut file, mut bytes) = (file.map_err(failed)?, 0);
        while let Some(hits) = rows.next() {
            let hits = hits.map_err(errors::query_problem)?;
            let encode = observe::stage(Stage::Encode);
            file.write(&hits.batch, &hits.seqs).map_err(failed)?;
            drop(encode);
            let before = bytes;
            bytes = file.bytes().map_err(failed)?;
            share.reach(bytes).map_err(refused)?;
            pace(rows.as_mut(), hits.batch.rows(), bytes.saturating_sub(before) as usize);
        }
        let headers = headers(&request, &*collection, &*rows);
        drop((rows, memory));
        let file = file.finish().map_err(failed)?;
        Ok((headers, WholeFile::new(file, share).map_err(unwritable)?))
    })
    .await
}

/// Returns the problem for a file that may not begin or grow.
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
        .retry_about(RETRY),
        Overrun::DiskShort(min) => Problem::new(
            Kind::StorageUnavailable,
            format!(
                "the file would leave less than {min} bytes free on the server's disk, which are kept for writes \
                 (answers.disk_free_min): ask for less with {NARROWER}, or write the file with `meridian export \
                 {collection} {collection}.gpkg` on another disk"
            ),
        ),
        Overrun::Disk(error) => unwritable(error),
    }
}

/// Returns the problem for a file that could not be made.
fn failed(error: WriteError) -> Problem {
    if error.is_of_disk() { unwritable(error) } else { Problem::internal(error) }
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
