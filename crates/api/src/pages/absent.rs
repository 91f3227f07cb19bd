//! The routes of the pages in a build without the feature `map`: 404, with a message that names the feature.

use crate::html;
use crate::pages::unbuilt;
use crate::protocol::problem::Result;
use crate::request::dispatch::Path;
use crate::response::respond;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

const ABSENT: &str = "this program was built without the map and the search page: they need the feature `map`";

/// `GET /map`
pub async fn map() -> Response {
    let body = format!("<p>{}.</p>", html::escape(ABSENT));
    (StatusCode::NOT_FOUND, respond::html(html::page("Not in this program", &[], &body).plain())).into_response()
}

/// `GET /search`
pub async fn search() -> Response {
    map().await
}

/// `GET /assets/{*file}`
pub async fn asset(Path(file): Path<String>) -> Result<Response> {
    unbuilt::asset(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_route_of_the_pages_names_the_feature() {
        for response in [map().await, search().await] {
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
            let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            assert!(String::from_utf8_lossy(&body).contains("feature `map`"));
        }
        assert!(asset(Path("map.js".to_owned())).await.is_err());
    }
}
