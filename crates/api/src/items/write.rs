//! Writing events: `POST /items`, and deletion by filter.

use super::intake::Intake;
use super::{known, room, take_selection};
use crate::body::{self, Received};
use crate::contract::{Deleted, LeftOut, Written as Receipt};
use crate::entry::{Lease, Path};
use crate::errors;
use crate::guard::types;
use crate::links;
use crate::params::Params;
use crate::problem::{Kind, Problem, Result};
use crate::request::Context;
use crate::respond;
use crate::scope::Scope;
use crate::state::AppState;
use crate::stream::{self, Run};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Buf;
use meridian_admission::ByteShare;
use meridian_backend::{
    Append, At, Collection, DeleteFault, KEY_BYTES_MAX, OnConflict, PartialDelete, Write, WriteError, Written,
};
use meridian_formats::{BatchLimits, Format, ReadError, ReadOptions, Report, Watch, is_compressed};
use meridian_model::seq::BATCH_EVENTS_MAX;
use meridian_model::{Batch, Invalid, Schema};
use meridian_observe::{self as observe, Stage};
use meridian_query::{Control, QueryError};
use serde::Deserialize;
use std::sync::Arc;
use tokio::time::Instant;

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Formats that a body may have.
const BODY_FORMATS: [Format; 5] = [Format::GeoJson, Format::GeoJsonSeq, Format::NdJson, Format::Csv, Format::Arrow];

/// `POST /collections/{c}/items`: one request is one batch, stored completely or not at all.
pub async fn post(state: Scope, Path(name): Path<String>, context: Context, body: Body) -> Result<Response> {
    let collection = state.collection(&name)?;
    Params::parse(context.query.as_deref())?.finish()?;
    let key = idempotency_key(&context.headers)?;
    // Received before a permit is asked for: a slow sender would hold it for as long as it takes to send.
    let received = body::receive(&state, &context.headers, body).await?;
    // Again, after the body: another write may have used up the quota while this one arrived.
    state.may_write()?;
    let format = format_of(&context.headers)?;
    let intake = Intake::of(&context.headers, format)?;
    let deadline = context.deadline(None, state.config.timeout_default)?;
    // Also before the permit, so that writes that wait for a full buffer do not keep queries from running.
    room::wait(&*collection, deadline).await?;
    let run = context.lease.run(&state, deadline).await?;
    let refuse = |e: WriteError| errors::write_problem(&*collection, e);
    let body_bytes = received.bytes.len() as u64;
    let written =
        if received.bytes.len() <= body::INLINE_BYTES && !is_compressed(&received.bytes) && collection.has_room() {
            let bounds = Bounds::of(&state, &run.control);
            let ParsedBody { write, report, .. } = write_of(received, format, &intake, &*collection, key, &bounds)?;
            let append = collection.append(write, deadline).map_err(refuse)?;
            // While the write is queued it has no thread and needs no permit: the queue has its own bound.
            drop(run);
            (report, append.await.map_err(refuse)?)
        } else {
            let intake = intake.clone();
            large(&state, &context.lease, run, received, format, intake, &collection, key, deadline).await?
        };
    let (report, written) = written;
    state.caller().ledger.charge_write(written.written + written.replaced, body_bytes);
    let document = Receipt {
        written: written.written,
        replaced: written.replaced,
        duplicates: written.duplicates,
        position: written.position.to_string(),
        left_out: report.left_out,
    };
    let mut headers = HeaderMap::new();
    respond::insert(&mut headers, respond::POSITION.clone(), &document.position);
    intake.set_header(&mut headers);
    if report.single {
        let id = report.given.unwrap_or_else(|| written.first.to_id());
        let path = format!("/collections/{}/items/{}", links::escape(collection.name()), links::escape(&id));
        respond::insert(&mut headers, header::LOCATION, &context.url(&path));
    }
    Ok((StatusCode::CREATED, headers, respond::json("application/json", &document)?).into_response())
}

