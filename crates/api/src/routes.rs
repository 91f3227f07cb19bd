//! The router: every route in one place.

use crate::doors::types::typed;
use crate::openapi::operations::OPERATIONS;
use crate::problem::{Kind, Problem};
use crate::request::observe;
use crate::state::AppState;
use crate::{
    analysis, backup, collections, conformance, files, items, landing, live, openapi, operation, pages, passages,
    places, searches, tiles, tilesets,
};
use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use std::collections::BTreeMap;

/// Routes as they are added, and the list of them.
struct Table {
    router: Router<AppState>,
    listed: Vec<(Method, &'static str)>,
}

impl Table {
    fn on<H, T>(mut self, method: Method, path: &'static str, handler: H) -> Table
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        let filter = match method {
            Method::POST => MethodFilter::POST,
            Method::PUT => MethodFilter::PUT,
            Method::PATCH => MethodFilter::PATCH,
            Method::DELETE => MethodFilter::DELETE,
            // HEAD is answered by the handler of GET, without the body.
            _ => MethodFilter::GET,
        };
        let mut route = on(filter, handler);
        let described = OPERATIONS.iter().find(|o| o.method == method.as_str() && o.path == described_path(path));
        if described.is_some_and(|o| o.produces.len() > 1) {
            route = route.route_layer(middleware::map_response(vary));
        }
        if filter != MethodFilter::GET {
            let takes = described.and_then(|o| o.body).map_or(&[][..], |body| body.takes);
            route = route.route_layer(middleware::from_fn(move |request, next| typed(takes, request, next)));
        }
        self.listed.push((method, path));
        self.router = self.router.route(path, route);
        self
    }

