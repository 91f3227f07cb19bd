//! Outcomes of responses, and requests that cannot be sent.

use super::*;

#[test]
fn an_answer_that_differs_from_another_targets_is_unsound() {
    let body = |text: &'static str| {
        serve(move |path, _, stream| {
            let text = if path == "/same" { "{\"n\":1}" } else { text };
            say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()))
        })
    };
    let (a, b) = (body("{\"n\":2}"), body("{\"n\":3}"));
    let request =
        |path: &str| format!("[[request]]\npath = \"{path}\"\n[request.check]\nsame_as = \"b\"\ncount = \"/n\"\n");
    let text = format!(
        "[[target]]\nname = \"a\"\nurl = \"{}\"\n[[target]]\nname = \"b\"\nurl = \"{}\"\n[[population]]\nname = \"p\"\ntarget = \"a\"\narrival = {{ kind = \"burst\", count = 30 }}\n{}{}",
        a.url,
        b.url,
        request("/same"),
        request("/other")
    );
    for record in drive(&text).records {
        let due = if record.request == 0 { Came::Sound } else { Came::Unsound };
        assert_eq!(record.outcome, due, "{record:?}");
    }
}

/// Two targets, the second one slow. b is checked for the same responses as a.
fn compared(b: &Server, arrival: &str, every: u32, interrupt: Option<Arc<Notify>>) -> Ran {
    let a = serve(|_, _, stream| ok(stream));
    let text = format!(
        "[[target]]\nname = \"a\"\nurl = \"{}\"\n[[target]]\nname = \"b\"\nurl = \"{}\"\n[[population]]\nname = \"p\"\ntarget = \"a\"\n{arrival}\n\
         [request]\n[request.check]\nsame_as = \"b\"\nsame_every = {every}\n",
        a.url, b.url
    );
    drive_with(&text, interrupt)
}

fn slow(pause: Duration) -> Server {
    serve(move |_, _, stream| {
        std::thread::sleep(pause);
        ok(stream)
    })
}

#[test]
fn a_comparison_is_nobodys_wait() {
    // One connection and little patience: if the second target's time counted, half of them would not be sent.
    let b = slow(Duration::from_millis(200));
    let open = "connections = 1\npatience_s = 2\narrival = { kind = \"burst\", count = 20, interval_s = 0.01 }";
    let ran = compared(&b, open, 1, None);
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 20)]));
    assert_eq!(b.asked.lock().expect("a log").len(), 20);
    // A user who waits for responses thinks once the response has been compared.
    let b = slow(Duration::from_millis(50));
    let ran =
        compared(&b, "arrival = { kind = \"closed\", users = 1, think_s = 0.01 }\n[limits]\nrequests = 8", 1, None);
    let pauses = ran.records.windows(2).map(|pair| pair[1].intended - pair[0].done.expect("an end"));
    assert!(ran.records.len() == 8 && pauses.clone().all(|us| us >= 60_000), "{:?}", pauses.collect::<Vec<_>>());
}

#[test]
fn one_in_so_many_answers_is_compared() {
    let b = slow(Duration::ZERO);
    let ran = compared(&b, "arrival = { kind = \"burst\", count = 40 }", 10, None);
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 40)]));
    assert_eq!(b.asked.lock().expect("a log").len(), 4);
}

#[test]
fn what_was_not_compared_when_the_run_was_ended_is_as_sound_as_it_was_and_says_so() {
    let b = slow(Duration::from_secs(30));
    let interrupt = Arc::new(Notify::new());
    let (handle, asked) = (Arc::clone(&interrupt), Arc::clone(&b.asked));
    let waiter = std::thread::spawn(move || {
        while asked.lock().expect("a log").is_empty() {
            std::thread::yield_now();
        }
        handle.notify_one();
    });
    let ran = compared(&b, "arrival = { kind = \"burst\", count = 3 }", 1, Some(interrupt));
    waiter.join().expect("a thread");
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 3)]));
    let said = ran.records.iter().map(|record| record.detail.as_deref());
    assert!(
        said.clone().all(|why| why == Some("not compared with b: the run was ended first")),
        "{:?}",
        said.collect::<Vec<_>>()
    );
}

