//! The places profile: eight operations on the collection `places`, compatible with an R-tree places API.
//!
//! `near` is the hot path of the comparison with other servers. A small query runs on the thread that read the request,
//! since a hop to a blocking thread and back would cost more. It writes its response directly into one buffer.

mod answer;
mod new;

use crate::access::audit;
use crate::collections::items::backpressure;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::blocking::{self, Run};
use crate::request::body;
use crate::request::context::Context;
use crate::request::dispatch::{Path, decoded};
use crate::request::errors;
use crate::request::route::PLACES;
use crate::request::scope::Scope;
use crate::state::AppState;
use answer::PlaceWriter;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use matchit::Params;
use meridian_admission::gate::Permit;
use meridian_admission::identity::Caller;
use meridian_backend::{Collection, Near, PermitScheduler, Settings, StoreError, View, Write};
use meridian_model::{Field, FieldType, GeometryType, IdRole, Invalid, Schema};
use meridian_observe as observe;
use new::NewPlace;
use std::sync::Arc;
use tokio::time::Instant;

/// Base path of the profile.
const BASE: &str = "/api/v0/places";
/// Places per page.
const PAGE: usize = 25;
/// Default radius in kilometres.
const RADIUS_DEFAULT_KM: f64 = 0.5;
/// Max radius in kilometres; a greater one is reduced to it.
const RADIUS_MAX_KM: f64 = 50.0;
/// Max rows that a query reads on the thread that accepted the request; larger queries run on a blocking thread.
const ROWS_INLINE_MAX: usize = 16_384;

/// JSON names of a place's texts, in order.
const TEXTS: [&str; 6] = ["name", "address", "city", "state", "zipCode", "telephoneNumber"];

fn schema() -> Schema {
    let field =
        |name: &str| Field { name: name.to_owned(), kind: FieldType::Text, required: name == "name", title: None };
    Schema {
        fields: TEXTS.map(field).to_vec(),
        geometry: Some(GeometryType::Point),
        id: IdRole::Given,
        title: Some("Places".to_owned()),
        ..Schema::default()
    }
}

/// Creates the collection. Blocks, since it syncs a folder.
fn make(state: &Scope) -> Result<Arc<dyn Collection>> {
    // Two concurrent first writes would both try to create the collection, and one of them would fail.
    let _one_at_a_time = state.places_creation.lock();
    if let Some(collection) = existing(state)? {
        return Ok(collection);
    }
    let settings = Settings { durability: state.config.places_durability, ..Settings::default() };
    match state.view().create(PLACES, schema(), settings) {
        // `PUT /collections/places` does not take this lock.
        Err(StoreError::Exists { .. }) => state.collection(PLACES),
        made => made.map_err(errors::store_problem),
    }
}

