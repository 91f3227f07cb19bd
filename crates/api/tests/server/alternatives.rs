//! Many boxes and windows in one filter, as clients request them: each matching event once, and no other.

use crate::support::Server;
use meridian_model::time::format_instant;
use serde_json::Value;
use std::fmt::Write;

const EVENTS: u64 = 3_000;
const ALTERNATIVES: u64 = 120;
/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600_000_000;
const MINUTE: i64 = 60_000_000;

/// A deterministic sequence of pseudorandom numbers.
struct Dice(u64);

impl Dice {
    /// Returns the next number from `0..below`.
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// An event as known to the oracle: hundredths of a degree, and minutes of a month.
struct Event {
    n: u64,
    lon: i64,
    lat: i64,
    minute: i64,
}

/// West, south, east and north in hundredths of a degree, inclusive.
struct Sides([i64; 4]);

/// The first and the last minute.
struct Window(i64, i64);

fn degrees(hundredths: i64) -> f64 {
    hundredths as f64 / 100.0
}

impl Sides {
    fn hold(&self, event: &Event) -> bool {
        let [west, south, east, north] = self.0;
        (west..=east).contains(&event.lon) && (south..=north).contains(&event.lat)
    }

    fn cql(&self) -> String {
        let [west, south, east, north] = self.0.map(degrees);
        format!("S_INTERSECTS(geom,BBOX({west},{south},{east},{north}))")
    }
}

impl Window {
    /// Returns whether the window holds an event. Events are half a minute past a minute, so none is at an edge.
    fn holds(&self, event: &Event) -> bool {
        (self.0..self.1).contains(&event.minute)
    }

