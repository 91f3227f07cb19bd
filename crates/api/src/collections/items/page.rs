//! Pages of events: GeoJSON with links, and HTML.

use super::{ItemsRequest, fields_of, head, next_token, pace, query};
use crate::collections::reproject::reproject;
use crate::contract::links::{self, link};
use crate::contract::{Missing, PageTail};
use crate::html;
use crate::protocol::params::format::{EVENTS, Format};
use crate::protocol::problem::{Problem, Result};
use crate::request::blocking::{self, Run};
use crate::request::context::Context;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::stream::{self, Sink, Source};
use crate::state::brief_runs::QueryKind;
use axum::http::HeaderMap;
use axum::response::Response;
use meridian_backend::{Collection, Head, ReadPoint, Rows};
use meridian_formats::FeatureWriter;
use meridian_model::filter::Predicate;
use meridian_model::time;
use meridian_observe::{self as observe, Stage};
use meridian_query::{Control, Hits, Order, QueryError};
use std::io::Write;
use std::sync::Arc;

/// Responds with a FeatureCollection. Events are sent as they are found; links and counts follow them.
pub(super) async fn json(
    state: &Scope,
    context: Context,
    run: Run,
    collection: Arc<dyn Collection>,
    request: ItemsRequest,
) -> Result<Response> {
    let (shared, arrived, of) = (state.clone(), context.arrived, collection.clone());
    let kind = QueryKind::items(&request.items);
    // Shared, because a page that turns out to be long is opened twice.
    let (context, request) = (Arc::new(context), Arc::new(request));
    let open = move |sink: &mut Sink, control: &Control| {
        let mut rows = query(&request, &*collection, control)?;
        let schema = &rows.head().schema;
        let writer = FeatureWriter::new(schema, fields_of(&request, schema).as_deref())
            .map_err(|e| Problem::invalid_parameter("properties", e))?;
        // The first events are read before the head is sent, so that an error in them can still set the status.
        let first = rows.next().transpose().map_err(errors::query_problem)?;
        sink.begin(head(&request, &*collection, rows.head(), shared.now()));
        sink.buffer.extend_from_slice(b"{\"type\":\"FeatureCollection\",\"features\":[");
        let (state, collection) = (shared.clone(), collection.clone());
        let (context, request) = (context.clone(), request.clone());
        let mut page = Page { state, context, collection, request, rows, writer, returned: 0 };
        let Some(hits) = first else {
            page.write_tail(control, &mut sink.buffer)?;
            return Ok(None);
        };
        // It will be opened again, so nothing need be written.
        if sink.is_brief() && !page.rows.is_over() {
            return Ok(Some(Box::new(page) as Box<dyn Source>));
        }
        page.write(&hits, sink, control)?;
        // The end of a page follows its last events at once.
        let is_complete = page.rows.is_over() && !page.step(sink, control)?;
        Ok((!is_complete).then(|| Box::new(page) as Box<dyn Source>))
    };
    stream::stream_read(state, kind, &*of, run, arrived, open).await
}

/// A page while it is streamed.
struct Page {
    state: Scope,
    context: Arc<Context>,
    collection: Arc<dyn Collection>,
    request: Arc<ItemsRequest>,
    rows: Box<dyn Rows>,
    writer: FeatureWriter,
    returned: usize,
}

impl Source for Page {
    fn step(&mut self, sink: &mut Sink, control: &Control) -> Result<bool> {
        let Some(hits) = self.rows.next() else {
            self.write_tail(control, &mut sink.buffer)?;
            return Ok(false);
        };
        self.write(&hits.map_err(errors::query_problem)?, sink, control)?;
        Ok(true)
    }

    fn park(&mut self) -> usize {
        self.rows.park()
    }
}

impl Page {
    fn write(&mut self, hits: &Hits, sink: &mut Sink, control: &Control) -> Result<()> {
        let before = sink.buffer.len();
        write_features(&self.writer, hits, &self.request, self.returned == 0, control, &mut sink.buffer)?;
        pace(self.rows.as_mut(), hits.batch.rows(), sink.buffer.len() - before);
        self.returned += hits.batch.rows();
        // The last events are sent together with the end.
        if self.rows.is_over() { Ok(()) } else { sink.offer() }
    }

    fn write_tail(&self, control: &Control, out: &mut Vec<u8>) -> Result<()> {
        let Page { state, context, collection, request, rows, returned, .. } = self;
        let head = rows.head();
        let token = next_token(state, head, request, rows.next_page());
        let url = context.this_url();
        let mut links = links::self_and_alternates(&url, Format::Json, EVENTS, Format::Json.media_type());
        if let Some(token) = &token {
            let next = links::with(&links::without(&url, "token"), "token", token);
            links.push(link(next, "next", Format::Json.media_type(), "The next page"));
        }
        let home = context.url(&format!("/collections/{}", links::escape(collection.name())));
        links.push(link(home, "collection", "application/json", "The collection"));
        let matched = matched(request, collection.as_ref(), rows.as_ref(), *returned, token.is_some(), control)?;
        let tail = PageTail {
            links,
            time_stamp: time::format_instant(state.now()),
            number_returned: *returned as u64,
            number_matched: matched,
            missing: missing(head),
        };
        let text = serde_json::to_vec(&tail).map_err(Problem::internal)?;
        out.push(b']');
        out.push(b',');
        // Without its opening brace, since the head has already opened the document.
        out.extend_from_slice(&text[1..]);
        Ok(())
    }
}

