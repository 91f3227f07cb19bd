use super::*;
use crate::record::{Outcome as Came, Phase, Record};
use crate::results;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// A server whose every request is given to `answer` with its path and number; it writes what it likes and says whether the
/// connection goes on.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

fn serve(answer: impl Fn(&str, u32, &mut TcpStream) -> bool + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (answer, log, number) = (Arc::new(answer), Arc::clone(&asked), Arc::new(AtomicU32::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, log, number) = (Arc::clone(&answer), Arc::clone(&log), Arc::clone(&number));
            std::thread::spawn(move || connection(stream, &*answer, &log, &number));
        }
    });
    Server { url, asked }
}

fn connection(
    mut stream: TcpStream,
    answer: &dyn Fn(&str, u32, &mut TcpStream) -> bool,
    log: &Mutex<Vec<String>>,
    number: &AtomicU32,
) {
    stream.set_nodelay(true).expect("a socket");
    let mut held = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let end = loop {
            if let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(n) => held.extend_from_slice(&piece[..n]),
            }
        };
        let head = String::from_utf8_lossy(&held[..end]).into_owned();
        held.drain(..end);
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        log.lock().expect("a log").push(path.clone());
        if !answer(&path, number.fetch_add(1, Ordering::SeqCst), &mut stream) {
            return;
        }
    }
}

fn say(stream: &mut TcpStream, text: &str) -> bool {
    stream.write_all(text.as_bytes()).is_ok()
}

fn ok(stream: &mut TcpStream) -> bool {
    say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
}

struct Ran {
    outcome: Outcome,
    records: Vec<Record>,
}

impl Ran {
    fn outcomes(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        self.records.iter().for_each(|record| *counts.entry(record.outcome.name()).or_default() += 1);
        counts
    }
}

fn drive(text: &str) -> Ran {
    drive_with(text, None)
}

fn drive_with(text: &str, interrupt: Option<Arc<Notify>>) -> Ran {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("run");
    let scenario = Scenario::parse(text, "test.toml", &[]).expect("a scenario");
    let options = Options { out: out.clone(), interrupt, ..Options::default() };
    let outcome = run(&scenario, &options, &mut |_| {}).expect("runs");
    let records =
        results::open(&out).expect("opens").records().expect("reads").flat_map(|batch| batch.expect("a batch"));
    Ran { outcome, records: records.collect() }
}

fn scenario(url: &str, arrival: &str, rest: &str) -> String {
    format!("[target]\nurl = \"{url}\"\n[arrival]\n{arrival}\n[request]\npath = \"/x\"\n{rest}")
}

#[test]
fn every_arrival_is_accounted_for_whatever_becomes_of_it() {
    let server = serve(|_, n, stream| match n % 5 {
        0 => say(stream, "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n"),
        1 => false,
        2 => say(stream, "HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n"),
        3 => {
            std::thread::sleep(Duration::from_millis(400));
            ok(stream)
        }
        _ => ok(stream),
    });
    let text = scenario(&server.url, "kind = \"poisson\"\nrate = 200", "[phases]\nwarm_up_s = 0.5\nmeasured_s = 1.0\ncool_down_s = 0.5\n[[population]]\nname = \"a\"\nconnections = 4\npatience_s = 0.3\narrival = { kind = \"poisson\", rate = 200 }")
        .replace("[arrival]\nkind = \"poisson\"\nrate = 200\n", "");
    let ran = drive(&text);
    let parsed = Scenario::parse(&text, "t", &[]).expect("a scenario");
    let due = schedule::times(
        &parsed.population[0].arrival,
        &Plan::main(&parsed.phases, 0),
        crate::generate::stream(1, &[0, 0, 0, 1]),
    )
    .count();
    let numbers: BTreeSet<u32> = ran.records.iter().map(|record| record.n).collect();
    assert_eq!(ran.records.len(), due);
    assert_eq!(numbers, (1..=u32::try_from(due).expect("few")).collect());
    assert_eq!(ran.outcome.run.lab.arrivals, due as u64);
    for (record, phase) in ran.records.iter().map(|record| (record, record.phase)) {
        let start = ran.outcome.run.trials[0].measured_us;
        let due = if record.intended < start[0] {
            Phase::WarmUp
        } else if record.intended < start[1] {
            Phase::Measured
        } else {
            Phase::CoolDown
        };
        assert_eq!(phase, due);
        assert_eq!(record.outcome == Came::NotSent, record.sent.is_none(), "{record:?}");
    }
    for word in ["sound", "refused", "failed", "timed out"] {
        assert!(ran.outcomes().contains_key(word), "{:?}", ran.outcomes());
    }
}

