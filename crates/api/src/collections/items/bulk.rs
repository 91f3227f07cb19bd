//! A page or a complete result in a format without links of its own; the next page, if known, is in a `Link` header.

use super::{ItemsRequest, head, link_next, pace, query, write_hits, writer};
use crate::protocol::params::crs::Crs;
use crate::protocol::problem::{Problem, Result};
use crate::request::blocking::Run;
use crate::request::context::Context;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::stream::{self, Sink, Source};
use axum::response::Response;
use meridian_backend::{Collection, Rows};
use meridian_formats::EventWriter;
use meridian_query::{Control, Share};
use std::sync::Arc;

pub(super) async fn answer(
    state: &Scope,
    context: &Context,
    run: Run,
    collection: Arc<dyn Collection>,
    request: ItemsRequest,
) -> Result<Response> {
    let now = state.now();
    let shared = state.clone();
    let url = context.this_url();
    stream::stream(state, run, context.arrived, move |sink, control| {
        let mut rows = query(&request, &*collection, control)?;
        let mut writer = writer(collection.name(), &request, &rows.head().schema)?;
        let mut held = control.share();
        // A page is computed before the head is sent, so that the head can link to the next page. Meanwhile it is
        // charged as a response.
        if !request.is_streamed() {
            writer.start(&mut sink.buffer).map_err(Problem::internal)?;
            for hits in rows.by_ref() {
                write_hits(writer.as_mut(), &hits.map_err(errors::query_problem)?, request.crs, &mut sink.buffer)?;
                held.reach(writer.held()).map_err(errors::query_problem)?;
                sink.collect()?;
            }
            writer.finish(&mut sink.buffer).map_err(Problem::internal)?;
            let mut headers = head(&request, &*collection, rows.head(), now);
            link_next(&mut headers, &shared, &request, &*rows, &url);
            sink.begin(headers);
            return Ok(None);
        }
        sink.begin(head(&request, &*collection, rows.head(), now));
        writer.start(&mut sink.buffer).map_err(Problem::internal)?;
        Ok(Some(Box::new(FullResult { rows, writer, held, crs: request.crs })))
    })
    .await
}

/// A complete result while it is streamed.
struct FullResult {
    rows: Box<dyn Rows>,
    writer: Box<dyn EventWriter>,
    /// Memory of events that the writer still holds: GeoParquet collects many.
    held: Share,
    crs: Crs,
}

impl Source for FullResult {
    fn step(&mut self, sink: &mut Sink, _: &Control) -> Result<bool> {
        let Some(hits) = self.rows.next() else {
            self.writer.finish(&mut sink.buffer).map_err(Problem::internal)?;
            return Ok(false);
        };
        let hits = hits.map_err(errors::query_problem)?;
        let before = sink.buffer.len();
        write_hits(self.writer.as_mut(), &hits, self.crs, &mut sink.buffer)?;
        self.held.reach(self.writer.held()).map_err(errors::query_problem)?;
        pace(self.rows.as_mut(), hits.batch.rows(), sink.buffer.len() - before);
        // The last events are sent together with the end.
        if !self.rows.is_over() {
            sink.offer()?;
        }
        Ok(true)
    }

    fn park(&mut self) -> usize {
        // While parked it is charged as a response: clients that do not read must not hold the memory of queries.
        self.held.release();
        self.rows.park() + self.writer.held()
    }
}