/// Number of events written between two checks of the deadline.
const ROWS_UNSEEN: usize = 64;

fn write_features(
    writer: &FeatureWriter,
    hits: &Hits,
    request: &ItemsRequest,
    first: bool,
    control: &Control,
    out: &mut Vec<u8>,
) -> Result<()> {
    let _encode = observe::stage(Stage::Encode);
    let batch = reproject(&hits.batch, request.crs)?;
    let rows = writer.rows(&batch, &hits.seqs);
    for row in 0..batch.rows() {
        if row.is_multiple_of(ROWS_UNSEEN) {
            control.check().map_err(errors::query_problem)?;
        }
        if row > 0 || !first {
            out.push(b',');
        }
        match &hits.distances {
            None => rows.feature(row, out),
            // A foreign member (RFC 7946, 6.1): metres from the position in `near`.
            Some(distances) => rows.feature_with(row, out, |out| {
                out.extend_from_slice(b",\"distance\":");
                let _ = write!(out, "{:.2}", distances[row]);
            }),
        }
    }
    Ok(())
}

/// Max events tested one by one for `numberMatched`, whatever the filter: a few milliseconds of work.
const MATCHED_TESTED_MAX: u64 = 20_000;
/// The same limit if the filter is a box and a time interval, which takes a few comparisons per event.
const MATCHED_CUT_MAX: u64 = 250_000;

/// Returns the number of matching events on all pages, if that is cheap. It is cheap if the query knows it, or if all
/// of them are on this page. It is also cheap if few events must be tested besides those counted by the tree's nodes.
pub(super) fn matched(
    request: &ItemsRequest,
    collection: &dyn Collection,
    rows: &dyn Rows,
    returned: usize,
    more: bool,
    control: &Control,
) -> Result<Option<u64>> {
    if let Some(matched) = rows.number_matched() {
        return Ok(Some(matched));
    }
    if request.token.is_none() && !more {
        return Ok(Some(returned as u64));
    }
    let predicate = &request.items.predicate;
    let max = if predicate.as_space_time().is_some() { MATCHED_CUT_MAX } else { MATCHED_TESTED_MAX };
    // The same snapshot as the page, so that the count agrees with its events.
    let at = ReadPoint { seq: Some(rows.head().seq.clone()), ..request.at() };
    let count = |predicate| match collection.count(at, predicate, max, control) {
        // The page is complete without it, and counting all matches would exceed the tenant's quota.
        Err(QueryError::TooLarge { .. }) => Ok(None),
        counted => counted.map_err(errors::query_problem),
    };
    match request.items.order {
        // Ordering by distance omits events without a position.
        Order::Near { k, .. } => {
            let located = count(&Predicate::and(vec![predicate.clone(), Predicate::located()]))?;
            Ok(located.map(|count| k.map_or(count, |k| count.min(k as u64))))
        }
        _ => count(predicate),
    }
}

/// Returns the parts that a response may lack because files are damaged.
fn missing(head: &Head) -> Vec<Missing> {
    head.missing.iter().map(|problem| Missing { detail: problem.detail.clone() }).collect()
}

/// Responds with the page as HTML.
pub(super) async fn html(
    state: &Scope,
    context: &Context,
    run: Run,
    collection: Arc<dyn Collection>,
    request: ItemsRequest,
) -> Result<Response> {
    let shared = state.clone();
    let url = context.this_url();
    let url = request.newest.as_deref().map_or(url.clone(), |key| links::with(&url, "sortby", key));
    blocking::run(run, move |control| {
        let mut rows = query(&request, &*collection, control)?;
        // The events are held until all are known, and then also as text, so both are charged.
        let (mut hits, mut bytes, mut share) = (Vec::new(), 0, control.share());
        for some in rows.by_ref() {
            let some = some.map_err(errors::query_problem)?;
            bytes += 2 * some.batch.bytes();
            share.reach(bytes).map_err(errors::query_problem)?;
            hits.push(some);
        }
        let head = rows.head();
        let token = next_token(&shared, head, &request, rows.next_page());
        let next = token.map(|t| links::with(&links::without(&url, "token"), "token", &t));
        let returned = hits.iter().map(|h| h.batch.rows()).sum();
        let matched = matched(&request, collection.as_ref(), rows.as_ref(), returned, next.is_some(), control)?;
        let _encode = observe::stage(Stage::Encode);
        let page = html::items::page_of(
            collection.name(),
            &head.schema,
            &hits,
            request.properties.as_deref(),
            matched,
            next.as_deref(),
            &url,
        );
        let mut headers = HeaderMap::new();
        respond::set_document(&mut headers);
        respond::set_read_headers(&mut headers, head, shared.now(), request.consistency.name);
        // A page of many events is large, and is charged until its client has read it.
        stream::finished(&shared, headers, respond::shown(&shared, page).into_bytes())
    })
    .await
}
