//! The landing page.

use crate::contract::Landing;
use crate::errors;
use crate::html;
use crate::links::{self, OPENAPI_30, OPENAPI_31, link};
use crate::params::format::{Format, PAGES};
use crate::problem::Result;
use crate::request::Context;
use crate::respond;
use crate::scope::Scope;
use axum::response::Response;
use meridian_model::policy::access::{Action, Decision, Target};

const TITLE: &str = "Meridian";
const DESCRIPTION: &str = "Events in space and time: search, aggregate and map them.";

/// `GET /`
pub async fn get(state: Scope, context: Context) -> Result<Response> {
    let format = context.page_format()?;
    if format == Format::Html {
        return Ok(respond::page(&state, page(&state)?));
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

fn page(state: &Scope) -> Result<html::Page> {
    let (caller, collections) = (state.caller(), state.view().list().map_err(errors::store_problem)?);
    let mut body = format!(
        "<p>{DESCRIPTION}</p><p><a href=\"/map\">Open the map</a> · <a href=\"/search\">Search</a></p><h2>Collections</h2>"
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
        body.push_str("<ul>");
        for collection in collections {
            let (href, name) = (links::escape(collection.name()), html::escape(collection.name()));
            body.push_str(&format!("<li><a href=\"/collections/{href}\">{name}</a></li>"));
        }
        body.push_str("</ul>");
    }
    body.push_str(
        "<h2>For programs</h2><ul>\
         <li><a href=\"/api?f=html\">The API</a> (<a href=\"/api\">OpenAPI 3.0</a>, <a href=\"/openapi.json\">3.1</a>)</li>\
         <li><a href=\"/conformance\">Conformance</a></li><li><a href=\"/collections\">Collections</a></li>\
         <li><a href=\"/tileMatrixSets\">Tile matrix sets</a></li></ul>",
    );
    if caller.grant.decide(Action::Read, Target::Server) == Decision::Allowed {
        body.push_str("<h2>The server</h2><ul><li><a href=\"/admin/load\">Load</a></li><li><a href=\"/admin/cluster\">Cluster</a></li><li><a href=\"/metrics\">Metrics</a></li></ul>");
    }
    Ok(html::page(TITLE, &[], &body))
}
