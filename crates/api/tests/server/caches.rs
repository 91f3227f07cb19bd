//! What caches may store, and for whom.

use crate::kinds::Shared;
use crate::sign_in::{Browser, PASSWORD};
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
