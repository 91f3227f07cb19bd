//! Clients of HTTP/2 that wait for `100 Continue`: some are asked for their bodies, others refused before.

use crate::http2::{Client, create, events, house, run, text, whole};
use crate::support::Server;
use crate::tls::Shown;
use http::{Method, Request, Response};
use meridian_api::{AppState, ServerConfig};
use meridian_backend::Embedded;
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::{Value, json};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

#[test]
fn who_waits_for_100_continue_is_told_to_go_on_or_refused() {
    let (server, shown) = house(ServerConfig::default());
    run(async {
        let mut client = Client::new(&server, &shown).await;
        create(&mut client).await;
        let post = |path: &str, expect: &str| {
            let post = Request::post(format!("https://localhost{path}")).header("expect", expect);
            post.header("content-type", "application/geo+json").body(()).unwrap()
        };
        let mut requests = client.requests.clone().ready().await.unwrap();
        // Case-insensitive (RFC 9110, 10.1.1).
        for expect in ["100-continue", "100-Continue"] {
            let (mut response, mut body) = requests.send_request(post("/collections/c/items", expect), false).unwrap();
            let told = poll_fn(|cx| response.poll_informational(cx)).await.unwrap().unwrap();
            assert_eq!(told.status(), 100);
            body.send_data(events(1).into(), true).unwrap();
            assert_eq!(response.await.unwrap().status(), 201);
        }
        for path in ["/nowhere", "/collections/c/items?nonsense=1"] {
            let (response, _body) = requests.send_request(post(path, "100-continue"), false).unwrap();
            assert!(response.await.unwrap().status().is_client_error(), "{path}");
        }
    });
}

/// Sends a document by the holder of a token, or by nobody; the response must be a success.
async fn ask(client: &mut Client, by: &str, method: Method, path: &str, document: Value) -> Response<Vec<u8>> {
    let bearer = format!("Bearer {by}");
    let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
    let headers = if by.is_empty() { &headers[..1] } else { &headers[..] };
    let response = client.ask(method, path, headers, document.to_string().as_bytes()).await;
    assert!(response.status().is_success(), "{path}: {}", text(&response));
    response
}

async fn token(client: &mut Client, by: &str, asked: Value) -> String {
    let made = ask(client, by, Method::POST, "/tokens", asked).await;
    serde_json::from_slice::<Value>(made.body()).unwrap()["token"].as_str().unwrap().to_owned()
}

/// Announces a write, and sends none of it. Returns its response, which must come without a request for the body.
async fn refused_unsent(client: &Client, by: &str) -> Response<Vec<u8>> {
    let mut post = Request::post("https://localhost/collections/c/items").header("expect", "100-continue");
    if !by.is_empty() {
        post = post.header("authorization", format!("Bearer {by}"));
    }
    let post = post.header("content-type", "application/geo+json").header("content-length", 1_000).body(()).unwrap();
    let mut requests = client.requests.clone().ready().await.unwrap();
    let (mut response, _body) = requests.send_request(post, false).unwrap();
    let mut is_asked_for = false;
    let refused = poll_fn(|cx| {
        // Polled before the response, which would skip it.
        is_asked_for |= matches!(response.poll_informational(cx), Poll::Ready(Some(Ok(_))));
        Pin::new(&mut response).poll(cx)
    });
    let refused = whole(refused.await.unwrap()).await.unwrap();
    assert!(!is_asked_for, "{}", text(&refused));
    refused
}

#[test]
fn who_waits_for_100_continue_and_may_not_write_now_is_refused_and_the_connection_stays() {
    let (seams, shown) = (Seams::real(), Shown::new());
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
    let state = AppState::new(Embedded::new(store.clone()), &seams, ServerConfig::default()).unwrap();
    let server = Server::of("127.0.0.1:0", store, state.clone(), Some(shown.tls()), None);
    run(async {
        let mut client = Client::new(&server, &shown).await;
        create(&mut client).await;
        let operator = token(&mut client, "", json!({ "role": "operator" })).await;
        let reader = token(&mut client, &operator, json!({ "role": "reader" })).await;
        let writer = token(&mut client, &operator, json!({ "role": "writer" })).await;
        ask(&mut client, &operator, Method::POST, "/tenants", json!({ "name": "harbour" })).await;
        let quotas = json!({ "quotas": { "concurrent_requests": 0 } });
        ask(&mut client, &operator, Method::PATCH, "/tenants/harbour", quotas).await;
        let limited = token(&mut client, &operator, json!({ "role": "admin", "tenant": "harbour" })).await;
        // The last one comes while the server cannot read which tokens are revoked.
        for (by, status) in [("", 401), ("unknown", 401), (&*reader, 403), (&*limited, 429), (&*writer, 503)] {
            state.registry.set_behind(status == 503);
            let refused = refused_unsent(&client, by).await;
            assert_eq!(refused.status(), status, "{}", text(&refused));
            assert_eq!(refused.headers()["content-type"], "application/problem+json");
            assert!(!refused.headers().contains_key("connection"), "{:?}", refused.headers());
            assert_eq!(client.get("/healthz").await.status(), 200, "after {status}");
        }
        state.registry.set_behind(false);
        // The same write by a caller who may is done on the same connection.
        let bearer = format!("Bearer {writer}");
        let headers = [("content-type", "application/geo+json"), ("authorization", &*bearer)];
        let written = client.ask(Method::POST, "/collections/c/items", &headers, &events(1)).await;
        assert_eq!(written.status(), 201, "{}", text(&written));
    });
}
