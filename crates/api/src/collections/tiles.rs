//! `/collections/{c}/tiles`: the events as vector tiles.

use crate::collections::items;
use crate::collections::tilesets::{self, WEB_MERCATOR_QUAD, ZOOM_MAX};
use crate::contract::TileSetList;
use crate::contract::links::{self, MVT};
use crate::html;
use crate::protocol::params::Params;
use crate::protocol::params::format::{self, Format, PAGES};
use crate::protocol::params::selection;
use crate::protocol::problem::{Problem, Result};
use crate::protocol::tags;
use crate::request::after::Consistency;
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::stream::{self, Finished};
use crate::response::unchanged;
use crate::state::AppState;
use crate::state::brief_runs::QueryKind;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use meridian_backend::{Collection, Head};
use meridian_model::Schema;
use meridian_query::{Control, Tile, TileKind};

/// Whether a tile contains events or counts of them.
static TILE_KIND: HeaderName = HeaderName::from_static("meridian-tile");

/// `GET /collections/{c}/tiles`
pub async fn list(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    let collection = state.collection(&name)?;
    let format = context.page_format()?;
    if format == Format::Html {
        let href = format!("/collections/{}/tiles/{WEB_MERCATOR_QUAD}?f=html", links::escape(&name));
        let body = format!("<ul><li><a href=\"{href}\">{WEB_MERCATOR_QUAD}</a></li></ul>");
        return Ok(respond::page(&state, html::page("Vector tiles", &trail(&name), &body).within("/collections")));
    }
    let url = context.this_url();
    let document = TileSetList {
        tilesets: vec![tilesets::tileset(&context, &name, &collection.schema(), bbox(&*collection), false)],
        links: links::self_and_alternates(&url, format, PAGES, "application/json"),
    };
    respond::document("application/json", &document)
}

/// `GET /collections/{c}/tiles/{tileMatrixSetId}`
pub async fn tileset(state: Scope, Path((name, set)): Path<(String, String)>, context: Context) -> Result<Response> {
    let collection = state.collection(&name)?;
    tilesets::check(&set)?;
    let format = context.page_format()?;
    if format == Format::Html {
        let body = format!(
            "<p>Vector tiles of zoom 0 to {ZOOM_MAX}: <code>/collections/{}/tiles/{WEB_MERCATOR_QUAD}/{{tileMatrix}}/{{tileRow}}/{{tileCol}}</code></p>\
             <p><a href=\"{}\">On the map</a></p>",
            html::escape(&links::escape(&name)),
            html::escape(&html::items::map_of(&name))
        );
        return Ok(respond::page(&state, html::page(WEB_MERCATOR_QUAD, &trail(&name), &body).within("/collections")));
    }
    let document = tilesets::tileset(&context, &name, &collection.schema(), bbox(&*collection), true);
    respond::document("application/json", &document)
}

/// `GET /collections/{c}/tiles/{tileMatrixSetId}/{tileMatrix}/{tileRow}/{tileCol}`
pub async fn tile(
    state: Scope,
    Path((name, set, matrix, row, column)): Path<(String, String, String, String, String)>,
    context: Context,
) -> Result<Response> {
    let collection = context.collection(&state, &name).await?;
    tilesets::check(&set)?;
    let z: u8 = path_number(&matrix, ZOOM_MAX.into(), "tile matrix")? as u8;
    // Cannot overflow: the zoom was checked above.
    let last = (1u64 << z) - 1;
    let (row, column) =
        (path_number(&row, last, "tile row")? as u32, path_number(&column, last, "tile column")? as u32);
    let schema = collection.schema();
    selection::has_place(&schema, "tiles")?;
    let mut params = Params::parse(context.query.as_deref())?;
    let timeout = params.take_timeout()?;
    let consistency = Consistency::take(&mut params, &context.headers, &state)?;
    format::only("mvt", &mut params)?;
    let density = params.take_flag("density")?;
    let average = take_average(&mut params, &schema)?;
    let properties = crate::protocol::params::page::take_properties(&mut params, &schema)?;
    let fields = properties.map(|names| names.iter().filter_map(|n| schema.field_index(n)).collect());
    let question = items::take_selection(params, &schema)?;
    let history = question.history;
    let question = Tile { predicate: question.predicate, z, row, column, layer: name, fields, density, average };

    let deadline = context.deadline(timeout, state.config.timeout_default)?;
    let at = consistency.newest(history);
    let run = context.read(&state, &*collection, deadline).await?;
    let show = |head: &Head| {
        let mut headers = shown(&state, head, &consistency);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MVT));
        tags::of_read(&mut headers, &*collection, head);
        headers
    };
    if let Some(unchanged) = unchanged::response(&context, &*collection, &at, show) {
        return Ok(unchanged);
    }
    let (shared, of) = (state.clone(), collection.clone());
    let work = move |control: &Control| {
        let read = collection.tile(at.clone(), &question, control).map_err(errors::query_problem)?;
        let answer = read.value;
        let mut headers = shown(&shared, &read.head, &consistency);
        let kind = match answer.kind {
            TileKind::Empty => return Ok(Finished { status: StatusCode::NO_CONTENT, headers, bytes: Vec::new() }),
            TileKind::Events => "events",
            TileKind::Density => "density",
        };
        headers.insert(TILE_KIND.clone(), HeaderValue::from_static(kind));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MVT));
        tags::of_read(&mut headers, &*collection, &read.head);
        Ok(Finished { status: StatusCode::OK, headers, bytes: answer.bytes })
    };
    stream::finished_read(&state, QueryKind::Tile(z), &*of, run, work).await
}

/// Takes `avg`: the numeric property that the cells of a tile of counts average.
fn take_average(params: &mut Params, schema: &Schema) -> Result<Option<usize>> {
    let Some(name) = params.take("avg") else { return Ok(None) };
    let field = schema.field_index(&name).filter(|field| schema.numeric_fields().contains(field));
    field.map(Some).ok_or_else(|| {
        let numeric: Vec<&str> = schema.numeric_fields().into_iter().map(|f| schema.fields[f].name.as_str()).collect();
        let known = if numeric.is_empty() { "none".to_owned() } else { numeric.join(", ") };
        Problem::parameter("avg", format!("{name:?} is not a numeric property of this collection: it has {known}"))
    })
}

/// Returns the headers of every tile.
fn shown(state: &AppState, head: &Head, consistency: &Consistency) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(respond::HEADERS);
    respond::set_read_headers(&mut headers, head, state.now(), consistency.name);
    // The next write may change any tile, so browsers must revalidate each time.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers
}

/// Parses a number in the path of a tile; 404 if it names no tile (OGC API - Tiles, requirement 7).
fn path_number(text: &str, last: u64, what: &str) -> Result<u64> {
    match text.parse::<u64>() {
        Ok(n) if n <= last => Ok(n),
        _ => Err(Problem::not_found(format!("{text:?} is not a {what}: expected 0 to {last}"))),
    }
}

/// Returns the bounding box of the events, if any has a geometry.
fn bbox(collection: &dyn Collection) -> Option<[f64; 4]> {
    let bounds = collection.stats().bounds.filter(|b| !b.is_nowhere())?;
    Some([bounds.west, bounds.south, bounds.east, bounds.north])
}

fn trail(name: &str) -> [(&str, String); 2] {
    [("Collections", "/collections?f=html".to_owned()), (name, format!("/collections/{}?f=html", links::escape(name)))]
}
