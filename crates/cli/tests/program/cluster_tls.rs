//! TLS between roles, as real processes: accepted callers, callers rejected by name, and certificates replaced
//! meanwhile.

use crate::common::authority::{Authority, Identity};
use crate::common::batches::SPEC;
use crate::common::owners::{Cluster, Owner, answered};
use crate::common::{PATIENCE, Server, command, meridian, send};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Host by which the owners of these tests are reached.
const HERE: &str = "127.0.0.1";
/// First bytes of an HTTP/2 client, with empty settings (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The TLS record type of an alert (RFC 8446, 5.1).
const ALERT: u8 = 21;

/// A cluster whose processes have individual settings, and a folder for certificates.
struct World {
    cluster: Cluster,
}

impl World {
    fn new() -> World {
        World { cluster: Cluster::new() }
    }

    fn authority(&self, name: &str) -> Authority {
        Authority::new(Path::new(&self.cluster.path("")), name)
    }

    fn owner(&self, name: &str, settings: &str) -> Owner {
        self.cluster.set(settings);
        self.cluster.owner(name)
    }

    fn gateway(&self, settings: &str) -> Server {
        self.cluster.set(settings);
        self.cluster.server("gateway")
    }

    /// Returns what a process with these settings reports of the owner, which it calls as a gateway does.
    fn calls(&self, identity: &Identity) -> Value {
        let file = self.cluster.path("caller.toml");
        fs::write(&file, identity.settings("")).unwrap();
        let bucket = format!("file://{}", self.cluster.path("bucket"));
        let begun = Instant::now();
        loop {
            let run = meridian(&["cluster", "status", "--bucket", &bucket, "--config", &file, "--json"]).ended(0);
            let found: Value = serde_json::from_str(&run.out).unwrap();
            // On a busy machine a renewal of the lease may be late.
            if found["owner"]["state"] == "held" {
                return found["owner"].clone();
            }
            assert!(begun.elapsed() < PATIENCE, "{found:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a caller is accepted.
    #[track_caller]
    fn lets_in(&self, identity: &Identity) {
        let begun = Instant::now();
        loop {
            let found = self.calls(identity);
            if found["reachable"] == true {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{found:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a caller is rejected, for this reason.
    #[track_caller]
    fn refuses(&self, identity: &Identity, reason: &str) {
        let begun = Instant::now();
        loop {
            let found = self.calls(identity);
            if found["reachable"] == false && found["reason"].as_str().is_some_and(|why| why.contains(reason)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "never {reason:?}: {found:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until an owner's log contains these words.
    #[track_caller]
    fn logs(&self, owner: &str, words: &str) {
        wait(words, || fs::read_to_string(self.cluster.path(&format!("{owner}.log"))).unwrap());
    }
}

/// Waits until a text contains these words.
#[track_caller]
fn wait(words: &str, text: impl Fn() -> String) {
    let begun = Instant::now();
    while !text().contains(words) {
        assert!(begun.elapsed() < PATIENCE, "{words:?} is not in:\n{}", text());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the address where an owner serves gateways.
fn address_of(owner: &Owner) -> String {
    let line = owner.says("Meridian");
    assert!(line.contains("over TLS"), "{line}");
    let (_, after) = line.split_once("answers gateways on ").unwrap();
    after.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn roles_with_certificates_work_and_nothing_is_served_in_plain() {
    let world = World::new();
    let authority = world.authority("company");
    let (server, caller) = (authority.sign("owner", &[HERE]), authority.sign("gateway", &["gateway-1.example.org"]));
    let owner = world.owner("o0", &server.settings(""));
    let address = address_of(&owner);
    owner.says("owns");
    let gateway = world.gateway(&caller.settings(""));
    gateway.create("events", SPEC);
    answered(&gateway, "/collections/events/items");
    world.lets_in(&caller);

    // An HTTP/2 client without TLS: it gets at most an alert, and no frame.
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(PREFACE).unwrap();
    let mut answer = Vec::new();
    // The server may reset a connection before it has read everything.
    let _ = plain.read_to_end(&mut answer);
    assert!(answer.first().is_none_or(|kind| *kind == ALERT), "{answer:?}");
    world.logs("o0", "a caller is refused: it does not speak TLS");
    // TLS without a certificate.
    let url = format!("https://{address}");
    meridian(&["query", "events", "--url", &url, "--ca-file", &authority.file]).ended(3);
    world.logs("o0", "a caller is refused: it shows no certificate");
    // A mere port check is not worth a warning.
    let log = || fs::read_to_string(world.cluster.path("o0.log")).unwrap();
    let refused = log().matches("is refused").count();
    drop(TcpStream::connect(&address).unwrap());
    world.lets_in(&caller);
    assert_eq!(log().matches("is refused").count(), refused, "{}", log());
}

#[test]
fn callers_that_may_not_call_are_refused_and_named_at_both_ends() {
    let world = World::new();
    let (company, other) = (world.authority("company"), world.authority("other"));
    let names = "names = [\"gateway-*.example.org\", \"spiffe://example.org/meridian/*\"]";
    let owner = world.owner("o0", &company.sign("owner", &[HERE]).settings(names));
    owner.says("owns");
    for allowed in [&["gateway-1.example.org"][..], &["a.org", "spiffe://example.org/meridian/gateway"]] {
        world.lets_in(&company.sign("allowed", allowed));
    }
    // Trusts the owner, but its own certificate is from an authority unknown to the owner.
    let stranger = Identity { ca: company.file.clone(), ..other.sign("stranger", &["gateway-1.example.org"]) };
    world.refuses(&stranger, "no authority in its cluster.tls.ca has signed it");
    world.logs("o0", "a caller is refused: no authority in cluster.tls.ca has signed its certificate");
    world.refuses(&company.sign_until("late", &["gateway-1.example.org"], 2001), "it has expired");
    world.logs("o0", "a caller is refused: its certificate has expired");
    for wrong in ["mail.example.org", "a.gateway-1.example.org"] {
        world.refuses(&company.sign("wrong", &[wrong]), "cluster.tls.names does not allow");
        world.logs("o0", &format!("its certificate is of {wrong}, which cluster.tls.names does not allow"));
    }
    // A caller that does not trust the owner.
    let distrusts = Identity { ca: other.file.clone(), ..company.sign("distrusts", &["gateway-1.example.org"]) };
    world.refuses(&distrusts, "no authority in cluster.tls.ca has signed its certificate");
    world.logs("o0", "it refuses the certificate of this process");
}

#[test]
fn certificates_are_exchanged_while_processes_run_and_a_broken_one_is_not_used() {
    let world = World::new();
    let (old, new) = (world.authority("old"), world.authority("new"));
    // Files that change, each used by one process.
    let (server, caller) = (old.sign("owner", &[HERE]), old.sign("gateway", &["gateway-1"]));
    let both = world.cluster.path("both.pem");
    fs::copy(&old.file, &both).unwrap();
    let server = Identity { ca: both.clone(), ..server };
    let owner = world.owner("o0", &server.settings(""));
    owner.says("owns");
    let gateway = world.gateway(&Identity { ca: both.clone(), ..caller.clone() }.settings(""));
    gateway.create("events", SPEC);
    let stays = old.sign("stays", &["stays"]);
    let comes = new.sign("comes", &["comes"]);

    // A key that does not match, then a certificate for another host: the current one stays.
    let kept = fs::read(&server.key).unwrap();
    fs::copy(&stays.key, &server.key).unwrap();
    send(owner.pid(), "HUP");
    world.logs("o0", "does not belong to the certificate");
    world.lets_in(&stays);
    server.becomes(&old.sign("elsewhere", &["owner.example.org"]));
    send(owner.pid(), "HUP");
    world.logs("o0", "does not name 127.0.0.1");
    world.lets_in(&stays);
    server.becomes(&old.sign("again", &[HERE]));
    assert_ne!(fs::read(&server.key).unwrap(), kept);
    // It is noticed without a signal.
    world.logs("o0", "a new certificate is in use");

    // Another authority in addition to the first: both count.
    world.refuses(&Identity { ca: old.file.clone(), ..comes.clone() }, "no authority in its cluster.tls.ca");
    fs::write(&both, fs::read_to_string(&old.file).unwrap() + &fs::read_to_string(&new.file).unwrap()).unwrap();
    send(owner.pid(), "HUP");
    world.lets_in(&Identity { ca: old.file.clone(), ..comes.clone() });
    // The owner's certificate is from the new one. The gateway's file has both, so it follows, and writes continue.
    server.becomes(&new.sign("newest", &[HERE]));
    send(owner.pid(), "HUP");
    world.lets_in(&comes);
    world.refuses(&stays, "no authority in cluster.tls.ca has signed its certificate");

    // A gateway whose certificate expires: its next connection is rejected, and it reports that, until it has another
    // certificate.
    caller.becomes(&old.sign_until("late", &["gateway-1"], 2001));
    send(gateway.pid(), "HUP");
    wait("the certificate expired at", || gateway.log());
    answered(&gateway, "/readyz");
    owner.signal("KILL");
    let next = world.owner("o1", &server.settings(""));
    next.says("owns");
    let refused = "it refuses the certificate of this process: it has expired";
    wait(refused, || gateway.get("/readyz").1);
    let (status, said) = gateway.get("/collections/events/items");
    assert!(status == 503 && said.contains(refused), "{status} {said}");
    wait(&format!("no connection to another role: {refused}"), || gateway.log());
    world.logs("o1", "a caller is refused: its certificate has expired");
    caller.becomes(&new.sign("renewed", &["gateway-1"]));
    send(gateway.pid(), "HUP");
    answered(&gateway, "/readyz");
    answered(&gateway, "/collections/events/items");
}

#[test]
fn a_start_without_protection_or_with_wrong_files_is_refused() {
    let world = World::new();
    let authority = world.authority("company");
    let good = authority.sign("good", &[HERE]);
    let start = |settings: &str, role: &str, more: &[&str]| {
        world.cluster.set(settings);
        let mut arguments = world.cluster.arguments(role, role);
        arguments.extend(more.iter().map(|word| (*word).to_owned()));
        meridian(&[vec!["serve".to_owned()], arguments].concat())
    };
    let elsewhere = ["--flight", "0.0.0.0:0", "--flight-advertise", "owner.example.org:7118"];
    start("", "owner", &elsewhere).ended(2).says(&["--flight 0.0.0.0:", "cluster.tls.cert", "cluster.tls.allow_plain"]);
    start(&good.settings(""), "owner", &elsewhere).ended(2).says(&[&good.cert, "does not name owner.example.org"]);
    for (wrong, words) in [
        (Identity { key: String::new(), ..good.clone() }, "cluster.tls.key"),
        (Identity { ca: String::new(), ..good.clone() }, "cluster.tls.ca"),
        (Identity { ca: good.key.clone(), ..good.clone() }, "it has no certificate"),
        (Identity { key: "/nowhere.key".to_owned(), ..good.clone() }, "cluster.tls.key: /nowhere.key"),
    ] {
        for role in ["owner", "gateway"] {
            let free = ["--flight", "127.0.0.1:0"];
            start(&wrong.settings(""), role, if role == "owner" { &free } else { &[] }).ended(2).says(&[words]);
        }
    }
    // A key is never displayed, whatever file it is in.
    let said = start(&Identity { cert: good.key.clone(), ..good.clone() }.settings(""), "gateway", &[]).ended(2);
    let secret = fs::read_to_string(&good.key).unwrap();
    assert!(!said.err.contains(secret.lines().nth(1).unwrap()), "{}", said.err);
}

#[test]
fn a_scan_server_answers_gateways_with_certificates_alone() {
    const SCANS: &str = "names = [\"gateway-*.example.org\"]\n[cluster.scan]\nlisten = \"127.0.0.1:0\"";
    let world = World::new();
    let company = world.authority("company");
    let server = company.sign("server", &[HERE]);
    let owner = world.owner("o0", &format!("staleness_max = \"1s\"\n{}", server.settings("")));
    owner.says("owns");
    let gateway = world.gateway(&company.sign("gateway", &["gateway-1.example.org"]).settings(""));
    gateway.create("events", SPEC);
    world.cluster.set(&server.settings(SCANS));
    let scan = world.cluster.server("scan");
    let question = "/collections/events/aggregate?function=count&consistency=eventual";
    let started = || {
        answered(&gateway, question);
        let figures = scan.get("/metrics").1;
        let line = figures.lines().find(|line| line.starts_with("meridian_scan_turns_total "));
        line.unwrap_or("none yet").to_owned()
    };
    let begun = Instant::now();
    while matches!(started().rsplit(' ').next(), Some("0" | "yet")) {
        assert!(begun.elapsed() < PATIENCE, "{}", scan.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    // The owner accepts this one, and the scan server does not.
    let other = world.gateway(&company.sign("mail", &["mail.example.org"]).settings(""));
    let refused = "its certificate is of mail.example.org, which cluster.tls.names does not allow";
    wait(refused, || {
        other.get(question);
        scan.log()
    });
    wait("no connection to another role: it refuses the certificate of this process", || other.log());
    // A start that gateways would reject, and one that would serve everyone.
    let start = |settings: &str, more: &[&str]| {
        world.cluster.set(settings);
        let mut arguments = vec!["serve".to_owned(), "--listen".to_owned(), "127.0.0.1:0".to_owned()];
        arguments.extend(world.cluster.arguments("scan", "other"));
        arguments.extend(more.iter().map(|word| (*word).to_owned()));
        meridian(&arguments)
    };
    let elsewhere = ["--scan-listen", "0.0.0.0:0", "--scan-advertise", "scan.example.org:7121"];
    start(&server.settings(""), &elsewhere).ended(2).says(&[&server.cert, "does not name scan.example.org"]);
    start("", &elsewhere).ended(2).says(&["cluster.scan.listen 0.0.0.0:", "cluster.tls.cert"]);
}

#[test]
fn a_gateway_without_a_certificate_calls_no_other_machine() {
    let world = World::new();
    let owner = world.owner("o0", "flight_advertise = \"owner.example.org:7118\"\n");
    owner.says("owns");
    world.cluster.set("");
    let mut serve = command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut child = serve.args(world.cluster.arguments("gateway", "gateway")).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).find(|line| line.contains("on another machine"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(found.unwrap().contains("cluster.tls.allow_plain"));
}