/// Returns the collection, if a place was ever added. Only a write creates it: a GET changes nothing.
fn existing(state: &Scope) -> Result<Option<Arc<dyn Collection>>> {
    match state.collection(PLACES) {
        Ok(collection) => Ok(Some(collection)),
        Err(problem) if problem.kind() == Kind::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Returns the collection for a write; the first write creates it, which is an administrative act.
async fn collection(state: &Scope, context: &Context) -> Result<Arc<dyn Collection>> {
    match existing(state)? {
        Some(collection) => Ok(collection),
        None => audit::creating(state, context, (PLACES, None), make).await,
    }
}

/// `GET /api/v0/places/near/{latitude}/{longitude}` and `…/{radiusKm}`: counts the places near a position and lists a
/// page of them, nearest first.
pub async fn near(
    state: &AppState,
    caller: &Caller,
    (segments, query_string): (&Params<'_, '_>, Option<&str>),
    permit: Option<Permit>,
    deadline: Instant,
) -> Result<Response> {
    let Some(permit) = permit else { return Err(Problem::internal("a near query without a permit")) };
    let text = |name: &str| segments.get(name).map(decoded).transpose();
    let radius_km = match text("radiusKm")?.map(|r| r.parse::<f64>().map_err(|_| r)) {
        None | Some(Ok(0.0)) => RADIUS_DEFAULT_KM,
        Some(Ok(km)) if km.is_finite() && km > 0.0 => km.min(RADIUS_MAX_KM),
        Some(Ok(km)) => return Err(field_error("radius", format!("{km} is not a radius in kilometres"))),
        Some(Err(text)) => return Err(field_error("radius", format!("{text:?} is not a radius in kilometres"))),
    };
    let lat = coordinate("latitude", &text("latitude")?.unwrap_or_default(), 90.0)?;
    let lon = coordinate("longitude", &text("longitude")?.unwrap_or_default(), 180.0)?;
    let page = page(query_string);
    // A gateway queries another process, and gives the permit back while it waits.
    let turns = state.config.gateways.as_ref().map(|_| PermitScheduler::of(&permit));
    turns.iter().for_each(observe::hold);
    // All threads contend on the state's reference counts, so a scope is built only in the rare case.
    let scope = || Scope::new(state.clone(), caller.clone());
    let found = View::find(&*state.backend, caller, PLACES).map_err(errors::store_problem)?;
    let Some(collection) = found.map_or_else(|| existing(&scope()), |found| Ok(Some(found)))? else {
        return Ok(json(StatusCode::OK, answer::NONE.to_vec()));
    };
    let question = Near { lon, lat, radius_m: radius_km * 1000.0, skip: page.saturating_mul(PAGE), limit: PAGE };
    let query = move |rows_max| -> Result<Option<Vec<u8>>> {
        let mut out = PlaceWriter::list();
        let done = collection.near(&question, rows_max, &mut out).map_err(errors::store_problem)?;
        Ok(done.then(|| out.finish()))
    };
    // The limit bounds how long the request delays others on its thread; beyond it, the query restarts on another one.
    let bytes = match query(Some(ROWS_INLINE_MAX))? {
        Some(bytes) => bytes,
        None => {
            let run = Run::new(&scope(), permit, deadline);
            // Boxed, because it is rare: otherwise the future of every request would have room for it.
            Box::pin(blocking::run(run, move |_| Ok(query(None)?.unwrap_or_default()))).await?
        }
    };
    Ok(json(StatusCode::OK, bytes))
}

/// `GET /api/v0/places`
pub async fn list(state: Scope, RawQuery(query): RawQuery, context: Context) -> Result<Response> {
    let page = page(query.as_deref());
    let Some(collection) = existing(&state)? else { return Ok(json(StatusCode::OK, answer::NONE.to_vec())) };
    let run = context.lease.run(&state, context.deadline(None, state.config.timeout_default)?).await?;
    let bytes = blocking::run(run, move |control| {
        let mut out = PlaceWriter::list();
        collection.page(page.saturating_mul(PAGE) as u64, PAGE, control, &mut out).map_err(errors::query_problem)?;
        Ok(out.finish())
    });
    Ok(json(StatusCode::OK, bytes.await?))
}

/// `GET /api/v0/places/{placeId}`
pub async fn get(state: Scope, Path(id): Path<String>, context: Context) -> Result<Response> {
    let missing = |id: &str| Problem::not_found(format!("there is no place {id:?}"));
    let collection = existing(&state)?.ok_or_else(|| missing(&id))?;
    let run = context.lease.run(&state, context.deadline(None, state.config.timeout_default)?).await?;
    blocking::run(run, move |_| {
        let mut out = PlaceWriter::one();
        match collection.find(&id, &mut out).map_err(errors::store_problem)? {
            true => Ok(json(StatusCode::OK, out.finish())),
            false => Err(missing(&id)),
        }
    })
    .await
}

/// `GET /api/v0/places/random`
pub async fn random(state: Scope, context: Context) -> Result<Response> {
    let none = || Problem::new(Kind::InvalidParameter, "there are no places");
    let collection = existing(&state)?.ok_or_else(none)?;
    let run = context.lease.run(&state, context.deadline(None, state.config.timeout_default)?).await?;
    let shared = state.clone();
    blocking::run(run, move |control| {
        let mut out = PlaceWriter::one();
        match collection.sample(shared.random.as_ref(), control, &mut out).map_err(errors::query_problem)? {
            true => Ok(json(StatusCode::OK, out.finish())),
            false => Err(none()),
        }
    })
    .await
}

/// `POST /api/v0/places`
pub async fn create(state: Scope, context: Context, body: Body) -> Result<Response> {
    let received = body::receive(&state, &context.headers, body).await?;
    state.may_write()?;
    let deadline = context.deadline(None, state.config.timeout_default)?;
    let place: NewPlace = body::json(&state, &context.lease, &received.bytes, deadline)
        .await?
        .map_err(|e| Problem::invalid_body(Invalid::new(format!("the body is not a place: {e}"))))?;
    let id = uuid(&state);
    if existing(&state)?.is_none() {
        // Parsed first: an invalid body must not create the collection.
        place.to_batch(&Arc::new(schema()), &id)?;
    }
    let collection = collection(&state, &context).await?;
    let batch = place.to_batch(&collection.schema(), &id)?;
    let run = backpressure::admit(&state, &context.lease, &*collection, deadline).await?;
    let bytes = batch.bytes() as u64;
    blocking::run(run, move |_| {
        collection.write(Write::new(batch)).map_err(|e| errors::write_problem(&*collection, e))
    })
    .await?;
    state.caller().ledger.charge_write(1, bytes);
    see_other(&format!("{BASE}/{id}"))
}

/// `DELETE /api/v0/places/{placeId}`: a missing place gets the same response as a deleted one.
pub async fn delete(state: Scope, Path(id): Path<String>, context: Context) -> Result<Response> {
    let Some(collection) = existing(&state)? else { return see_other(BASE) };
    let run = backpressure::admit(
        &state,
        &context.lease,
        &*collection,
        context.deadline(None, state.config.timeout_default)?,
    )
    .await?;
    blocking::run(run, move |_| collection.delete(&[id]).map_err(|e| errors::delete_problem(&*collection, e))).await?;
    see_other(BASE)
}

/// `DELETE /api/v0/places/deleteAllPlaces`: empties the collection; a missing one is not created.
pub async fn delete_all(state: Scope, context: Context) -> Result<Response> {
    if existing(&state)?.is_none() {
        return see_other(BASE);
    }
    let run = context.lease.run(&state, context.deadline(None, state.config.timeout_default)?).await?;
    let shared = state.clone();
    blocking::run(run, move |_| {
        if existing(&shared)?.is_some() {
            // Dropping the collection is one step, however many places it holds.
            shared.view().remove(PLACES).map_err(errors::store_problem)?;
        }
        make(&shared).map(drop)
    })
    .await?;
    see_other(BASE)
}

/// Returns the requested page: the absolute value of the number, 0 by default.
fn page(query: Option<&str>) -> usize {
    let value = query.and_then(|q| q.split('&').find_map(|pair| pair.strip_prefix("p=")));
    value.and_then(|v| v.trim_start_matches('-').parse::<u32>().ok()).map_or(0, |p| p as usize)
}

fn coordinate(name: &str, text: &str, limit: f64) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(degrees) if (-limit..=limit).contains(&degrees) => Ok(degrees),
        _ => Err(field_error(name, format!("{text:?} is not a number of degrees from -{limit} to {limit}"))),
    }
}

