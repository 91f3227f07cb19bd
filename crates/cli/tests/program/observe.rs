//! The program's reports on its own work: log lines, the log of slow requests, the listener for monitors.

use crate::common::{PATIENCE, Server, agent, meridian};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Starts a server over a new folder, with these settings.
fn served(folder: &Path, settings: &str, args: &[&str]) -> Server {
    let (config, data) = (folder.join("meridian.toml"), folder.join("data"));
    std::fs::write(&config, settings).unwrap();
    let (config, data) = (config.display().to_string(), data.display().to_string());
    Server::start_with(&[&["--config", &config, "--data", &data], args].concat())
}

/// Returns the lines of its log, once one of them satisfies `is`.
fn lines(server: &Server, is: impl Fn(&Value) -> bool) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let log = server.log();
        // The last line may be incomplete.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let lines: Vec<Value> =
            whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect();
        if lines.iter().any(&is) {
            return lines;
        }
        assert!(begun.elapsed() < PATIENCE, "{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_slow(line: &Value) -> bool {
    line["message"] == "a slow request"
}

#[test]
fn slow_requests_are_told_with_their_cost_and_without_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = served(folder.path(), "[log]\nslow = \"1us\"\n", &["--log-format", "json"]);
    let schema = "name:String,*geom:Point:srid=4326";
    meridian(&["create", "ships", "--schema", schema, "--url", &server.url]).ended(0);
    let path = "/collections/ships/items?filter=name%3D%27hidden-name%27&limit=3";
    let answer = agent().get(format!("{}{path}", server.url)).call().unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    // Lines of one message are a second apart, so this request may only be counted.
    let read = |line: &Value| is_slow(line) && line["fields"]["route"] == "/collections/{c}/items";
    let begun = Instant::now();
    let told = loop {
        let all = lines(&server, is_slow);
        if let Some(line) = all.iter().find(|line| read(line)) {
            break line.clone();
        }
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1_100));
        server.get(path);
    };
    let fields = &told["fields"];
    assert_eq!(
        (&fields["method"], &fields["tenant"], &fields["status"]),
        (&"GET".into(), &"default".into(), &200.into())
    );
    assert!(
        fields["ms"].as_f64().unwrap() > 0.0 && fields["plan_ms"].is_number() && fields["scan_ms"].is_number(),
        "{told}"
    );
    for (name, value) in [("level", "WARN"), ("target", "meridian_api::slow")] {
        assert_eq!(told[name], value);
    }
    assert!(told["time"].as_str().unwrap().ends_with('Z') && told["request_id"].as_str().unwrap().len() == id.len());
    assert!(!server.log().contains("hidden-name"), "{}", server.log());

    let other = tempfile::tempdir().unwrap();
    let shown = served(other.path(), "[log]\nslow = \"1us\"\nslow_literals = true\n", &["--log-format", "json"]);
    shown.get("/collections?f=json");
    let all = lines(&shown, is_slow);
    assert!(all.iter().any(|line| line["fields"]["query"] == "f=json"), "{all:?}");
}

#[test]
fn a_flood_of_refusals_writes_a_line_a_second() {
    let folder = tempfile::tempdir().unwrap();
    // No request waits, and one runs, so nearly all of a burst are refused.
    let settings = "[requests]\nrunning_max = 1\nwaiting_max = 0\n[log]\nformat = \"json\"\n";
    let server = served(folder.path(), settings, &[]);
    let begun = Instant::now();
    let refused: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let agent = agent();
                    let ask = |_: &u32| agent.get(format!("{}/openapi.json", server.url)).call().unwrap();
                    (0..100).filter(|n| ask(n).status() == 503).count()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let refusal = |line: &&Value| line["message"] == "a request was refused";
    if refused == 0 {
        // The machine served them one after another.
        return;
    }
    let mut told;
    let begun = Instant::now();
    loop {
        let all = lines(&server, |line| refusal(&line));
        let of: Vec<&Value> = all.iter().filter(refusal).collect();
        let suppressed: u64 = of.iter().filter_map(|line| line["suppressed"].as_u64()).sum();
        // A line for the message, and a final one for those it stands for; the latter has no request.
        let written = of.iter().filter(|line| line["request_id"].is_string()).count();
        told = (written, written as u64 + suppressed);
        if told.1 == refused as u64 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{told:?} of {refused}");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(told.0 <= seconds, "{} lines in {seconds} s", told.0);
}

#[test]
fn monitors_have_a_listener_that_needs_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    meridian(&["token", "create", "--role", "operator", "--data", &data]).ended(0);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = served(folder.path(), &format!("[metrics]\nlisten = \"{port}\"\n"), &[]);
    assert_eq!(server.get("/metrics").0, 401);
    let monitor = |path: &str| {
        let mut answer = agent().get(format!("http://127.0.0.1:{port}{path}")).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    };
    let (status, text) = monitor("/metrics");
    assert!(status == 200 && text.contains("meridian_requests_slots "), "{text}");
    assert_eq!((monitor("/healthz").0, monitor("/readyz").0, monitor("/collections").0), (200, 200, 404));
    let foreign =
        agent().get(format!("http://127.0.0.1:{port}/metrics")).header("host", "evil.example").call().unwrap();
    assert_eq!(foreign.status(), 421);
}

#[test]
fn monitors_that_do_not_read_give_their_connections_back() {
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = format!("[metrics]\nlisten = \"{port}\"\n[answers]\nstall = \"1s\"\n");
    let _server = served(folder.path(), &settings, &[]);
    // More responses than the buffers of a connection hold, to as many monitors as are served at a time.
    let ask = format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").repeat(2_000);
    let deaf: Vec<_> = (0..16)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            // Partly unsent, once the server reads no more.
            let _ = stream.write_all(ask.as_bytes());
            stream
        })
        .collect();
    let answer = agent().get(format!("http://127.0.0.1:{port}/metrics")).call().unwrap();
    assert_eq!(answer.status(), 200);
    drop(deaf);
}
