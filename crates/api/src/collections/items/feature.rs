//! `/collections/{c}/items/{id}`: one event.

use super::condition::Condition;
use super::intake::Intake;
use super::merge::merge;
use super::write::{Bounds, read_batch};
use super::{backpressure, no_event};
use crate::collections::reproject::reproject;
use crate::contract::links::{self, link};
use crate::html;
use crate::protocol::media_types;
use crate::protocol::params::Params;
use crate::protocol::params::crs::{self, Crs};
use crate::protocol::params::format::{self, Format, PAGES};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::protocol::tags;
use crate::request::after;
use crate::request::blocking;
use crate::request::body;
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::stream;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use meridian_backend::{
    Collection, DeleteFault, DeleteReceipt, Head, PartialDelete, ReadPoint, ReadResult, Write, WriteError,
};
use meridian_formats::FeatureWriter;
use meridian_model::filter::{Comparison, Expr, Operand, Predicate};
use meridian_model::unrepeated::Unrepeated;
use meridian_model::{Batch, IdRole, Invalid, Seq};
use meridian_query::Control;
use serde_json::Value;

/// Max attempts of a patch or a conditional write, when other writes change its event meanwhile.
const TRIES_MAX: usize = 8;

/// `GET /collections/{c}/items/{id}`
pub async fn get(state: Scope, Path((name, id)): Path<(String, String)>, context: Context) -> Result<Response> {
    let collection = context.collection(&state, &name).await?;
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, PAGES)?;
    let crs = params.take("crs").map(|c| crs::parse("crs", &c)).transpose()?.unwrap_or_default();
    let timeout = params.take_timeout()?;
    params.finish()?;
    let deadline = context.deadline(timeout, state.config.timeout_default)?;
    let run = context.read(&state, &*collection, deadline).await?;
    let shared = state.clone();
    blocking::run(run, move |_| {
        let ReadResult { head, value: found } = collection.event(&id).map_err(errors::store_problem)?;
        let (batch, seq) = found.ok_or_else(|| no_event(&name, &id))?;
        let mut headers = HeaderMap::new();
        respond::set_read_headers(&mut headers, &head, shared.now(), after::consistency(&shared));
        if format == Format::Html {
            let page = html::items::event(&name, &head.schema, &batch, seq);
            return Ok((headers, respond::page(&shared, page)).into_response());
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Format::Json.media_type()));
        tags::of_event(&mut headers, collection.began(), seq, &head.schema);
        respond::insert(&mut headers, crs::CONTENT_CRS.clone(), &format!("<{}>", crs.uri()));
        let writer = FeatureWriter::new(&head.schema, None).map_err(Problem::internal)?;
        let batch = reproject(&batch, crs)?;
        let home = format!("/collections/{}", links::escape(&name));
        let mut list = links::self_and_alternates(&context.this_url(), format, PAGES, Format::Json.media_type());
        list.push(link(context.url(&home), "collection", "application/json", "The collection"));
        let list = serde_json::to_vec(&list).map_err(Problem::internal)?;
        let mut out = Vec::with_capacity(1024);
        writer.rows(&batch, &[seq]).feature_with(0, &mut out, |out| {
            out.extend_from_slice(b",\"links\":");
            out.extend_from_slice(&list);
        });
        stream::finished(&shared, headers, out)
    })
    .await
}

/// `PUT /collections/{c}/items/{id}`: replaces an event, or creates it.
pub async fn put(
    state: Scope,
    Path((name, id)): Path<(String, String)>,
    context: Context,
    body: Body,
) -> Result<Response> {
    let collection = state.collection(&name)?;
    Params::parse(context.query.as_deref())?.finish()?;
    // Before the body is received: the request cannot succeed, whatever the body.
    only_given_ids(&*collection, "replaced")?;
    let received = body::receive(&state, &context.headers, body).await?;
    state.may_write()?;
    check_media_type(&context.headers, &["application/geo+json", "application/json"])?;
    let intake = Intake::of_event(&context.headers, &id)?;
    let condition = Condition::of(&context.headers)?;
    let run = backpressure::admit(
        &state,
        &context.lease,
        &*collection,
        context.deadline(None, state.config.timeout_default)?,
    )
    .await?;
    blocking::run(run, move |control| {
        let format = meridian_formats::Format::GeoJson;
        let (batch, _, _held) =
            read_batch(&received, format, &collection.schema(), intake.options.clone(), &Bounds::of(&state, control))?;
        in_tries(&*collection, control, || {
            let expected = match condition.is_set() {
                false => ExpectedVersion::Any,
                true => {
                    let version = version_of(&*collection, &id)?.1;
                    condition.test(collection.began(), version)?;
                    version.map_or(ExpectedVersion::Nothing, ExpectedVersion::Only)
                }
            };
            let mut response = replace(&state, &context, &*collection, &id, batch.clone(), expected)?;
            intake.set_header(response.headers_mut());
            Ok(response)
        })
    })
    .await
}

