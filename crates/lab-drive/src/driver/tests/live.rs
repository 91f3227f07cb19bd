//! The live report during a run.

use super::*;
use crate::driver::live::Server as View;

fn get(url: &str, path: &str, host: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://").trim_end_matches('/'))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Returns whether a page has the expected content: the pictures, and the text about responses and failures.
fn shows_all(report: &str) -> bool {
    ["<svg", "sound answer", "status 500", "Trial 1 of 1"].iter().all(|part| report.contains(part))
}

#[test]
fn a_run_can_be_looked_at_while_it_goes_on_and_the_view_ends_with_it() {
    let target = serve(
        |_, n, stream| if n == 0 { say(stream, "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n") } else { ok(stream) },
    );
    let server = View::start("a <run>").expect("serves");
    let (url, live, interrupt) = (server.url(), server.live(), Arc::new(Notify::new()));
    let host = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let page = get(&url, "/", &host).expect("a page");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<h1>a &lt;run&gt;</h1>"), "{page}");
    assert!(get(&url, "/report", "rebound.example").expect("an answer").starts_with("HTTP/1.1 403"));
    assert!(get(&url, "/report", &host).expect("an answer").contains("No request has ended yet"));
    let (stop, place) = (Arc::clone(&interrupt), url.clone());
    let reader = std::thread::spawn(move || {
        // The load continues until its pictures have been seen.
        let begun = Instant::now();
        let seen = loop {
            let report = get(&place, "/report", &host).expect("a report");
            if shows_all(&report) || begun.elapsed() > Duration::from_secs(60) {
                break report;
            }
            std::thread::yield_now();
        };
        stop.notify_one();
        seen
    });
    let dir = tempfile::tempdir().expect("a folder");
    let text = scenario(&target.url, "kind = \"closed\"\nusers = 2\nthink_s = 0.02", "[phases]\nmeasured_s = 600\n");
    let parsed = Scenario::parse(&text, "t", &[]).expect("a scenario");
    let options =
        Options { out: dir.path().join("run"), interrupt: Some(interrupt), live: Some(live), ..Options::default() };
    run(&parsed, &options, &mut |_| {}).expect("runs");
    let seen = reader.join().expect("a reader");
    assert!(shows_all(&seen), "{seen}");
    drop(server);
    assert!(get(&url, "/report", "x").is_err());
}
