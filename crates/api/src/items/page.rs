//! Pages of events: GeoJSON with links, and HTML.

use super::{Asked, fields_of, head, next_token};
use crate::html;
use crate::links::{self, link};
use crate::params::format::{EVENTS, Format};
use crate::problem::{Problem, Result};
use crate::reproject::reproject;
use crate::request::Context;
use crate::respond;
use crate::snapshot;
use crate::state::AppState;
use crate::stream::{self, Run};
use axum::response::{IntoResponse, Response};
use meridian_formats::FeatureWriter;
use meridian_model::time;
use meridian_query::{Answer, Control, Hits, Order};
use meridian_store::{Collection, Snapshot};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;

/// A FeatureCollection; events leave as they are found, links and counts come after them.
pub(super) async fn json(
    state: &AppState,
    context: Context,
    run: Run,
    collection: Arc<Collection>,
    asked: Asked,
) -> Result<Response> {
    let admission = run.admission;
    let shared = state.clone();
    let arrived = context.arrived;
    stream::stream(state, run, arrived, move |sink, control| {
        let snapshot = asked.snapshot(&collection)?;
        let mut answer = meridian_query::items(&snapshot, &asked.items, control).map_err(snapshot::problem)?;
        let writer = FeatureWriter::new(&snapshot.schema, fields_of(&asked, &snapshot.schema).as_deref())
            .map_err(|e| Problem::invalid_parameter("properties", e))?;
        // The first events are found before the head is sent: an error in them is still a clean refusal.
        let mut first = answer.next().transpose().map_err(snapshot::problem)?;
        sink.begin(head(&asked, &snapshot, shared.now(), admission, answer.stats().plan_us));
        sink.buffer.extend_from_slice(b"{\"type\":\"FeatureCollection\",\"features\":[");
        let mut returned = 0;
        while let Some(hits) = first.take().map(Ok).or_else(|| answer.next()) {
            let hits = hits.map_err(snapshot::problem)?;
            write_features(&writer, &hits, &asked, returned == 0, &mut sink.buffer)?;
            returned += hits.batch.rows();
            // The last events leave together with the end.
            if !answer.is_over() {
                sink.offer()?;
            }
        }
        write_tail(&shared, &context, &collection, &asked, &snapshot, &answer, returned, control, &mut sink.buffer)
    })
    .await
}

fn write_features(writer: &FeatureWriter, hits: &Hits, asked: &Asked, first: bool, out: &mut Vec<u8>) -> Result<()> {
    let batch = reproject(&hits.batch, asked.crs)?;
    let rows = writer.rows(&batch, &hits.seqs);
    for row in 0..batch.rows() {
        if row > 0 || !first {
            out.push(b',');
        }
        match &hits.distances {
            None => rows.feature(row, out),
            // A foreign member (RFC 7946, 6.1): metres from the place that was asked for.
            Some(distances) => rows.feature_with(row, out, |out| {
                out.extend_from_slice(b",\"distance\":");
                let _ = write!(out, "{:.2}", distances[row]);
            }),
        }
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "the parts of one answer, used once")]
fn write_tail(
    state: &AppState,
    context: &Context,
    collection: &Collection,
    asked: &Asked,
    snapshot: &Snapshot,
    answer: &Answer,
    returned: usize,
    control: &Control,
    out: &mut Vec<u8>,
) -> Result<()> {
    let token = next_token(state, snapshot, asked, answer.next_page());
    let url = context.this_url();
    let mut links = links::self_and_alternates(&url, Format::Json, EVENTS, Format::Json.media_type());
    if let Some(token) = &token {
        let next = links::with(&links::without(&url, "token"), "token", token);
        links.push(link(next, "next", Format::Json.media_type(), "The next page"));
    }
    let home = context.url(&format!("/collections/{}", links::escape(collection.name())));
    links.push(link(home, "collection", "application/json", "The collection"));
    let mut tail = json!({
        "links": links,
        "timeStamp": time::format_instant(state.now()),
        "numberReturned": returned,
    });
    if let Some(matched) = matched(asked, snapshot, answer, returned, token.is_some(), control)? {
        tail["numberMatched"] = matched.into();
    }
    if !snapshot.missing.is_empty() {
        tail["missing"] = missing(snapshot);
    }
    let text = serde_json::to_vec(&tail).map_err(Problem::internal)?;
    out.push(b']');
    out.push(b',');
    out.extend_from_slice(&text[1..]);
    Ok(())
}

/// Events that may be tested one by one for `numberMatched`: some milliseconds' work.
const MATCHED_TESTED_MAX: u64 = 20_000;

/// How many events match over all pages, where that is cheap: the answer tells, or all of them stand on this page,
/// or the tree's nodes know.
fn matched(
    asked: &Asked,
    snapshot: &Snapshot,
    answer: &Answer,
    returned: usize,
    more: bool,
    control: &Control,
) -> Result<Option<u64>> {
    if let Some(matched) = answer.number_matched() {
        return Ok(Some(matched));
    }
    if asked.token.is_none() && !more {
        return Ok(Some(returned as u64));
    }
    if matches!(asked.items.order, Order::Near { .. }) {
        return Ok(None);
    }
    let counted = meridian_query::count(snapshot, &asked.items.predicate, MATCHED_TESTED_MAX, control);
    counted.map(|(count, _)| count).map_err(snapshot::problem)
}

/// What an answer lacks because files are damaged.
fn missing(snapshot: &Snapshot) -> Value {
    snapshot.missing.iter().map(|p| json!({ "detail": p.detail })).collect()
}

/// A page for people.
pub(super) async fn html(
    state: &AppState,
    context: &Context,
    run: Run,
    collection: Arc<Collection>,
    asked: Asked,
) -> Result<Response> {
    let shared = state.clone();
    let url = context.this_url();
    stream::run(run, move |control| {
        let snapshot = asked.snapshot(&collection)?;
        let mut answer = meridian_query::items(&snapshot, &asked.items, control).map_err(snapshot::problem)?;
        let hits: Vec<Hits> = answer.by_ref().collect::<Result<_, _>>().map_err(snapshot::problem)?;
        let token = next_token(&shared, &snapshot, &asked, answer.next_page());
        let next = token.map(|t| links::with(&links::without(&url, "token"), "token", &t));
        let returned = hits.iter().map(|h| h.batch.rows()).sum();
        let matched = matched(&asked, &snapshot, &answer, returned, next.is_some(), control)?;
        let page = html::items::page_of(
            &collection,
            &snapshot,
            &hits,
            asked.properties.as_deref(),
            matched,
            next.as_deref(),
            &url,
        );
        let mut response = respond::html(page).into_response();
        snapshot::set_headers(response.headers_mut(), &snapshot, shared.now(), asked.consistency);
        Ok(response)
    })
    .await
}