/// `PATCH /collections/{c}/items/{id}`: a JSON merge patch (RFC 7396) of the event as GeoJSON.
pub async fn patch(
    state: Scope,
    Path((name, id)): Path<(String, String)>,
    context: Context,
    body: Body,
) -> Result<Response> {
    let collection = state.collection(&name)?;
    Params::parse(context.query.as_deref())?.finish()?;
    only_given_ids(&*collection, "changed")?;
    let mut received = body::receive(&state, &context.headers, body).await?;
    state.may_write()?;
    check_media_type(&context.headers, &["application/merge-patch+json", "application/geo+json", "application/json"])?;
    let deadline = context.deadline(None, state.config.timeout_default)?;
    let Unrepeated(change) = body::json(&state, &context.lease, &received.bytes, deadline)
        .await?
        .map_err(|e| Problem::invalid_body(Invalid::new(format!("the body is not JSON: {e}"))))?;
    if !change.is_object() {
        return Err(Problem::invalid_body(Invalid::new("a patch must be a JSON object")));
    }
    let mut intake = Intake::of_event(&context.headers, &id)?;
    if change.get("geometry").is_none_or(Value::is_null) {
        // The kept geometry is in the store's reference system, whatever that of the body.
        intake.options.crs = Crs::Crs84;
    }
    let condition = Condition::of(&context.headers)?;
    let run = backpressure::admit(&state, &context.lease, &*collection, deadline).await?;
    blocking::run(run, move |control| {
        let bounds = Bounds::of(&state, control);
        // Lock-free: a patch is computed from a version, and starts again if another write replaced that version.
        in_tries(&*collection, control, || {
            let ReadResult { head, value: found } = collection.event(&id).map_err(errors::store_problem)?;
            condition.test(collection.began(), found.as_ref().map(|(_, seq)| *seq))?;
            let (batch, seq) = found.ok_or_else(|| no_event(&name, &id))?;
            let writer = FeatureWriter::new(&head.schema, None).map_err(Problem::internal)?;
            let mut text = Vec::new();
            // Patched as text, so that numbers keep all their digits and the result passes the same checks as any body.
            writer.rows(&batch, &[seq]).feature(0, &mut text);
            let mut event: Value = serde_json::from_slice(&text).map_err(Problem::internal)?;
            merge(&mut event, change.clone());
            received.bytes = Bytes::from(serde_json::to_vec(&event).map_err(Problem::internal)?);
            let format = meridian_formats::Format::GeoJson;
            let (batch, _, _held) = read_batch(&received, format, &head.schema, intake.options.clone(), &bounds)?;
            // Replaces only the version that was read, so that a concurrent write is not undone.
            let mut response = replace(&state, &context, &*collection, &id, batch, ExpectedVersion::Only(seq))?;
            intake.set_header(response.headers_mut());
            Ok(response)
        })
    })
    .await
}

/// `DELETE /collections/{c}/items/{id}`
pub async fn delete(state: Scope, Path((name, id)): Path<(String, String)>, context: Context) -> Result<Response> {
    let collection = state.collection(&name)?;
    Params::parse(context.query.as_deref())?.finish()?;
    let condition = Condition::of(&context.headers)?;
    let run = backpressure::admit(
        &state,
        &context.lease,
        &*collection,
        context.deadline(None, state.config.timeout_default)?,
    )
    .await?;
    blocking::run(run, move |control| {
        in_tries(&*collection, control, || {
            let deleted = match condition.is_set() {
                false => collection.delete(std::slice::from_ref(&id))?,
                true => {
                    let (seen, version) = version_of(&*collection, &id)?;
                    condition.test(collection.began(), version)?;
                    version.ok_or_else(|| no_event(&name, &id))?;
                    let deleted = delete_as_seen(&*collection, &id, seen, control)?;
                    if deleted.deleted == 0 {
                        return Err(WriteFailure::Write(WriteError::Changed));
                    }
                    deleted
                }
            };
            // Not checked before the deletion: another client could delete the event in between.
            if deleted.deleted == 0 {
                return Err(no_event(&name, &id).into());
            }
            let mut response = respond::no_content();
            respond::insert(response.headers_mut(), respond::POSITION.clone(), &deleted.position.to_string());
            Ok(response)
        })
    })
    .await
}

/// Returns the snapshot that shows the current version of an event, and that version.
fn version_of(collection: &dyn Collection, id: &str) -> Result<(Head, Option<Seq>)> {
    let ReadResult { head, value } = collection.event(id).map_err(errors::store_problem)?;
    Ok((head, value.map(|(_, seq)| seq)))
}