#[test]
fn an_answer_that_differs_from_what_the_lab_counts_itself_is_unsound() {
    let places: Vec<(i32, i32)> = (0..200).map(|n| (n * 37 % 100, n * 61 % 50)).collect();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    for (lon, lat) in &places {
        let feature =
            format!("{{\"type\":\"Feature\",\"geometry\":{{\"type\":\"Point\",\"coordinates\":[{lon},{lat}]}}}}\n");
        file.write_all(feature.as_bytes()).expect("writes");
    }
    // Every fifth response is one too many.
    let server = serve(move |path, n, stream| {
        let bbox =
            path.split("bbox=").nth(1).unwrap_or_default().replace("%2C", ",").replace("%2E", ".").replace("%2D", "-");
        let edges: Vec<f64> = bbox.split(',').map(|edge| edge.parse().expect("a number")).collect();
        let within = |&(lon, lat): &(i32, i32)| {
            let (lon, lat) = (f64::from(lon), f64::from(lat));
            edges[0] <= lon && lon <= edges[2] && edges[1] <= lat && lat <= edges[3]
        };
        let count = places.iter().filter(|place| within(place)).count() + usize::from(n % 5 == 4);
        let text = format!("{{\"numberMatched\":{count}}}");
        say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()))
    });
    let text = format!(
        "[target]\nurl = \"{}\"\n[arrival]\nkind = \"burst\"\ncount = 100\ninterval_s = 0.001\n\
         [generate.cell]\nkind = \"cells\"\nbox = [-5, -5, 105, 55]\nfrom = 1\nto = 4\n\
         [request]\npath = \"/items?bbox={{cell}}\"\n[request.check]\ncount = \"/numberMatched\"\npoints = {:?}\n",
        server.url,
        file.path()
    );
    let ran = drive(&text);
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 80), ("unsound", 20)]));
    let said = ran.records.iter().filter_map(|record| record.detail.as_deref());
    assert!(said.clone().count() == 20 && said.clone().all(|why| why == "more results than the truth"));
}

#[test]
fn what_an_answer_counts_itself_are_its_results() {
    let server = serve(|_, n, stream| {
        let text = format!("{{\"numberMatched\":{}}}", if n % 4 == 0 { 0 } else { 7 });
        say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()))
    });
    let check = "[request.check]\ncount = \"/numberMatched\"\n";
    let ran = drive(&scenario(&server.url, "kind = \"burst\"\ncount = 40", check));
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 40)]));
    let group = &ran.outcome.groups[0];
    assert_eq!((group.results, group.without_results), (30 * 7, 10));
}

#[test]
fn objectives_are_judged_over_all_who_asked() {
    let server =
        serve(
            |_, n, stream| {
                if n % 4 == 0 { say(stream, "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n") } else { ok(stream) }
            },
        );
    let rest = "[[objective]]\nmetric = \"sound_share\"\nat_least = 0.7\n[[objective]]\nmetric = \"p95_ms\"\nat_most = 60000\n[[objective]]\nmetric = \"p50_ms\"\nat_most = 60000\n";
    let ran = drive(&scenario(&server.url, "kind = \"burst\"\ncount = 100", rest));
    let holds: Vec<bool> = ran.outcome.verdicts.iter().map(|verdict| verdict.holds).collect();
    assert_eq!(holds, [true, false, true]);
    assert_eq!(ran.outcome.verdicts[1].value, None);
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_written() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let burst = "kind = \"burst\"\ncount = 1";
    let unreachable = refusal(&scenario(&format!("http://{closed}"), burst, ""));
    assert!(matches!(&unreachable, LabError::Target(text) if text.contains("cannot be reached")), "{unreachable}");
    let public = refusal(&scenario("http://9.9.9.9", burst, ""));
    assert!(matches!(&public, LabError::Scenario(text) if text.contains("--allow-public")), "{public}");
    let truth = refusal(&scenario(&format!("http://{closed}"), burst, "[request.check]\ntruth = \"/nowhere\"\n"));
    assert!(matches!(&truth, LabError::Scenario(text) if text.contains("check.truth")), "{truth}");
    let many = refusal(&scenario(&format!("http://{closed}"), "kind = \"closed\"\nusers = 100000", ""));
    assert!(matches!(&many, LabError::Scenario(text) if text.contains("ulimit") || text.contains("reached")), "{many}");
}
