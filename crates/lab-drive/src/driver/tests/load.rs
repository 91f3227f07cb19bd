//! Arrivals: each accounted for, on time, and as specified.

use super::*;

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
fn a_goal_for_the_rate_is_one_of_each_trial_and_not_of_all_together() {
    let server = serve(|_, _, stream| ok(stream));
    let goal = |min: u32| format!("[[objective]]\nmetric = \"sound_rate\"\nat_least = {min}\n");
    let rest = format!("[phases]\nmeasured_s = 0.5\n[trials]\nrepeats = 4\n{}{}", goal(100), goal(30));
    let ran = drive(&scenario(&server.url, "kind = \"constant\"\nrate = 40", &rest));
    let holds: Vec<bool> = ran.outcome.verdicts.iter().map(|verdict| verdict.holds).collect();
    assert_eq!(holds, [false, true], "{:?}", ran.outcome.verdicts);
    assert_eq!(ran.outcome.groups[0].arrivals, 80);
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
    // A fifth of the arrivals falls into the stall and waits 0 to 600 ms: the 95th percentile of all is the 75th of
    // those.
    assert!(group.latency_ms.p95 > 300.0, "{:?}", group.latency_ms);
    assert!(group.naive_ms.p95 < group.latency_ms.p95 / 3.0, "{:?}", group.naive_ms);
}

#[test]
fn users_try_again_as_they_were_told_and_each_try_is_a_record() {
    let server = serve(
        |_, n, stream| if n < 2 { say(stream, "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n") } else { ok(stream) },
    );
    let text = scenario(&server.url, "", "[[population]]\nname = \"a\"\narrival = { kind = \"burst\", count = 1 }\nretry = { times = 5, wait_s = 0.05, factor = 2 }").replace("[arrival]\n\n", "");
    let Ran { outcome, records } = drive(&text);
    let tries: Vec<_> = records.iter().map(|record| (record.n, record.attempt, record.outcome)).collect();
    assert_eq!(tries, [(1, 0, Came::Refused), (1, 1, Came::Refused), (1, 2, Came::Sound)]);
    let gaps: Vec<i64> = records.windows(2).map(|pair| pair[1].intended - pair[0].done.expect("an end")).collect();
    assert_eq!(gaps, [50_000, 100_000]);
    // The pauses are part of the wait.
    assert!(records.iter().all(|record| record.wanted() == records[0].intended));
    assert!(outcome.groups[0].latency_ms.min >= 149.0, "{:?}", outcome.groups[0].latency_ms);
}

