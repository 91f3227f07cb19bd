//! `/collections/{c}/items`: reading events.

pub(crate) mod backpressure;
mod bulk;
mod condition;
#[cfg(feature = "flight")]
mod describe;
mod explain;
pub mod feature;
#[cfg(feature = "geopackage")]
mod geopackage;
mod intake;
mod merge;
mod page;
mod track;
pub mod write;

pub(crate) use explain::account;

use crate::collections::reproject::reproject;
use crate::contract::links;
use crate::protocol::params::Params;
use crate::protocol::params::crs::{self, Crs};
use crate::protocol::params::format::{self, EVENTS, Format};
use crate::protocol::params::page::{self as paging, LIMIT_DEFAULT, LIMIT_MAX, LIMIT_STREAM_MAX};
use crate::protocol::params::selection::{self, EventSelection};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::protocol::tags;
use crate::request::after::Consistency;
#[cfg(feature = "flight")]
use crate::request::ask::FlightOperation;
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::unchanged;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use meridian_backend::{Collection, Head, ReadPoint, Rows};
use meridian_formats::EventWriter;
use meridian_model::{Schema, Seqs, TimeRole};
use meridian_observe::{self as observe, Stage};
use meridian_query::{Control, Hits, Items, Order, SORTED_LIMIT_MAX, SortKey, Token, question_hash, question_mark};
use std::sync::Arc;
use std::time::Duration;

/// A request for events: its parsed parameters.
pub(crate) struct ItemsRequest {
    pub(crate) format: Format,
    pub(crate) crs: Crs,
    pub(crate) items: Items,
    pub(crate) properties: Option<Vec<String>>,
    pub(crate) question: u64,
    pub(crate) token: Option<Token>,
    pub(crate) explain: bool,
    pub(crate) track: Option<track::TrackRequest>,
    pub(crate) consistency: Consistency,
    history: bool,
    timeout: Option<Duration>,
    /// The snapshot fixed by a ticket.
    snapshot: Option<Seqs>,
    /// The default order of a page whose request names none.
    newest: Option<String>,
}

impl ItemsRequest {
    fn take(state: &Scope, context: &Context, collection: &dyn Collection) -> Result<ItemsRequest> {
        let schema = collection.schema();
        let mut params = Params::parse(context.query.as_deref())?;
        let format = format::choose(params.take("f"), &context.headers, EVENTS)?;
        let crs = params.take("crs").map(|c| crs::parse("crs", &c)).transpose()?.unwrap_or_default();
        if crs != Crs::Crs84 && format.is_crs84_only() {
            let detail = "CSV, Arrow, Parquet, FlatGeobuf and GeoPackage are served in CRS84 only";
            return Err(Problem::parameter("crs", detail));
        }
        let max = if format.is_bulk() { LIMIT_STREAM_MAX } else { LIMIT_MAX };
        let track = track::take(&mut params)?;
        let limit = params.take_count("limit", max)?;
        // Over all pages.
        let nearest = params.take_count("nearest", LIMIT_STREAM_MAX)?;
        let sort = params.take("sortby");
        let properties = paging::take_properties(&mut params, &schema)?;
        let consistency = Consistency::take(&mut params, &context.headers, state)?;
        let explain = params.take_flag("explain")?;
        if explain && track.is_some() {
            return Err(Problem::parameter("explain", track::BESIDE_TRACK));
        }
        let timeout = params.take_timeout()?;
        let token = params.take("token");
        let selection = EventSelection::take(&mut params, &schema)?;
        params.finish_with(&selection::queryable_names(&schema))?;

        let limit = if format.is_bulk() { limit } else { Some(limit.unwrap_or(LIMIT_DEFAULT)) };
        // A page for people begins with the newest event.
        let newest = (format == Format::Html && sort.is_none() && selection.near.is_none() && nearest.is_none())
            .then(|| newest_first(&schema))
            .flatten();
        let sort = sort.or_else(|| newest.clone());
        let keys = sort.as_deref().map(|s| SortKey::parse(s, &schema)).transpose();
        let keys = keys.map_err(|e| Problem::invalid_parameter("sortby", e))?;
        let history = selection.history;
        let order = order(&selection, nearest, keys, limit)?;
        let mut terms = selection.terms;
        terms.extend(sort.map(|s| format!("sortby={s}")));
        terms.extend(nearest.map(|k| format!("nearest={k}")));
        // The hash covers every parameter that selects or orders events, so that a token continues only one query. It
        // also covers the collection, since a later one of the same name has snapshots with the same numbers.
        let asked = question_hash(std::iter::once(collection.name()).chain(terms.iter().map(String::as_str)));
        let question = question_mark(asked, question_hash([&*collection.began().to_string()]));
        let token = token.map(|token| {
            let token = Token::decode(&token)?;
            token.check(state.view().tenant(), question).map(|is_of_collection| (token, is_of_collection))
        });
        // Parsed after the query is known: a token is valid only for the query that it was issued for.
        let token = match token.transpose().map_err(|e| Problem::invalid_parameter("token", e))? {
            Some((_, false)) => {
                let detail = "the collection that the page token was made for is gone: begin with the first page";
                return Err(Problem::new(Kind::Gone, detail));
            }
            token => token.map(|(token, _)| token),
        };
        let names: Option<Vec<&str>> = properties.as_ref().map(|p| p.iter().map(String::as_str).collect());
        let projection = meridian_query::select(&schema, names.as_deref())
            .map_err(|e| Problem::invalid_parameter("properties", e))?;
        let pin = context.ask.as_ref().and_then(|ask| ask.pin());
        if pin.and_then(|pin| pin.began).is_some_and(|began| began != collection.began()) {
            let detail = "the collection that the ticket was given for is gone: ask for the flight's info again";
            return Err(Problem::new(Kind::Gone, detail));
        }
        let items = Items {
            predicate: selection.predicate,
            order,
            limit,
            after: token.as_ref().map(|t| t.after.clone()).or_else(|| pin.and_then(|pin| pin.after.clone())),
            until: pin.and_then(|pin| pin.until.clone()),
            projection,
        };
        Ok(ItemsRequest {
            format,
            crs,
            items,
            properties,
            question,
            token,
            explain,
            track,
            consistency,
            history,
            timeout,
            snapshot: pin.and_then(|pin| pin.snapshot.clone()),
            newest,
        })
    }

