//! What is known of a question beside its body: who asks, and how long he waits.

use crate::sources::{Sources, config};
use crate::support::{Server, ask_over};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Duration;

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
        let answer = ask_over(stream, "POST", "/searches", headers, question.as_bytes());
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