#[test]
fn users_who_heed_what_they_are_told_come_back_no_sooner() {
    let cases = [("", false), ("", true), ("follow = \"/packets\"\n", true)];
    for (follow, after) in cases {
        // The second refusal names no time; the time in a sound response has no meaning.
        let server = serve(|_, n, stream| {
            let (status, more) = match n {
                0 => ("429 Busy", "Retry-After: 1\r\n"),
                1 => ("429 Busy", ""),
                _ => ("200 OK", "Retry-After: 9\r\n"),
            };
            let body = "{\"packets\":\"/stream\"}";
            say(stream, &format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\n\r\n{body}", body.len()))
        });
        let population = format!(
            "{follow}[[population]]\nname = \"a\"\narrival = {{ kind = \"burst\", count = 1 }}\nretry = {{ times = 2, wait_s = 0.05, after = {after} }}"
        );
        let records = drive(&scenario(&server.url, "", &population).replace("[arrival]\n\n", "")).records;
        let outcomes: Vec<_> = records.iter().map(|record| record.outcome).collect();
        assert_eq!(outcomes, [Came::Refused, Came::Refused, Came::Sound]);
        let gaps: Vec<i64> = records.windows(2).map(|pair| pair[1].intended - pair[0].done.expect("an end")).collect();
        assert_eq!(gaps, [if after { 1_000_000 } else { 50_000 }, 50_000], "{follow:?} {after}");
    }
}

#[test]
fn a_user_who_waits_to_retry_holds_no_connection() {
    let server = serve(|_, n, stream| match n {
        0 => say(stream, "HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"),
        _ => ok(stream),
    });
    let population = "[[population]]\nname = \"a\"\nconnections = 1\narrival = { kind = \"burst\", count = 2 }\nretry = { times = 1, wait_s = 0.05, after = true }";
    let records = drive(&scenario(&server.url, "", population).replace("[arrival]\n\n", "")).records;
    let tries: Vec<_> = records.iter().map(|record| (record.n, record.attempt, record.outcome)).collect();
    assert_eq!(tries, [(1, 0, Came::Refused), (2, 0, Came::Sound), (1, 1, Came::Sound)]);
}

#[test]
fn users_who_try_for_ever_stop_when_they_are_served() {
    let server = serve(
        |_, n, stream| if n < 7 { say(stream, "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n") } else { ok(stream) },
    );
    let population = "[[population]]\nname = \"a\"\narrival = { kind = \"burst\", count = 1 }\nretry = { forever = true, wait_s = 0.01 }";
    let records = drive(&scenario(&server.url, "", population).replace("[arrival]\n\n", "")).records;
    let tries: Vec<_> = records.iter().map(|record| (record.attempt, record.outcome == Came::Sound)).collect();
    assert_eq!(tries, (0..8).map(|attempt| (attempt, attempt == 7)).collect::<Vec<_>>());
}

#[test]
fn users_go_round_the_addresses_of_a_service() {
    let servers = [(); 3].map(|()| serve(|_, _, stream| ok(stream)));
    let urls = servers.each_ref().map(|server| server.url.as_str());
    let ran = drive(&format!(
        "[target]\nurls = {urls:?}\n[arrival]\nkind = \"closed\"\nusers = 6\nthink_s = 0.01\n[limits]\nrequests = 60\n[request]\n"
    ));
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 60)]));
    let asked = servers.map(|server| server.asked.lock().expect("a log").len());
    // Two users each, and each of them sends once before any sends again.
    assert!(asked.iter().all(|asked| *asked >= 2) && asked.iter().sum::<usize>() == 60, "{asked:?}");
}

#[test]
fn users_think_as_long_as_they_are_told_from_the_answer_on() {
    let server = serve(|_, _, stream| ok(stream));
    let pauses = |think: &str, requests: u32| -> Vec<i64> {
        let ran = drive(&format!(
            "[target]\nurl = \"{}\"\n[arrival]\nkind = \"closed\"\nusers = 1\n{think}\n[limits]\nrequests = {requests}\n[request]\n",
            server.url
        ));
        assert_eq!(ran.outcomes(), BTreeMap::from([("sound", requests as usize)]));
        ran.records.windows(2).map(|pair| pair[1].intended - pair[0].done.expect("an end")).collect()
    };
    assert_eq!(pauses("think_s = 0.02", 20), vec![20_000; 19]);
    // Five standard deviations of a mean of 400, and of the share of those above it.
    let drawn = pauses("think_s = 0.004\nthink = \"exponential\"", 401);
    let mean = drawn.iter().sum::<i64>() as f64 / 400.0;
    assert!((3_000.0..=5_000.0).contains(&mean), "{mean}");
    let long = drawn.iter().filter(|pause| **pause > 4_000).count();
    assert!((99..=195).contains(&long), "{long}");
}

#[test]
fn an_access_log_is_replayed_at_the_speed_that_is_asked_for() {
    let server = serve(|_, _, stream| ok(stream));
    let mut log = tempfile::NamedTempFile::new().expect("a file");
    for n in 0..20 {
        let second = 30 + n / 5;
        writeln!(log, "127.0.0.1 - - [10/Oct/2000:13:55:{second} -0700] \"GET /page/{n} HTTP/1.1\" 200 5")
            .expect("writes");
    }
    let arrival = format!("kind = \"replay\"\nfile = {:?}\nspeed = 8", log.path());
    let ran = drive(&format!("[target]\nurl = \"{}\"\n[arrival]\n{arrival}\n", server.url));
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 20)]));
    let mut intended: Vec<i64> = ran.records.iter().map(|record| record.intended).collect();
    intended.sort_unstable();
    // Five per second, eight times as fast.
    assert!(intended.windows(2).all(|pair| pair[1] - pair[0] == 25_000), "{intended:?}");
    let asked: BTreeSet<String> = server.asked.lock().expect("a log").iter().cloned().collect();
    assert_eq!(asked, (0..20).map(|n| format!("/page/{n}")).collect());
}

