//! `/collections`: lists, creates, changes and removes collections. The modules below read and write a
//! collection's events.

pub mod analysis;
pub mod files;
mod groups;
pub mod items;
pub mod live;
pub mod passages;
pub mod places;
mod reproject;
mod settings;
pub mod tiles;
pub mod tilesets;

use crate::access::audit::{AuditDetails, NEW_NAME};
use crate::contract::links::{self, link};
use crate::contract::text::retention_text;
use crate::contract::{Collection as Described, CollectionList, CollectionStatus, Extent, Spatial, Temporal};
use crate::html::{self, ask::Question};
use crate::protocol::media_types;
use crate::protocol::params::Params;
use crate::protocol::params::crs;
use crate::protocol::params::format::{EVENTS, Format, PAGES};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::protocol::tags;
#[cfg(feature = "flight")]
use crate::request::ask::{FlightListing, FlightOperation};
use crate::request::blocking;
use crate::request::body;
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::scope::{Scope, no_collection};
use crate::response::respond;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_backend::{Collection, CollectionStats, Damaged, KEEPS_NAME, Retyped, Settings, StoreError};
use meridian_model::policy::access::Action;
use meridian_model::schema::validate_name;
use meridian_model::unrepeated::Unrepeated;
use meridian_model::{Bounds, Invalid, Mode, Schema, schema_json, schema_spec, time};
use serde_json::Value;
#[cfg(feature = "flight")]
use std::sync::Arc;

const SCHEMA_JSON: &str = "application/schema+json";

/// `GET /collections`
pub async fn list(state: Scope, context: Context) -> Result<Response> {
    #[cfg(feature = "flight")]
    if let Some(FlightOperation::List) = context.ask {
        return with_schemas(&state);
    }
    let format = context.page_format()?;
    let mut collections = state.view().list().map_err(errors::store_problem)?;
    collections.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    let damaged = state.view().damaged().map_err(errors::store_problem)?;
    if format == Format::Html {
        let shown: Vec<_> = collections.iter().map(|c| (c.name().to_owned(), c.schema(), c.stats())).collect();
        return Ok(respond::page(&state, html::collections::list(&shown, &damaged)));
    }
    let described = collections
        .iter()
        .map(|c| describe(&context, c.as_ref()))
        .chain(damaged.iter().map(|damaged| describe_damaged(&context, damaged)))
        .collect();
    let document = CollectionList {
        collections: described,
        crs: crs::Crs::ALL.map(|c| c.uri()).to_vec(),
        links: links::self_and_alternates(&context.url("/collections"), format, PAGES, "application/json"),
    };
    respond::document("application/json", &document)
}

/// Lists the collections with the schemas of their events, for Arrow Flight.
#[cfg(feature = "flight")]
fn with_schemas(state: &Scope) -> Result<Response> {
    let mut collections = state.view().list().map_err(errors::store_problem)?;
    collections.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    let schema_of =
        |c: &Arc<dyn Collection>| Ok((c.name().to_owned(), crate::response::tables::events_schema(&c.schema())?));
    let mut response = Response::default();
    response.extensions_mut().insert(FlightListing(collections.iter().map(schema_of).collect::<Result<_>>()?));
    Ok(response)
}

/// `GET /collections/{c}`
pub async fn get(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    let collection = state.collection(&name)?;
    let format = context.page_format()?;
    if format == Format::Html {
        let (schema, stats, settings) = (collection.schema(), collection.stats(), collection.settings());
        let needs_token = state.asks_for_tokens();
        let question = Question { base: &context.base, name: &name, schema: &schema, stats: &stats, needs_token };
        return Ok(respond::page(&state, html::collections::one(&question, &settings)));
    }
    described(&context, &*collection)
}

/// Responds with a collection's description, tagged by its definition and its bytes.
fn described(context: &Context, collection: &dyn Collection) -> Result<Response> {
    // Read first: with a later definition in its tag, a client could overwrite a change that it has not seen.
    let definition = collection.definition();
    let mut response = respond::document("application/json", &describe(context, collection))?;
    let name = tags::definition_name(collection.created(), &definition).map_err(Problem::internal)?;
    tags::of_definition(response.headers_mut(), &name);
    Ok(response)
}

/// Max bytes of a collection's title and description, which appear in every list of collections.
const TITLE_BYTES_MAX: usize = 1_000;
const DESCRIPTION_BYTES_MAX: usize = 10_000;

