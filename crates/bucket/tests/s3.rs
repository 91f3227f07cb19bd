//! A bucket in a real S3-compatible store: its guarantees, its error messages, and outcomes hidden by a broken
//! connection.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may fail a test")]
#![allow(clippy::disallowed_methods, reason = "tests read files as they are")]

mod gateway;
#[path = "gateway/line.rs"]
mod line;

use gateway::{BUCKET, Gateway, REGION};
use line::Line;
use meridian_bucket::{S3Options, open, open_to_look};
use meridian_model::builder::Value;
use meridian_model::{BatchBuilder, Field, FieldType, GeometryType, IdRole, Schema, TimeRole};
use meridian_store::bucket::{Bucket, Put};
use meridian_store::seams::{Random, Seams, SystemRandom};
use meridian_store::{Lease, LeaseState, Options, Settings, Store, StoreError, Terms, Write};
use rcgen::{CertificateParams, KeyPair};
use std::io::ErrorKind;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

struct World {
    folder: TempDir,
    gateway: Gateway,
    runtime: Runtime,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(folder.path(), None);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        World { folder, gateway, runtime }
    }

    fn options(&self) -> S3Options {
        let file = |name: &str| self.gateway.path(name).display().to_string();
        S3Options {
            endpoint: self.gateway.endpoint(),
            region: REGION.to_owned(),
            access_key_file: file("access.key"),
            secret_key_file: file("secret.key"),
            ..S3Options::default()
        }
    }

    fn open(&self, address: &str, options: &S3Options) -> Result<Arc<dyn Bucket>, StoreError> {
        let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
        open(address, options, self.runtime.handle(), &random)
    }

    /// Opens the bucket as another process does.
    fn bucket(&self) -> Arc<dyn Bucket> {
        self.open(&format!("s3://{BUCKET}/a/prefix"), &self.options()).unwrap()
    }

    /// Opens it through a proxy, without a probe.
    fn bucket_over(&self, line: &Line) -> Arc<dyn Bucket> {
        let options = S3Options { endpoint: line.endpoint.clone(), ..self.options() };
        open_to_look(&format!("s3://{BUCKET}/a/prefix"), &options, self.runtime.handle()).unwrap()
    }
}

/// Returns true if a create that failed like this is read back, and resent.
fn is_lost(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut};
    matches!(kind, ConnectionAborted | ConnectionRefused | ConnectionReset | TimedOut)
}

