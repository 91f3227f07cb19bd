//! A page or a whole result in a format without room for links; the next page stands in a `Link` header when known.

use super::{Asked, ask, head, next_token, pace, write_hits, writer};
use crate::links;
use crate::params::crs::Crs;
use crate::problem::{Problem, Result};
use crate::request::Context;
use crate::respond;
use crate::snapshot;
use crate::state::AppState;
use crate::stream::{self, Run, Sink, Source};
use axum::http::header;
use axum::response::Response;
use meridian_backend::{Collection, Rows};
use meridian_formats::EventWriter;
use meridian_query::Control;
use std::sync::Arc;

pub(super) async fn answer(
    state: &AppState,
    context: &Context,
    run: Run,
    collection: Arc<dyn Collection>,
    asked: Asked,
) -> Result<Response> {
    let admission = run.admission;
    let now = state.now();
    let shared = state.clone();
    let url = context.this_url();
    stream::stream(state, run, context.arrived, move |sink, control| {
        let mut rows = ask(&asked, &*collection, control)?;
        let mut writer = writer(&asked, &rows.head().schema)?;
        // A page is worked out before the head is sent, so that the head can say where the next page begins.
        if !asked.is_whole() {
            let mut bytes = Vec::new();
            writer.start(&mut bytes).map_err(Problem::internal)?;
            for hits in rows.by_ref() {
                write_hits(writer.as_mut(), &hits.map_err(snapshot::problem)?, asked.crs, &mut bytes)?;
            }
            writer.finish(&mut bytes).map_err(Problem::internal)?;
            let mut headers = head(&asked, rows.head(), now, admission, rows.stats().plan_us);
            if let Some(token) = next_token(&shared, rows.head(), &asked, rows.next_page()) {
                let next = links::with(&links::without(&url, "token"), "token", &token);
                respond::insert(&mut headers, header::LINK, &format!("<{next}>; rel=\"next\""));
            }
            sink.begin(headers);
            sink.buffer = bytes;
            return Ok(None);
        }
        sink.begin(head(&asked, rows.head(), now, admission, rows.stats().plan_us));
        writer.start(&mut sink.buffer).map_err(Problem::internal)?;
        Ok(Some(Box::new(Whole { rows, writer, crs: asked.crs })))
    })
    .await
}

/// A whole result on its way.
struct Whole {
    rows: Box<dyn Rows>,
    writer: Box<dyn EventWriter>,
    crs: Crs,
}

impl Source for Whole {
    fn step(&mut self, sink: &mut Sink, _: &Control) -> Result<bool> {
        let Some(hits) = self.rows.next() else {
            self.writer.finish(&mut sink.buffer).map_err(Problem::internal)?;
            return Ok(false);
        };
        let hits = hits.map_err(snapshot::problem)?;
        let before = sink.buffer.len();
        write_hits(self.writer.as_mut(), &hits, self.crs, &mut sink.buffer)?;
        pace(self.rows.as_mut(), hits.batch.rows(), sink.buffer.len() - before);
        // The last events leave together with the end.
        if !self.rows.is_over() {
            sink.offer()?;
        }
        Ok(true)
    }

    fn rest(&mut self) -> usize {
        self.rows.rest() + self.writer.held()
    }
}