#[test]
fn those_for_whom_no_connection_was_free_in_time_count_as_not_sent() {
    let server = serve(|_, _, stream| {
        std::thread::sleep(Duration::from_millis(60));
        ok(stream)
    });
    let text = scenario(
        &server.url,
        "",
        "[[population]]\nname = \"a\"\nconnections = 1\npatience_s = 0.3\narrival = { kind = \"burst\", count = 50 }",
    );
    let ran = drive(&text.replace("[arrival]\n\n", ""));
    let counts = ran.outcomes();
    assert_eq!(counts.values().sum::<usize>(), 50);
    assert_eq!(counts["sound"] + counts.get("timed out").unwrap_or(&0), server.asked.lock().expect("a log").len());
    assert!(counts["not sent"] >= 44, "{counts:?}");
    assert!(ran.records.iter().all(|record| (record.outcome == Came::NotSent) == record.sent.is_none()));
}

#[test]
fn a_stall_shows_from_the_intended_time_and_hides_from_a_naive_clock() {
    let start = Instant::now();
    let from = Arc::new(Mutex::new(None));
    let server = serve(move |_, _, stream| {
        let zero = *from.lock().expect("a time").get_or_insert_with(Instant::now);
        let stall = Duration::from_millis(1_000)..Duration::from_millis(1_600);
        if stall.contains(&zero.elapsed()) {
            std::thread::sleep(stall.end - zero.elapsed());
        }
        ok(stream)
    });
    let ran = drive(&scenario(&server.url, "kind = \"constant\"\nrate = 100", "[phases]\nmeasured_s = 3\n[[population]]\nname = \"a\"\nconnections = 1\narrival = { kind = \"constant\", rate = 100 }").replace("[arrival]\nkind = \"constant\"\nrate = 100\n", ""));
    assert!(start.elapsed() > Duration::from_secs(3));
    let group = &ran.outcome.groups[0];
    // A fifth of the arrivals falls into the stall and waits 0 to 600 ms: the 95th percentile of all is the 75th of those.
    assert!(group.latency_ms.p95 > 300.0, "{:?}", group.latency_ms);
    assert!(group.naive_ms.p95 < group.latency_ms.p95 / 3.0, "{:?}", group.naive_ms);
}

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

#[test]
fn users_try_again_as_they_were_told_and_each_try_is_a_record() {
    let server = serve(
        |_, n, stream| if n < 2 { say(stream, "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n") } else { ok(stream) },
    );
    let text = scenario(&server.url, "", "[[population]]\nname = \"a\"\narrival = { kind = \"burst\", count = 1 }\nretry = { times = 5, wait_s = 0.05, factor = 2 }").replace("[arrival]\n\n", "");
    let records = drive(&text).records;
    let tries: Vec<_> = records.iter().map(|record| (record.n, record.attempt, record.outcome)).collect();
    assert_eq!(tries, [(1, 0, Came::Refused), (1, 1, Came::Refused), (1, 2, Came::Sound)]);
    let gaps: Vec<i64> = records.windows(2).map(|pair| pair[1].intended - pair[0].done.expect("an end")).collect();
    assert_eq!(gaps, [50_000, 100_000]);
}

