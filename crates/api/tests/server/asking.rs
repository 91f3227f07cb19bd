//! What is known of a question beside its body: who asks, and how long he waits.

use crate::events::Events;
use crate::searches::packets_of;
use crate::sources::{Sources, config};
use crate::support::{Server, ask_over};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Duration;

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn only_the_same_asker_joins_a_search_and_can_end_it() {
    let sources = Sources::start();
    let mut settings = config(vec![sources.provider("hang", "")]);
    settings.search.join = Duration::from_secs(60);
    let server = Server::with(settings);
    let question = json!({"keywords": "flood", "providers": ["hang"]}).to_string();
    let (here, there) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    let ask = |from: Ipv4Addr, headers: &[(&str, &str)]| -> Value {
        let stream = server.connect_from(from, 64 << 10);
        let answer = ask_over(stream, "POST", "/searches", &[headers, &[JSON]].concat(), question.as_bytes());
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()
    };
    let nothing: &[(&str, &str)] = &[];
    let me = [("authorization", "Bearer me")];
    let through = |address| [("x-forwarded-for", address)];
    let mut ids = Vec::new();
    for (from, headers, joined) in [
        (here, nothing, false),
        (here, nothing, true),
        (there, nothing, false),
        (here, &me, false),
        (there, &me, true),
        (here, &through("192.0.2.1"), false),
        (here, &through("192.0.2.2"), false),
        (here, &through("192.0.2.1"), true),
    ] {
        let answer = ask(from, headers);
        assert_eq!(answer["joined"], joined, "{from} {headers:?}");
        let id = answer["search"].as_str().unwrap().to_owned();
        assert_eq!(ids.contains(&id), joined);
        ids.push(id);
    }
    // The first asker cancels; the second's search goes on.
    assert_eq!(server.ask("DELETE", &format!("/searches/{}", ids[0]), &[], b"").status, 204);
    assert_eq!(server.json(&format!("/searches/{}", ids[2]))["state"], "running");
}

#[test]
fn the_header_sets_the_deadline_where_the_question_does_not() {
    let sources = Sources::start();
    let server = Server::with(config(vec![sources.provider("hang", "")]));
    let ask = |question: &Value, ms: &str| {
        let body = question.to_string();
        server.ask("POST", "/searches", &[("meridian-timeout", ms), JSON], body.as_bytes())
    };
    let question = |n: u32| json!({"keywords": format!("flood -x{n}"), "providers": ["hang"]});
    let mut own = question(1);
    own["timeout"] = 5_000.into();
    for (question, ms, expected) in
        [(question(0), "300", 300), (own, "300", 5_000), (question(2), "999999999", 120_000)]
    {
        let answer = ask(&question, ms);
        assert_eq!((answer.status, answer.json()["deadline_ms"].as_u64()), (202, Some(expected)), "{}", answer.text());
    }
    let problem = ask(&question(3), "soon").problem(400);
    assert_eq!(problem["field"], "Meridian-Timeout");
    // It is what ends the search: the source hangs for much longer.
    let begun = ask(&question(4), "300").json();
    let packets = Events::open(&server, &packets_of(begun["search"].as_str().unwrap()), None).all();
    assert_eq!(packets.last().unwrap()["providers"]["hang"], "timeout");
}
