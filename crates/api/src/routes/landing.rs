//! The landing page.

use crate::contract::Landing;
use crate::contract::links::{self, OPENAPI_30, OPENAPI_31, link};
use crate::html::{self, ask::Question};
use crate::protocol::params::format::{Format, PAGES};
use crate::protocol::problem::Result;
use crate::request::context::Context;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::response::Response;
use meridian_backend::{Collection, CollectionStats};
use meridian_model::policy::access::{Action, Decision, Target};
use meridian_model::{Schema, TimeRole};
use std::sync::Arc;

const TITLE: &str = "Meridian";
const DESCRIPTION: &str = "Events in space and time: search, aggregate and map them.";

/// `GET /`
pub async fn get(state: Scope, context: Context) -> Result<Response> {
    let format = context.page_format()?;
    if format == Format::Html {
        return Ok(respond::page(&state, page(&state, &context.base)?));
    }
    let mut links = links::self_and_alternates(&context.url("/"), format, PAGES, "application/json");
    links.extend([
        link(context.url("/api"), "service-desc", OPENAPI_30, "The API as OpenAPI 3.0"),
        link(context.url("/openapi.json"), "service-desc", OPENAPI_31, "The API as OpenAPI 3.1"),
        link(context.url("/api?f=html"), "service-doc", "text/html", "The API for people"),
        link(context.url("/conformance"), "conformance", "application/json", "Conformance classes"),
        link(context.url("/conformance"), links::REL_CONFORMANCE, "application/json", "Conformance classes"),
        link(context.url("/collections"), "data", "application/json", "The collections"),
        link(context.url("/collections"), links::REL_DATA, "application/json", "The collections"),
        link(context.url("/tileMatrixSets"), links::REL_TILING_SCHEMES, "application/json", "Tile matrix sets"),
        link(context.url("/map"), "related", "text/html", "The map"),
        link(context.url("/search"), "related", "text/html", "Searches"),
    ]);
    respond::document("application/json", &Landing { title: TITLE, description: DESCRIPTION, links })
}

/// Max number of cards, which bounds the queries and the size of the page.
const CARDS_MAX: usize = 24;

fn page(state: &Scope, base: &str) -> Result<html::Page> {
    let caller = state.caller();
    let mut collections = state.view().list().map_err(errors::store_problem)?;
    collections.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    let map = if cfg!(feature = "map") {
        "<li><a class=\"first\" href=\"/map\">Open the map</a></li><li><a href=\"/search\">Search</a></li>"
    } else {
        ""
    };
    let mut body = format!(
        "<p class=\"lead\">{DESCRIPTION}</p><ul class=\"actions\">{map}<li><a href=\"/api?f=html\">Try the API</a></li></ul><h2>Collections</h2>"
    );
    if collections.is_empty() {
        // Collections that a caller may not see are not reported as absent.
        body.push_str(match caller.grant.decide(Action::Manage, Target::Collections) {
            Decision::Allowed => {
                "<p class=\"muted\">There are none yet. <code>meridian load NAME FILE</code> makes one from a file.</p>"
            }
            _ if caller.is_anonymous() => "<p class=\"muted\">They are shown to callers with a credential.</p>",
            _ => "<p class=\"muted\">There are none that you may read.</p>",
        });
    } else {
        cards(&mut body, state, base, &collections);
    }
    body.push_str(
        "<h2>For programs</h2><ul>\
         <li><a href=\"/api?f=html\">The API</a> (<a href=\"/api?f=json\">OpenAPI 3.0</a>, <a href=\"/openapi.json\">3.1</a>)</li>\
         <li><a href=\"/conformance\">Conformance</a></li><li><a href=\"/collections\">Collections</a></li>\
         <li><a href=\"/tileMatrixSets\">Tile matrix sets</a></li></ul>",
    );
    if caller.grant.decide(Action::Read, Target::Server) == Decision::Allowed {
        body.push_str("<h2>The server</h2><ul><li><a href=\"/admin/load\">Load</a></li><li><a href=\"/admin/cluster\">Cluster</a></li><li><a href=\"/metrics\">Metrics</a></li></ul>");
    }
    Ok(html::page(TITLE, &[], &body))
}

/// Renders the cards of the first collections by name, and the question about the largest of them.
fn cards(body: &mut String, state: &Scope, base: &str, collections: &[Arc<dyn Collection>]) {
    body.push_str("<ul class=\"collections\">");
    let mut largest: Option<(&str, Arc<Schema>, CollectionStats)> = None;
    for collection in collections.iter().take(CARDS_MAX) {
        let (schema, stats) = (collection.schema(), collection.stats());
        html::card::write(body, collection.name(), &schema, &stats, 3);
        let points = |schema: &Schema| matches!(schema.time, TimeRole::Instant(_));
        let rank = (points(&schema), stats.events);
        if largest.as_ref().is_none_or(|(_, schema, stats)| rank > (points(schema), stats.events)) {
            largest = Some((collection.name(), schema, stats));
        }
    }
    body.push_str("</ul>");
    if collections.len() > CARDS_MAX {
        let more = html::grouped((collections.len() - CARDS_MAX) as u64);
        body.push_str(&format!("<p><a href=\"/collections\">All collections</a>: {more} more</p>"));
    }
    if let Some((name, schema, stats)) = largest {
        let needs_token = state.asks_for_tokens();
        let shown = html::escape(schema.title.as_deref().unwrap_or(name)).into_owned();
        let question = Question { base, name, schema: &schema, stats: &stats, needs_token };
        body.push_str(&format!("<h2>Ask {shown} in curl, Python, DuckDB</h2>{}", html::ask::panel(&question)));
    }
}
