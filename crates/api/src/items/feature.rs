//! `/collections/{c}/items/{id}`: one event.

use super::intake::Intake;
use super::write::{Bounds, read_batch};
use super::{no_event, room};
use crate::after;
use crate::body;
use crate::entry::Path;
use crate::errors;
use crate::guard::types;
use crate::html;
use crate::links::{self, link};
use crate::params::Params;
use crate::params::crs::{self, Crs};
use crate::params::format::{self, Format, PAGES};
use crate::problem::{Kind, Problem, Result};
use crate::reproject::reproject;
use crate::request::Context;
use crate::respond;
use crate::scope::Scope;
use crate::stream;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use meridian_backend::{Collection, Read, Write, WriteError};
use meridian_formats::FeatureWriter;
use meridian_model::{Batch, IdRole, Invalid, Seq};
use serde_json::{Value, json};

/// Max attempts of a patch when other writes change its event meanwhile.
const PATCHES_MAX: usize = 8;

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
    stream::run(run, move |_| {
        let Read { head, value: found } = collection.event(&id).map_err(errors::store_problem)?;
        let (batch, seq) = found.ok_or_else(|| no_event(&name, &id))?;
        let mut headers = HeaderMap::new();
        respond::set_read_headers(&mut headers, &head, shared.now(), after::consistency(&shared));
        if format == Format::Html {
            let page = html::items::event(&name, &head.schema, &batch, seq);
            return Ok((headers, respond::page(&shared, page)).into_response());
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Format::Json.media_type()));
        respond::insert(&mut headers, respond::CONTENT_CRS.clone(), &format!("<{}>", crs.uri()));
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
    // Before the body is received: the request cannot succeed, whatever it holds.
    only_given_ids(&*collection, "replaced")?;
    let received = body::receive(&state, &context.headers, body).await?;
    state.may_write()?;
    check_media_type(&context.headers, &["application/geo+json", "application/json"])?;
    let intake = Intake::of_event(&context.headers, &id)?;
    let run = room::admit(&state, &context.lease, &*collection, context.deadline(None, state.config.timeout_default)?)
        .await?;
    stream::run(run, move |control| {
        let format = meridian_formats::Format::GeoJson;
        let (batch, _, _held) =
            read_batch(&received, format, &collection.schema(), intake.options.clone(), &Bounds::of(&state, control))?;
        let mut response =
            replace(&state, &context, &*collection, &id, batch, None).map_err(|why| why.into_problem(&*collection))?;
        intake.set_header(response.headers_mut());
        Ok(response)
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
    let change: Value = body::json(&state, &context.lease, &received.bytes, deadline)
        .await?
        .map_err(|e| Problem::invalid_body(Invalid::new(format!("the body is not JSON: {e}"))))?;
    if !change.is_object() {
        return Err(Problem::invalid_body(Invalid::new("a patch must be a JSON object")));
    }
    let mut intake = Intake::of_event(&context.headers, &id)?;
    if change.get("geometry").is_none_or(Value::is_null) {
        // The kept geometry is in the store's reference system, whatever the system of the body.
        intake.options.crs = Crs::Crs84;
    }
    let run = room::admit(&state, &context.lease, &*collection, deadline).await?;
    stream::run(run, move |control| {
        let bounds = Bounds::of(&state, control);
        // Without a lock: a patch computes from a version, and starts again if another write replaced that version.
        for _ in 0..PATCHES_MAX {
            let Read { head, value: found } = collection.event(&id).map_err(errors::store_problem)?;
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
            // Replaces only the version that was read, so that another write in between is not undone.
            match replace(&state, &context, &*collection, &id, batch, Some(seq)) {
                Err(ReplaceError::Write(WriteError::Changed)) => {}
                done => {
                    let mut response = done.map_err(|why| why.into_problem(&*collection))?;
                    intake.set_header(response.headers_mut());
                    return Ok(response);
                }
            }
        }
        Err(errors::write_problem(&*collection, WriteError::Changed))
    })
    .await
}

/// `DELETE /collections/{c}/items/{id}`
pub async fn delete(state: Scope, Path((name, id)): Path<(String, String)>, context: Context) -> Result<Response> {
    let collection = state.collection(&name)?;
    Params::parse(context.query.as_deref())?.finish()?;
    let run = room::admit(&state, &context.lease, &*collection, context.deadline(None, state.config.timeout_default)?)
        .await?;
    stream::run(run, move |_| {
        let deleted = collection.delete(std::slice::from_ref(&id));
        let deleted = deleted.map_err(|e| errors::write_problem(&*collection, e))?;
        // Not checked before the deletion: another client could delete the event in between.
        if deleted.deleted == 0 {
            return Err(no_event(&name, &id));
        }
        let mut response = respond::no_content();
        respond::insert(response.headers_mut(), respond::POSITION.clone(), &deleted.position.to_string());
        Ok(response)
    })
    .await
}

/// Why an event was not replaced.
enum ReplaceError {
    Problem(Problem),
    Write(WriteError),
}

impl ReplaceError {
    fn into_problem(self, collection: &dyn Collection) -> Problem {
        match self {
            ReplaceError::Problem(problem) => problem,
            ReplaceError::Write(error) => errors::write_problem(collection, error),
        }
    }
}

/// Writes the event of this id. If `only` is given, it replaces that version and no other.
fn replace(
    state: &Scope,
    context: &Context,
    collection: &dyn Collection,
    id: &str,
    batch: Batch,
    only: Option<Seq>,
) -> std::result::Result<Response, ReplaceError> {
    let wrong = |invalid: Invalid| ReplaceError::Problem(Problem::invalid_body(invalid));
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
    let write = match only {
        Some(seq) => Write::new(batch).replacing_only(seq),
        None => Write::new(batch).replacing(),
    };
    let written = collection.write(write).map_err(ReplaceError::Write)?;
    state.caller().ledger.charge_write(1, bytes);
    let mut response = respond::no_content();
    if written.replaced == 0 {
        *response.status_mut() = StatusCode::CREATED;
        respond::insert(response.headers_mut(), header::LOCATION, &context.url(&context.path));
    }
    respond::insert(response.headers_mut(), respond::POSITION.clone(), &written.position.to_string());
    Ok(response)
}

/// A generated id is the event's position in the log, so an event that is written again would get another id.
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
    Err(types::refusal(&format!("{text:?}"), &taken))
}

/// RFC 7396: null removes, objects merge, anything else replaces. A geometry is replaced as a whole, since half of
/// one is not valid.
fn merge(target: &mut Value, change: Value) {
    // JSON Merge Patch (RFC 7396), with one exception: a null geometry is a value, an event without a place, and
    // not a deletion.
    let Value::Object(change) = change else {
        *target = change;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(members) = target else { return };
    for (name, value) in change {
        if value.is_null() && name != "geometry" {
            members.remove(&name);
        } else if name == "geometry" {
            members.insert(name, value);
        } else {
            merge(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_merges_properties_and_replaces_geometry() {
        let mut event = json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"a": 1, "b": 2}});
        merge(
            &mut event,
            json!({"properties": {"a": null, "c": 3}, "geometry": {"type": "Point", "coordinates": [5, 6]}}),
        );
        assert_eq!(
            event,
            json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [5, 6]}, "properties": {"b": 2, "c": 3}})
        );
    }
}