    /// Returns the snapshot to read.
    pub(crate) fn at(&self) -> ReadPoint {
        let seq = self.token.as_ref().map(|t| t.snapshot.clone()).or_else(|| self.snapshot.clone());
        self.consistency.at(seq, self.history)
    }

    /// Returns whether the response is streamed as events are found: all matches, or more than a page of them.
    fn is_streamed(&self) -> bool {
        self.items.limit.is_none_or(|limit| limit > LIMIT_MAX)
    }
}

/// Returns the sort key that puts the newest event first; `None` for a collection without time.
fn newest_first(schema: &Schema) -> Option<String> {
    let (TimeRole::Instant(field) | TimeRole::Interval { start: field, .. }) = schema.time else { return None };
    // Commas separate sort keys.
    schema.fields.get(field).filter(|field| !field.name.contains(',')).map(|field| format!("-{}", field.name))
}

fn order(
    selection: &EventSelection,
    nearest: Option<usize>,
    keys: Option<Vec<SortKey>>,
    limit: Option<usize>,
) -> Result<Order> {
    match (selection.near, keys) {
        (Some(_), Some(_)) => Err(Problem::parameter("sortby", "near= orders by distance: use one of the two")),
        (Some((lon, lat)), None) => Ok(Order::Near { lon, lat, k: nearest }),
        (None, _) if nearest.is_some() => Err(Problem::parameter("nearest", "given without near=longitude,latitude")),
        (None, None) => Ok(Order::Natural),
        // A sort collects its result before the first event is sent, so it must be bounded.
        (None, Some(_)) if limit.is_none() => {
            Err(Problem::parameter("sortby", format!("sorting needs a limit: add limit= (at most {SORTED_LIMIT_MAX})")))
        }
        (None, Some(keys)) => Ok(Order::Fields(keys)),
    }
}

/// `GET /collections/{c}/items`
pub async fn get(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    let collection = context.collection(&state, &name).await?;
    let mut request = ItemsRequest::take(&state, &context, &*collection)?;
    // A bulk response takes as long as its client reads; a page must be quick.
    let default = if request.is_streamed() { state.config.timeout_stream } else { state.config.timeout_default };
    let deadline = context.deadline(request.timeout, default)?;
    #[cfg(feature = "flight")]
    if let (Some(FlightOperation::Describe { .. }), Some(_)) = (&context.ask, &request.track) {
        return crate::response::tables::described(&crate::response::tables::track_schema());
    }
    let run = context.read(&state, &*collection, deadline).await?;
    #[cfg(feature = "flight")]
    if let Some(FlightOperation::Describe { parts }) = context.ask {
        return describe::answer(run, collection, request, parts).await;
    }
    if request.explain {
        return explain::answer(&state, run, collection, request).await;
    }
    if let Some(track) = request.track.take() {
        return track::answer(&state, &context, run, collection, request, track).await;
    }
    let show = |read: &Head| head(&request, &*collection, read, state.now());
    if let Some(unchanged) = unchanged::response(&context, &*collection, &request.at(), show) {
        return Ok(unchanged);
    }
    match request.format {
        Format::Html => page::html(&state, &context, run, collection, request).await,
        Format::Json => page::json(&state, context, run, collection, request).await,
        #[cfg(feature = "geopackage")]
        Format::GeoPackage => geopackage::answer(&state, &context, run, collection, request).await,
        _ => bulk::answer(&state, &context, run, collection, request).await,
    }
}

