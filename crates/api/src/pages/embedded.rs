//! The web pages and their files, built by `web/` and embedded in the program.

#![allow(clippy::disallowed_methods, reason = "a debug build reads the pages from the folder of `web/`")]

use crate::config::BaseMap;
use crate::html;
use crate::pages::unbuilt;
use crate::protocol::problem::Result;
use crate::protocol::web_origin::WebOrigin;
use crate::request::dispatch::Path;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use httpdate::fmt_http_date;
use rust_embed::RustEmbed;
use std::time::{Duration, UNIX_EPOCH};

/// The output of `web/`. A debug build reads it from the folder at each request; a release build embeds it.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Dist;

/// The sources that pages may load: their own files and objects that they create. The pages contain the same policy, in
/// case another server delivers them.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; \
    object-src 'none'; base-uri 'none'; form-action 'self'";

/// Where the map page names the operator's base map.
const BASE_MAP: &str = r#"<meta name="meridian-base-map" content="">"#;

/// `GET /map`
pub async fn map(state: Scope) -> Response {
    match &state.config.base_map {
        None => page("map.html"),
        Some(base) => map_over(base, &state.config.base_map_origins),
    }
}

/// `GET /search`
pub async fn search() -> Response {
    page("search.html")
}

fn page(name: &str) -> Response {
    match Dist::get(name) {
        Some(file) => {
            let mut response = file_response(name, file, "no-cache");
            respond::set_page(response.headers_mut(), POLICY);
            response
        }
        None => absent(),
    }
}

fn absent() -> Response {
    (StatusCode::NOT_FOUND, respond::html(not_built())).into_response()
}

/// Renders the map page with the operator's base map. It has no tag, because it contains the setting.
fn map_over(base: &BaseMap, origins: &[WebOrigin]) -> Response {
    let Some(file) = Dist::get("map.html") else { return absent() };
    let policy = policy_with(base, origins);
    let meta = format!("<meta name=\"meridian-base-map\" content=\"{}\">", html::escape(base.address()));
    let text = String::from_utf8_lossy(&file.data).replacen(BASE_MAP, &meta, 1).replacen(POLICY, &policy, 1);
    let mut response = text.into_response();
    let headers = response.headers_mut();
    respond::set_page(headers, POLICY);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    respond::insert(headers, header::CONTENT_SECURITY_POLICY, &policy);
    response
}

/// Returns the policy of a map that also loads from the origins of its base map.
fn policy_with(base: &BaseMap, origins: &[WebOrigin]) -> String {
    let mut all: Vec<String> = base.origin().iter().chain(origins).map(ToString::to_string).collect();
    all.sort();
    all.dedup();
    if all.is_empty() {
        return POLICY.to_owned();
    }
    let all = all.join(" ");
    let pictures = "img-src 'self' data: blob:";
    POLICY.replacen(pictures, &format!("connect-src 'self' {all}; {pictures} {all}"), 1)
}

/// `GET /assets/{*file}`
pub async fn asset(Path(file): Path<String>) -> Result<Response> {
    let name = format!("assets/{file}");
    let Some(found) = Dist::get(&name) else { return unbuilt::asset(&file) };
    // The build includes a hash in the names of bundled files; other files are revalidated by their tag.
    let hashed = file.rsplit('/').next().is_some_and(|name| {
        let stem = name.split('.').next().unwrap_or_default();
        stem.rsplit('-').next().is_some_and(|hash| hash.len() == 8 && stem.len() > 9)
    });
    let cache = if hashed { "public, max-age=31536000, immutable" } else { "no-cache" };
    Ok(file_response(&file, found, cache))
}

fn file_response(name: &str, file: rust_embed::EmbeddedFile, cache: &'static str) -> Response {
    let hash = file.metadata.sha256_hash();
    let tag: String = hash[..12].iter().map(|b| format!("{b:02x}")).collect();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    respond::insert(&mut headers, header::ETAG, &format!("\"{tag}\""));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(at) = file.metadata.last_modified().map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)) {
        respond::insert(&mut headers, header::LAST_MODIFIED, &fmt_http_date(at));
    }
    // Not a copy: it is part of the program.
    (headers, file.data).into_response()
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "geojson" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "pbf" | "mvt" => "application/x-protobuf",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn not_built() -> String {
    html::page(
        "The page is not built",
        &[],
        "<p>This program was built without the pages of <code>web/</code>. Build them and the program with</p>\
         <p><code>make build</code></p><p>or, while working on the pages, with <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code>.</p>",
    )
    .plain()
}

#[cfg(test)]
mod tests {
    use super::{BASE_MAP, POLICY, policy_with};
    use crate::protocol::web_origin::WebOrigin;

    #[test]
    fn the_pages_say_the_same_policy_as_their_headers() {
        assert!(include_str!("../../../../web/src/map.html").contains(BASE_MAP));
        for page in [include_str!("../../../../web/src/map.html"), include_str!("../../../../web/src/search.html")] {
            assert!(page.contains(&format!("http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"")));
        }
    }

    #[test]
    fn the_map_may_load_from_the_origins_of_its_base_map_and_no_others() {
        let tiles = "/srv/a.pmtiles".parse().unwrap();
        assert_eq!(policy_with(&tiles, &[]), POLICY);
        let style = "https://tiles.example/style.json".parse().unwrap();
        let more: [WebOrigin; 2] =
            ["https://tiles.example", "https://glyphs.example"].map(|origin| origin.parse().unwrap());
        let policy = policy_with(&style, &more);
        assert!(policy.contains("connect-src 'self' https://glyphs.example https://tiles.example; "), "{policy}");
        assert!(
            policy.contains("img-src 'self' data: blob: https://glyphs.example https://tiles.example; "),
            "{policy}"
        );
        assert!(policy.starts_with("default-src 'self'; "), "{policy}");
    }
}