#[test]
fn a_burst_begins_a_gap_after_the_last_answer_of_the_one_before() {
    let server = serve(|_, n, stream| {
        std::thread::sleep(Duration::from_millis(u64::from(n % 4) * 20));
        ok(stream)
    });
    let records = drive(&scenario(&server.url, "kind = \"onoff\"\nbursts = 3\nper_burst = 4\ngap_s = 0.1", "")).records;
    assert_eq!(records.len(), 12);
    for burst in 1..3_u32 {
        let of = |burst: u32| records.iter().filter(move |record| (record.n - 1) / 4 == burst);
        let last = of(burst - 1).filter_map(|record| record.done).max().expect("an end");
        assert!(of(burst).all(|record| record.intended == last + 100_000));
    }
}

#[test]
fn the_same_seed_asks_the_same_and_two_targets_are_asked_alike() {
    let servers = [serve(|_, _, stream| ok(stream)), serve(|_, _, stream| ok(stream))];
    let text = format!(
        "seed = 9\n[trials]\nrepeats = 2\n[[target]]\nname = \"a\"\nurl = \"{}\"\n[[target]]\nname = \"b\"\nurl = \"{}\"\n[arrival]\nkind = \"burst\"\ncount = 20\ninterval_s = 0.005\n[request]\npath = \"/{{k}}\"\n[generate.k]\nkind = \"zipf\"\nkeys = 1000\nexponent = 0.5\n",
        servers[0].url, servers[1].url
    );
    let ran = drive(&text);
    let turns: Vec<u16> = ran.outcome.run.trials.iter().map(|trial| trial.target).collect();
    assert_eq!(turns, [0, 1, 0, 1]);
    // Requests of different connections may overtake each other on their way: a turn is a set.
    let asked = |server: &Server| {
        let mut asked = server.asked.lock().expect("a log").clone();
        asked.chunks_mut(20).for_each(<[String]>::sort);
        asked
    };
    let [a, b] = [asked(&servers[0]), asked(&servers[1])];
    assert_eq!(a.len(), 40);
    assert_eq!(a, b);
    assert_ne!(a[..20], a[20..]);
}

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

#[test]
fn an_interrupted_run_leaves_a_whole_folder_with_what_it_has() {
    let server = serve(|_, n, stream| {
        if n >= 20 {
            std::thread::sleep(Duration::from_secs(30));
        }
        ok(stream)
    });
    let interrupt = Arc::new(Notify::new());
    let (handle, asked) = (Arc::clone(&interrupt), Arc::clone(&server.asked));
    let waiter = std::thread::spawn(move || {
        while asked.lock().expect("a log").len() < 22 {
            std::thread::yield_now();
        }
        handle.notify_one();
    });
    let ran = drive_with(
        &scenario(&server.url, "kind = \"closed\"\nusers = 2", "[phases]\nmeasured_s = 60\n"),
        Some(interrupt),
    );
    waiter.join().expect("a thread");
    assert_eq!(ran.outcome.run.cut_short.as_deref(), Some("interrupted"));
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 20), ("timed out", 2)]));
}

#[test]
fn limits_of_requests_and_errors_end_a_run() {
    let server = serve(|_, _, stream| ok(stream));
    let ran = drive(&scenario(&server.url, "kind = \"closed\"\nusers = 3", "[limits]\nrequests = 50\n"));
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 50)]));
    let server = serve(|_, _, stream| say(stream, "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n"));
    let ran = drive(&scenario(&server.url, "kind = \"closed\"\nusers = 1", "[limits]\nerrors = 7\n"));
    assert_eq!(ran.outcomes(), BTreeMap::from([("failed", 7)]));
    assert!(ran.outcome.run.cut_short.is_some_and(|why| why.contains("7 failed")));
}

