//! Saved searches of a cluster: gateways divide them, and each answers for all of them. The same holds for searches.

use crate::common::owners::{Cluster, answered};
use crate::common::saved::{
    RUNS, Two, read, received, receiver, save, settle, titles, until_received, write, write_to,
};
use crate::common::{PATIENCE, Server, agent, as_holder, meridian, send};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn a_webhook_gets_each_event_once_and_all_of_them_after_its_gateway_is_killed() {
    let two = Two::start();
    let hook = receiver();
    let (id, _) = save(&two.holder, Some(&hook));
    let before = titles("before", 10);
    for (n, title) in before.iter().enumerate() {
        write(if n % 2 == 0 { &two.holder } else { &two.other }, title);
    }
    let times = until_received(&hook, &before);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    settle(&two.cluster);
    let last = titles("last", 3);
    last.iter().for_each(|title| write(&two.other, title));
    let Two { holder, other, cluster, .. } = two;
    holder.kill();
    let meanwhile = titles("meanwhile", 5);
    meanwhile.iter().for_each(|title| write(&other, title));
    let after = titles("after", 5);
    after.iter().for_each(|title| write(&other, title));
    let times = until_received(&hook, &[last.clone(), meanwhile, after].concat());
    for (title, times) in &times {
        // What was sent shortly before the end may be sent again.
        assert!(*times == 1 || last.contains(title) && *times == 2, "{title}: {times}");
    }
    // A receiver that keeps the highest number finds nothing twice in order.
    let numbers: Vec<u64> = received(&hook).into_iter().map(|(number, _)| number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    // A gateway that joins answers for what the other one runs.
    let third = cluster.server("gateway");
    assert_eq!(read(&third, &id)["id"], id);
}

/// Eight groups, and two gateways, of which the first runs a saved search. It is paused, so it learns of writes late.
/// Meanwhile, unused partitions get their first events, collections are created, and all owners are killed.
#[test]
fn what_is_written_between_two_owners_is_found() {
    // The lease outlasts the pause, so that the same gateway runs them afterwards.
    let settings = "lease = \"6s\"\ngroups = 8\n[search]\nwebhook_private = true\n";
    let cluster = Cluster::with("bucket", |_| settings.to_owned());
    let mut owners = ["o0", "o1", "o2"].map(|name| cluster.owner(name));
    let holder = cluster.server("gateway");
    let schema = "title:String,*geom:Point:srid=4326";
    let make = |server: &Server, name: &str| {
        meridian(&["create", name, "--schema", schema, "--partitions", "8", "--url", &server.url]).ended(0);
    };
    make(&holder, "news");
    holder.said(RUNS);
    let other = cluster.server("gateway");
    let hook = receiver();
    save(&holder, Some(&hook));
    // From here on it is notified of writes.
    make(&holder, "begun");
    write_to(&other, "begun", "flood begun");
    until_received(&hook, &["flood begun".to_owned()]);
    send(holder.pid(), "STOP");
    let news = titles("news", 24);
    news.iter().for_each(|title| write(&other, title));
    make(&other, "made");
    let made = titles("made", 8);
    made.iter().for_each(|title| write_to(&other, "made", title));
    owners.iter().for_each(|owner| owner.signal("KILL"));
    send(holder.pid(), "CONT");
    owners.iter_mut().for_each(|owner| assert_eq!(owner.ends(), None));
    let _next = ["o3", "o4", "o5"].map(|name| cluster.owner(name));
    until_received(&hook, &[news, made].concat());
}

#[test]
fn a_gateway_that_was_paused_sends_and_writes_nothing_once_another_runs_the_saved_searches() {
    let two = Two::start();
    let hook = receiver();
    let (id, _) = save(&two.holder, Some(&hook));
    let before = titles("before", 5);
    before.iter().for_each(|title| write(&two.holder, title));
    until_received(&hook, &before);
    settle(&two.cluster);
    send(two.holder.pid(), "STOP");
    let meanwhile = titles("meanwhile", 5);
    meanwhile.iter().for_each(|title| write(&two.other, title));
    until_received(&hook, &meanwhile);
    settle(&two.cluster);
    // It wakes up, and learns of the same events.
    send(two.holder.pid(), "CONT");
    two.holder.said("lost the saved searches");
    let after = titles("after", 5);
    after.iter().for_each(|title| write(&two.holder, title));
    let times = until_received(&hook, &after);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    // Both answer; the former holder asks the other one.
    assert_eq!(read(&two.holder, &id)["next_packet"], read(&two.other, &id)["next_packet"]);
    // A third takes over from there: the checkpoint did not go back.
    settle(&two.cluster);
    let Two { cluster, other, holder, .. } = two;
    other.kill();
    let _third = cluster.server("gateway");
    let last = titles("last", 5);
    last.iter().for_each(|title| write(&holder, title));
    let times = until_received(&hook, &last);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
}

#[test]
fn packets_stay_where_a_gateway_stops_and_the_next_one_goes_on_with_them() {
    let two = Two::start();
    let (id, _) = save(&two.holder, None);
    write(&two.holder, "flood unread");
    let begun = Instant::now();
    while two.holder.json(&format!("/saved-searches/{id}"))["next_packet"] != 1 {
        assert!(begun.elapsed() < PATIENCE, "no packet");
        std::thread::sleep(Duration::from_millis(20));
    }
    let Two { holder, other, .. } = two;
    assert_eq!(holder.stop("TERM"), Some(0));
    read(&other, &id);
    write(&other, "flood later");
    let mut packets = Packets::open(&other, &format!("/saved-searches/{id}/packets"));
    assert_eq!([packets.next(), packets.next()].map(|packet| packet["seq"].clone()), [0, 1]);
}

/// A stream of packets.
struct Packets(Box<dyn BufRead>);

impl Packets {
    #[track_caller]
    fn open(server: &Server, path: &str) -> Packets {
        let answer = agent().get(format!("{}{path}", server.url)).call().unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        Packets(Box::new(BufReader::new(answer.into_body().into_reader())))
    }

    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(packet) = line.strip_prefix("data: ") {
                return serde_json::from_str(packet).unwrap();
            }
        }
    }
}

