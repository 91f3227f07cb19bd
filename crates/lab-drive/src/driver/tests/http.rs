//! HTTP/1.1 and streams of events.

use super::*;

#[test]
fn answers_in_every_framing_are_read_to_their_end_and_garbage_is_named() {
    let server = serve(|path, _, stream| match path {
        "/length" => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na\nb\nc"),
        "/chunked" => {
            say(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n2\r\n\nc\r\n0\r\n\r\n")
        }
        "/close" => {
            say(stream, "HTTP/1.1 200 OK\r\n\r\na\nb\nc");
            false
        }
        "/interim" => say(stream, "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na\nb\nc"),
        "/old" => {
            say(stream, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\na\nb\nc");
            false
        }
        "/garbage" => say(stream, "\u{1}\u{2}nonsense\r\n\r\n"),
        "/cut" => {
            say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n");
            false
        }
        _ => {
            say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\na\nb\n");
            false
        }
    });
    let paths = ["/length", "/chunked", "/close", "/interim", "/old", "/garbage", "/cut", "/part"];
    let requests: String =
        paths.iter().map(|path| format!("[[request]]\npath = \"{path}\"\nresult = \"line\"\n")).collect();
    let text = format!(
        "[target]\nurl = \"{}\"\n[arrival]\nkind = \"burst\"\ncount = 200\ninterval_s = 0.002\n{requests}",
        server.url
    );
    let ran = drive(&text);
    let mut seen = BTreeSet::new();
    for record in &ran.records {
        let path = paths[usize::from(record.request)];
        seen.insert(path);
        let due = match path {
            "/garbage" | "/cut" => (Came::Failed, 0),
            "/part" => (Came::Partial, 2),
            _ => (Came::Sound, 3),
        };
        assert_eq!((record.outcome, record.results), due, "{path}: {record:?}");
    }
    assert_eq!(seen.len(), paths.len());
}

#[test]
fn an_idle_connection_that_the_server_closed_is_no_failure() {
    let server = serve(|_, n, stream| ok(stream) && n % 2 == 0);
    let ran =
        drive(&scenario(&server.url, "kind = \"closed\"\nusers = 1\nthink_s = 0.01", "[limits]\nrequests = 30\n"));
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 30)]));
}

#[test]
fn every_request_that_is_sent_again_is_counted_and_told() {
    // A server that reads every third request and closes its connection without a response.
    let server = serve(|_, n, stream| n % 3 != 2 && ok(stream));
    let text = scenario(&server.url, "kind = \"closed\"\nusers = 1", "[limits]\nrequests = 40\n");
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("run");
    let options = Options { out: out.clone(), ..Options::default() };
    let outcome = run(&Scenario::parse(&text, "t", &[]).expect("a scenario"), &options, &mut |_| {}).expect("runs");
    let taken = server.asked.lock().expect("a log").len() as u64;
    let group = &outcome.groups[0];
    assert_eq!((group.arrivals, group.outcomes["sound"]), (40, 40));
    assert!(group.resends > 0 && group.arrivals + group.resends == taken, "{taken} taken: {group:?}");
    let words = meridian_lab_results::report::write(&out).expect("a report").words;
    assert!(words.contains(&format!("it may have taken up to {taken} for the 40 measured")), "{words}");
}

#[test]
fn what_may_not_be_sent_twice_goes_out_on_no_connection_that_was_idle_for_long() {
    // A server that accepts no second request on a connection.
    let seen = Mutex::new(BTreeSet::new());
    let server = serve(move |_, _, stream| {
        let first = seen.lock().expect("a list").insert(stream.peer_addr().expect("an address"));
        first && ok(stream)
    });
    let load = |think_s: f64| {
        let arrival = format!("kind = \"closed\"\nusers = 1\nthink_s = {think_s}");
        drive(&scenario(&server.url, &arrival, "method = \"POST\"\nbody = \"x\"\n[limits]\nrequests = 2\n")).outcomes()
    };
    assert_eq!(load(4.5), BTreeMap::from([("sound", 2)]));
    assert_eq!(load(0.01), BTreeMap::from([("sound", 1), ("failed", 1)]));
}

#[test]
fn a_stream_of_events_is_listened_to_for_as_long_as_its_user_wants() {
    let server = serve(|_, _, stream| {
        say(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\ndata: 2\n\n");
        std::thread::sleep(Duration::from_secs(2));
        false
    });
    let text = scenario(
        &server.url,
        "",
        "result = \"event\"\n[[population]]\nname = \"a\"\npatience_s = 0.3\narrival = { kind = \"burst\", count = 3 }",
    );
    for record in drive(&text.replace("[arrival]\n\n", "")).records {
        assert_eq!((record.outcome, record.packets, record.results), (Came::Sound, 2, 2));
    }
}

#[test]
fn a_request_that_is_given_up_keeps_its_times() {
    let server = serve(|_, _, stream| {
        say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\na\nb\n");
        std::thread::sleep(Duration::from_secs(2));
        false
    });
    let text = scenario(&server.url, "kind = \"burst\"\ncount = 3", "result = \"line\"\n")
        .replace("[arrival]", "timeout_s = 0.3\n[arrival]");
    for record in drive(&text).records {
        assert_eq!((record.outcome, record.status, record.results), (Came::TimedOut, 200, 2));
        let (sent, first, done) =
            (record.sent.expect("sent"), record.first_byte.expect("a byte"), record.done.expect("an end"));
        assert!(sent <= first && first <= record.first_result.expect("a result") && record.intended + 300_000 <= done);
    }
}