/// `PUT /collections/{c}`: creates a collection. If it exists with this schema, the request changes the settings that
/// it names. If it exists with another schema and was never written to, it gets this one. With `If-None-Match: *`, it
/// is only created.
pub async fn put(state: Scope, Path(name): Path<String>, context: Context, body: Body) -> Result<Response> {
    // Before the body is received: with an invalid name the request cannot succeed, whatever the schema.
    validate_name("collection", &name).map_err(|e| Problem::invalid_parameter("collection", e))?;
    let mut params = Params::parse(context.query.as_deref())?;
    let named = settings::take(&mut params)?;
    let confirmed = settings::take_confirmed(&mut params)?;
    params.finish()?;
    let only_creates = settings::only_creates(&context.headers)?;
    let received = body::receive(&state, &context.headers, body).await?;
    let run = context.lease.run(&state, context.deadline(None, state.config.timeout_default)?).await?;
    // Built before `named` is moved: the audit line describes the request.
    let note = settings::note(&named, &[]);
    let put = blocking::run(run, move |_| {
        let schema = read_schema(&context.headers, &received.bytes)?;
        // The condition is tested by the creation itself: any earlier answer may be outdated by then.
        let existing =
            if only_creates { None } else { state.view().collection(&name).map_err(errors::store_problem)? };
        if let Some(existing) = existing {
            // PUT is idempotent: a client that repeats it after a lost response must not get a conflict.
            if schema_json::same(&existing.schema(), &schema, &name) {
                settings::put(&state, &*existing, named, confirmed)?;
                return respond::json("application/json", &describe(&context, &*existing));
            }
            let settings = settings::changeable(&state, &*existing, named)?.of(&existing.settings());
            return match state.view().retype(&name, schema, settings).map_err(errors::store_problem)? {
                Retyped::Done => {
                    state.live.check(&state.caller().tenant, &name);
                    respond::json("application/json", &describe(&context, &*state.collection(&name)?))
                }
                Retyped::Kept(why) => {
                    let detail = format!(
                        "there is a collection {name:?} already, with another schema, and it keeps its types: {why}; PATCH adds fields, DELETE removes it"
                    );
                    Err(Problem::new(Kind::Conflict, detail))
                }
            };
        }
        let defaults = Settings { partitions: settings::partitions(&state, &schema), ..Settings::default() };
        let made = state.view().create(&name, schema, named.of(&defaults)).map_err(|e| {
            match e {
                // The name belongs to a damaged collection that may hold events.
                StoreError::Damaged(damaged) => errors::taken_problem(&damaged),
                StoreError::Exists { .. } if only_creates => settings::exists(&name),
                StoreError::Invalid(e) if e.field.as_deref() == Some("collection") => {
                    Problem::invalid_parameter("collection", e)
                }
                StoreError::Invalid(e) if e.field.as_deref() == Some("partitions") => {
                    Problem::invalid_parameter("partitions", e)
                }
                other => errors::store_problem(other),
            }
        })?;
        let mut headers = HeaderMap::new();
        respond::insert(&mut headers, header::LOCATION, &context.url(&path(&name)));
        Ok((StatusCode::CREATED, headers, respond::json("application/json", &describe(&context, &*made))?)
            .into_response())
    });
    let mut response = put.await?;
    response.extensions_mut().insert(note);
    Ok(response)
}

/// `PATCH /collections/{c}`: with `If-Match`, only on the definition that the client has seen.
pub async fn patch(state: Scope, Path(name): Path<String>, context: Context, body: Body) -> Result<Response> {
    let collection = state.collection(&name)?;
    let mut params = Params::parse(context.query.as_deref())?;
    let confirmed = settings::take_confirmed(&mut params)?;
    params.finish()?;
    // Received before the permit is taken: a slow sender must not hold one.
    let received = body::receive(&state, &context.headers, body).await?;
    let run = context.lease.run(&state, context.deadline(None, state.config.timeout_default)?).await?;
    blocking::run(run, move |_| {
        let Unrepeated(change) = serde_json::from_slice(&received.bytes)
            .map_err(|e| Problem::invalid_body(Invalid::new(format!("the body is not a JSON object: {e}"))))?;
        let Value::Object(mut change) = change else {
            return Err(Problem::invalid_body(Invalid::new("the body is not a JSON object")));
        };
        if let Some(new) = settings::take_name(&mut change, &name).map_err(Problem::invalid_body)? {
            // A rename does not hold the lock of the definition, so it could not keep the condition.
            if context.headers.contains_key(header::IF_MATCH) {
                let detail = "the condition if-match is not supported with a new name: send the request without it";
                return Err(Problem::new(Kind::NotImplemented, detail).with("field", "if-match"));
            }
            return rename(&state, &context, &name, &new);
        }
        let seen = settings::expected(&*collection, &context.headers)?;
        let (named, fields) = settings::read(&collection.schema(), change).map_err(Problem::invalid_body)?;
        let note = settings::note(&named, &fields);
        settings::apply(&*collection, fields, &named, confirmed, seen.as_ref())?;
        let mut response = described(&context, &*collection)?;
        response.extensions_mut().insert(note);
        Ok(response)
    })
    .await
}

