//! Pages of the server: errors as seen by browsers, cards, commands, and the policy common to all.

use crate::kinds::Shared;
use crate::sign_in::{Browser, PASSWORD};
use crate::support::{Server, point, read_head, send};
use serde_json::json;
use std::io::BufReader;

const BROWSER: [(&str, &str); 2] =
    [("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), ("sec-fetch-mode", "navigate")];

fn served() -> Server {
    let server = Server::start();
    server.create("quakes", "mag:Double,time:Date,*geom:Point");
    let at = |lon: f64, time: &str| point("", lon, 35.0, json!({"mag": 5.5, "time": time}));
    server.load("quakes", &[at(139.5, "2020-01-01T00:00:00Z"), at(141.0, "2024-06-01T12:00:00Z")]);
    server
}

#[test]
fn an_error_is_a_page_for_a_browser_and_a_problem_for_a_program() {
    let server = served();
    for (path, status, detail) in [
        ("/nowhere", 404, "There is nothing at /nowhere"),
        ("/collections/none", 404, "There is no collection &quot;none&quot;"),
        ("/collections/quakes/items/none", 404, "none"),
        ("/collections/quakes/items?bbox=7", 400, "<code>bbox</code>"),
        ("/collections/quakes/items?limit=%3Cscript%3E", 400, "&lt;script&gt;"),
        ("/collections/quakes/density?nonsense=1", 400, "nonsense"),
        ("/api/v0/places/near/91/0", 400, "Error 400"),
    ] {
        let page = server.ask("GET", path, &BROWSER, b"");
        assert_eq!((page.status, page.header("content-type")), (status, "text/html; charset=utf-8"), "{path}");
        let text = page.text();
        assert!(text.contains("<header class=\"bar\">") && text.contains(&format!("Error {status}")), "{path}: {text}");
        assert!(text.contains(detail) && text.contains(page.header("x-request-id")), "{path}: {text}");
        assert!(!text.contains("<script>"), "{path}: {text}");
        assert!(page.header("content-security-policy").contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(page.header("cache-control"), "no-store", "{path}");
        assert_eq!(page.header("content-length"), page.body.len().to_string(), "{path}");
        server.get(path).problem(status);
        server.ask("GET", path, &[("accept", "application/json")], b"").problem(status);
        server.ask("GET", path, &[("accept", "text/html"), ("sec-fetch-mode", "cors")], b"").problem(status);
    }
    server.ask("GET", "/collections/none?f=json", &BROWSER, b"").problem(404);
    let mut stream = server.connect();
    send(&mut stream, "HEAD", "/nowhere", &BROWSER, b"");
    let (status, headers) = read_head(&mut BufReader::new(&mut stream)).unwrap();
    assert_eq!((status, &*headers["content-type"]), (404, "text/html; charset=utf-8"));
}

#[test]
fn refusals_keep_their_headers_as_pages() {
    let shared = Shared::start();
    let server = &shared.server;
    let page = server.ask("GET", "/collections", &BROWSER, b"");
    assert_eq!((page.status, page.header("content-type")), (401, "text/html; charset=utf-8"));
    assert!(page.header("www-authenticate").contains("Basic"), "a browser asks for the token");
    shared.user(json!({ "name": "anna", "role": "reader" }));
    let anna = Browser::of(server, "anna", PASSWORD);
    let page = server.ask("GET", "/tokens", &[&BROWSER[..], &[("cookie", &anna.cookie)]].concat(), b"");
    assert_eq!((page.status, page.header("content-type")), (403, "text/html; charset=utf-8"), "{}", page.text());
    assert!(page.text().contains("The role reader does not include this."), "{}", page.text());
    let page = server.ask("PUT", "/nowhere", &BROWSER, b"");
    assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"));
}

/// Opens a page as a signed-in user.
fn seen(server: &Server, by: &Browser, path: &str) -> String {
    server.ask("GET", path, &[&BROWSER[..], &[("cookie", &by.cookie)]].concat(), b"").text()
}

/// Returns the header of a page, without the mark of the page's own section.
fn header_of(page: &str) -> String {
    let header = page.split("<header").nth(1).and_then(|rest| rest.split("</header>").next()).unwrap();
    header.replace(" aria-current=\"page\"", "")
}

#[test]
fn all_pages_have_one_header() {
    let open = served();
    let of = |path: &str| header_of(&open.ask("GET", path, &BROWSER, b"").text());
    let start = of("/");
    assert!(start.contains(">Server</a>"), "{start}");
    for path in ["/login", "/nowhere", "/collections/none"] {
        assert_eq!(of(path), start, "{path}");
    }
    let shared = Shared::start();
    shared.user(json!({ "name": "anna", "role": "reader" }));
    let anna = Browser::of(&shared.server, "anna", PASSWORD);
    let start = header_of(&seen(&shared.server, &anna, "/"));
    assert!(start.contains(">anna</b>") && start.contains(">Account</a>"), "{start}");
    for path in ["/login", "/nowhere", "/collections/none", "/tokens"] {
        assert_eq!(header_of(&seen(&shared.server, &anna, path)), start, "{path}");
    }
}

#[test]
fn the_start_page_has_a_card_for_each_of_some_collections_and_a_question_that_is_answered() {
    let server = served();
    for n in 0..30 {
        server.create(&format!("c{n:02}"), "n:Integer");
    }
    let page = server.ask("GET", "/", &BROWSER, b"").text();
    assert_eq!(page.matches("<li class=\"collection\"").count(), 24, "bounded");
    assert!(page.contains("7 more"), "{page}");
    let page = server.ask("GET", "/collections/quakes", &BROWSER, b"").text();
    // As a shell reads the command.
    let command = page.split("curl &#39;").nth(1).and_then(|rest| rest.split("&#39;").next()).unwrap();
    let url = command.replace("&amp;", "&");
    let path = url.strip_prefix("http://localhost").unwrap_or_else(|| panic!("{url}"));
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    assert_eq!(answer.text().lines().count(), 3, "two years with events: {}", answer.text());
    assert!(page.contains("aggregate(&quot;count&quot;, window=&quot;P1Y&quot;)"), "{page}");
    assert!(page.contains("date_trunc(&#39;year&#39;, &quot;time&quot;)"), "{page}");
}

#[test]
fn a_list_of_events_rounds_for_people_and_keeps_exact_values_as_titles() {
    let server = Server::start();
    server.create("quakes", "mag:Double,time:Date,*geom:Point");
    let properties = json!({"mag": 1.6900000572205, "time": "2026-03-21T02:53:46.52Z"});
    server.load("quakes", &[point("", -155.30599975586, 19.266834259033, properties)]);
    let page = server.ask("GET", "/collections/quakes/items", &BROWSER, b"").text();
    assert!(page.contains("1 event. "), "{page}");
    for cell in [
        "title=\"1.6900000572205\">1.69</td>",
        "title=\"-155.30599975586, 19.266834259033\">-155.306, 19.26683</td>",
        "title=\"2026-03-21T02:53:46.52Z\">2026-03-21 02:53:46Z</td>",
    ] {
        assert!(page.contains(cell), "{cell} in {page}");
    }
    let found = server.json("/collections/quakes/items?limit=1");
    let item = format!("/collections/quakes/items/{}", found["features"][0]["id"].as_str().unwrap());
    let page = server.ask("GET", &item, &BROWSER, b"").text();
    assert!(page.contains("<td>1.6900000572205</td>"), "the page of an event is exact: {page}");
}

#[test]
fn heads_of_a_collections_page_go_down_by_one_level() {
    let server = served();
    for path in ["/", "/collections/quakes"] {
        let page = server.ask("GET", path, &BROWSER, b"").text();
        let levels: Vec<u32> = page.split("<h").skip(1).filter_map(|rest| rest.chars().next()?.to_digit(10)).collect();
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{path}: {levels:?}");
        assert!(levels.first() == Some(&1) && levels.len() > 2, "{path}: {levels:?}");
    }
    let list = server.ask("GET", "/collections", &BROWSER, b"").text();
    assert!(!list.contains("<th></th>") && list.contains("aria-label=\"Map of quakes\""), "{list}");
}

#[test]
fn a_card_asks_routes_that_answer() {
    let server = served();
    let page = server.ask("GET", "/", &BROWSER, b"").text();
    let of = |name: &str| {
        let rest = page.split(&format!("data-{name}=\"")).nth(1).unwrap_or_else(|| panic!("{name}: {page}"));
        rest.split('"').next().unwrap().to_owned()
    };
    assert_eq!(of("bbox"), "139.5,35,141,35");
    let density = server.json(&format!("/collections/quakes/density?bbox={}&width=4&height=2", "130,30,150,40"));
    assert_eq!(density["counts"].as_array().unwrap().iter().filter_map(|n| n.as_u64()).sum::<u64>(), 2);
    let groups =
        server.json(&format!("/collections/quakes/aggregate?function=count&window=P1Y&datetime={}", of("interval")));
    assert_eq!(groups["groups"].as_array().unwrap().len(), 2, "{groups}");
}

#[test]
fn commands_name_a_token_where_one_is_needed() {
    let shared = Shared::start();
    shared.user(json!({ "name": "anna", "role": "reader", "collections": "ships*" }));
    let anna = Browser::of(&shared.server, "anna", PASSWORD);
    let page =
        shared.server.ask("GET", "/collections/ships", &[&BROWSER[..], &[("cookie", &anna.cookie)]].concat(), b"");
    let text = page.text();
    assert!(text.contains("Bearer $MERIDIAN_TOKEN") && text.contains("BEARER_TOKEN"), "{text}");
    assert!(!served().ask("GET", "/collections/quakes", &BROWSER, b"").text().contains("MERIDIAN_TOKEN"));
}

#[test]
fn no_page_of_the_server_has_an_inline_script_or_style() {
    let server = served();
    let found = server.json("/collections/quakes/items?limit=1");
    let item = format!("/collections/quakes/items/{}", found["features"][0]["id"].as_str().unwrap());
    let paths = [
        "/",
        "/api",
        "/collections",
        "/collections/quakes",
        "/collections/quakes/items",
        &item,
        "/collections/quakes/schema",
        "/collections/quakes/tiles",
        "/conformance",
        "/tileMatrixSets",
        "/login",
        "/admin/load",
        "/admin/cluster",
        "/nowhere",
    ];
    for path in paths {
        let page = server.ask("GET", path, &BROWSER, b"");
        let (text, policy) = (page.text(), page.header("content-security-policy"));
        assert!(
            policy.contains("script-src 'self'; style-src 'self'") && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
        let inline = text.split("<script").skip(1).any(|rest| !rest.starts_with(" type=\"module\" src=\"/assets/"));
        assert!(
            !inline && !text.contains("<style") && !text.contains(" style=\"") && !text.contains(" onclick="),
            "{path}"
        );
        assert!(
            text.contains("href=\"/assets/pages.css\"") && text.contains("<header class=\"bar\">"),
            "{path}: {text}"
        );
    }
    for file in ["pages.css", "pages.js"] {
        let answer = server.get(&format!("/assets/{file}"));
        assert_eq!(answer.status, 200, "{file}");
        assert!(answer.header("content-type").starts_with("text/"), "{file}");
    }
}
