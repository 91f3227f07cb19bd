//! What caches may store, and for whom.

use crate::kinds::Shared;
use crate::sign_in::{Browser, PASSWORD};
use crate::support::Server;
use serde_json::json;

#[test]
fn no_shared_cache_gives_a_caller_what_is_for_another() {
    let shared = Shared::start();
    shared.user(json!({ "name": "anna", "role": "reader", "collections": "ships*" }));
    let browser = Browser::of(&shared.server, "anna", PASSWORD);
    let bearer = format!("Bearer {}", shared.reader);
    for path in [
        "/",
        "/collections",
        "/collections/ships",
        "/collections/ships/items",
        "/collections/ships/items?f=html",
        "/collections/ships/items?f=csv",
        "/collections/ships/tiles/WebMercatorQuad/0/0/0",
        "/collections/absent",
        "/api/v0/places/near/1/2",
        "/saved-searches",
        "/session",
    ] {
        for credential in [("authorization", &*bearer), ("cookie", &*browser.cookie)] {
            let answer = shared.server.ask("GET", path, &[credential], b"");
            let (kept, vary) = (answer.header("cache-control"), answer.header("vary"));
            assert!(kept.starts_with("private") || kept == "no-store", "{path}: {kept:?}");
            if kept != "no-store" {
                assert!(vary.ends_with("Authorization, Cookie, Meridian-Tenant"), "{path}: {vary:?}");
            }
        }
    }
    // A cache must not serve the public version to a caller with more rights.
    let landing = shared.server.get("/");
    assert!(landing.header("vary").ends_with("Authorization, Cookie, Meridian-Tenant"));
    assert!(!landing.headers.contains_key("cache-control"), "{:?}", landing.headers);
    for path in ["/favicon.svg", "/favicon.ico"] {
        let icon = shared.server.ask("GET", path, &[("authorization", &bearer)], b"");
        assert_eq!((icon.status, icon.header("content-type")), (200, "image/svg+xml"), "{path}");
        assert!(icon.header("cache-control").starts_with("public"), "{:?}", icon.headers);
    }
}

#[test]
fn a_part_and_a_304_depend_on_what_the_whole_does() {
    let server = Server::start();
    // The file has parts in a program with the pages of `web/`.
    for path in ["/assets/pages.css", "/openapi.json"] {
        let whole = server.get(path);
        assert!(whole.header("vary").contains("Accept-Encoding"), "{path}: {:?}", whole.headers);
        for condition in [("range", "bytes=0-9"), ("if-none-match", "*")] {
            let answer = server.ask("GET", path, &[condition], b"");
            assert!([200, 206, 304].contains(&answer.status), "{path} {condition:?}: {}", answer.text());
            assert_eq!(answer.header("vary"), whole.header("vary"), "{path} {condition:?}");
        }
    }
}
