//! Writes of events: `POST /items`, and deletion by filter.

use super::intake::Intake;
use super::{backpressure, known, take_selection};
use crate::contract::links;
use crate::contract::{Deleted, LeftOut, Written as Receipt};
use crate::protocol::media_types;
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::blocking::{self, Run};
use crate::request::body::{self, ReceivedBody};
use crate::request::context::Context;
use crate::request::dispatch::{Lease, Path};
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Buf;
use meridian_admission::{ByteBudget, ByteShare};
use meridian_backend::{Append, Collection, KEY_BYTES_MAX, OnConflict, ReadPoint, Write, WriteError, WriteReceipt};
use meridian_formats::{BatchLimits, Format, ReadError, ReadOptions, Report, Watch, is_compressed};
use meridian_model::seq::BATCH_EVENTS_MAX;
use meridian_model::{Batch, Invalid, Schema};
use meridian_observe::{self as observe, Stage};
use meridian_query::{Control, QueryError};
use parking_lot::Mutex;
use serde::Deserialize;
use std::sync::Arc;
use tokio::time::Instant;

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Formats accepted in a body.
const BODY_FORMATS: [Format; 5] = [Format::GeoJson, Format::GeoJsonSeq, Format::NdJson, Format::Csv, Format::Arrow];

/// `POST /collections/{c}/items`: one request is one batch, stored completely or not at all.
pub async fn post(state: Scope, Path(name): Path<String>, context: Context, body: Body) -> Result<Response> {
    let collection = state.collection(&name)?;
    Params::parse(context.query.as_deref())?.finish()?;
    let key = match &context.batch_key {
        Some(key) => Some(key.text().to_owned()),
        None => idempotency_key(&context.headers)?,
    };
    backpressure::refuse_early(&state, &context.lease, &*collection)?;
    // Received before a permit is requested: a slow sender would otherwise hold it while sending.
    let received = body::receive(&state, &context.headers, body).await?;
    // Checked again after the body: another write may have used up the quota meanwhile.
    state.may_write()?;
    let format = format_of(&context.headers)?;
    let intake = Intake::of(&context.headers, format)?;
    let deadline = context.deadline(None, state.config.timeout_default)?;
    // Also before the permit, so that writes that wait for a full buffer do not block queries.
    backpressure::wait(&*collection, deadline).await?;
    let run = context.lease.run(&state, deadline).await?;
    let (report, written) =
        if received.bytes.len() <= body::INLINE_BYTES && !is_compressed(&received.bytes) && collection.has_room() {
            let bounds = Bounds::of(&state, &run.control);
            let ParsedBody { write, report, held: _held } =
                write_of(received, format, &intake, &*collection, key, &bounds)?;
            let refuse = |e: WriteError| refusal(&state, &*collection, report.bytes, e);
            let append = collection.append(write, deadline).map_err(refuse)?;
            // While queued, the write has no thread and needs no permit: its events hold their share of memory.
            drop(run);
            let written = append.await.map_err(refuse)?;
            (report, written)
        } else {
            let intake = intake.clone();
            large(&state, &context.lease, run, received, format, intake, &collection, key, deadline).await?
        };
    state.caller().ledger.charge_write(written.written + written.replaced, report.bytes);
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

/// Parses a large body and writes it. Holds a permit while it computes, not while it waits for room or the disk.
#[allow(clippy::too_many_arguments, reason = "the parts of one request, used once")]
async fn large(
    state: &Scope,
    lease: &Lease,
    run: Run,
    received: ReceivedBody,
    format: Format,
    intake: Intake,
    collection: &Arc<dyn Collection>,
    key: Option<String>,
    deadline: Instant,
) -> Result<(BodyReport, WriteReceipt)> {
    enum Stage {
        Queued(Append),
        NeedsRoom(Write),
    }
    let (shared, into) = (state.clone(), collection.clone());
    // The events keep their share of memory until they are stored: it bounds the number of writes that wait for room.
    let (report, stage, _held) = blocking::run(run, move |control| {
        let bounds = Bounds::of(&shared, control);
        let ParsedBody { write, report, held } = write_of(received, format, &intake, &*into, key, &bounds)?;
        let stage = match into.has_room() {
            true => Stage::Queued(into.append(write, deadline).map_err(|e| errors::write_problem(&*into, e))?),
            false => Stage::NeedsRoom(write),
        };
        Ok((report, stage, held))
    })
    .await?;
    let append = match stage {
        Stage::Queued(append) => append,
        Stage::NeedsRoom(write) => {
            backpressure::wait(collection.as_ref(), deadline).await?;
            let into = collection.clone();
            blocking::run(lease.run(state, deadline).await?, move |_| {
                into.append(write, deadline).map_err(|e| errors::write_problem(&*into, e))
            })
            .await?
        }
    };
    let written = append.await.map_err(|e| refusal(state, collection.as_ref(), report.bytes, e))?;
    Ok((report, written))
}

/// Returns the problem for a failed write. Its stored part counts toward the tenant's quotas.
fn refusal(state: &Scope, collection: &dyn Collection, bytes: u64, error: WriteError) -> Problem {
    if let WriteError::Partly { stored, .. } = &error {
        state.caller().ledger.charge_write(*stored, bytes);
    }
    errors::write_problem(collection, error)
}

/// A body, parsed into a write.
struct ParsedBody {
    write: Write,
    report: BodyReport,
    /// The events' share of memory.
    held: ByteShare,
}

/// The body-related part of a write's response.
struct BodyReport {
    /// What counts as stored until the next count: of a body that may be compressed, its events in memory.
    bytes: u64,
    /// Whether the body was one Feature rather than a list, and that Feature's id.
    single: bool,
    given: Option<String>,
    left_out: Option<LeftOut>,
}

fn write_of(
    received: ReceivedBody,
    format: Format,
    intake: &Intake,
    collection: &dyn Collection,
    key: Option<String>,
    bounds: &Bounds,
) -> Result<ParsedBody> {
    let _parse = observe::stage(Stage::Parse);
    let (batch, reading, held) = read_batch(&received, format, &collection.schema(), intake.options.clone(), bounds)?;
    let single = batch.rows() == 1 && format == Format::GeoJson && is_feature(&received.bytes);
    let given = batch.ids().filter(|_| single).map(|ids| ids.value(0).to_owned());
    let may_be_compressed = is_compressed(&received.bytes) || format == Format::Arrow;
    let bytes = if may_be_compressed { batch.bytes().max(received.bytes.len()) } else { received.bytes.len() };
    let report = BodyReport { bytes: bytes as u64, single, given, left_out: intake.left_out(&reading) };
    let write = Write { batch, key, on_conflict: OnConflict::Refuse, deadline: None };
    Ok(ParsedBody { write, report, held })
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
    let run = backpressure::admit(
        &state,
        &context.lease,
        &*collection,
        context.deadline(timeout, state.config.timeout_default)?,
    )
    .await?;
    blocking::run(run, move |control| {
        let at = ReadPoint { history: question.history, ..ReadPoint::default() };
        let deleted = collection.delete_matching(&question.predicate, at, control);
        let deleted = deleted.map_err(|partial| errors::delete_problem(&*collection, partial))?;
        let document = Deleted { deleted: deleted.deleted, position: deleted.position.to_string() };
        let mut response = respond::json("application/json", &document)?;
        respond::insert(response.headers_mut(), respond::POSITION.clone(), &document.position);
        Ok(response)
    })
    .await
}

/// Parses the client's idempotency key, which must be printable and of bounded length.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>> {
    let mut values = headers.get_all(&IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::parameter("Idempotency-Key", "the request has more than one: expected one"));
    }
    match value.to_str() {
        // A header may contain a tab.
        Ok(key) if (1..=KEY_BYTES_MAX).contains(&key.len()) && !key.contains('\t') => Ok(Some(key.to_owned())),
        _ => Err(Problem::parameter(
            "Idempotency-Key",
            format!("expected 1 to {KEY_BYTES_MAX} printable ASCII characters"),
        )),
    }
}

