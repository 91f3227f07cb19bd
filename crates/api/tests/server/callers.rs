//! The inputs of a search besides its body: the caller and the deadline.

use crate::events::Events;
use crate::searches::{ids, packets_of, search};
use crate::sources::{Sources, config};
use crate::support::{Server, ask_over, point};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Duration;

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn only_the_same_caller_joins_a_search_and_can_stop_it() {
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
    let mut ids = Vec::new();
    for (from, headers, joined) in
        [(here, nothing, false), (here, nothing, true), (there, nothing, false), (here, &me, false), (there, &me, true)]
    {
        let answer = ask(from, headers);
        assert_eq!(answer["joined"], joined, "{from} {headers:?}");
        let id = answer["search"].as_str().unwrap().to_owned();
        assert_eq!(ids.contains(&id), joined);
        ids.push(id);
    }
    // The first caller cancels; the second caller's search continues.
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
    // The deadline ends the search: the source hangs for much longer.
    let begun = ask(&question(4), "300").json();
    let packets = Events::open(&server, &packets_of(begun["search"].as_str().unwrap()), None).all();
    assert_eq!(packets.last().unwrap()["providers"]["hang"], "timeout");
}

#[test]
fn what_lasts_is_an_answer_where_it_overlaps_as_at_items() {
    let server = Server::start();
    let schema = json!({"type": "object", "properties": {
        "id": {"type": "string", "x-ogc-role": "id"},
        "from": {"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-start"},
        "to": {"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-end"},
        "title": {"type": "string"},
        "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"}}});
    let headers = [("content-type", "application/schema+json")];
    let made = server.ask("PUT", "/collections/closures", &headers, schema.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    // Every length from empty to open, around and within the requested days.
    let at = |day: Option<u32>| day.map_or(Value::Null, |day| format!("2026-01-{day:02}T12:00:00Z").into());
    let ends: Vec<Option<u32>> = [None].into_iter().chain((1..9).map(Some)).collect();
    let lasting = ends.iter().flat_map(|from| ends.iter().map(move |to| (*from, *to)));
    let closures: Vec<Value> = lasting
        .filter(|(from, to)| from.is_none() || to.is_none() || from <= to)
        .enumerate()
        .map(|(n, (from, to))| {
            point(&n.to_string(), 1.0, 1.0, json!({"title": "closed", "from": at(from), "to": at(to)}))
        })
        .collect();
    let intervals = [(Some(4), Some(5)), (Some(4), None), (None, Some(4)), (Some(8), Some(9))];
    let questions = intervals.map(|(start, end): (Option<u32>, Option<u32>)| {
        let day = |day: Option<u32>| day.map_or(Value::Null, |day| format!("2026-01-{day:02}").into());
        json!({"keywords": "closed", "start": day(start), "end": day(end)})
    });
    let saved = questions.clone().map(|question| {
        let answer = server.post("/saved-searches", "application/json", question.to_string());
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    });
    server.load("closures", &closures);
    for (question, saved) in questions.iter().zip(saved) {
        let part = |name: &str| question[name].as_str().unwrap_or("..");
        let datetime = match (part("start"), part("end")) {
            (start, "..") => format!("{start}T00:00:00Z/.."),
            ("..", end) => format!("../{end}T23:59:59.999999Z"),
            (start, end) => format!("{start}T00:00:00Z/{end}T23:59:59.999999Z"),
        };
        let items = server.json(&format!("/collections/closures/items?limit=1000&datetime={datetime}"));
        let own = |feature: &Value| format!("closures/{}", feature["id"].as_str().unwrap());
        let mut expected: Vec<String> = items["features"].as_array().unwrap().iter().map(own).collect();
        expected.sort_unstable();
        assert!(expected.len() > 5 && expected.len() < closures.len(), "{question}: {expected:?}");
        let mut found = ids(&search(&server, question));
        found.sort_unstable();
        assert_eq!(found, expected, "{question}");
        let mut events = Events::open(&server, &format!("/saved-searches/{saved}/packets"), None);
        let mut told = Vec::new();
        while told.len() < expected.len() {
            let packet = events.next().unwrap();
            told.extend(ids(&[packet]));
        }
        told.sort_unstable();
        assert_eq!(told, expected, "{question}, saved");
    }
}