fn field_error(field: &str, message: String) -> Problem {
    field_errors(&[(field, message)])
}

/// Returns a refusal in the form that the profile's clients expect: `fieldErrors[].field`.
fn field_errors(errors: &[(&str, String)]) -> Problem {
    let list: Vec<serde_json::Value> =
        errors.iter().map(|(field, message)| serde_json::json!({ "field": field, "message": message })).collect();
    let detail = errors.iter().map(|(field, message)| format!("{field} {message}")).collect::<Vec<_>>().join("; ");
    let first = errors.first().map_or("", |e| e.0).to_owned();
    Problem::new(Kind::InvalidBody, detail).with("field", first).with("fieldErrors", list)
}

fn json(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn see_other(path: &str) -> Result<Response> {
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, HeaderValue::from_str(path).map_err(Problem::internal)?);
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Generates a random id (RFC 9562, version 4).
fn uuid(state: &Scope) -> String {
    let (a, b) = (state.random.next_u64(), state.random.next_u64());
    // The bits of version 4 and of the variant (RFC 9562).
    let (a, b) = (a & !0xf000 | 0x4000, b & !(0b11 << 62) | 0b10 << 62);
    format!("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", a >> 32, a >> 16 & 0xffff, a & 0xffff, b >> 48, b & 0xffff_ffff_ffff)
}