    fn get<H, T>(self, path: &'static str, handler: H) -> Table
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        self.on(Method::GET, path, handler)
    }
}

/// A path as the description has it.
fn described_path(path: &str) -> String {
    path.replace("{*", "{")
}

/// Says that another `Accept` may get another answer.
async fn vary(mut response: Response) -> Response {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn table() -> Table {
    use Method as M;
    Table { router: Router::new(), listed: Vec::new() }
        .get("/", landing::get)
        .get("/conformance", conformance::get)
        .get("/api", openapi::get_30)
        .get("/openapi.json", openapi::get_31)
        .get("/collections", collections::list)
        .get("/collections/{c}", collections::get)
        .on(M::PUT, "/collections/{c}", collections::put)
        .on(M::PATCH, "/collections/{c}", collections::patch)
        .on(M::DELETE, "/collections/{c}", collections::delete)
        .get("/collections/{c}/schema", collections::schema)
        .get("/collections/{c}/queryables", collections::queryables)
        .get("/collections/{c}/items", items::get)
        .on(M::POST, "/collections/{c}/items", items::write::post)
        .on(M::DELETE, "/collections/{c}/items", items::write::delete)
        .get("/collections/{c}/items/{id}", items::feature::get)
        .on(M::PUT, "/collections/{c}/items/{id}", items::feature::put)
        .on(M::PATCH, "/collections/{c}/items/{id}", items::feature::patch)
        .on(M::DELETE, "/collections/{c}/items/{id}", items::feature::delete)
        .on(M::POST, "/collections/{c}/files", files::post)
        .get("/collections/{c}/aggregate", analysis::aggregate)
        .get("/collections/{c}/density", analysis::density)
        .get("/collections/{c}/tracks", passages::get)
        .get("/collections/{c}/stream", live::get)
        .get("/collections/{c}/tiles", tiles::list)
        .get("/collections/{c}/tiles/{tileMatrixSetId}", tiles::tileset)
        .get("/collections/{c}/tiles/{tileMatrixSetId}/{tileMatrix}/{tileRow}/{tileCol}", tiles::tile)
        .get("/tileMatrixSets", tilesets::list)
        .get("/tileMatrixSets/{tileMatrixSetId}", tilesets::definition)
        .get("/api/v0/places", places::list)
        .on(M::POST, "/api/v0/places", places::create)
        .get("/api/v0/places/{placeId}", places::get)
        .on(M::DELETE, "/api/v0/places/{placeId}", places::delete)
        .on(M::DELETE, "/api/v0/places/deleteAllPlaces", places::delete_all)
        .get("/api/v0/places/random", places::random)
        .get("/api/v0/places/near/{latitude}/{longitude}", places::near)
        .get("/api/v0/places/near/{latitude}/{longitude}/{radiusKm}", places::near_within)
        .on(M::POST, "/searches", searches::post)
        .get("/searches/{id}", searches::get)
        .on(M::DELETE, "/searches/{id}", searches::delete)
        .get("/searches/{id}/packets", searches::packets::get)
        .on(M::POST, "/saved-searches", searches::saved::post)
        .get("/saved-searches", searches::saved::list)
        .get("/saved-searches/{id}", searches::saved::get)
        .on(M::DELETE, "/saved-searches/{id}", searches::saved::delete)
        .get("/saved-searches/{id}/packets", searches::saved::stream)
        .get("/providers", searches::providers)
        .on(M::POST, "/backup", backup::post)
        .get("/metrics", operation::metrics)
        .get("/healthz", operation::health)
        .get("/readyz", operation::ready)
        .get("/version", operation::version)
        .get("/map", pages::map)
        .get("/search", pages::search)
        .get("/assets/{*file}", pages::asset)
        .get("/favicon.svg", pages::favicon)
}

/// The templates of all routes.
pub fn templates() -> Vec<&'static str> {
    table().listed.into_iter().map(|(_, path)| path).collect()
}

/// What each path allows, as `Allow` has it.
fn allowed(listed: &[(Method, &'static str)]) -> BTreeMap<&'static str, String> {
    let mut allowed: BTreeMap<&'static str, String> = BTreeMap::new();
    for (method, path) in listed {
        let methods = allowed.entry(path).or_insert_with(|| "OPTIONS".to_owned());
        methods.push_str(", ");
        methods.push_str(method.as_str());
        if *method == Method::GET {
            methods.push_str(", HEAD");
        }
    }
    allowed
}

/// The answer to OPTIONS: what may be done here, and no more. To a browser that asks for a page of another origin this
/// means no.
async fn options(allow: HeaderValue) -> Response {
    (StatusCode::NO_CONTENT, [(header::ALLOW, allow)]).into_response()
}

/// The router over some state.
pub fn router(state: AppState) -> Router {
    let Table { mut router, listed } = table();
    for (path, methods) in allowed(&listed) {
        if let Ok(allow) = HeaderValue::from_str(&methods) {
            router = router.route(path, on(MethodFilter::OPTIONS, move || options(allow.clone())));
        }
    }
    router
        .method_not_allowed_fallback(|request: Request| async move {
            let detail = format!("{} is not served at {}", request.method(), request.uri().path());
            Problem::new(Kind::MethodNotAllowed, detail)
        })
        .fallback(|request: Request| async move {
            // The server as a whole (RFC 9110, 9.3.7).
            if request.method() == Method::OPTIONS && request.uri().path() == "*" {
                return options(HeaderValue::from_static("OPTIONS, GET, HEAD, POST, PUT, PATCH, DELETE")).await;
            }
            Problem::not_found(format!("there is nothing at {}: see / for what there is", request.uri().path()))
                .into_response()
        })
        .layer(middleware::from_fn_with_state(state.clone(), observe))
        .with_state(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_description_has_every_route_and_no_other() {
        let served: BTreeSet<String> = table()
            .listed
            .into_iter()
            .filter(|(_, path)| *path != "/favicon.svg")
            .map(|(method, path)| format!("{method} {}", described_path(path)))
            .collect();
        let described: BTreeSet<String> = OPERATIONS.iter().map(|o| format!("{} {}", o.method, o.path)).collect();
        assert_eq!(served, described);
    }
}
