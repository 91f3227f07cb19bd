//! Documents that no client of HTTP/2 reads: they count as responses, refuse others at the limit, and give way to them.

use crate::http2::{Client, house, run};
use crate::support::Server;
use h2::{Reason, RecvStream};
use http::{Method, Request, Response};
use meridian_api::ServerConfig;
use serde_json::Value;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const BUDGET: usize = 2 << 20;
/// Over 100 KB, and built for each request.
const LARGE: &str = "/openapi.json";
/// A few kilobytes.
const SMALL: &str = "/conformance";
/// The streams of one connection.
const STREAMS: usize = 100;

async fn client(server: &Server, shown: &crate::tls::Shown) -> Client {
    // No body is ever read.
    Client::connect(server, shown, h2::client::Builder::new().initial_window_size(0)).await
}

async fn unread(client: &mut Client, path: &str) -> Response<RecvStream> {
    let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
    client.send(request, b"").await.unwrap()
}

fn metric(text: &str, name: &str) -> usize {
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{name}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

async fn held(reader: &mut Client) -> usize {
    metric(&crate::http2::text(&reader.get("/metrics").await), "meridian_answer_bytes")
}

fn config() -> ServerConfig {
    ServerConfig { answer_bytes_total: BUDGET, write_stall: 10 * PATIENCE, compress: false, ..ServerConfig::default() }
}

#[test]
fn documents_that_nobody_reads_are_refused_at_the_limit_and_give_way_to_others() {
    let (server, shown) = house(config());
    run(async {
        let mut reader = Client::new(&server, &shown).await;
        let tag = reader.get(LARGE).await.headers()["etag"].to_str().unwrap().to_owned();
        let (mut attacker, mut open, mut refused) = (client(&server, &shown).await, Vec::new(), 0);
        for _ in 0..STREAMS {
            let response = unread(&mut attacker, LARGE).await;
            refused += usize::from(response.status() == 503);
            open.push(response);
        }
        assert!(refused > 0, "all were served");
        let held_now = held(&mut reader).await;
        assert!(held_now > 0 && held_now <= BUDGET, "{held_now}");
        // A refusal is that of every overload.
        let problem = loop {
            let answer = reader.get(LARGE).await;
            if answer.status() == 503 {
                break answer;
            }
            open.push(unread(&mut attacker, LARGE).await);
        };
        let text: Value = serde_json::from_slice(problem.body()).unwrap();
        assert!(problem.headers().contains_key("retry-after") && problem.headers().contains_key("ratelimit"));
        assert!(text["detail"].as_str().unwrap().contains("that clients have not taken yet"), "{text}");
        // Neither a response without a body nor one that the client has needs memory.
        assert_eq!(reader.ask(Method::HEAD, LARGE, &[], b"").await.status(), 200);
        assert_eq!(reader.ask(Method::GET, LARGE, &[("if-none-match", &tag)], b"").await.status(), 304);
        // What was done is reported.
        let plain = [("content-type", "text/plain")];
        let made = reader.ask(Method::PUT, "/collections/c", &plain, b"n:Integer,*geom:Point").await;
        assert_eq!(made.status(), 201);
        // Those that read nothing give way to one that reads.
        let begun = Instant::now();
        while reader.get(LARGE).await.status() != 200 {
            assert!(begun.elapsed() < PATIENCE, "nobody gives way");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let metrics = crate::http2::text(&reader.get("/metrics").await);
        assert!(metric(&metrics, "meridian_readers_gave_way_total") > 0);
        assert_eq!(reader.get(SMALL).await.status(), 200);
        drop((attacker, open));
        while held(&mut reader).await > 0 {
            assert!(begun.elapsed() < PATIENCE, "their memory is never returned");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn small_documents_that_nobody_reads_count_over_http_2() {
    let (server, shown) = house(config());
    run(async {
        let mut reader = Client::new(&server, &shown).await;
        let size = reader.get(SMALL).await.body().len();
        assert!((1 << 10..16 << 10).contains(&size), "{size}");
        let (mut attacker, mut open) = (client(&server, &shown).await, Vec::new());
        for _ in 0..STREAMS / 2 {
            open.push(unread(&mut attacker, SMALL).await);
        }
        assert!(held(&mut reader).await >= size * STREAMS / 2);
        // They give way as well.
        let mut attackers = vec![attacker];
        'full: loop {
            let mut one = client(&server, &shown).await;
            for _ in 0..STREAMS {
                let response = unread(&mut one, SMALL).await;
                let is_full = response.status() == 503;
                open.push(response);
                if is_full {
                    break 'full;
                }
            }
            attackers.push(one);
        }
        let begun = Instant::now();
        while reader.get(LARGE).await.status() != 200 {
            assert!(begun.elapsed() < PATIENCE, "nobody gives way");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn refusals_that_nobody_reads_take_streams_of_their_connection_and_nothing_of_others() {
    let (server, shown) = house(config());
    run(async {
        let mut reader = Client::new(&server, &shown).await;
        let (mut attackers, mut open) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let mut attacker = client(&server, &shown).await;
            for _ in 0..STREAMS {
                let response = unread(&mut attacker, "/nowhere").await;
                assert_eq!(response.status(), 404);
                open.push(response);
            }
            attackers.push(attacker);
        }
        assert_eq!(held(&mut reader).await, 0);
        assert_eq!(reader.get(LARGE).await.status(), 200);
        // The connection has no stream left until one of them is read or reset.
        let mut further = Box::pin(unread(&mut attackers[0], "/nowhere"));
        assert!(tokio::time::timeout(Duration::from_millis(200), &mut further).await.is_err());
        drop(open);
        assert_eq!(further.await.status(), 404);
        let metrics = crate::http2::text(&reader.get("/metrics").await);
        assert_eq!(metric(&metrics, "meridian_readers_gave_way_total"), 0);
    });
}

#[test]
fn a_document_that_is_read_a_few_bytes_at_a_time_is_cut_off() {
    // No pause is as long as a stall may be, and all of the document would take minutes.
    let (stall, pause) = (Duration::from_secs(2), Duration::from_millis(50));
    let (server, shown) = house(ServerConfig { write_stall: stall, answer_rate_min: 1 << 30, ..config() });
    run(async {
        let mut client = Client::connect(&server, &shown, h2::client::Builder::new().initial_window_size(16)).await;
        let mut document = unread(&mut client, LARGE).await.into_body();
        let error = loop {
            match document.data().await.expect("it is not whole") {
                Ok(data) => {
                    tokio::time::sleep(pause).await;
                    // The stream may have been reset meanwhile.
                    let _ = document.flow_control().release_capacity(data.len());
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error.reason(), Some(Reason::CANCEL));
        let (mut reader, begun) = (Client::new(&server, &shown).await, Instant::now());
        loop {
            let metrics = crate::http2::text(&reader.get("/metrics").await);
            if metric(&metrics, "meridian_readers_slow_total") == 1 {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "it is not counted");
        }
    });
}
