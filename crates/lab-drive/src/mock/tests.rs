use super::*;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn source(text: &str) -> Source {
    let file = MockFile::parse(&format!("[[source]]\nname = \"a\"\n{text}"), "mock.toml").expect("a file");
    Source::new(&file.source[0], file.seed, 0).expect("ready")
}

#[test]
fn pages_follow_each_other_to_the_end_and_hold_distinct_items() {
    let mut source = source("pages = 3\nitems = 4");
    let (mut path, mut ids) = ("/a/search?q=x&page=1".to_owned(), std::collections::BTreeSet::new());
    for n in 0.. {
        let page: serde_json::Value = serde_json::from_str(&source.reply(n, &path, Duration::ZERO).body).expect("JSON");
        let items = page["items"].as_array().expect("items");
        ids.extend(items.iter().map(|item| item["id"].to_string()));
        match page["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
        assert!(path.starts_with("/a/search?q=x&page="));
    }
    assert_eq!(ids.len(), 12);
    assert_eq!(source.reply(9, "/a?page=4", Duration::ZERO).items, 0);
}

#[test]
fn delays_follow_their_law() {
    let mut source = source("delay = { kind = \"lognormal\", median_ms = 100, sigma = 0.5 }");
    let mut ms: Vec<f64> =
        (0..4_000).map(|n| source.reply(n, "/a", Duration::ZERO).delay.as_secs_f64() * 1e3).collect();
    ms.sort_by(f64::total_cmp);
    assert!((ms[2_000] / 100.0 - 1.0).abs() < 0.05, "{}", ms[2_000]);
    // One sigma above the median: the 84.13th percentile.
    assert!((ms[3_365] / 100.0 / 0.5_f64.exp() - 1.0).abs() < 0.06, "{}", ms[3_365]);
}

fn read(path: &std::path::Path) -> std::io::Result<String> {
    std::fs::read_to_string(path)
}

#[test]
fn measured_delays_are_drawn_from_their_file_beside_the_mocks_own() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("delays"), "10\n20\n\n90\n").expect("written");
    let path = dir.path().join("mock.toml");
    std::fs::write(&path, "[[source]]\nname = \"a\"\ndelay = { kind = \"empirical\", file = \"delays\" }\n")
        .expect("written");
    let file = MockFile::load(&path, read, |_| Ok(())).expect("a file");
    let mut source = Source::new(&file.source[0], file.seed, 0).expect("ready");
    let mut counts = std::collections::BTreeMap::new();
    (0..3_000).for_each(|n| *counts.entry(source.reply(n, "/a", Duration::ZERO).delay.as_millis()).or_insert(0) += 1);
    assert!(counts.keys().eq([&10, &20, &90]), "{counts:?}");
    // Five standard deviations of a third of 3,000.
    assert!(counts.values().all(|n| (870..=1_130).contains(n)), "{counts:?}");
    std::fs::write(dir.path().join("delays"), "10\nsoon\n").expect("written");
    assert!(Source::new(&file.source[0], 1, 0).expect_err("refused").contains("delays:2: expected milliseconds"));
}

#[test]
fn error_pages_come_in_their_share_and_items_have_their_size() {
    let mut source = source("error_share = 0.2\nerror_status = 503\nitems = 3\nitem_bytes = 777");
    let mut errors = 0;
    for n in 0..2_000 {
        let reply = source.reply(n, "/a", Duration::ZERO);
        let page: serde_json::Value = serde_json::from_str(&reply.body).expect("JSON");
        if reply.status == 503 {
            errors += 1;
            assert!(reply.items == 0 && page["error"].is_string(), "{page}");
            continue;
        }
        let items = page["items"].as_array().expect("items");
        let sizes: Vec<usize> = items.iter().filter_map(|item| Some(item["text"].as_str()?.len())).collect();
        assert_eq!((reply.status, sizes), (200, vec![777; 3]));
    }
    // Five standard deviations of a fifth of 2,000.
    assert!((310..=490).contains(&errors), "{errors}");
}

#[test]
fn faults_have_their_time_and_share_and_change_nothing_else() {
    let plain = "delay = { kind = \"lognormal\", median_ms = 10, sigma = 1.0 }\n";
    let mut whole = source(plain);
    let mut faulty =
        source(&format!("{plain}[[source.fault]]\nkind = \"slow\"\nfrom_s = 10\nto_s = 20\nshare = 0.5\nfactor = 3"));
    let mut slow = 0;
    for n in 0..2_000 {
        for (second, within) in [(5, false), (15, true), (20, false)] {
            let now = Duration::from_secs(second);
            let (a, b) = (whole.reply(n, "/a", now), faulty.reply(n, "/a", now));
            slow += u32::from(b.wrong.is_some());
            assert!(within || b == a);
            assert_eq!(a.body, b.body);
        }
    }
    assert!((900..1_100).contains(&slow), "{slow}");
}

#[test]
fn a_rate_limit_lets_through_what_it_says() {
    let mut source = source("rate_limit = 10");
    let allowed = (0..1_000).filter(|n| source.reply(*n, "/a", Duration::from_millis(n * 10)).status == 200).count();
    // Ten seconds at ten per second, plus the content of the bucket.
    assert!((100..=111).contains(&allowed), "{allowed}");
}

#[test]
fn workers_make_a_queue_and_a_capacity_that_is_known() {
    // 4 workers of 20 ms each: 200 a second. 300 a second come for 2 s.
    let mut source = source("workers = 4\ndelay = { kind = \"fixed\", ms = 20 }");
    let at = |n: u64| Duration::from_micros(n * 3_333);
    let ends: Vec<Duration> = (0..600).map(|n| at(n) + source.reply(n, "/a", at(n)).delay).collect();
    assert!(ends.is_sorted(), "first in, first out");
    let within = ends.iter().filter(|end| **end <= Duration::from_secs(2)).count();
    assert!((395..=400).contains(&within), "{within}");
    // Once idle, it responds at once.
    let later = Duration::from_secs(9);
    assert_eq!(source.reply(601, "/a", later).delay, Duration::from_millis(20));
}

