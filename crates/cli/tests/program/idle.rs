//! Ten thousand idle connections.

use crate::common::{self, PATIENCE, Server, agent};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// `requests.connections_per_address_max`, with its default on a machine with much memory.
const OF_ONE_MAX: usize = 2_500;
const ADDRESSES: u8 = 4;
/// Connections opened at once.
const STEP: usize = 500;

/// Opens connections from an address of this machine.
fn connect(from: u8, to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connect = async {
        let mut open = Vec::with_capacity(count);
        for _ in 0..count {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::new(IpAddr::from(Ipv4Addr::new(127, 1, 0, from)), 0)).unwrap();
            let stream = socket.connect(to).await.unwrap().into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            open.push(stream);
        }
        open
    };
    runtime.block_on(connect)
}

/// Waits until a metric is as expected.
#[track_caller]
fn wait_for(server: &Server, metric: &str, expected: impl Fn(usize) -> bool) {
    let begun = Instant::now();
    loop {
        let text = server.get("/metrics").1;
        let value = text.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' ')).unwrap();
        if expected(value.parse().unwrap()) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{metric} {value}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn ten_thousand_idle_connections_keep_nobody_else_out() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let files = limit.maximum.unwrap_or(u64::MAX);
    if files < 11_500 {
        // Bypasses the test's captured output: a skipped test must not look like a successful one.
        let text =
            format!("\nNOT TESTED: 10,000 connections need 11,500 open files, and this process may have {files}\n");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("meridian.toml");
    let limits = format!("connections_max = 10100\nconnections_per_address_max = {OF_ONE_MAX}\nhead_timeout = \"10m\"");
    std::fs::write(&config, format!("[requests]\n{limits}\n")).unwrap();
    // As started by a shell: the server raises its own limit.
    let mut serve = std::process::Command::new("sh");
    serve.args([
        "-c",
        "ulimit -S -n 1024; exec \"$@\"",
        "sh",
        common::MERIDIAN,
        "serve",
        "--ephemeral",
        "--listen",
        "127.0.0.1:0",
    ]);
    serve.args(["--config", config.to_str().unwrap()]);
    let server = Server::run(serve);
    let address: SocketAddr = server.address().parse().unwrap();
    let mut open: Vec<Vec<TcpStream>> = (1..=ADDRESSES).map(|_| Vec::new()).collect();
    for (from, of_one) in (1..).zip(&mut open) {
        for count in (STEP..=OF_ONE_MAX).step_by(STEP) {
            of_one.extend(connect(from, address, STEP));
            // Unaccepted connections must fit into the system's queue. It drops others, which are retried after a
            // second.
            wait_for(&server, "meridian_connections_open", |n| n > OF_ONE_MAX * usize::from(from - 1) + count);
        }
    }

    // One more from an address with all its connections is rejected with a message.
    for from in 1..=ADDRESSES {
        let mut text = String::new();
        connect(from, address, 1)[0].read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("too many connections"), "{text}");
    }
    wait_for(&server, "meridian_connections_refused_total", |n| n == usize::from(ADDRESSES));

    // A client of another address is served as before.
    for _ in 0..100 {
        assert_eq!(agent().get(format!("{}/collections", server.url)).call().unwrap().status().as_u16(), 200);
    }
    // Idle clients can still send requests.
    for of_one in &mut open {
        let stream = of_one.last_mut().unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    }
    drop(open);
    wait_for(&server, "meridian_connections_open", |n| n < 100);
    assert_eq!(server.stop("TERM"), Some(0));
}