/// Renames a collection.
fn rename(state: &Scope, context: &Context, name: &str, new: &str) -> Result<Response> {
    // Requires the rights to remove the old collection and to create the new one.
    if !state.view().may(Action::Manage, new) {
        return Err(Problem::new(Kind::Forbidden, format!("the credential may not create a collection {new:?}")));
    }
    if !state.backend.renames() {
        return Err(Problem::new(Kind::NotImplemented, KEEPS_NAME));
    }
    let renamed = state.view().rename(name, new).map_err(|e| match e {
        StoreError::Damaged(damaged) if damaged.name == new => errors::taken_problem(&damaged),
        StoreError::Invalid(e) => Problem::invalid_body(Invalid { field: Some("id".to_owned()), ..e }),
        other => errors::store_problem(other),
    })?;
    // Another request has removed it since.
    if !renamed {
        return Err(no_collection(name));
    }
    state.live.check(&state.caller().tenant, name);
    let collection = state.collection(new)?;
    let mut headers = HeaderMap::new();
    respond::insert(&mut headers, header::LOCATION, &context.url(&path(new)));
    let mut response = (headers, respond::json("application/json", &describe(context, &*collection))?).into_response();
    response
        .extensions_mut()
        .insert(AuditDetails { change: Some(format!("{NEW_NAME}{new}")), ..AuditDetails::default() });
    Ok(response)
}

/// `DELETE /collections/{c}`: with `If-Match`, only if it has that definition and was never written to.
pub async fn delete(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    // Checked first, so that a name that the caller may not see yields 404.
    let collection = state.collection(&name)?;
    Params::parse(context.query.as_deref())?.finish()?;
    let run = context.lease.run(&state, context.deadline(None, state.config.timeout_default)?).await?;
    blocking::run(run, move |_| {
        settings::remove(&state, &*collection, &context.headers)?;
        state.live.check(&state.caller().tenant, &name);
        Ok(respond::no_content())
    })
    .await
}

/// `GET /collections/{c}/schema`
pub async fn schema(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    schema_document(&state, &name, &context, "schema", schema_json::to_json)
}

/// `GET /collections/{c}/queryables`
pub async fn queryables(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    schema_document(&state, &name, &context, "queryables", schema_json::queryables)
}

fn schema_document(
    state: &Scope,
    name: &str,
    context: &Context,
    what: &str,
    make: fn(&Schema, &str, &str) -> Value,
) -> Result<Response> {
    let collection = state.collection(name)?;
    let format = context.page_format()?;
    let schema = collection.schema();
    let document = make(&schema, name, &context.url(&format!("{}/{what}", path(name))));
    if format == Format::Html {
        return Ok(respond::page(state, html::collections::schema(name, what, &document)));
    }
    respond::document(SCHEMA_JSON, &document)
}

fn path(name: &str) -> String {
    format!("/collections/{}", links::escape(name))
}