/// Deletes an event as shown by a snapshot; an event that was replaced since stays.
fn delete_as_seen(
    collection: &dyn Collection,
    id: &str,
    seen: Head,
    control: &Control,
) -> std::result::Result<DeleteReceipt, WriteFailure> {
    let left = Operand::Property(seen.schema.id_name.clone());
    let named = Expr::Compare { op: Comparison::Eq, left, right: Operand::Text(id.to_owned()) };
    let named = Predicate::bind(&named, &seen.schema).map_err(Problem::internal)?;
    let at = ReadPoint { seq: Some(seen.seq), ..ReadPoint::history() };
    Ok(collection.delete_matching(&named, at, control)?)
}

/// Why an event was not written.
enum WriteFailure {
    Problem(Problem),
    Write(WriteError),
}

impl From<PartialDelete> for WriteFailure {
    fn from(stopped: PartialDelete) -> WriteFailure {
        match stopped.why {
            DeleteFault::Query(why) => errors::query_problem(why).into(),
            DeleteFault::Write(why) => WriteFailure::Write(why),
        }
    }
}

impl From<Problem> for WriteFailure {
    fn from(problem: Problem) -> WriteFailure {
        WriteFailure::Problem(problem)
    }
}

/// Writes an event based on its current state. If another write comes between, tries again with the new state.
fn in_tries(
    collection: &dyn Collection,
    control: &Control,
    mut once: impl FnMut() -> std::result::Result<Response, WriteFailure>,
) -> Result<Response> {
    let mut tries = 0;
    loop {
        tries += 1;
        match once() {
            Err(WriteFailure::Write(WriteError::Changed)) if tries < TRIES_MAX => {
                control.check().map_err(errors::query_problem)?;
            }
            Err(WriteFailure::Write(error)) => return Err(errors::write_problem(collection, error)),
            Err(WriteFailure::Problem(problem)) => return Err(problem),
            Ok(response) => return Ok(response),
        }
    }
}

/// The version of the event that a write replaces.
#[derive(Clone, Copy)]
enum ExpectedVersion {
    /// Any version, or none.
    Any,
    /// Only this version.
    Only(Seq),
    /// None: the event must not exist.
    Nothing,
}

/// Writes the event with this id.
fn replace(
    state: &Scope,
    context: &Context,
    collection: &dyn Collection,
    id: &str,
    batch: Batch,
    expected: ExpectedVersion,
) -> std::result::Result<Response, WriteFailure> {
    let wrong = |invalid: Invalid| WriteFailure::Problem(Problem::invalid_body(invalid));
    if batch.rows() != 1 {
        return Err(wrong(Invalid::new(format!("{} events where one was expected", batch.rows()))));
    }
    if let Some(ids) = batch.ids()
        && ids.value(0) != id
    {
        let detail = format!("the event has the id {:?} and the address {id:?}: they must be the same", ids.value(0));
        return Err(wrong(Invalid::field("id", detail)));
    }
    let bytes = batch.bytes() as u64;
    let write = Write::new(batch);
    let write = match expected {
        ExpectedVersion::Any => write.replacing(),
        ExpectedVersion::Only(seq) => write.replacing_only(seq),
        ExpectedVersion::Nothing => write,
    };
    let written = collection.write(write).map_err(|error| match (expected, error) {
        // Another writer created the event after it was found absent.
        (ExpectedVersion::Nothing, WriteError::Conflict { .. }) => WriteFailure::Write(WriteError::Changed),
        (_, error) => WriteFailure::Write(error),
    })?;
    state.caller().ledger.charge_write(1, bytes);
    let mut response = respond::no_content();
    if written.replaced == 0 {
        *response.status_mut() = StatusCode::CREATED;
        respond::insert(response.headers_mut(), header::LOCATION, &context.url(&context.path));
    }
    respond::insert(response.headers_mut(), respond::POSITION.clone(), &written.position.to_string());
    Ok(response)
}

/// Refuses ids that are not client-supplied. A generated id is the event's position in the log, so rewriting the event
/// would change its id.
fn only_given_ids(collection: &dyn Collection, what: &str) -> Result<()> {
    if collection.schema().id == IdRole::Given {
        return Ok(());
    }
    Err(Problem::new(
        Kind::Conflict,
        format!(
            "the server generates the ids of this collection, one for each event written, so an event cannot be {what}: delete it and write it again"
        ),
    ))
}

fn check_media_type(headers: &HeaderMap, taken: &[&str]) -> Result<()> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let text = value.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if taken.contains(&essence.as_str()) {
        return Ok(());
    }
    let taken: Vec<(&str, &str)> = taken.iter().map(|name| (*name, "")).collect();
    Err(media_types::refusal(&format!("{text:?}"), &taken))
}
