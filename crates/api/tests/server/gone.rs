//! Readers that leave, come back, or read slowly; with the settings that hold where none are given.

use crate::events::{Events, Socket};
use crate::searches::{begin, packets_of};
use crate::support::Server;
use meridian_api::ServerConfig;
use meridian_federation::{Declared, Settings};
use serde_json::json;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a departure may take to come through on a busy machine; the search itself would go on for twice as long.
const PATIENCE: Duration = Duration::from_secs(40);

/// A source that takes calls and never answers: says when it is called, and when its caller has gone.
fn silent() -> (SocketAddr, Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, said) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let send = send.clone();
            std::thread::spawn(move || {
                let mut piece = [0; 4_096];
                while !matches!(stream.read(&mut piece), Ok(0) | Err(_)) {
                    if piece.windows(4).any(|end| end == b"\r\n\r\n") {
                        let _ = send.send("called");
                        piece = [0; 4_096];
                    }
                }
                let _ = send.send("left");
            });
        }
    });
    (address, said)
}

/// A server that asks one source, whose answers are results with an id and a text.
fn asking(address: SocketAddr, change: impl FnOnce(&mut Settings)) -> Server {
    let text = format!(
        "name = \"source\"\n[takes]\nkeywords = \"all\"\n[request]\nurl = \"http://{address}/\"\n[request.query]\nq = \"{{words}}\"\n\
         [answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntext = \"text\"\n\
         [limits]\nallow_private = true\nretries = 0\ntimeout_ms = 110000"
    );
    let providers = vec![Arc::new(Declared::parse(&text, &|_| None).unwrap())];
    let mut search = Settings { providers, ..Settings::default() };
    change(&mut search);
    Server::with(ServerConfig { search, ..ServerConfig::default() })
}

fn running(server: &Server) -> bool {
    !server.get("/metrics").text().contains("meridian_searches_running 0")
}

#[test]
fn who_leaves_ends_the_work_and_the_calls_to_sources() {
    let (address, said) = silent();
    let server = asking(address, |_| {});
    for way in ["events", "socket"] {
        let id = begin(&server, &json!({"keywords": way, "providers": ["source"], "timeout": 120_000}));
        let (events, socket) = match way {
            "events" => (Some(Events::open(&server, &packets_of(&id), None)), None),
            _ => (None, Some(Socket::open(&server, &packets_of(&id)))),
        };
        assert_eq!(said.recv_timeout(PATIENCE), Ok("called"), "{way}");
        assert!(running(&server), "{way}");
        drop((events, socket));
        assert_eq!(said.recv_timeout(PATIENCE), Ok("left"), "{way}");
        // Its place is given back once its end is told.
        assert!((0..10_000).any(|_| !running(&server)), "{way}");
        let status = server.json(&format!("/searches/{id}"));
        assert!(status["providers"]["source"]["detail"].as_str().unwrap().contains("nobody was there"), "{status}");
    }
}

#[test]
fn a_browser_is_told_to_come_back_soon_and_at_the_end_to_stay_away() {
    let server = Server::start();
    let id = begin(&server, &json!({"keywords": "flood"}));
    let packets = Events::open(&server, &packets_of(&id), None).all();
    let whole = server.get(&packets_of(&id));
    assert!(whole.text().starts_with("retry: 200\n\nid: 0\ndata: {"), "{}", whole.text());
    let from = |last: usize| server.ask("GET", &packets_of(&id), &[("last-event-id", last.to_string().as_str())], b"");
    let rest = from(packets.len() - 2);
    assert_eq!((rest.status, rest.text().matches("\ndata: ").count()), (200, 1), "{}", rest.text());
    let nothing = from(packets.len() - 1);
    assert_eq!((nothing.status, nothing.body.len()), (204, 0));
}