#[test]
fn mistakes_in_a_file_are_sentences() {
    for (text, part) in [
        ("", "source"),
        ("[[source]]\nname = \"a\"\nspeed = 3", "mock.toml:3"),
        ("[[source]]\nname = \"a/b\"", "letters, digits"),
        ("[[source]]\nname = \"a\"\nerror_share = 2", "expected 0 to 1"),
        ("[[source]]\nname = \"a\"\n[[source.fault]]\nkind = \"slow\"\nfrom_s = 5\nto_s = 4", "below to_s"),
        ("[[source]]\nname = \"a\"\n[[source]]\nname = \"a\"", "two are named"),
    ] {
        let message = MockFile::parse(text, "mock.toml").expect_err(text).to_string();
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
    let file = "[[source]]\nname = \"a\"\ndelay = { kind = \"empirical\", file = \"/nowhere\" }";
    let file = MockFile::parse(file, "mock.toml").expect("a file");
    assert!(Mock::new(&file, None).expect_err("refused").to_string().contains("/nowhere"));
}

async fn ask(address: std::net::SocketAddr, path: &str) -> Vec<u8> {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("connects");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.expect("sends");
    let mut answer = Vec::new();
    // The read times out, since some faults hang or keep the connection open.
    let _ = tokio::time::timeout(Duration::from_millis(300), stream.read_to_end(&mut answer)).await;
    answer
}

#[test]
fn each_fault_breaks_the_answer_in_its_way_and_the_log_says_what_was_whole() {
    let kinds = ["down", "half-open", "garbage", "truncated", "hang", "schema", "slow"];
    let text: String = kinds
        .iter()
        .map(|kind| format!("[[source]]\nname = \"{kind}\"\n[[source.fault]]\nkind = \"{kind}\"\n"))
        .collect();
    let file = MockFile::parse(&text, "mock.toml").expect("a file");
    let dir = tempfile::tempdir().expect("a folder");
    let log = dir.path().join("calls.ndjson");
    let mock = Arc::new(Mock::new(&file, Some(&log)).expect("ready"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = tokio::spawn(mock.serve(listener));
        for kind in kinds {
            let answer = ask(address, &format!("/{kind}")).await;
            let text = String::from_utf8_lossy(&answer);
            let whole = text.contains("\"pages\":1") && text.ends_with("]}");
            match kind {
                "down" | "hang" => assert!(answer.is_empty(), "{kind}: {text}"),
                "garbage" => assert!(!text.starts_with("HTTP"), "{text}"),
                "half-open" | "truncated" => assert!(text.starts_with("HTTP/1.1 200") && !whole, "{kind}: {text}"),
                "schema" => assert!(whole && text.contains("\"results\":[") && !text.contains("\"items\""), "{text}"),
                _ => assert!(whole && text.contains("\"items\":["), "{text}"),
            }
        }
        assert!(ask(address, "/nobody").await.starts_with(b"HTTP/1.1 404"));
        server.abort();
    });
    let text = std::fs::read_to_string(&log).expect("a log");
    let calls: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let items: Vec<(&str, u64)> =
        calls.iter().filter_map(|call| Some((call["fault"].as_str()?, call["items"].as_u64()?))).collect();
    assert_eq!(
        items,
        [("down", 0), ("half-open", 0), ("garbage", 0), ("truncated", 0), ("hang", 0), ("schema", 10), ("slow", 10)]
    );
}

#[test]
fn a_stream_is_numbered_without_a_gap_and_its_last_packet_says_so() {
    let mut source = source("items = 3\nstream = { packets = 4, every_ms = 10 }");
    let reply = source.reply(7, "/a", Duration::ZERO);
    assert_eq!(reply.items, 12);
    let packets: Vec<serde_json::Value> =
        reply.packets.expect("a stream").map(|text| serde_json::from_str(&text).expect("JSON")).collect();
    let numbers: Vec<u64> = packets.iter().filter_map(|packet| packet["seq"].as_u64()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    let ids: std::collections::BTreeSet<String> = packets
        .iter()
        .filter_map(|packet| packet["features"].as_array())
        .flatten()
        .map(|item| item["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 12);
    let last = &packets[4];
    assert_eq!(
        (&last["kind"], &last["state"], &last["result_packets"]),
        (&"complete".into(), &"complete".into(), &4.into())
    );
    for text in ["stream = { packets = 0, every_ms = 1 }", "stream = { packets = 1, every_ms = -1 }"] {
        let error =
            MockFile::parse(&format!("[[source]]\nname = \"a\"\n{text}"), "mock.toml").expect_err(text).to_string();
        assert!(error.contains("stream."), "{error}");
    }
}

proptest! {
    #[test]
    fn the_same_seed_and_call_give_the_same_answer(seed: u64, n in 0..10_000_u64, second in 0..100_u64) {
        let text = format!("seed = {}\n[[source]]\nname = \"a\"\nerror_share = 0.3\ndelay = {{ kind = \"lognormal\", median_ms = 5, sigma = 1.0 }}", seed >> 1);
        let file = MockFile::parse(&text, "mock.toml").expect("a file");
        let reply = || Source::new(&file.source[0], file.seed, 0).expect("ready").reply(n, "/a?q=1", Duration::from_secs(second));
        prop_assert_eq!(reply(), reply());
    }
}