    fn cql(&self) -> String {
        let [start, end] = [self.0, self.1].map(|minute| format_instant(NEW_YEAR + minute * MINUTE));
        format!("T_DURING(dtg,INTERVAL('{start}','{end}'))")
    }
}

/// Loads half of the events into a segment, half into memory.
fn filled(events: &[Event]) -> Server {
    let server = Server::start();
    server.create("q", "n:Integer,dtg:Date,*geom:Point:srid=4326");
    for half in events.chunks(events.len() / 2) {
        let mut csv = String::from("n,dtg,lon,lat\n");
        for event in half {
            let at = format_instant(NEW_YEAR + event.minute * MINUTE + MINUTE / 2);
            writeln!(csv, "{},{at},{},{}", event.n, degrees(event.lon), degrees(event.lat)).unwrap();
        }
        server.store.collection("default", "q").unwrap().flush().unwrap();
        let answer = server.post("/collections/q/items", "text/csv", csv);
        assert_eq!(answer.status, 201, "{:.500}", answer.text());
    }
    server
}

fn n_of(feature: &Value) -> u64 {
    feature["properties"]["n"].as_u64().unwrap()
}

fn of_lines(text: &str) -> Vec<u64> {
    text.lines().map(|line| n_of(&serde_json::from_str(line).unwrap())).collect()
}

/// Returns the path of a link to this server.
fn path_of(href: &str) -> String {
    href.strip_prefix("http://localhost").unwrap().to_owned()
}

/// Reads all pages as GeoJSON.
fn pages(server: &Server, query: &str, matched: usize) -> Vec<u64> {
    let (mut found, mut next) = (Vec::new(), Some(format!("/collections/q/items?limit=157&{query}")));
    while let Some(path) = next {
        let page = server.json(&path);
        assert_eq!(page["numberMatched"].as_u64(), Some(matched as u64));
        found.extend(page["features"].as_array().unwrap().iter().map(n_of));
        let links = page["links"].as_array().unwrap();
        next = links.iter().find(|l| l["rel"] == "next").map(|l| path_of(l["href"].as_str().unwrap()));
    }
    found
}

/// Reads all pages as NDJSON, whose next link is in a header.
fn line_pages(server: &Server, query: &str) -> Vec<u64> {
    let (mut found, mut next) = (Vec::new(), Some(format!("/collections/q/items?f=ndjson&limit=211&{query}")));
    while let Some(path) = next {
        let page = server.get(&path);
        assert_eq!(page.status, 200, "{}", page.text());
        found.extend(of_lines(&page.text()));
        let link = page.header("link").strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
        next = link.map(path_of);
    }
    found
}

/// A name, a filter, and a predicate for the events that match it.
type Asked<'a> = (&'a str, String, &'a dyn Fn(&Event) -> bool);

#[test]
fn a_filter_of_many_boxes_and_windows_gives_each_event_once() {
    let mut dice = Dice(5);
    let mut within = |from: i64, to: i64| from + dice.roll((to - from) as u64) as i64;
    let events: Vec<Event> = (0..EVENTS)
        .map(|n| Event { n, lon: within(-9_000, 9_000), lat: within(-6_000, 6_000), minute: within(0, 43_200) })
        .collect();
    let sides: Vec<Sides> = (0..ALTERNATIVES)
        .map(|_| {
            let (west, south) = (within(-9_000, 8_000), within(-6_000, 5_000));
            Sides([west, south, west + within(100, 2_000), south + within(100, 2_000)])
        })
        .collect();
    let windows: Vec<Window> = (0..ALTERNATIVES)
        .map(|_| {
            let start = within(0, 40_000);
            Window(start, start + within(10, 400))
        })
        .collect();
    let twice = |holds: &dyn Fn(usize, &Event) -> bool| {
        events.iter().any(|e| (0..ALTERNATIVES as usize).filter(|i| holds(*i, e)).count() > 1)
    };
    assert!(twice(&|i, e: &Event| sides[i].hold(e)) && twice(&|i, e: &Event| windows[i].holds(e)), "nothing overlaps");

    let server = filled(&events);
    let or = |parts: Vec<String>| parts.join(" OR ");
    let (places, times) = (or(sides.iter().map(Sides::cql).collect()), or(windows.iter().map(Window::cql).collect()));
    let pairs: Vec<String> =
        sides.iter().zip(&windows).map(|(s, w)| format!("({} AND {})", s.cql(), w.cql())).collect();
    let somewhere = |e: &Event| sides.iter().any(|s| s.hold(e));
    let sometime = |e: &Event| windows.iter().any(|w| w.holds(e));
    // A pair is narrow: one more alternative holds half of the events, so that there are many pages.
    let many = Sides([-9_000, -6_000, 0, 6_000]);
    let paired = |e: &Event| sides.iter().zip(&windows).any(|(s, w)| s.hold(e) && w.holds(e)) || many.hold(e);
    let asked: [Asked<'_>; 4] = [
        ("boxes", places.clone(), &somewhere),
        ("windows", times.clone(), &sometime),
        ("boxes and windows", format!("({places}) AND ({times})"), &|e: &Event| somewhere(e) && sometime(e)),
        ("boxes with a window each", format!("{} OR {}", many.cql(), or(pairs)), &paired),
    ];
    for (what, filter, holds) in asked {
        let expected: Vec<u64> = events.iter().filter(|e| holds(e)).map(|e| e.n).collect();
        assert!(expected.len() > 300 && expected.len() < events.len(), "{what}: {} of them match", expected.len());
        let query = format!("filter={}", filter.replace(' ', "%20"));
        let whole = server.get(&format!("/collections/q/items?f=ndjson&{query}"));
        assert_eq!(whole.status, 200, "{what}: {}", whole.text());
        let answers = [of_lines(&whole.text()), line_pages(&server, &query), pages(&server, &query, expected.len())];
        for mut found in answers {
            found.sort_unstable();
            assert_eq!(found, expected, "{what}");
        }
        let counted = server.json(&format!("/collections/q/aggregate?function=count&{query}"));
        assert_eq!(counted["groups"][0]["count"].as_u64(), Some(expected.len() as u64), "{what}");
    }
}