#[test]
fn objects_are_created_once_read_in_ranges_and_deleted() {
    let world = World::new();
    let (one, two) = (world.bucket(), world.bucket());
    assert!(one.list("").unwrap().is_empty(), "the probes leave nothing");
    assert_eq!(one.put("a/b/1", b"0123456789").unwrap(), Put::Created);
    assert_eq!(two.put("a/b/1", b"other").unwrap(), Put::Exists);
    assert_eq!(two.get("a/b/1").unwrap(), b"0123456789");
    assert_eq!(two.put("a/b/2", b"").unwrap(), Put::Created);
    let mut range = [0; 4];
    two.get_range("a/b/1", 3, &mut range).unwrap();
    assert_eq!(&range, b"3456");
    for offset in [8, 10, 100] {
        let short = two.get_range("a/b/1", offset, &mut range).unwrap_err();
        assert_eq!(short.kind(), ErrorKind::UnexpectedEof, "{offset}: {short}");
    }
    assert_eq!((two.len("a/b/1").unwrap(), two.len("a/b/2").unwrap()), (10, 0));
    assert_eq!(two.get("a/b/2").unwrap(), b"");
    assert!(two.modified("a/b/1").unwrap().unwrap() > 1_700_000_000_000_000);
    assert_eq!(one.list("a/").unwrap(), ["a/b/1", "a/b/2"]);
    assert!(one.list("b/").unwrap().is_empty());
    one.settle("a/b/1").unwrap();
    one.delete("a/b/1").unwrap();
    one.delete("a/b/1").unwrap();
    for missing in [
        two.get("a/b/1").unwrap_err(),
        two.len("a/b/1").unwrap_err(),
        two.get_range("a/b/1", 0, &mut range).unwrap_err(),
    ] {
        assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
    }
    assert_eq!(one.put("a/../b", b"").unwrap_err().kind(), ErrorKind::InvalidInput);
    // Another prefix of the bucket is another bucket.
    let other = world.open(&format!("s3://{BUCKET}"), &world.options()).unwrap();
    assert_eq!(other.list("a/").unwrap(), ["a/prefix/a/b/2"]);
    assert_eq!(other.get("a/b/2").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn of_many_creates_of_one_name_one_wins() {
    const CREATES: usize = 32;
    let world = World::new();
    let buckets = [world.bucket(), world.bucket()];
    for round in 0..8 {
        let name = format!("race/{round}");
        let start = Barrier::new(CREATES);
        let answers: Vec<Put> = std::thread::scope(|scope| {
            let create = |number: usize| {
                let (bucket, start, name) = (&buckets[number % 2], &start, &name);
                move || {
                    start.wait();
                    bucket.put(name, format!("by {number}").as_bytes()).unwrap()
                }
            };
            let threads: Vec<_> = (0..CREATES).map(|number| scope.spawn(create(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winners: Vec<usize> = (0..CREATES).filter(|number| answers[*number] == Put::Created).collect();
        assert_eq!(winners.len(), 1, "{winners:?} in round {round}");
        assert_eq!(buckets[0].get(&name).unwrap(), format!("by {}", winners[0]).into_bytes());
    }
}

#[test]
fn an_object_of_any_size_gets_its_name_whole_and_if_it_is_free() {
    let world = World::new();
    let bucket = world.bucket();
    for (name, bytes) in [("x/small", 1000), ("x/one-part", 8 << 20), ("x/large", (20 << 20) + 17)] {
        let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        let upload = |content: &[u8]| {
            let mut upload = bucket.upload(name).unwrap();
            content.chunks(700_000).for_each(|piece| upload.write(piece).unwrap());
            upload
        };
        let pending = upload(&content);
        assert_eq!(bucket.get(name).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        assert_eq!(pending.finish().unwrap(), Put::Created, "{name}");
        assert!(bucket.get(name).unwrap() == content, "{name}");
        assert_eq!(upload(&vec![1; content.len()]).finish().unwrap(), Put::Exists, "{name}");
        // An abandoned upload leaves nothing.
        drop(upload(&content));
        assert!(bucket.get(name).unwrap() == content, "{name}");
        let mut middle = vec![0; 500];
        bucket.get_range(name, 300, &mut middle).unwrap();
        assert!(middle == content[300..800], "{name}");
    }
    assert_eq!(bucket.list("x/").unwrap().len(), 3);
}

#[test]
fn a_listing_has_all_pages() {
    const NAMES: usize = 2_050;
    let world = World::new();
    let bucket = world.bucket();
    let mut expected: Vec<String> = (0..NAMES).map(|n| format!("many/{:03}/{n:016x}", n % 7)).collect();
    std::thread::scope(|scope| {
        for part in expected.chunks(NAMES / 8 + 1) {
            let bucket = &bucket;
            scope.spawn(move || part.iter().for_each(|name| assert_eq!(bucket.put(name, b"1").unwrap(), Put::Created)));
        }
    });
    expected.sort_unstable();
    assert!(bucket.list("many/").unwrap() == expected);
}

#[test]
fn a_store_that_is_away_is_told_from_an_empty_one_and_serves_on_when_it_is_back() {
    let mut world = World::new();
    let bucket = world.bucket();
    assert_eq!(bucket.put("a/1", b"one").unwrap(), Put::Created);
    world.gateway.kill();
    let away = bucket.put("a/2", b"two").unwrap_err();
    assert!(is_lost(away.kind()), "{away}");
    // Reads are retried, on new connections.
    for away in [bucket.get("a/1").unwrap_err(), bucket.len("a/1").unwrap_err(), bucket.list("a/").unwrap_err()] {
        assert!(is_lost(away.kind()) && away.to_string().contains("cluster.s3.endpoint"), "{away}");
    }
    world.gateway.restart();
    assert_eq!(bucket.get("a/1").unwrap(), b"one");
    assert_eq!(bucket.put("a/1", b"other").unwrap(), Put::Exists);
    assert_eq!(bucket.put("a/2", b"two").unwrap(), Put::Created);
    // Objects lost with the whole bucket are not reported as absent.
    std::fs::rename(world.gateway.path("store").join(BUCKET), world.folder.path().join("moved")).unwrap();
    let gone = [
        bucket.get("a/1").unwrap_err(),
        bucket.len("a/1").unwrap_err(),
        bucket.list("a/").unwrap_err(),
        bucket.put("a/3", b"three").unwrap_err(),
        bucket.delete("a/1").unwrap_err(),
    ];
    for gone in gone {
        assert_ne!(gone.kind(), ErrorKind::NotFound, "{gone}");
        assert!(gone.to_string().contains(&format!("there is no bucket {BUCKET} at http://127.0.0.1:")), "{gone}");
    }
}

#[test]
fn a_wrong_setting_is_named_with_what_was_expected() {
    let world = World::new();
    let file = |name: &str, text: &str| {
        std::fs::write(world.folder.path().join(name), text).unwrap();
        world.folder.path().join(name).display().to_string()
    };
    let (address, good) = (format!("s3://{BUCKET}/p"), world.options());
    for (address, options, words) in [
        ("s3://missing/p", good.clone(), vec!["there is no bucket missing at", "cluster.s3.endpoint"]),
        (
            address.as_str(),
            S3Options { region: "us-west-9".to_owned(), ..good.clone() },
            vec!["cluster.s3.region is us-west-9: expected eu-test-1"],
        ),
        (
            &address,
            S3Options { secret_key_file: file("wrong", "guessed"), ..good.clone() },
            vec!["cluster.s3.secret_key_file"],
        ),
        (
            &address,
            S3Options { access_key_file: file("unknown", "nobody"), ..good.clone() },
            vec!["does not know the access key", "cluster.s3.access_key_file"],
        ),
        (
            &address,
            S3Options { endpoint: "http://127.0.0.1:9".to_owned(), ..good.clone() },
            vec!["could not open", "no answer from http://127.0.0.1:9", "cluster.s3.endpoint"],
        ),
    ] {
        let said = world.open(address, &options).unwrap_err().to_string();
        assert!(words.iter().all(|words| said.contains(words)), "{words:?}: {said}");
        assert!(!said.contains("guessed") && !said.contains("<"), "{said}");
    }
    let shown = format!("{:?}", world.bucket());
    assert!(!shown.contains(gateway::KEY.1), "{shown}");
}

#[test]
fn a_store_with_tls_is_trusted_by_the_authority_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("store.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(path("store.key"), key.serialize_pem()).unwrap();
    let gateway = Gateway::start(folder.path(), Some((path("store.pem"), path("store.key"))));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = World { folder, gateway, runtime };
    let address = format!("s3://{BUCKET}");
    let refused = world.open(&address, &world.options()).unwrap_err().to_string();
    assert!(refused.contains("certificate") && refused.contains("cluster.s3.ca_file"), "{refused}");
    let ca_file = world.gateway.path("store.pem").display().to_string();
    let bucket = world.open(&address, &S3Options { ca_file, ..world.options() }).unwrap();
    assert_eq!(bucket.put("a/1", b"one").unwrap(), Put::Created);
    assert_eq!(bucket.get("a/1").unwrap(), b"one");
}

#[test]
fn a_create_is_sent_once_and_says_so_where_its_outcome_is_unknown() {
    let world = World::new();
    let line = Line::to(&world.gateway.address());
    let (bucket, beside) = (world.bucket_over(&line), world.bucket());
    // A caller cannot tell the two cases apart, and reads the object back.
    line.cut_after(1);
    let lost = bucket.put("a/1", b"one").unwrap_err();
    assert!(is_lost(lost.kind()), "{lost}");
    assert_eq!(line.writes(), 1, "sent again, it would be answered that it exists");
    assert_eq!(beside.get("a/1").unwrap(), b"one");
    line.cut_before(1);
    let lost = bucket.put("a/2", b"two").unwrap_err();
    assert!(is_lost(lost.kind()), "{lost}");
    assert_eq!(line.writes(), 2);
    assert_eq!(beside.get("a/2").unwrap_err().kind(), ErrorKind::NotFound);
    // The same for an upload in parts: start, two parts, end.
    let content = vec![7; (8 << 20) + 1];
    let mut upload = bucket.upload("a/3").unwrap();
    upload.write(&content[..8 << 20]).unwrap();
    upload.write(&content[8 << 20..]).unwrap();
    let sent = line.writes();
    assert_eq!(sent, 4);
    // The last part is sent when the upload is finished, and a second time, as that changes nothing.
    line.cut_after(1);
    assert_eq!(upload.finish().unwrap(), Put::Created);
    assert_eq!(line.writes() - sent, 3);
    assert!(beside.get("a/3").unwrap() == content);
    // An object of exactly one part is completed next, and that is sent once.
    let mut upload = bucket.upload("a/4").unwrap();
    upload.write(&content[..8 << 20]).unwrap();
    let sent = line.writes();
    line.cut_after(1);
    let lost = upload.finish().unwrap_err();
    assert!(is_lost(lost.kind()), "{lost}");
    assert_eq!(line.writes() - sent, 1);
    assert!(beside.get("a/4").unwrap() == content[..8 << 20]);
}

fn schema() -> Schema {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required, title: None };
    Schema {
        fields: vec![field("at", FieldType::Time, true), field("n", FieldType::Int, false)],
        geometry: Some(GeometryType::Point),
        time: TimeRole::Instant(0),
        id: IdRole::Given,
        ..Schema::default()
    }
}

/// An owner whose responses are cut off, its successor, and a reader: nothing is lost or duplicated.
#[test]
fn an_owner_over_a_line_that_breaks_is_followed_by_another_and_a_reader_sees_it_all() {
    let world = World::new();
    let line = Line::to(&world.gateway.address());
    let path = |name: &str| Options { segment_rows_min: 64, ..Options::at(world.folder.path().join(name)) };
    let ttl = Duration::from_secs(1);
    let lease = |bucket: Arc<dyn Bucket>, node: &str| {
        Lease::new(&bucket, "owner", node, format!("{node}:7070"), ttl, &Seams::real())
    };
    let first_lease = lease(world.bucket_over(&line), "one");
    // Its first term has taken effect, without its knowledge.
    line.cut_after(1);
    assert!(matches!(first_lease.turn().unwrap(), LeaseState::Owner(_)));
    let first = Store::open_shared(path("one"), Seams::real(), world.bucket_over(&line)).unwrap();
    line.cut_before(1);
    let c = first.create("t", "c", schema(), Settings::default()).unwrap();
    let events = |from: i64, to: i64| {
        let mut builder = BatchBuilder::new(c.schema());
        for n in from..to {
            builder.set_id(format!("e{n}")).unwrap();
            builder.set_point((n % 360) as f64 - 180.0, (n % 180) as f64 - 90.0).unwrap();
            builder.set(0, Value::Time(1_700_000_000_000_000 + n)).unwrap();
            builder.set(1, Value::Int(n)).unwrap();
            builder.end_event().unwrap();
        }
        builder.finish().unwrap()
    };
    for round in 0..10 {
        if round % 2 == 0 {
            line.cut_after(1)
        } else {
            line.cut_before(1)
        }
        c.write(Write::new(events(round * 300, (round + 1) * 300))).unwrap();
    }
    line.cut_after(1);
    c.flush().unwrap();
    c.write(Write::new(events(3000, 3010))).unwrap();
    let reader = Store::open_read_only(path("reader"), Seams::real(), world.bucket()).unwrap();
    let read = reader.collection("t", "c").unwrap();
    assert_eq!(read.stats().events, 3000, "what was flushed");

    let second_lease = lease(world.bucket(), "two");
    let mut turns = 0;
    while !matches!(second_lease.turn().unwrap(), LeaseState::Owner(_)) {
        turns += 1;
        assert!(turns < 400, "it never gets its turn");
        Seams::real().clock.sleep(ttl / 8);
    }
    assert!(!first_lease.holds());
    let (_, term) = Terms::new(&world.bucket(), "owner").newest().unwrap().unwrap();
    assert_eq!((term.address.as_str(), term.epoch), ("two:7070", 2));
    let second = Store::open_shared(path("two"), Seams::real(), world.bucket()).unwrap();
    let taken = second.collection("t", "c").unwrap();
    assert_eq!(taken.stats().events, 3010);
    assert!(c.write(Write::new(events(9000, 9001))).is_err());
    assert!(first.is_outdated() && !second.is_outdated());
    second.close().unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(read.stats().events, 3010);
    assert_eq!(reader.check(), []);
}
