//! How outside sources are called: retries, pages, limits and formats.

use crate::searches::{ids, of, search};
use crate::sources::{Sources, config, json as answer_of, typed};
use crate::support::Server;
use meridian_federation::SourceDeclaration;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Starts a server that calls these sources, and never joins searches.
fn asking(providers: Vec<Arc<SourceDeclaration>>) -> Server {
    let mut config = config(providers);
    config.search.join = Duration::ZERO;
    Server::with(config)
}

/// Declares a JSON source whose items have an id and a text, with additions to its request, and its limits.
fn listed(request: &str, limits: &str) -> String {
    format!(
        "[request]\nurl = \"SOURCE\"\n{request}\n[answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\n\
         text = \"text\"\n[limits]\n{limits}"
    )
}

/// Returns a response of such a source, with a result of this id.
fn one(id: &str, more: &str) -> Vec<u8> {
    answer_of(&format!(r#"{{"items":[{{"id":"{id}","text":"flood {id}"}}]{more}}}"#))
}

fn state<'a>(packets: &'a [Value], name: &str) -> (&'a str, &'a str) {
    let told = of(packets, name);
    (told["state"].as_str().unwrap(), told["detail"].as_str().unwrap())
}

#[test]
fn a_call_that_failed_is_made_again_within_a_share_of_all_calls() {
    let sources = Sources::start();
    let server = asking(vec![sources.declared("weak", &listed("", "retries = 1\nfailures = 0"))]);
    let fails = typed("500 No", "text/plain", b"");
    sources.tell("weak", &[fails.clone(), one("0", "")]);
    let packets = search(&server, &json!({"keywords": "flood", "providers": ["weak"]}));
    assert_eq!(state(&packets, "weak"), ("complete", ""));
    assert_eq!(ids(&packets), ["0"]);
    assert_eq!(sources.calls_of("weak").len(), 2);

    // A source that always fails must not be overloaded: three retries in reserve, and one more per ten calls.
    let searches = 20;
    sources.tell("weak", &[fails]);
    for _ in 0..searches {
        let packets = search(&server, &json!({"keywords": "flood", "providers": ["weak"]}));
        assert_eq!(state(&packets, "weak").0, "error");
        assert!(state(&packets, "weak").1.contains("500"), "{packets:?}");
    }
    let calls = sources.calls_of("weak").len();
    let again = calls - 2 - searches;
    assert!((1..=3 + calls / 10).contains(&again), "{again} of {calls}");
}

#[test]
fn further_pages_are_behind_a_text_of_the_answer() {
    let sources = Sources::start();
    let request = "[request.query]\nbehind = \"{cursor}\"\n[paging]\nkind = \"cursor\"\npath = \"next\"";
    let server = asking(vec![sources.declared("behind", &listed(request, ""))]);
    sources.tell("behind", &[one("a", r#","next":"2/x&y""#), one("b", r#","next":3"#), one("c", r#","next":null"#)]);
    let packets = search(&server, &json!({"keywords": "flood", "providers": ["behind"]}));
    assert_eq!(state(&packets, "behind"), ("complete", ""));
    assert_eq!(ids(&packets), ["a", "b", "c"]);
    let calls = sources.calls_of("behind");
    assert_eq!(calls, ["/behind ", "/behind?behind=2%2Fx%26y ", "/behind?behind=3 "]);
}

#[test]
fn further_pages_are_where_a_link_leads_but_on_no_other_host() {
    let sources = Sources::start();
    let request = "[paging]\nkind = \"link\"\npath = \"next\"";
    let server = asking(vec![sources.declared("linked", &listed(request, ""))]);
    let elsewhere = format!(r#","next":"http://127.0.0.2:{}/stolen""#, sources.address.port());
    sources.tell("linked", &[one("a", r#","next":"?page=2""#), one("b", &elsewhere)]);
    let packets = search(&server, &json!({"keywords": "flood", "providers": ["linked"]}));
    // The results before it are delivered, and reported as incomplete.
    assert_eq!(ids(&packets), ["a", "b"]);
    let elsewhere = format!("its next page is at another address, http://127.0.0.2:{}", sources.address.port());
    assert_eq!(state(&packets, "linked"), ("error", elsewhere.as_str()));
    assert_eq!(packets.last().unwrap()["state"], "partial");
    assert_eq!(*sources.calls.lock().unwrap(), ["/linked ", "/linked?page=2 "]);
}

#[test]
fn a_source_has_its_own_timeout_and_its_own_rate() {
    let sources = Sources::start();
    let names = ["hang", "seldom", "often"];
    let server = asking(vec![
        sources.provider("hang", "timeout_ms = 300"),
        sources.provider("seldom", "rate = 0.01"),
        sources.provider("often", "rate = 1"),
    ]);
    let first = search(&server, &json!({"keywords": "flood", "providers": names}));
    // Long before the deadline of the search.
    assert_eq!(state(&first, "hang"), ("timeout", "no complete response within 300 ms"));
    assert_eq!((state(&first, "seldom").0, state(&first, "often").0), ("complete", "complete"));
    let second = search(&server, &json!({"keywords": "flood", "providers": ["seldom", "often"]}));
    assert_eq!(state(&second, "seldom"), ("refused", "its rate limit leaves no call before the deadline"));
    // It waits until it may be called.
    assert_eq!(state(&second, "often"), ("complete", ""));
    assert_eq!((sources.calls_of("seldom").len(), sources.calls_of("often").len()), (1, 2));
}

#[test]
fn answers_are_remembered_only_where_a_declaration_says_so() {
    let sources = Sources::start();
    let server = asking(vec![sources.provider("kept", "cache_s = 3600"), sources.provider("asked", "")]);
    for _ in 0..2 {
        let packets = search(&server, &json!({"keywords": "flood", "providers": ["kept", "asked"]}));
        assert_eq!((state(&packets, "kept").0, state(&packets, "asked").0), ("complete", "complete"));
        assert_eq!((&of(&packets, "kept")["results"], &of(&packets, "asked")["results"]), (&json!(1), &json!(1)));
    }
    // Another question causes another call.
    search(&server, &json!({"keywords": "bridge", "providers": ["kept", "asked"]}));
    assert_eq!((sources.calls_of("kept").len(), sources.calls_of("asked").len()), (2, 3));
}

#[test]
fn csv_is_read_by_declaration_alone() {
    let sources = Sources::start();
    let declaration = "[takes]\nneeds = [\"place\"]\n[request]\nurl = \"SOURCE\"\n[answer]\nformat = \"csv\"\nitems = \"\"\n[answer.map]\n\
        id = \"station\"\ntitle = \"name\"\ntime = \"measured\"\ntime_format = \"unix\"\nlon = \"lon\"\nlat = \"lat\"\n\
        [answer.more]\nlevel = \"level\"\n[limits]";
    let server = asking(vec![sources.declared("gauges", declaration)]);
    let table = "station,name,measured,lon,lat,level\r\n7,\"Flood gauge, old bridge\",1767607200,4.83,45.76,2.5\r\n\
        8,Flood gauge far away,1767607200,9.9,45.76,0.1\r\n9,Rain gauge,1767607200,4.83,45.76,\r\n";
    let csv = |text: &str| typed("200 OK", "text/csv; charset=utf-8", text.as_bytes());
    let header = table.lines().next().unwrap();
    sources.tell("gauges", &[csv(table), csv(header), typed("200 OK", "text/html", b"<html>Sign in</html>")]);
    let ask = |radius: u32| {
        let question = json!({"keywords": "flood", "near": [4.8, 45.75], "radius": radius, "providers": ["gauges"]});
        search(&server, &question)
    };
    let packets = ask(20_000);
    assert_eq!(state(&packets, "gauges"), ("complete", ""));
    let mut found = packets.iter().filter_map(|p| p["features"].as_array()).flatten();
    let feature = found.next().unwrap();
    assert_eq!((&feature["id"], &feature["geometry"]["coordinates"]), (&json!("7"), &json!([4.83, 45.76])));
    let of_it = ["title", "time", "level"].map(|name| feature["properties"][name].as_str().unwrap());
    assert_eq!(of_it, ["Flood gauge, old bridge", "2026-01-05T10:00:00Z", "2.5"]);
    assert_eq!(found.next(), None);
    // A table without rows means that nothing was found; a page is not a table.
    let nothing = ask(20_001);
    assert_eq!(state(&nothing, "gauges"), ("complete", ""));
    assert!(ids(&nothing).is_empty());
    let broken = ask(20_002);
    assert_eq!(state(&broken, "gauges"), ("error", "expected CSV, received an HTML page"));
}