/// Parses a JSON Schema or a SimpleFeatureType spec.
fn read_schema(headers: &HeaderMap, bytes: &[u8]) -> Result<Schema> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        Problem::invalid_body(Invalid::new(format!("the schema is not UTF-8 after byte {}", e.valid_up_to())))
    })?;
    // The media type selects the parser: both a spec and a JSON Schema can be sent as text.
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let json = match essence.as_str() {
        "application/schema+json" | "application/json" => true,
        "text/plain" => false,
        // A body of an unspecific type is identified by its first character. So is an empty body, which needs no type.
        "" | "application/octet-stream" => text.trim_start().starts_with('{'),
        _ => {
            let taken = [SCHEMA_JSON, "application/json", "text/plain"].map(|name| (name, ""));
            return Err(media_types::refusal(&format!("{media_type:?}"), &taken));
        }
    };
    let schema = if json {
        let Unrepeated(document) = serde_json::from_str(text).map_err(|e| {
            Problem::invalid_body(Invalid::new(format!("the schema is not JSON: {e}")).at_line(e.line() as u64))
        })?;
        schema_json::from_json(&document)
    } else {
        schema_spec::parse(text.trim())
    };
    let schema = schema.map_err(Problem::invalid_body)?;
    for (name, text, max) in
        [("title", &schema.title, TITLE_BYTES_MAX), ("description", &schema.description, DESCRIPTION_BYTES_MAX)]
    {
        if text.as_ref().is_some_and(|text| text.len() > max) {
            return Err(Problem::invalid_body(Invalid::field(name, format_args!("expected at most {max} bytes"))));
        }
    }
    Ok(schema)
}

/// Describes a collection.
fn describe(context: &Context, collection: &dyn Collection) -> Described {
    let (schema, stats, settings) = (collection.schema(), collection.stats(), collection.settings());
    let name = collection.name();
    let root = context.url(&path(name));
    let mut links = links::self_and_alternates(&root, Format::Json, PAGES, "application/json");
    let items = format!("{root}/items");
    links.extend(EVENTS.iter().map(|&f| {
        // Clients append ids and parameters to the URL of the default format, so it has no query.
        let href = if f == Format::Json { items.clone() } else { links::with(&items, "f", f.word()) };
        link(href, "items", f.link_type(), "The events")
    }));
    links.extend([
        link(format!("{root}/schema"), "describedby", SCHEMA_JSON, "What the collection holds"),
        link(format!("{root}/schema"), links::REL_SCHEMA, SCHEMA_JSON, "What the collection holds"),
        link(format!("{root}/queryables"), links::REL_QUERYABLES, SCHEMA_JSON, "The properties that a filter may use"),
        link(format!("{root}/aggregate"), "related", "application/json", "Counts and other aggregates"),
    ]);
    if schema.geometry.is_some() {
        links.push(link(format!("{root}/tiles"), links::REL_TILESETS_VECTOR, "application/json", "Vector tiles"));
        links.push(link(format!("{root}/density"), "related", "application/json", "Counts on a grid"));
    }
    Described {
        id: name.to_owned(),
        title: schema.title.as_deref().unwrap_or(name).to_owned(),
        description: schema.description.clone(),
        status: None,
        item_type: Some("feature"),
        crs: crs::Crs::ALL.map(|c| c.uri()).to_vec(),
        storage_crs: Some(crs::Crs::Crs84.uri()),
        extent: extent(&schema, &stats),
        item_count: Some(stats.events),
        bytes: Some(stats.bytes + stats.memory_bytes),
        durability: Some(settings.durability),
        mode: (schema.mode == Mode::Latest).then_some("latest"),
        retention: settings.retention.map(retention_text),
        retention_bytes: settings.retention_bytes,
        partitions: Some(settings.partitions),
        refuses_writes: stats.refuses,
        links,
    }
}

/// Describes a collection that cannot be opened: its name and the reason.
fn describe_damaged(context: &Context, damaged: &Damaged) -> Described {
    let root = context.url(&path(&damaged.name));
    Described {
        id: damaged.name.clone(),
        title: damaged.name.clone(),
        status: Some(CollectionStatus::Damaged),
        description: Some(damaged.to_string()),
        links: vec![link(root, "self", "application/json", "The reason why it is not served")],
        ..Described::default()
    }
}

/// Returns the spatial and temporal extent of the events. Deleted events that are still on disk count.
fn extent(schema: &Schema, stats: &CollectionStats) -> Option<Extent> {
    let bounds: Bounds = stats.bounds?;
    let spatial = (schema.geometry.is_some() && !bounds.is_nowhere()).then(|| Spatial {
        bbox: [[bounds.west, bounds.south, bounds.east, bounds.north]],
        crs: crs::Crs::Crs84.uri(),
    });
    let end = |at: i64| (at != i64::MIN && at != i64::MAX).then(|| time::format_instant(at));
    let temporal = schema.has_time().then(|| Temporal {
        interval: [[end(bounds.start), end(bounds.end)]],
        trs: "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian",
    });
    (spatial.is_some() || temporal.is_some()).then_some(Extent { spatial, temporal })
}
