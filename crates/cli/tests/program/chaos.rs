//! Clusters of real processes under seeded faults, while clients write and read: see `docs/testing.md`.
//!
//! `MERIDIAN_CHAOS_SEED` repeats a schedule; `MERIDIAN_CHAOS_SECONDS` sets the duration of the faults.

use crate::common::clients::get;
use crate::common::faults::Faults;
use crate::common::grid::{Grid, Kind};
use crate::common::history::{CHAIN, CHAIN_SPEC, Chain};
use crate::common::owners::{Cluster, answered};
use crate::common::proxy::{Fault, Proxy, caller_of};
use crate::common::registers::{REGISTERS, REGISTERS_SPEC, Registers, verdict};
use crate::common::{PATIENCE, Random, root};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Default duration of the faults, in seconds.
const SECONDS: u64 = 20;
/// Clients that write the chain, and clients of the registers.
const WRITERS: usize = 3;
const CLIENTS: usize = 5;
/// One cluster at a time, as a machine has few processors.
static TURN: Mutex<()> = Mutex::new(());

/// Ends the clients, however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a client. If it finds an error, the test ends soon.
fn client(stop: &AtomicBool, work: impl FnOnce()) {
    let stop = Stop(stop);
    work();
    // A client that ends on request must not stop the others.
    std::mem::forget(stop);
}

/// Clients write and read during faults; then everything is checked.
#[track_caller]
fn chaos(kind: Kind) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = number("MERIDIAN_CHAOS_SEED").unwrap_or_else(clock);
    let seconds = number("MERIDIAN_CHAOS_SECONDS").unwrap_or(SECONDS);
    let name = kind.name();
    println!("{name}: MERIDIAN_CHAOS_SEED={seed} MERIDIAN_CHAOS_SECONDS={seconds}");
    let mut random = Random(seed | 1);
    let begun = Instant::now();
    let mut grid = Grid::start(kind, &mut random);
    grid.create(CHAIN, CHAIN_SPEC);
    grid.create(REGISTERS, REGISTERS_SPEC);
    let (chain, registers, stop) = (Chain::default(), Registers::new(), AtomicBool::new(false));
    let (gateways, scans) = (grid.urls("gateway"), grid.urls("scan"));
    let servers = [gateways.clone(), scans.clone()].concat();
    std::thread::scope(|scope| {
        let _stops = Stop(&stop);
        let (chain, registers, stop, gateways, servers) = (&chain, &registers, &stop, &gateways, &servers);
        for _ in 0..WRITERS {
            let random = Random(random.next() | 1);
            scope.spawn(move || client(stop, || chain.write(gateways, stop, random)));
        }
        for n in 0..CLIENTS {
            let random = Random(random.next() | 1);
            scope.spawn(move || client(stop, || registers.run(n, gateways, stop, random)));
        }
        let reads = Random(random.next() | 1);
        scope.spawn(move || client(stop, || chain.watch(servers, stop, reads)));

        let mut faults = Faults { grid: &mut grid, chain, registers, stop, begun };
        faults.progress("at first");
        faults.owner_sleeps();
        if kind == Kind::Nats {
            faults.servers_go(&mut random);
        }
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            faults.some(&mut random);
        }
        if !stop.load(Ordering::Relaxed) {
            faults.say("all is healed");
            faults.grid.settle();
            faults.progress("once all is healed");
        }
    });
    println!("{}", chain.summary());
    for gateway in &gateways {
        chain.resend(gateway);
        chain.whole(gateway, "the end");
    }
    chain.whole(&scans[0], "the end");
    // Once more, from the bucket and the log only.
    for owner in grid.of("owner") {
        grid.nodes[owner].kill();
    }
    grid.settle();
    for server in &servers {
        chain.whole(server, "every owner was killed at the end");
    }
    let panicked: Vec<_> = grid.nodes.iter().filter(|node| node.has_panicked()).map(|node| node.log()).collect();
    assert!(panicked.is_empty(), "{}", panicked.join("\n"));
    // The file is kept when the history is refused, with the picture beside it.
    let history = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("registers-{name}-{seed}.jsonl"));
    registers.check(&history);
    std::fs::remove_file(history).unwrap();
}

#[test]
fn a_cluster_over_a_bucket_survives_faults_of_all_its_parts() {
    chaos(Kind::Folder);
}

#[test]
fn a_cluster_over_nats_survives_faults_of_all_its_parts() {
    chaos(Kind::Nats);
}

#[test]
fn a_cluster_over_an_s3_store_survives_faults_of_all_its_parts() {
    chaos(Kind::S3);
}