/// Returns the format of a body by its media type. A body without one was refused earlier; an empty body is read as
/// JSON.
fn format_of(headers: &HeaderMap) -> Result<Format> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(Format::GeoJson) };
    let text = value.to_str().unwrap_or_default();
    Format::from_media_type(text).filter(|format| BODY_FORMATS.contains(format)).ok_or_else(|| {
        media_types::refusal(&format!("{text:?}"), &BODY_FORMATS.map(|format| (format.media_type(), "")))
    })
}

/// Limits on parsing a body.
pub(super) struct Bounds {
    scope: Scope,
    control: Control,
    batch_bytes: usize,
    unfolded_bytes: u64,
}

impl Bounds {
    /// Returns the operator's limits, with the deadline of a running request.
    pub(super) fn of(scope: &Scope, control: &Control) -> Bounds {
        let config = &scope.config;
        Bounds {
            scope: scope.clone(),
            control: control.clone(),
            batch_bytes: config.body_bytes_max,
            // An uncompressed body of an accepted size must never be refused by this limit.
            unfolded_bytes: config.unfolded_bytes_max.max(config.body_bytes_max as u64),
        }
    }
}

/// Parses a body as one batch, and reports what was omitted. gzip and zstd are recognized by content.
///
/// The events take their share of memory as they are read: a small compressed body may decompress into any number of
/// them.
pub(super) fn read_batch(
    received: &ReceivedBody,
    format: Format,
    schema: &Arc<Schema>,
    options: ReadOptions,
    bounds: &Bounds,
) -> Result<(Batch, Report, ByteShare)> {
    let bytes_max = bounds.batch_bytes;
    let failed = |e: ReadError| match e {
        // Their events are counted, since a document may be one line.
        ReadError::Invalid(list) if matches!(format, Format::GeoJson | Format::GeoJsonSeq) => {
            Problem::invalid_features(list)
        }
        ReadError::Invalid(list) => Problem::invalid_bodies(list),
        ReadError::Io(e) => Problem::new(Kind::InvalidBody, format!("the body cannot be read: {e}")),
        ReadError::TooLong(max) => Problem::new(
            Kind::TooLarge,
            format!("the body takes more than {max} bytes decompressed: send smaller batches"),
        )
        .with("limit_bytes", max),
        ReadError::Stopped => match bounds.control.check() {
            Ok(()) => body::no_memory(&bounds.scope),
            Err(QueryError::Deadline) => Problem::new(
                Kind::DeadlineExceeded,
                "the body was not read within the time of its request: send smaller batches, or give more time",
            ),
            Err(other) => errors::query_problem(other),
        },
    };
    let (control, held) = (bounds.control.clone(), Arc::new(Mutex::new(bounds.scope.batches().empty())));
    let (share, budget) = (held.clone(), bounds.scope.batches());
    let watch = Watch::new(move |bytes| control.check().is_ok() && reach(&mut share.lock(), &budget, bytes));
    let options = ReadOptions { watch: Some(watch), input_bytes: bounds.unfolded_bytes, ..options };
    let bytes = received.bytes.clone();
    let reader = if is_compressed(&bytes) {
        meridian_formats::decompress_body(Box::new(bytes.reader()))
            .map_err(ReadError::from)
            .and_then(|input| meridian_formats::reader(format, input, schema.clone(), &options))
    } else {
        meridian_formats::reader_of_bytes(format, bytes, schema.clone(), &options)
    };
    let mut reader = reader.map_err(failed)?;
    let limits = BatchLimits { rows: BATCH_EVENTS_MAX, bytes: bytes_max };
    let batch = reader.next_batch(&limits).map_err(failed)?;
    let batch = batch.ok_or_else(|| Problem::invalid_body(Invalid::new("the body holds no events")))?;
    if !reach(&mut held.lock(), &bounds.scope.batches(), batch.bytes()) {
        return Err(body::no_memory(&bounds.scope));
    }
    if reader.next_batch(&limits).map_err(failed)?.is_some() {
        return Err(Problem::new(
            Kind::TooLarge,
            format!("the events take more than {bytes_max} bytes once read: send smaller batches"),
        )
        .with("limit_bytes", bytes_max));
    }
    let share = std::mem::replace(&mut *held.lock(), bounds.scope.batches().empty());
    Ok((batch, reader.report(), share))
}

/// How often each event is charged while it is read and stored: as a column, in the log record, and in the write
/// buffer. While it is read, its column may have up to twice its size, and is copied when it grows.
pub const BATCH_TIMES: usize = 3;
/// Step by which the events' share grows.
const GROWTH_BYTES: usize = 1 << 20;

/// Grows a share to the requirement of events of this size, or to the most that its tenant could have. Returns whether
/// there was room.
fn reach(share: &mut ByteShare, budget: &ByteBudget, bytes: usize) -> bool {
    let bytes = bytes.saturating_mul(BATCH_TIMES);
    // A body of a few events should not take a full step.
    let bytes = if bytes < GROWTH_BYTES { bytes } else { bytes.next_multiple_of(GROWTH_BYTES) };
    // When there are no other requests, a large one must not be refused forever.
    share.try_grow(bytes) || {
        *share = budget.empty();
        budget.try_take_some(bytes).map(|some| *share = some).is_some()
    }
}

/// Returns whether a GeoJSON text is one Feature rather than a collection of one.
fn is_feature(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_slice::<Head>(bytes).is_ok_and(|head| head.kind == "Feature")
}
