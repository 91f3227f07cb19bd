//! How a proxy describes its clients, and which proxies are trusted.

use crate::kinds::token;
use crate::support::Server;
use meridian_api::ServerConfig;
use serde_json::json;

const PROXY: [u8; 4] = [127, 0, 0, 1];
const STRANGER: [u8; 4] = [127, 0, 0, 2];

fn behind_a_proxy() -> Server {
    Server::with(ServerConfig { proxies: vec!["127.0.0.1".parse().unwrap()], ..ServerConfig::default() })
}

/// Returns the scheme of the links in the response to a request from this address.
fn scheme(server: &Server, from: [u8; 4], headers: &[(&str, &str)]) -> String {
    let answer = crate::support::ask_over(server.connect_from(from, 1 << 16), "GET", "/", headers, b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let href = answer.json()["links"][0]["href"].as_str().unwrap().to_owned();
    href.split("://").next().unwrap().to_owned()
}

#[test]
fn links_have_the_scheme_that_a_trusted_proxy_says_and_no_other_client_can_choose_it() {
    let server = behind_a_proxy();
    for https in [
        &[("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")][..],
        &[("forwarded", "for=192.0.2.7;proto=https")],
        &[("x-forwarded-proto", "https")],
    ] {
        assert_eq!(scheme(&server, PROXY, https), "https", "{https:?}");
        assert_eq!(scheme(&server, STRANGER, https), "http", "{https:?}");
    }
    assert_eq!(scheme(&server, PROXY, &[]), "http");
}

#[test]
fn a_client_that_writes_the_other_forwarding_header_is_refused() {
    let server = behind_a_proxy();
    for headers in [
        &[("forwarded", "for=198.51.100.1"), ("x-forwarded-for", "192.0.2.7")][..],
        &[("forwarded", "for=198.51.100.1;x=\", for=192.0.2.7")],
    ] {
        let problem = server.ask("GET", "/", headers, b"").problem(400);
        assert_eq!(problem["type"], "urn:meridian:problem:invalid-forwarding");
    }
}

#[test]
fn a_proxy_needs_a_token_first_also_a_trusted_one() {
    let server = behind_a_proxy();
    let forwarded = [("x-forwarded-for", "127.0.0.1")];
    server.ask("GET", "/collections", &forwarded, b"").problem(401);
    server.ask("GET", "/collections", &[("x-forwarded-proto", "http")], b"").problem(401);
    let bearer = format!("Bearer {}", token(&server, None, json!({ "role": "reader" })));
    assert_eq!(server.ask("GET", "/collections", &[forwarded[0], ("authorization", &bearer)], b"").status, 200);
}

#[test]
fn a_header_of_any_proxy_closes_a_server_without_tokens() {
    let server = Server::start();
    assert_eq!(server.get("/collections").status, 200);
    for name in ["Via", "CF-Connecting-IP", "X-Forwarded-Server", "X-Forwarded-Prefix", "X-Client-IP", "CDN-Loop"] {
        server.ask("GET", "/collections", &[(name, "127.0.0.1")], b"").problem(401);
    }
}

#[test]
fn connections_of_a_proxy_are_those_of_its_clients() {
    let config = ServerConfig { connections_per_address_max: 1, ..ServerConfig::default() };
    let server = Server::with(ServerConfig { proxies: vec!["127.0.0.1".parse().unwrap()], ..config });
    let _open: Vec<_> = (0..3).map(|_| server.connect()).collect();
    assert_eq!(server.get("/healthz").status, 200);
    let _one = server.connect_from(STRANGER, 1 << 16);
    let refused = crate::support::ask_over(server.connect_from(STRANGER, 1 << 16), "GET", "/healthz", &[], b"");
    assert_eq!(refused.status, 503);
}