#[test]
fn the_lines_of_a_log_have_a_name_and_checks_of_their_own_beside_named_requests() {
    let server = serve(|_, _, stream| ok(stream));
    let mut log = tempfile::NamedTempFile::new().expect("a file");
    for n in 0..12 {
        writeln!(log, "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /page/{n} HTTP/1.1\" 200 5").expect("writes");
    }
    let text = format!(
        "[target]\nurl = \"{}\"\n[[request]]\nname = \"probe\"\npath = \"/probe\"\nresult = \"feature\"\n[request.check]\nfields = [\"/due\"]\n\
         [[population]]\nname = \"log\"\narrival = {{ kind = \"replay\", file = {:?}, speed = 10 }}\n\
         [[population]]\nname = \"probes\"\narrival = {{ kind = \"burst\", count = 5 }}\n\
         [[objective]]\nmetric = \"sound_share\"\nrequest = \"replay\"\nat_least = 1.0\n",
        server.url,
        log.path()
    );
    let ran = drive(&text);
    let groups: Vec<_> = ran.outcome.groups.iter().map(|g| (g.request.as_str(), g.arrivals, g.results)).collect();
    // The response is {}: one body, no feature, and nothing at /due.
    assert_eq!(groups, [("replay", 12, 12), ("probe", 5, 0)]);
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 12), ("unsound", 5)]));
    assert!(ran.outcome.verdicts[0].holds);
    for (from, to, words) in [
        ("name = \"probe\"", "name = \"replay\"", "called so"),
        (
            "kind = \"burst\", count = 5",
            &format!("kind = \"replay\", file = {:?}", log.path()),
            "it would never be sent",
        ),
        ("name = \"log\"", "name = \"log\"\nrequests = [\"probe\"]", "expected none"),
    ] {
        let error = Scenario::parse(&text.replace(from, to), "t", &[]).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }
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
fn each_request_knows_how_many_were_in_flight_before_it() {
    let server = serve(|_, _, stream| {
        std::thread::sleep(Duration::from_millis(50));
        ok(stream)
    });
    let records =
        drive(&scenario(&server.url, "kind = \"onoff\"\nbursts = 2\nper_burst = 3\ngap_s = 0.01", "")).records;
    let mut before: Vec<u32> = records.iter().map(|record| record.in_flight).collect();
    before.sort_unstable();
    assert_eq!(before, [0, 0, 1, 1, 2, 2]);
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
    // Requests on different connections may overtake each other: a turn is a set.
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
fn a_limit_of_time_ends_a_run_with_what_it_has() {
    let server = serve(|_, _, stream| ok(stream));
    let rest = "[phases]\nmeasured_s = 600\n[limits]\ntotal_s = 0.5\n";
    let ran = drive(&scenario(&server.url, "kind = \"closed\"\nusers = 2\nthink_s = 0.01", rest));
    assert_eq!(ran.outcome.run.cut_short.as_deref(), Some("the limit of 0.5 s was reached"));
    assert!(ran.records.len() > 2 && ran.outcomes().keys().eq([&"sound"]), "{:?}", ran.outcomes());
}

#[test]
fn repeats_in_a_drawn_order_are_as_many_of_each_and_the_same_for_the_same_seed() {
    let servers = [serve(|_, _, stream| ok(stream)), serve(|_, _, stream| ok(stream))];
    let order = |seed: u64| {
        let text = format!(
            "seed = {seed}\n[[target]]\nname = \"a\"\nurl = \"{}\"\n[[target]]\nname = \"b\"\nurl = \"{}\"\n\
             [arrival]\nkind = \"burst\"\ncount = 1\n[request]\n[trials]\nrepeats = 6\norder = \"shuffled\"\n",
            servers[0].url, servers[1].url
        );
        drive(&text).outcome.run.trials.iter().map(|trial| trial.target).collect::<Vec<u16>>()
    };
    let first = order(3);
    assert_eq!(first.iter().filter(|target| **target == 0).count(), 6);
    assert_eq!(first.len(), 12);
    assert_eq!(order(3), first);
    assert!((4..8).any(|seed| order(seed) != first));
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
    let results = folder::open(&out).expect("opens");
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
