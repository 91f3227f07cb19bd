//! `/aggregate` and `/density`: aggregates of events.

use crate::collections::groups;
use crate::collections::items;
use crate::contract::ExplainedGroups;
use crate::protocol::params::Params;
use crate::protocol::params::crs;
use crate::protocol::params::format::{self, Format, GROUPS};
use crate::protocol::params::selection::{self, EventSelection};
use crate::protocol::problem::{Problem, Result};
use crate::protocol::tags;
use crate::request::after::Consistency;
#[cfg(feature = "flight")]
use crate::request::ask::FlightOperation;
use crate::request::blocking;
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::stream::{self, Finished};
#[cfg(feature = "flight")]
use crate::response::tables;
use crate::response::unchanged;
use crate::state::AppState;
use crate::state::brief_runs::QueryKind;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use meridian_backend::{Collection, Head};
use meridian_model::Schema;
use meridian_observe::{self as observe, Stage};
use meridian_query::{Aggregate, Control, Function, Windows};
use std::io::Write;

/// Max columns or rows of a density grid.
pub const SIDE_MAX: usize = 4096;
/// Default number of columns and rows.
const SIDE_DEFAULT: u32 = 64;

/// `GET /collections/{c}/aggregate`
pub async fn aggregate(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    let collection = context.collection(&state, &name).await?;
    let schema = collection.schema();
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, GROUPS)?;
    let function = params.take("function").unwrap_or_else(|| "count".to_owned());
    let functions = Function::parse(&function, &schema).map_err(|e| Problem::invalid_parameter("function", e))?;
    let zone = params.take("zone");
    let windows = params.take("window").map(|w| Windows::parse(&w, zone.as_deref().unwrap_or("UTC"))).transpose();
    let windows = windows.map_err(|e| {
        Problem::invalid_parameter(if e.field.as_deref() == Some("zone") { "zone" } else { "window" }, e)
    })?;
    if zone.is_some() && windows.is_none() {
        return Err(Problem::parameter("zone", "given without a window"));
    }
    if windows.is_some() {
        selection::has_time(&schema, "window")?;
    }
    let empty = params.take_flag("empty")?;
    let by = params.take("by").map(|names| fields(&schema, &names)).transpose()?.unwrap_or_default();
    let explain = params.take_flag("explain")?;
    if explain && format != Format::Json {
        return Err(Problem::parameter("explain", "explain=true is served as JSON only: leave out f="));
    }
    let timeout = params.take_timeout()?;
    let consistency = Consistency::take(&mut params, &context.headers, &state)?;
    let selection = items::take_selection(params, &schema)?;
    let history = selection.history;
    let question = Aggregate { predicate: selection.predicate, functions, windows, by, empty };
    #[cfg(feature = "flight")]
    if let Some(FlightOperation::Describe { .. }) = context.ask {
        return tables::described(&groups::arrow::schema(&question, &schema));
    }
    #[cfg(feature = "flight")]
    let format = if context.ask.is_some() { Format::Arrow } else { format };

    let deadline = context.deadline(timeout, state.config.timeout_default)?;
    let at = consistency.newest(history);
    let run = context.read(&state, &*collection, deadline).await?;
    let show = |read: &Head| head(&state, &*collection, read, &consistency, format);
    if let Some(unchanged) = unchanged::response(&context, &*collection, &at, show) {
        return Ok(unchanged);
    }
    let (shared, of, kind) = (state.clone(), collection.clone(), QueryKind::aggregate(&question));
    let work = move |control: &Control| {
        let read = collection.aggregate(at.clone(), &question, control).map_err(errors::query_problem)?;
        let (answer, schema) = (&read.value, &read.head.schema);
        let encode = observe::stage(Stage::Encode);
        let bytes = if explain {
            let explained = ExplainedGroups {
                account: items::account(&read.head, &answer.stats),
                groups: Some(answer.groups.len() as u64),
            };
            serde_json::to_vec(&explained).map_err(Problem::internal)?
        } else {
            // Written without building a tree of values: there may be many groups.
            let mut out = Vec::with_capacity(64 + 96 * answer.groups.len());
            match format {
                Format::Arrow => out = groups::arrow::groups(answer, &question, schema)?,
                Format::Csv => groups::write_csv(answer, &question, schema, control, &mut out)?,
                _ => groups::write_json(answer, &question, schema, control, &mut out)?,
            }
            out
        };
        drop(encode);
        let headers = head(&shared, &*collection, &read.head, &consistency, format);
        Ok(Finished { status: StatusCode::OK, headers, bytes })
    };
    stream::finished_read(&state, kind, &*of, run, work).await
}

