//! A server in a control group of exactly the memory it claims to need, under requests designed to exceed it. With or
//! without one, the highest amount of memory that the kernel has recorded for it is compared with that amount.

use crate::common::group::Group;
use crate::common::{PATIENCE, Server, as_holder, token};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Small pools, so that a test can fill them.
const SETTINGS: &str = r#"
[store]
cache_bytes = "32 MiB"
memory_bytes = "64 MiB"
log_bytes = "64 MiB"
[ingest]
batch_bytes = "16 MiB"
body_bytes_total = "32 MiB"
batch_bytes_total = "48 MiB"
unfolded_bytes = "64 MiB"
[answers]
bytes_total = "32 MiB"
[requests]
running_max = 4
connections_max = 256
connections_per_address_max = 256
query_bytes_total = "32 MiB"
[streams]
max = 160
objects_max = 256
[search]
buffer_bytes_total = "8 MiB"
answer_bytes_total = "64 MiB"
saved_queue_bytes = "4 MiB"
saved_buffer_bytes_total = "4 MiB"
saved_objects_max = 10000
webhook_dead_bytes_total = "4 MiB"
"#;
const SPEC: &str = "note:String,n:Long,*geom:Point:srid=4326";
const NDJSON: &str = "application/x-ndjson";
const LARGE: &str = "/collections/large/items";

/// Duration of the load, and min number of requests of each client.
const LOAD: Duration = Duration::from_secs(10);
const REQUESTS_MIN: usize = 3;
/// Unread streams of each tenant, half of them over WebSockets.
const STREAMS: usize = 32;
const TENANTS: [&str; 4] = ["one", "two", "three", "four"];

/// Returns the bytes after "up to" in the start message.
fn promised(server: &Server) -> u64 {
    let said = server.said("of memory");
    let text = said.split("up to ").nth(1).and_then(|rest| rest.split(" of memory").next()).unwrap();
    let (number, unit) = text.split_once(' ').unwrap();
    let unit = match unit {
        "MB" => 1e6,
        "GB" => 1e9,
        other => panic!("{other}"),
    };
    (number.parse::<f64>().unwrap() * unit) as u64
}

/// Returns the bytes of a line in `/proc/PID/status`.
fn in_status(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// The most memory of its own that a server has held. Pages of mapped files do not count, as the system can reclaim
/// them.
#[derive(Debug, Default)]
struct Peak {
    own: u64,
    files: u64,
}

impl Peak {
    /// Looks at a server, which must still run.
    fn look(&mut self, server: &Server) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        self.files = self.files.max(in_status(&status, "RssFile"));
        // The kernel keeps the highest sum of both, so that no moment between two looks is missed.
        let recorded = in_status(&status, "VmHWM").saturating_sub(self.files);
        self.own = self.own.max(in_status(&status, "RssAnon")).max(recorded);
    }
}

/// Returns events with notes of `bytes` bytes.
fn events(count: usize, bytes: usize) -> Vec<u8> {
    let (mut lines, filling) = (String::with_capacity(count * (bytes + 60)), "x".repeat(bytes));
    for n in 0..count {
        let (lon, lat) = ((n * 7 % 360) as i64 - 180, (n * 3 % 180) as i64 - 90);
        writeln!(lines, r#"{{"lon":{lon},"lat":{lat},"n":{n},"note":"{n}{filling}"}}"#).unwrap();
    }
    lines.into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new("gzip").args(["-1", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes).unwrap());
        let mut out = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        assert!(child.wait().unwrap().success());
        out
    })
}

/// A client of one tenant.
struct Client<'a> {
    address: &'a str,
    token: String,
}

impl Client<'_> {
    fn begin(&self, method: &str, target: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: {NDJSON}\r\nContent-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses early stops reading.
        let _ = stream.write_all(body);
        stream
    }

    /// Follows the large events, but reads nothing.
    fn follow(&self, over_socket: bool) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let head = format!(
            "GET /collections/large/stream?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{}\r\n",
            self.token,
            if over_socket { upgrade } else { "" }
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// Returns the status, once the response is complete or broken off.
    fn ask(&self, method: &str, target: &str, body: &[u8]) -> u16 {
        let mut reader = BufReader::new(self.begin(method, target, body));
        let mut line = String::new();
        let _ = reader.read_line(&mut line);
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        // A response may be broken off after its head, if memory for it runs out.
        let _ = std::io::copy(&mut reader, &mut std::io::sink());
        status.unwrap_or_else(|| panic!("{method} {target} was not answered: {line:?}"))
    }
}