/// Reads a large body and writes it. It has a permit while it computes, and none while it waits for room or for the
/// disk.
#[allow(clippy::too_many_arguments, reason = "the parts of one request, used once")]
async fn large(
    state: &Scope,
    lease: &Lease,
    run: Run,
    received: Received,
    format: Format,
    intake: Intake,
    collection: &Arc<dyn Collection>,
    key: Option<String>,
    deadline: Instant,
) -> Result<(BodyReport, Written)> {
    enum Stage {
        Queued(Append),
        /// Holds its share of the memory for bodies, which bounds how many writes wait for room.
        NeedsRoom(Write, Vec<ByteShare>),
    }
    let refuse = |e: WriteError| errors::write_problem(collection.as_ref(), e);
    let (shared, into) = (state.clone(), collection.clone());
    let (report, stage) = stream::run(run, move |control| {
        let bounds = Bounds::of(&shared, control);
        let body_bytes = received.bytes.len();
        let ParsedBody { write, report, mut held } = write_of(received, format, &intake, &*into, key, &bounds)?;
        let stage = match into.has_room() {
            true => Stage::Queued(into.append(write, deadline).map_err(|e| errors::write_problem(&*into, e))?),
            false => {
                // Parsed columns can be larger than the body: the difference is reserved, or waiting writes would
                // exceed the budget.
                held.push(body::reserve(&shared, write.batch.bytes().saturating_sub(body_bytes))?);
                Stage::NeedsRoom(write, held)
            }
        };
        Ok((report, stage))
    })
    .await?;
    let append = match stage {
        Stage::Queued(append) => append,
        Stage::NeedsRoom(write, _held) => {
            room::wait(collection.as_ref(), deadline).await?;
            let into = collection.clone();
            stream::run(lease.run(state, deadline).await?, move |_| {
                into.append(write, deadline).map_err(|e| errors::write_problem(&*into, e))
            })
            .await?
        }
    };
    Ok((report, append.await.map_err(refuse)?))
}

/// A body, parsed into a write.
struct ParsedBody {
    write: Write,
    report: BodyReport,
    /// The body's share of the memory for bodies.
    held: Vec<ByteShare>,
}

/// The part of a write's response about its body.
struct BodyReport {
    /// Whether the body was one Feature rather than a list, and the id in it.
    single: bool,
    given: Option<String>,
    left_out: Option<LeftOut>,
}

fn write_of(
    received: Received,
    format: Format,
    intake: &Intake,
    collection: &dyn Collection,
    key: Option<String>,
    bounds: &Bounds,
) -> Result<ParsedBody> {
    let _parse = observe::stage(Stage::Parse);
    let (batch, reading) = read_batch(&received, format, &collection.schema(), intake.options.clone(), bounds)?;
    let single = batch.rows() == 1 && format == Format::GeoJson && is_feature(&received.bytes);
    let given = batch.ids().filter(|_| single).map(|ids| ids.value(0).to_owned());
    let report = BodyReport { single, given, left_out: intake.left_out(&reading) };
    let write = Write { batch, key, on_conflict: OnConflict::Refuse, deadline: None };
    Ok(ParsedBody { write, report, held: received.into_held() })
}

/// `DELETE /collections/{c}/items?filter=…`: deletes the matching events and returns their number.
pub async fn delete(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    let collection = state.collection(&name)?;
    let schema = collection.schema();
    let mut params = Params::parse(context.query.as_deref())?;
    let timeout = params.take_timeout()?;
    let conditions = params.remaining().filter(|n| !["filter-lang", "history"].contains(n)).count();
    let question = take_selection(params, &schema)?;
    // A forgotten parameter must not empty a collection.
    if conditions == 0 {
        return Err(Problem::parameter(
            "filter",
            format!(
                "which events to delete? add filter= or another condition ({}); filter=TRUE deletes all",
                known(&schema).join(", ")
            ),
        ));
    }
    let run =
        room::admit(&state, &context.lease, &*collection, context.deadline(timeout, state.config.timeout_default)?)
            .await?;
    stream::run(run, move |control| {
        let at = At { seq: None, history: question.history };
        let deleted = collection.delete_matching(&question.predicate, at, control);
        let deleted = deleted.map_err(|partial| partial_problem(&*collection, partial))?;
        let document = Deleted { deleted: deleted.deleted, position: deleted.position.to_string() };
        let mut response = respond::json("application/json", &document)?;
        respond::insert(response.headers_mut(), respond::POSITION.clone(), &document.position);
        Ok(response)
    })
    .await
}

/// The problem for a deletion that stopped early.
fn partial_problem(collection: &dyn Collection, partial: PartialDelete) -> Problem {
    let problem = match partial.why {
        DeleteFault::Query(error) => errors::query_problem(error),
        DeleteFault::Write(error) => errors::write_problem(collection, error),
    };
    match partial.deleted {
        0 => problem,
        n => problem
            .prefix(&format!("{n} of {} events are deleted, the others are unchanged:  ", partial.matched))
            .with("deleted", n),
    }
}