/// `GET /collections/{c}/density`
pub async fn density(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    let collection = context.collection(&state, &name).await?;
    let schema = collection.schema();
    selection::has_place(&schema, "density")?;
    let mut params = Params::parse(context.query.as_deref())?;
    format::only("json", &mut params)?;
    let width = side(&mut params, "width")?;
    let height = side(&mut params, "height")?;
    let explain = params.take_flag("explain")?;
    let timeout = params.take_timeout()?;
    let consistency = Consistency::take(&mut params, &context.headers, &state)?;
    // The grid's box is also a condition of the query; it is parsed again here for its numbers.
    let grid_crs = params.clone().take("bbox-crs").map(|c| crs::parse("bbox-crs", &c)).transpose()?.unwrap_or_default();
    let bbox = params.clone().take("bbox").map(|text| crs::parse_bbox(&text, grid_crs)).transpose()?;
    let bbox = bbox.unwrap_or([-180.0, -90.0, 180.0, 90.0]);
    let selection = EventSelection::take(&mut params, &schema)?;
    params.finish_with(&selection::queryable_names(&schema))?;
    let history = selection.history;
    let question = meridian_query::Density { predicate: selection.predicate, bbox, width, height };
    #[cfg(feature = "flight")]
    if let Some(FlightOperation::Describe { .. }) = context.ask {
        return tables::described(&tables::density_schema(&question));
    }
    #[cfg(feature = "flight")]
    let asks_for_arrow = context.ask.is_some();

    let deadline = context.deadline(timeout, state.config.timeout_default)?;
    let at = consistency.newest(history);
    let run = context.read(&state, &*collection, deadline).await?;
    let show = |read: &Head| head(&state, &*collection, read, &consistency, Format::Json);
    if let Some(unchanged) = unchanged::response(&context, &*collection, &at, show) {
        return Ok(unchanged);
    }
    let shared = state.clone();
    blocking::run(run, move |control| {
        let read = collection.density(at, &question, control).map_err(errors::query_problem)?;
        let answer = &read.value;
        let encode = observe::stage(Stage::Encode);
        let bytes = if explain {
            let explained = ExplainedGroups { account: items::account(&read.head, &answer.stats), groups: None };
            serde_json::to_vec(&explained).map_err(Problem::internal)?
        } else {
            #[cfg(feature = "flight")]
            if asks_for_arrow {
                return stream::finished(
                    &shared,
                    head(&shared, &*collection, &read.head, &consistency, Format::Json),
                    tables::density(answer, &question)?,
                );
            }
            let mut out = Vec::with_capacity(128 + 4 * answer.counts.len());
            let [west, south, east, north] = bbox;
            let _ = write!(
                out,
                "{{\"bbox\":[{west},{south},{east},{north}],\"width\":{width},\"height\":{height},\"counts\":["
            );
            for (i, count) in answer.counts.iter().enumerate() {
                let _ = write!(out, "{}{count}", if i > 0 { "," } else { "" });
            }
            out.extend_from_slice(b"]}");
            out
        };
        let headers = head(&shared, &*collection, &read.head, &consistency, Format::Json);
        drop(encode);
        stream::finished(&shared, headers, bytes)
    })
    .await
}

/// Parses a list of field names. A name that contains commas must be given alone.
fn fields(schema: &Schema, names: &str) -> Result<Vec<usize>> {
    if let Some(one) = schema.field_index(names) {
        return Ok(vec![one]);
    }
    let field = |name: &str| {
        schema.field_index(name).ok_or_else(|| {
            let known = crate::protocol::params::page::field_names(schema);
            Problem::parameter("by", format!("{name:?} is not a property of this collection: it has {known}"))
        })
    };
    names.split(',').map(field).collect()
}

fn side(params: &mut Params, name: &'static str) -> Result<u32> {
    // Unlike a limit, a grid size is not reduced silently: its cells would not be where the client draws them.
    match params.take_count(name, SIDE_MAX + 1)? {
        Some(n) if n > SIDE_MAX => Err(Problem::parameter(name, format!("at most {SIDE_MAX}"))),
        other => Ok(other.map_or(SIDE_DEFAULT, |n| n as u32)),
    }
}

fn head(
    state: &AppState,
    collection: &dyn Collection,
    head: &Head,
    consistency: &Consistency,
    format: Format,
) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(respond::HEADERS);
    let media_type = if format == Format::Json { "application/json" } else { format.media_type() };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    respond::set_read_headers(&mut headers, head, state.now(), consistency.name);
    tags::of_read(&mut headers, collection, head);
    headers
}