/// Opens a WebSocket, and returns the first message.
fn first_message(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 101"), "{line}");
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    // A frame from a server: unmasked, and short.
    let mut head = [0; 2];
    reader.read_exact(&mut head).unwrap();
    let mut length = usize::from(head[1]);
    if length == 126 {
        reader.read_exact(&mut head).unwrap();
        length = usize::from(u16::from_be_bytes(head));
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn every_gateway_streams_lists_and_deletes_what_one_of_them_runs() {
    let two = Two::start();
    let (id, made) = save(&two.other, None);
    // Addresses are those of the gateway that received the request.
    assert_eq!(made["packets"], format!("{}/saved-searches/{id}/packets", two.other.url));
    let path = format!("/saved-searches/{id}/packets");
    let mut streams = [&two.holder, &two.other].map(|server| Packets::open(server, &path));
    write(&two.other, "flood one");
    for packets in &mut streams {
        assert_eq!(packets.next()["features"][0]["properties"]["title"], "flood one");
    }
    let message: Value = serde_json::from_str(&first_message(&two.other, &path)).unwrap();
    assert_eq!((&message["seq"], &message["search"]), (&json!(0), &json!(id)));
    for server in [&two.holder, &two.other] {
        let list: Value = serde_json::from_str(&answered(server, "/saved-searches")).unwrap();
        assert_eq!((&list["numberReturned"], &list["saved_searches"][0]["id"]), (&json!(1), &json!(id)), "{list}");
    }
    // Refusals are those of the gateway that runs them.
    let (status, said) = two.other.post("/saved-searches", "application/json", None, b"{\"keywords\": 5}").unwrap();
    assert!(status == 400 && said.contains("keywords"), "{status} {said}");
    let mut deleted = agent().delete(format!("{}/saved-searches/{id}", two.other.url)).call().unwrap();
    assert_eq!(deleted.status().as_u16(), 204, "{:?}", deleted.body_mut().read_to_string());
    for packets in &mut streams {
        assert_eq!(packets.next()["kind"], "complete");
    }
    assert_eq!(two.holder.get(&format!("/saved-searches/{id}")).0, 404);
}

#[test]
fn the_credential_of_a_caller_decides_at_the_gateway_that_runs_the_saved_searches() {
    let two = Two::start();
    let (id, _) = save(&two.other, None);
    let bucket = format!("file://{}", two.cluster.path("bucket"));
    let made = |options: &[&str]| {
        let run = meridian(&[&["token", "create", "--bucket", &bucket], options].concat()).ended(0);
        run.out.split_whitespace().last().unwrap().to_owned()
    };
    let operator = made(&["--role", "operator"]);
    as_holder(&operator, &["tenant", "create", "harbour", "--url", &two.other.url]).ended(0);
    let (reader, stranger) = (made(&["--role", "reader"]), made(&["--role", "admin", "--tenant", "harbour"]));
    let status = |token: &str| {
        let mut request = agent().get(format!("{}/saved-searches/{id}", two.other.url));
        if !token.is_empty() {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        request.call().unwrap().status().as_u16()
    };
    for (token, expected) in [("", 401), ("no-token", 401), (&operator, 200), (&reader, 200), (&stranger, 404)] {
        let begun = Instant::now();
        while status(token) != expected {
            assert!(begun.elapsed() < PATIENCE, "{token}: {} instead of {expected}", status(token));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    // A client cannot claim that its request was passed on.
    let claimed =
        agent().get(format!("{}/saved-searches", two.other.url)).header("Meridian-Relay", "x 127.0.0.1 http://a");
    assert_eq!(claimed.call().unwrap().status().as_u16(), 503);
}

#[test]
fn a_search_is_found_from_every_gateway_until_its_own_is_gone() {
    let two = Two::start();
    write(&two.holder, "flood one");
    let asked = json!({"keywords": "flood", "providers": ["meridian"]}).to_string();
    let start = |server: &Server| {
        let (status, said) = server.post("/searches", "application/json", None, asked.as_bytes()).unwrap();
        assert_eq!(status, 202, "{said}");
        serde_json::from_str::<Value>(&said).unwrap()["packets"]
            .as_str()
            .unwrap()
            .rsplit('/')
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let id = start(&two.holder);
    let mut packets = Packets::open(&two.other, &format!("/searches/{id}/packets"));
    assert_eq!(packets.next()["features"][0]["properties"]["title"], "flood one");
    let status = two.other.json(&format!("/searches/{id}"));
    assert_eq!(status["packets"], format!("{}/searches/{id}/packets", two.other.url));
    let other = start(&two.other);
    assert_ne!(id[..16], other[..16]);
    let stopped = agent().delete(format!("{}/searches/{other}", two.holder.url)).call().unwrap();
    assert_eq!(stopped.status().as_u16(), 204);
    let unknown = format!("/searches/{}{}", "0".repeat(16), &id[16..]);
    for path in [unknown.as_str(), "/searches/nothing"] {
        assert_eq!(two.other.get(path).0, 404, "{path}");
    }
    let Two { holder, other, .. } = two;
    holder.kill();
    let path = format!("/searches/{id}");
    let (status, said) = other.get(&path);
    assert!((status == 503 || status == 404) && said.contains("gateway"), "{status} {said}");
    let begun = Instant::now();
    while other.get(&path).0 != 404 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", other.get(&path));
        std::thread::sleep(Duration::from_millis(100));
    }
}
