//! Waits until targets are idle, each by its own metric.

use super::*;
use std::sync::atomic::AtomicBool;

/// A server with a metric that reports `busy` until it was read this often, and again after any other request.
fn working(looks: u32, again: bool) -> Server {
    let (seen, asked) = (AtomicU32::new(0), AtomicBool::new(false));
    serve(move |path, _, stream| {
        if path != "/metrics" {
            asked.store(true, Ordering::SeqCst);
            return ok(stream);
        }
        let busy = seen.fetch_add(1, Ordering::SeqCst) < looks || (again && asked.load(Ordering::SeqCst));
        let text = format!("busy {}\n", u8::from(busy));
        say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()));
        false
    })
}

fn wait(server: &Server, limit_s: f64) -> String {
    format!("{{ url = \"{}/metrics\", metric = \"busy\", at_most = 0, for_s = 0, limit_s = {limit_s} }}", server.url)
}

fn looks(server: &Server) -> (usize, usize) {
    let asked = server.asked.lock().expect("a log");
    let looks = asked.iter().filter(|path| *path == "/metrics").count();
    (looks, asked.len() - looks)
}

const LOAD: &str = "[arrival]\nkind = \"burst\"\ncount = 3\n[request]\npath = \"/x\"\n";

#[test]
fn each_trial_waits_for_its_own_target() {
    let [a, b, c] = [working(0, false), working(2, false), working(0, false)];
    let target = |name: &str, server: &Server, more: &str| {
        format!("[[target]]\nname = \"{name}\"\nurl = \"{}\"\n{more}\n", server.url)
    };
    let text = [
        target("a", &a, ""),
        target("b", &b, &format!("wait_idle = {}", wait(&b, 60.0))),
        target("c", &c, ""),
        format!("[phases]\nwait_idle = {}\n[trials]\norder = \"given\"\nrepeats = 2\n{LOAD}", wait(&c, 60.0)),
    ];
    let ran = drive(&text.concat());
    let turns: Vec<u16> = ran.outcome.run.trials.iter().map(|trial| trial.target).collect();
    assert_eq!(turns, [0, 0, 1, 1, 2, 2]);
    // The metric of `phases` covers a and c: a read before each of their trials. b is read until it is idle, and once
    // more.
    assert_eq!([&a, &b, &c].map(looks), [(0, 6), (4, 6), (4, 6)]);
}

#[test]
fn a_target_that_does_not_come_to_rest_ends_the_run_with_what_it_has() {
    let server = working(0, true);
    let text = format!(
        "[target]\nurl = \"{}\"\n[phases]\nwait_idle = {}\n[trials]\nrepeats = 3\n{LOAD}",
        server.url,
        wait(&server, 0.5)
    );
    let ran = drive(&text);
    assert_eq!((ran.records.len(), ran.outcome.run.trials.len()), (3, 1));
    let why = ran.outcome.run.cut_short.expect("a reason");
    assert!(why.starts_with("trial 2 did not begin: the target was not idle within 0.5 s"), "{why}");
    // Before the first trial there is no data to keep.
    let never = working(u32::MAX, false);
    let error = refusal(&text.replace(&server.url, &never.url));
    assert!(matches!(&error, LabError::Target(why) if why.contains("not idle within")), "{error}");
}