#[test]
fn within_the_memory_that_it_says_it_takes_a_server_is_never_killed() {
    let group = Group::new("memory", 1 << 30);
    let serve = |args: &[&str]| group.as_ref().map_or_else(|| Server::start_with(args), |group| group.serve(args));
    let killed = || group.as_ref().map_or(0, Group::killed);
    let folder = tempfile::tempdir().unwrap();
    let (data, config) = (folder.path().join("data"), folder.path().join("meridian.toml"));
    std::fs::write(&config, SETTINGS).unwrap();
    let args = ["--data", data.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let mut limit = u64::MAX;
    // Twice: the memory of a merge follows the limit.
    for _ in 0..2 {
        let server = serve(&args);
        limit = promised(&server);
        assert_eq!(server.stop("TERM"), Some(0));
        group.iter().for_each(|group| group.limit(limit).unwrap());
    }
    let server = serve(&args);
    assert!(promised(&server) <= limit);

    let mut clients = Vec::new();
    let operator = token(&data, &["--role", "operator"]);
    for tenant in TENANTS {
        as_holder(&operator, &["tenant", "create", tenant, "--url", &server.url]).ended(0);
        let token = token(&data, &["--tenant", tenant, "--role", "admin"]);
        for collection in ["large", "small"] {
            as_holder(&token, &["create", collection, "--schema", SPEC, "--url", &server.url]).ended(0);
        }
        clients.push(Client { address: server.address(), token });
    }
    let (large, many, rows) = (events(140, 100_000), events(80_000, 100), events(50_000, 6));
    for client in &clients {
        for _ in 0..2 {
            assert_eq!(client.ask("POST", LARGE, &events(100, 100_000)), 201);
        }
        assert_eq!(client.ask("POST", "/collections/small/items", &rows), 201);
    }
    let bombs = [gzip(&vec![b'\n'; 300 << 20]), gzip(&events(600, 100_000)), gzip(&events(1_500_000, 6)), gzip(&large)];
    let pages = ["json", "csv", "arrow", "html", "ndjson", "parquet"].map(|f| format!("{LARGE}?limit=300&f={f}"));
    let sums = [
        "/collections/small/aggregate?function=count,sum(n)&by=note",
        "/collections/small/items?sortby=-note&limit=10000&f=ndjson",
        "/collections/small/density?bbox=-180,-90,180,90&width=1000&height=1000",
        "/collections/small/items?sortby=note&limit=10000",
    ];

    let (mut peak, clients_left) = (Peak::default(), AtomicU64::new(4 * TENANTS.len() as u64));
    let tally = Mutex::new(BTreeMap::<(&str, u16), u32>::new());
    let begun = Instant::now();
    let again = |what: &'static str, ask: &dyn Fn(usize) -> u16| {
        for n in 0.. {
            *tally.lock().unwrap().entry((what, ask(n))).or_default() += 1;
            if n + 1 >= REQUESTS_MIN && begun.elapsed() > LOAD {
                break;
            }
        }
        clients_left.fetch_sub(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for client in &clients {
            let (again, bombs, pages, large, many) = (&again, &bombs, &pages, &large, &many);
            scope.spawn(move || again("bodies", &|n| client.ask("POST", LARGE, if n % 2 == 0 { large } else { many })));
            scope.spawn(move || again("bombs", &|n| client.ask("POST", LARGE, &bombs[n % bombs.len()])));
            scope.spawn(move || again("pages", &|n| client.ask("GET", &pages[n % pages.len()], b"")));
            scope.spawn(move || again("sums", &|n| client.ask("GET", sums[n % sums.len()], b"")));
            scope.spawn(move || {
                // They read nothing: what exceeds the buffers of both systems waits in the server.
                let mut idle = Vec::new();
                while begun.elapsed() < LOAD {
                    idle.push(client.begin("GET", &format!("{LARGE}?f=ndjson"), b""));
                    std::thread::sleep(Duration::from_millis(400));
                }
            });
        }
        for client in &clients {
            scope.spawn(move || {
                // Evicted ones are replaced.
                let mut streams = VecDeque::new();
                for n in 0.. {
                    if begun.elapsed() > LOAD {
                        break;
                    }
                    if streams.len() == STREAMS {
                        streams.pop_front();
                    }
                    streams.push_back(client.follow(n % 2 == 0));
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
        scope.spawn(|| {
            // Until the clients have their last responses.
            while clients_left.load(Ordering::Relaxed) > 0 && killed() == 0 {
                peak.look(&server);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
    });
    let tally = tally.into_inner().unwrap();
    assert_eq!(killed(), 0, "{tally:?}");
    assert!((1..=limit).contains(&peak.own), "{peak:?} of {limit}: {tally:?}");
    let expected = |(_, status): &(&str, u16)| matches!(status, 200 | 201 | 413 | 429 | 503);
    assert!(tally.keys().all(expected), "{tally:?}");
    for what in ["bodies", "bombs", "pages", "sums"] {
        let count: u32 = tally.iter().filter(|((asked, _), _)| *asked == what).map(|(_, count)| count).sum();
        assert!(count as usize >= TENANTS.len() * REQUESTS_MIN, "{tally:?}");
    }
    // Then everything is served. Responses queued for the load's last clients go away with them.
    for client in &clients {
        let begun = Instant::now();
        let answered = |method: &str, target: &str, body: &[u8], status: u16| {
            while client.ask(method, target, body) != status {
                assert!(begun.elapsed() < PATIENCE, "{method} {target}: {}", server.log());
                std::thread::sleep(Duration::from_millis(50));
            }
        };
        answered("POST", LARGE, &large, 201);
        bombs[..3].iter().for_each(|bomb| answered("POST", LARGE, bomb, 413));
        answered("POST", LARGE, &bombs[3], 201);
        answered("GET", &pages[0], b"", 200);
        answered("GET", sums[1], b"", 200);
    }
    assert_eq!((server.stop("TERM"), killed()), (Some(0), 0));
    println!("{peak:?} of {limit} bytes: {tally:?}");
}