/// The client's idempotency key: printable and bounded in length.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>> {
    let mut values = headers.get_all(&IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::parameter("Idempotency-Key", "the request has more than one: expected one"));
    }
    match value.to_str() {
        Ok(key) if (1..=KEY_BYTES_MAX).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(Problem::parameter(
            "Idempotency-Key",
            format!("expected 1 to {KEY_BYTES_MAX} printable ASCII characters"),
        )),
    }
}

/// The format of a body, by its media type. A body without one was refused before; an empty body is read as JSON.
fn format_of(headers: &HeaderMap) -> Result<Format> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(Format::GeoJson) };
    let text = value.to_str().unwrap_or_default();
    Format::from_media_type(text)
        .filter(|format| BODY_FORMATS.contains(format))
        .ok_or_else(|| types::refusal(&format!("{text:?}"), &BODY_FORMATS.map(|format| (format.media_type(), ""))))
}

/// Limits on the parsing of a body.
pub(super) struct Bounds {
    control: Control,
    batch_bytes: usize,
    unfolded_bytes: u64,
}

impl Bounds {
    /// The operator's limits, and the deadline of a running request.
    pub(super) fn of(state: &AppState, control: &Control) -> Bounds {
        let config = &state.config;
        Bounds {
            control: control.clone(),
            batch_bytes: config.body_bytes_max,
            // An uncompressed body of an accepted size must never be refused by this limit.
            unfolded_bytes: config.unfolded_bytes_max.max(config.body_bytes_max as u64),
        }
    }
}

/// Parses a body as one batch, and reports what it dropped. gzip and zstd are recognised by content.
pub(super) fn read_batch(
    received: &Received,
    format: Format,
    schema: &Arc<Schema>,
    options: ReadOptions,
    bounds: &Bounds,
) -> Result<(Batch, Report)> {
    let bytes_max = bounds.batch_bytes;
    let failed = |e: ReadError| match e {
        ReadError::Invalid(list) => Problem::invalid_bodies(list),
        ReadError::Io(e) => Problem::new(Kind::InvalidBody, format!("the body cannot be read: {e}")),
        ReadError::TooLong(max) => Problem::new(
            Kind::TooLarge,
            format!("the body takes more than {max} bytes decompressed: send smaller batches"),
        )
        .with("limit_bytes", max),
        ReadError::Stopped => match bounds.control.check() {
            Err(QueryError::Deadline) | Ok(()) => Problem::new(
                Kind::DeadlineExceeded,
                "the body was not read within the time of its request: send smaller batches, or give more time",
            ),
            Err(other) => errors::query_problem(other),
        },
    };
    let control = bounds.control.clone();
    // Parsing is the one step that no query checks: its deadline must hold here too.
    let watch = Watch::new(move || control.check().is_ok());
    let options = ReadOptions { watch: Some(watch), input_bytes: bounds.unfolded_bytes, ..options };
    let bytes = received.bytes.clone();
    let reader = if is_compressed(&bytes) {
        meridian_formats::decompress(Box::new(bytes.reader()))
            .map_err(ReadError::from)
            .and_then(|input| meridian_formats::reader(format, input, schema.clone(), &options))
    } else {
        meridian_formats::reader_of_bytes(format, bytes, schema.clone(), &options)
    };
    let mut reader = reader.map_err(failed)?;
    let limits = BatchLimits { rows: BATCH_EVENTS_MAX, bytes: bytes_max };
    let batch = reader.next_batch(&limits).map_err(failed)?;
    let batch = batch.ok_or_else(|| Problem::invalid_body(Invalid::new("the body holds no events")))?;
    // A request is one batch, stored completely or not at all.
    if reader.next_batch(&limits).map_err(failed)?.is_some() {
        return Err(Problem::new(
            Kind::TooLarge,
            format!("the events take more than {bytes_max} bytes once read: send smaller batches"),
        )
        .with("limit_bytes", bytes_max));
    }
    Ok((batch, reader.report()))
}

/// Whether a GeoJSON text is one Feature rather than a collection of one.
fn is_feature(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_slice::<Head>(bytes).is_ok_and(|head| head.kind == "Feature")
}