/// Returns the writer of a bulk format, for events of the collection of this name.
fn writer(name: &str, request: &ItemsRequest, schema: &Arc<Schema>) -> Result<Box<dyn EventWriter>> {
    let format = match request.format {
        Format::Json | Format::Html => meridian_formats::Format::GeoJson,
        Format::Csv => meridian_formats::Format::Csv,
        Format::NdJson => meridian_formats::Format::NdJson,
        Format::GeoJsonSeq => meridian_formats::Format::GeoJsonSeq,
        Format::Arrow => meridian_formats::Format::Arrow,
        Format::Parquet => meridian_formats::Format::GeoParquet,
        Format::FlatGeobuf => meridian_formats::Format::FlatGeobuf,
        Format::GeoPackage => meridian_formats::Format::GeoPackage,
    };
    meridian_formats::named_writer(name, format, schema, fields_of(request, schema).as_deref())
        .map_err(|e| Problem::invalid_parameter("f", e))
}

/// Runs the query.
fn query(request: &ItemsRequest, collection: &dyn Collection, control: &Control) -> Result<Box<dyn Rows>> {
    collection.items(request.at(), &request.items, control).map_err(errors::query_problem)
}

/// Returns the fields among the requested properties; id and geometry are always included.
fn fields_of(request: &ItemsRequest, schema: &Schema) -> Option<Vec<String>> {
    let names = request.properties.as_ref()?;
    Some(names.iter().filter(|n| schema.field_index(n).is_some()).cloned().collect())
}

fn write_hits(writer: &mut dyn EventWriter, hits: &Hits, crs: Crs, out: &mut Vec<u8>) -> Result<()> {
    let _encode = observe::stage(Stage::Encode);
    let batch = reproject(&hits.batch, crs)?;
    writer.write(&batch, &hits.seqs, out).map_err(Problem::internal)
}

/// Target size of one encoded batch in bytes. A batch waits for its client in memory, so large events are encoded a few
/// at a time.
const STEP_BYTES: usize = 512 << 10;

/// Adjusts the number of events of later batches to the size of an earlier one.
fn pace(rows: &mut dyn Rows, events: usize, bytes: usize) {
    // Based on measured sizes, since the size of events is unknown before they are encoded.
    if let Some(max) = STEP_BYTES.saturating_mul(events).checked_div(bytes) {
        rows.limit_batches(max);
    }
}

/// Returns the headers of a response with events.
fn head(request: &ItemsRequest, collection: &dyn Collection, head: &Head, now: i64) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(respond::HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(request.format.media_type()));
    respond::insert(&mut headers, crs::CONTENT_CRS.clone(), &format!("<{}>", request.crs.uri()));
    respond::set_read_headers(&mut headers, head, now, request.consistency.name);
    tags::of_read(&mut headers, collection, head);
    headers
}

/// Returns the token of the next page.
fn next_token(
    state: &Scope,
    head: &Head,
    request: &ItemsRequest,
    after: Option<&meridian_query::Cursor>,
) -> Option<String> {
    after.map(|after| {
        Token {
            tenant: state.view().tenant().to_owned(),
            snapshot: head.seq.clone(),
            question: request.question,
            after: after.clone(),
        }
        .encode()
    })
}

/// Links to the next page, if there is one, in a header: the format has no links of its own.
fn link_next(headers: &mut HeaderMap, state: &Scope, request: &ItemsRequest, rows: &dyn Rows, url: &str) {
    if let Some(token) = next_token(state, rows.head(), request, rows.next_page()) {
        let next = links::with(&links::without(url, "token"), "token", &token);
        respond::insert(headers, header::LINK, &format!("<{next}>; rel=\"next\""));
    }
}

/// Returns the names that a filter may use, for messages.
pub(crate) fn known(schema: &Schema) -> Vec<&str> {
    selection::queryable_names(schema)
}

/// Parses the parameters common to all queries, and refuses all others.
pub(crate) fn take_selection(mut params: Params, schema: &Schema) -> Result<EventSelection> {
    let selection = EventSelection::take(&mut params, schema)?;
    params.finish_with(&known(schema))?;
    Ok(selection)
}

/// Returns the problem for an event that does not exist.
pub(crate) fn no_event(collection: &str, id: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no event {id:?} in the collection {collection:?}"))
}