/// Returns the files of a collection in a folder, sorted by name.
fn files(folder: &Path, collection: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.display().to_string().contains(&format!("/{collection}/")) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_damaged_in_the_bucket_is_named_and_not_served_around() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let cluster = Cluster::new();
    let mut owner = cluster.owner("o");
    owner.says("owns");
    let gateway = cluster.server("gateway");
    gateway.create(CHAIN, CHAIN_SPEC);
    gateway.create(REGISTERS, REGISTERS_SPEC);
    let (chain, mut random) = (Chain::default(), Random::new());
    for _ in 0..20 {
        chain.write_once(&gateway.url, &mut random);
    }
    chain.resend(&gateway.url);
    let asked = format!("/collections/{CHAIN}/items?f=csv&properties=node");
    let whole = answered(&gateway, &asked).lines().count();
    assert_eq!(whole, chain.acknowledged() + 1, "a line for each event, and one of names");
    for kind in ["manifest", "segment"] {
        owner.signal("TERM");
        assert_eq!(owner.ends(), Some(0));
        let all = files(Path::new(&cluster.path("bucket")), CHAIN);
        let named = |part: &str| -> Vec<PathBuf> {
            all.iter().filter(|path| path.to_str().unwrap().contains(part)).cloned().collect()
        };
        // The newest manifest, and all segments.
        let harmed = match kind {
            "manifest" => named("/manifests/").pop().into_iter().collect(),
            _ => named(".segment"),
        };
        assert!(!harmed.is_empty(), "no {kind} among {all:?}");
        let good: Vec<Vec<u8>> = harmed.iter().map(|path| std::fs::read(path).unwrap()).collect();
        for (path, good) in harmed.iter().zip(&good) {
            let mut bad = good.clone();
            bad[good.len() / 2] ^= 4;
            std::fs::write(path, bad).unwrap();
        }
        owner = cluster.owner(&format!("o-{kind}"));
        owner.says("owns");
        // The other collection is served, and the new owner is known by then.
        answered(&gateway, &format!("/collections/{REGISTERS}/items"));
        let mut named = 0;
        for _ in 0..20 {
            // A truncated response does not count.
            let Ok(answer) = get(&format!("{}{asked}", gateway.url)) else { continue };
            let (shown, missing) = (answer.body.lines().count(), answer.header("meridian-missing"));
            if answer.status == 200 {
                assert_ne!(kind, "manifest", "without its manifest it shows {shown} lines");
                assert!(shown == whole || missing.is_some(), "{shown} lines of {whole}, and nothing is missing");
            } else {
                assert_eq!(answer.status, 503, "{kind}: {}", answer.body);
                named += u32::from(answer.body.contains("damaged"));
            }
        }
        assert!(kind != "manifest" || named > 0, "the damage is never named");
        owner.signal("KILL");
        owner.ends();
        for (path, good) in harmed.iter().zip(&good) {
            std::fs::write(path, good).unwrap();
        }
        owner = cluster.owner(&format!("o-{kind}-again"));
        owner.says("owns");
        chain.whole(&gateway.url, &format!("the {kind} is as it was"));
    }
}

/// Starts a server that echoes what it receives.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut from = client.try_clone().unwrap();
                let _ = std::io::copy(&mut from, &mut client);
            });
        }
    });
    address
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns the echo server's response to these bytes.
fn asked(stream: &mut TcpStream, text: &[u8]) -> Vec<u8> {
    stream.write_all(text).unwrap();
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).unwrap();
    back
}

#[test]
fn links_fail_as_they_are_told_and_lose_nothing_once_healed() {
    let proxy = Proxy::new();
    proxy.turn(Some(echo()));
    let text: Vec<u8> = (0..40_000_u32).map(|n| n as u8).collect();
    let mut open = connect(proxy.address);
    for fault in [Fault::None, Fault::Delay(Duration::from_millis(10)), Fault::Throttle(400_000)] {
        proxy.fail("", fault);
        assert_eq!(asked(&mut open, &text), text, "{fault:?}");
    }
    for fault in [Fault::HalfOpen, Fault::AsksLost, Fault::AnswersLost] {
        // On an existing connection, and on a new one.
        for is_new in [false, true] {
            proxy.fail("", fault);
            let mut stream = if is_new { connect(proxy.address) } else { open.try_clone().unwrap() };
            stream.write_all(b"held").unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let kind = stream.read(&mut [0; 4]).unwrap_err().kind();
            assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{fault:?}: {kind:?}");
            proxy.heal();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut back = [0; 4];
            stream.read_exact(&mut back).unwrap();
            assert_eq!(&back, b"held", "{fault:?}");
        }
    }
    for fault in [Fault::Cut, Fault::Reset] {
        proxy.heal();
        let mut open = connect(proxy.address);
        assert_eq!(asked(&mut open, b"once"), b"once");
        proxy.fail("", fault);
        for mut stream in [open, connect(proxy.address)] {
            match (fault, stream.read(&mut [0; 4])) {
                (Fault::Cut, Ok(0)) => {}
                (Fault::Reset, Err(error)) if error.kind() == ErrorKind::ConnectionReset => {}
                (_, end) => panic!("{fault:?}: {end:?}"),
            }
        }
    }
}

#[test]
fn a_link_is_told_from_another_by_who_calls() {
    let processes = [("me".to_owned(), std::process::id())];
    let proxy = Proxy::by_caller(Arc::new(move |peer, own| caller_of(peer, own, &processes)));
    proxy.turn(Some(echo()));
    proxy.fail("another", Fault::Cut);
    assert_eq!(asked(&mut connect(proxy.address), b"hello"), b"hello");
    proxy.fail("me", Fault::Cut);
    assert_eq!(connect(proxy.address).read(&mut [0; 4]).unwrap(), 0);
}

#[test]
fn the_checker_of_histories_refuses_what_no_register_shows() {
    let (histories, folder) = (root().join("tests/linearizability/testdata"), tempfile::tempdir().unwrap());
    for (name, words) in [
        ("good-plain", "linearizable: 11 operations on 2 keys"),
        ("good-unknown-late", "linearizable: "),
        ("bad-stale-read", "NOT LINEARIZABLE: key a"),
        ("bad-lost-write", "NOT LINEARIZABLE: key a"),
        ("bad-from-nowhere", "NOT LINEARIZABLE: key a"),
    ] {
        // A copy, as pictures are written beside it.
        let file = folder.path().join(name);
        std::fs::copy(histories.join(format!("{name}.jsonl")), &file).unwrap();
        let (is_linearizable, said) = verdict(&file);
        assert!(is_linearizable == name.starts_with("good") && said.contains(words), "{name}: {said}");
    }
}
