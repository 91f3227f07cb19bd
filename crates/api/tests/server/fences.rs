//! Streams that report which objects enter and leave. The report of an event depends only on what was written before
//! it.

use crate::events::Socket;
use crate::messages::Follow;
use crate::support::{Server, point};
use meridian_api::ServerConfig;
use meridian_store::seams::{Random, SeededRandom};
use serde_json::{Value, json};
use std::sync::Arc;

const ALL: &str = "enter,inside,exit";

/// An event as written by the test: from one minute to another, of a ship or of none.
#[derive(Debug, Clone)]
struct Event {
    ship: Option<String>,
    from: u64,
    to: u64,
    lon: f64,
}

impl Event {
    fn is_inside(&self) -> bool {
        self.lon.abs() <= 1.0
    }

    fn feature(&self, n: usize) -> Value {
        let at =
            |minute: u64| format!("2026-03-{:02}T{:02}:{:02}:00Z", 1 + minute / 1440, minute / 60 % 24, minute % 60);
        let properties = json!({"n": n, "ship": self.ship, "from": at(self.from), "to": at(self.to)});
        point(&format!("e{n}"), self.lon, 0.0, properties)
    }
}

/// Creates ships that report their positions, at instants or over intervals.
fn create(server: &Server, mode: &str, time: &str) {
    let (from, to) = match time {
        "instant" => ("primary-instant", None),
        _ => ("primary-interval-start", Some("primary-interval-end")),
    };
    let mut schema = json!({
        "type": "object",
        "x-meridian-mode": mode,
        "properties": {
            "id": {"type": "string", "x-ogc-role": "id"},
            "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
            "from": {"type": "string", "format": "date-time", "x-ogc-role": from},
            "to": {"type": "string", "format": "date-time"},
            "ship": {"type": "string", "x-meridian-object": true},
            "n": {"type": "integer"}
        },
        "required": ["id", "from"]
    });
    if let Some(to) = to {
        schema["properties"]["to"]["x-ogc-role"] = json!(to);
    }
    let headers = [("content-type", "application/schema+json")];
    let made = server.ask("PUT", "/collections/q?partitions=1", &headers, schema.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
}

/// Generates ships that move across the fence and sometimes report late. Some have no name. The last event is certain
/// to enter the fence.
fn walks(random: &SeededRandom, count: u64) -> Vec<Event> {
    let below = |n: u64| random.next_u64() % n;
    let mut places = [0.0; 7];
    let mut events: Vec<Event> = (0..count)
        .map(|step| {
            let ship = below(places.len() as u64) as usize;
            let lon = (places[ship] + below(5) as f64 / 2.0 - 1.0_f64).clamp(-2.0, 2.0);
            places[ship] = lon;
            let late = if below(4) == 0 { below(60) } else { 0 };
            // Times coincide now and then.
            let from = (100 + step * 2 - late) / 4 * 4;
            Event { ship: (ship > 0).then(|| format!("ship {ship}")), from, to: from + below(6) * 4, lon }
        })
        .collect();
    events.push(Event { ship: Some("the last".to_owned()), from: 100, to: 100, lon: 0.0 });
    events
}

/// Returns the expected transitions of each event, from a scan of everything before it.
fn oracle(events: &[Event], time: &str, when: &str) -> Vec<(usize, String)> {
    let asks = |word: &str| when.split(',').any(|one| one == word);
    let end = |event: &Event| if time == "instant" { event.from } else { event.to };
    let mut told = Vec::new();
    for (n, event) in events.iter().enumerate() {
        let same = events[..n].iter().enumerate().filter(|(_, other)| other.ship.is_some() && other.ship == event.ship);
        let newest = same.max_by_key(|(m, other)| (end(other), *m)).map(|(_, other)| other);
        if newest.is_some_and(|newest| end(newest) > end(event)) {
            continue;
        }
        let was = if event.ship.is_none() { event.is_inside() } else { newest.is_some_and(Event::is_inside) };
        let word = match (was, event.is_inside()) {
            (false, true) if asks("enter") => "enter",
            (_, true) => "inside",
            (true, false) => "exit",
            (false, false) => continue,
        };
        if asks(word) {
            told.push((n, word.to_owned()));
        }
    }
    told
}

/// A stream over one of the two transports.
enum Reader {
    Events(Follow),
    Socket(Socket),
}

impl Reader {
    fn open(server: &Server, when: &str, after: &str, socket: bool) -> Reader {
        let path = format!("/collections/q/stream?bbox=-1,-1,1,1&when={when}&after={after}");
        match socket {
            true => Reader::Socket(Socket::open(server, &path)),
            false => Reader::Events(Follow::open(server, &path, None)),
        }
    }

    /// Returns a position, and the event at that position, if any.
    fn message(&mut self) -> (String, Option<(usize, String)>) {
        let (position, data) = match self {
            Reader::Events(follow) => {
                let message = follow.message().unwrap();
                // All kinds are delivered to `onmessage`.
                assert_eq!(message.kind, "message");
                (message.id, message.data)
            }
            Reader::Socket(socket) => {
                let data = socket.next().unwrap();
                (data["position"].as_str().unwrap().to_owned(), Some(data).filter(|data| data["type"] == "Feature"))
            }
        };
        let told = data.map(|data| {
            assert_eq!(data["position"], position.as_str());
            (data["properties"]["n"].as_u64().unwrap() as usize, data["when"].as_str().unwrap().to_owned())
        });
        (position, told)
    }

    /// Returns the next reported event. Positions alone arrive every 15 seconds; after some of them no event is
    /// expected any more.
    fn next(&mut self) -> (usize, String) {
        (0..8).find_map(|_| self.message().1).expect("an event is told within two minutes")
    }
}

/// Writes events in batches of several sizes, some of them to files.
fn write(server: &Server, random: &SeededRandom, events: &[Event]) {
    let mut n = 0;
    while n < events.len() {
        let size = (1 + random.next_u64() as usize % 5).min(events.len() - n);
        let features: Vec<Value> = (n..n + size).map(|n| events[n].feature(n)).collect();
        server.load("q", &features);
        n += size;
        if random.next_u64().is_multiple_of(12) {
            let collection = server.store.collection("default", "q").unwrap();
            collection.flush().unwrap();
            collection.maintain().unwrap();
        }
    }
}

#[test]
fn a_stream_from_any_position_reports_what_follows_from_everything_before_it() {
    for (seed, mode, time, objects) in
        [(1, "history", "instant", 1), (2, "latest", "instant", 8192), (3, "history", "interval", 2)]
    {
        // The cache has room for the state of hardly any ship.
        let server = Server::with(ServerConfig { stream_objects_max: objects, ..ServerConfig::default() });
        create(&server, mode, time);
        let random = SeededRandom::new(seed);
        let events = walks(&random, 160);
        write(&server, &random, &events);
        let mut all = Follow::open(&server, "/collections/q/stream?after=0", None);
        let positions: Vec<String> = events.iter().map(|_| all.next().unwrap().id).collect();
        let expected = oracle(&events, time, ALL);
        for word in ["enter", "inside", "exit"] {
            assert!(expected.iter().filter(|(_, when)| when == word).count() > 5, "{word}: {expected:?}");
        }
        for when in [ALL, "enter,exit", "inside", "exit,enter"] {
            let mut reader = Reader::open(&server, when, "0", false);
            let expected = oracle(&events, time, when);
            let told: Vec<_> = expected.iter().map(|_| reader.next()).collect();
            assert_eq!(told, expected, "{mode} {time} {when}");
        }
        for (n, position) in positions.iter().enumerate() {
            let expected: Vec<_> = expected.iter().filter(|(m, _)| *m > n).take(3).cloned().collect();
            let mut reader = Reader::open(&server, ALL, position, n % 2 == 0);
            let told: Vec<_> = expected.iter().map(|_| reader.next()).collect();
            assert_eq!(told, expected, "{mode} {time}, after event {n}");
        }
    }
}

#[test]
fn a_client_that_reconnects_repeatedly_gets_each_passage_once() {
    let server = Arc::new(Server::with(ServerConfig { stream_objects_max: 3, ..ServerConfig::default() }));
    create(&server, "history", "instant");
    let random = SeededRandom::new(9);
    let events = Arc::new(walks(&random, 700));
    let readers: Vec<_> = (0..4)
        .map(|number| {
            let (server, last) = (server.clone(), events.len() - 1);
            std::thread::spawn(move || {
                let random = SeededRandom::new(50 + number);
                let (mut got, mut after) = (Vec::new(), "0".to_owned());
                loop {
                    let mut reader = Reader::open(&server, ALL, &after, number % 2 == 0);
                    for _ in 0..1 + random.next_u64() % 60 {
                        let (position, told) = reader.message();
                        after = position;
                        got.extend(told);
                        if got.last().is_some_and(|(n, _)| *n == last) {
                            return got;
                        }
                    }
                }
            })
        })
        .collect();
    write(&server, &random, &events);
    let expected = oracle(&events, "instant", ALL);
    for reader in readers {
        assert_eq!(reader.join().unwrap(), expected);
    }
}

#[test]
fn a_replaced_event_still_counts_as_the_previous_state_of_its_object() {
    let server = Server::start();
    create(&server, "history", "instant");
    let event = |lon: f64, from: u64| Event { ship: Some("a".to_owned()), from, to: from, lon };
    let put = |n: usize, event: &Event| {
        let headers = [("content-type", "application/geo+json")];
        let feature = event.feature(n).to_string().replace(&format!("\"e{n}\""), "\"e0\"");
        let answer = server.ask("PUT", "/collections/q/items/e0", &headers, feature.as_bytes());
        assert!(answer.status < 300, "{}", answer.text());
    };
    put(0, &event(0.0, 100));
    // A stream that has not seen the replaced event.
    let mut reader =
        Reader::open(&server, ALL, &server.store.collection("default", "q").unwrap().position().to_string(), false);
    reader.message();
    put(1, &event(2.0, 101));
    assert_eq!(reader.next(), (1, "exit".to_owned()));
    put(2, &event(1.0, 102));
    assert_eq!(reader.next(), (2, "enter".to_owned()));
}

#[test]
fn what_a_stream_cannot_report_is_refused() {
    let server = Server::start();
    create(&server, "history", "instant");
    for when in ["", "in", "enter,", "enter;exit"] {
        let problem = server.get(&format!("/collections/q/stream?when={when}")).problem(400);
        assert_eq!(problem["field"], "when", "{problem}");
    }
    server.create("still", "n:Integer,dtg:Date,*geom:Point:srid=4326");
    let problem = server.get("/collections/still/stream?when=enter").problem(400);
    assert!(
        problem["field"] == "when" && problem["detail"].as_str().unwrap().contains("x-meridian-object"),
        "{problem}"
    );
}