#[test]
fn an_idle_connection_that_the_server_closed_is_no_failure() {
    let server = serve(|_, n, stream| ok(stream) && n % 2 == 0);
    let ran =
        drive(&scenario(&server.url, "kind = \"closed\"\nusers = 1\nthink_s = 0.01", "[limits]\nrequests = 30\n"));
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 30)]));
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
    let dir = tempfile::tempdir().expect("a folder");
    let refusal = |text: &str| {
        let scenario = Scenario::parse(text, "t", &[]).expect("a scenario");
        run(&scenario, &Options { out: dir.path().join("run"), ..Options::default() }, &mut |_| {})
            .expect_err("refused")
    };
    let burst = "kind = \"burst\"\ncount = 1";
    let unreachable = refusal(&scenario(&format!("http://{closed}"), burst, ""));
    assert!(matches!(&unreachable, LabError::Target(text) if text.contains("cannot be reached")), "{unreachable}");
    let public = refusal(&scenario("http://9.9.9.9", burst, ""));
    assert!(matches!(&public, LabError::Scenario(text) if text.contains("--allow-public")), "{public}");
    let truth = refusal(&scenario(&format!("http://{closed}"), burst, "[request.check]\ntruth = \"/nowhere\"\n"));
    assert!(matches!(&truth, LabError::Scenario(text) if text.contains("check.truth")), "{truth}");
    let many = refusal(&scenario(&format!("http://{closed}"), "kind = \"closed\"\nusers = 100000", ""));
    assert!(matches!(&many, LabError::Scenario(text) if text.contains("ulimit") || text.contains("reached")), "{many}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("lists").count(), 0);
}

#[test]
fn a_websocket_is_listened_to_until_its_search_is_complete() {
    use tokio_tungstenite::tungstenite::{Message, accept_hdr, handshake::server};
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut path = String::new();
                #[expect(clippy::result_large_err, reason = "the library's signature")]
                let seen = |request: &server::Request, response: server::Response| {
                    path = request.uri().path().to_owned();
                    Ok(response)
                };
                // The probe for reachability opens a connection and says nothing.
                let Ok(mut socket) = accept_hdr(stream, seen) else { return };
                let packet = |features: &str| format!("{{\"kind\":\"results\",\"features\":[{features}]}}");
                let asked = socket.read().expect("the body as a message");
                assert_eq!(asked, Message::text("{\"q\":1}"));
                socket.send(Message::Ping("x".into())).expect("sends");
                socket.send(Message::text(packet("1,2"))).expect("sends");
                socket.send(Message::text(packet(&vec!["3"; 40_000].join(",")))).expect("sends");
                if path == "/whole" {
                    socket.send(Message::text("{\"kind\":\"complete\",\"state\":\"complete\"}")).expect("sends");
                    assert!(socket.read().expect("an answer to the ping").is_pong());
                    assert!(socket.read().expect("a farewell").is_close());
                } else {
                    socket.close(None).expect("closes");
                    while socket.read().is_ok() {}
                }
            });
        }
    });
    let text = format!(
        "[target]\nurl = \"ws://{address}\"\n[arrival]\nkind = \"burst\"\ncount = 20\n[[request]]\npath = \"/whole\"\nmethod = \"POST\"\nbody = '{{\"q\":1}}'\nresult = \"packet\"\n[[request]]\npath = \"/part\"\nbody = '{{\"q\":1}}'\nresult = \"packet\"\n"
    );
    let ran = drive(&text);
    assert_eq!(ran.records.len(), 20);
    for record in ran.records {
        let due = if record.request == 0 { Came::Sound } else { Came::Partial };
        assert_eq!(
            (record.outcome, record.packets, record.results, record.status),
            (due, 2, 40_002, 101),
            "{record:?}"
        );
        assert!(
            record.sent <= record.first_result
                && record.first_result <= record.last_result
                && record.last_result <= record.done
        );
    }
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
fn a_trial_waits_until_the_target_is_idle_samples_it_and_measures_again_after_the_load() {
    let looks = AtomicU32::new(0);
    let server = serve(move |path, _, stream| match path {
        "/metrics" => {
            let busy = if looks.fetch_add(1, Ordering::SeqCst) < 2 { 5 } else { 0 };
            let text = format!("queue_length{{kind=\"a\"}} {busy}\nqueue_length{{kind=\"b\"}} 0\n");
            say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()));
            false
        }
        _ => ok(stream),
    });
    let metrics = format!("{}/metrics", server.url);
    let rest = format!(
        "[phases]\nmeasured_s = 0.6\nagain_after_s = 0.2\nagain_s = 0.4\nwait_idle = {{ url = \"{metrics}\", metric = \"queue_length\", at_most = 0, for_s = 0.1 }}\n[[sampler]]\nkind = \"prometheus\"\nname = \"own\"\nurl = \"{metrics}\"\nmetrics = [\"queue_length\"]\nevery_s = 0.1\n"
    );
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("run");
    let text = scenario(&server.url, "kind = \"constant\"\nrate = 50", &rest);
    let parsed = Scenario::parse(&text, "t", &[]).expect("a scenario");
    run(&parsed, &Options { out: out.clone(), ..Options::default() }, &mut |_| {}).expect("runs");
    let asked = server.asked.lock().expect("a log").clone();
    let before = asked.iter().take_while(|path| *path == "/metrics").count();
    assert!(before >= 3, "load began after {before} looks at the metric");
    let results = results::open(&out).expect("opens");
    let records: Vec<Record> = results.records().expect("reads").flat_map(|batch| batch.expect("a batch")).collect();
    let of = |phase: Phase| records.iter().filter(move |record| record.phase == phase);
    assert_eq!((of(Phase::Measured).count(), of(Phase::Again).count()), (30, 20));
    let last = of(Phase::Measured).filter_map(|record| record.done).max().expect("an end");
    assert!(of(Phase::Again).all(|record| record.intended >= last + 200_000));
    let samples: Vec<_> = results.samples().expect("reads").flat_map(|batch| batch.expect("a batch")).collect();
    assert!(
        samples.iter().any(|sample| sample.source == "own" && sample.metric == "queue_length" && sample.value == 0.0)
    );
    assert!(
        samples.iter().any(|sample| sample.source == "lab" && sample.metric == "resident_bytes" && sample.value > 0.0)
    );
}

#[test]
fn a_redis_is_asked_by_commands_and_its_errors_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut piece = [0; 4096];
                // A command fits into one piece, and the client waits for its reply.
                while let Ok(n @ 1..) = stream.read(&mut piece) {
                    let reply = match &piece[..n] {
                        b"*1\r\n$4\r\nPING\r\n" => "+PONG\r\n",
                        b"*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n" => "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
                        _ => "-ERR unknown command\r\n",
                    };
                    if !say(&mut stream, reply) {
                        return;
                    }
                }
            });
        }
    });
    let request =
        |name: &str, body: &str| format!("[[request]]\nname = \"{name}\"\nbody = \"{body}\"\nresult = \"line\"\n");
    let text = format!(
        "[target]\nurl = \"redis://{address}\"\n[arrival]\nkind = \"burst\"\ncount = 60\ninterval_s = 0.002\n{}{}{}",
        request("ping", "PING"),
        request("keys", "KEYS *"),
        request("wrong", "WHAT")
    );
    let ran = drive(&text);
    assert_eq!(ran.records.len(), 60);
    for record in ran.records {
        let due = [
            (Came::Sound, 0, None),
            (Came::Sound, 3, None),
            (Came::Failed, 0, Some("the server answered ERR".to_owned())),
        ];
        assert_eq!(
            (record.outcome, record.results, record.detail.clone()),
            due[usize::from(record.request)],
            "{record:?}"
        );
    }
}
