//! A bucket in a real folder: its guarantees, and a store over it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests may fail a test")]
#![allow(clippy::disallowed_methods, reason = "tests read files as they are")]

use meridian_bucket::{S3Options, open};
use meridian_model::builder::Value;
use meridian_model::{Batch, BatchBuilder, Field, FieldType, GeometryType, IdRole, Schema, TimeRole};
use meridian_store::bucket::{Bucket, Put, Span};
use meridian_store::seams::{Random, Seams, SystemRandom};
use meridian_store::{Collection, Lease, LeaseState, Options, Settings, Store, Terms, Write, WriteError};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

struct World {
    folder: TempDir,
    runtime: Runtime,
}

impl World {
    fn new() -> World {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        World { folder: tempfile::tempdir().unwrap(), runtime }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Opens the bucket as another process does.
    fn bucket(&self) -> Arc<dyn Bucket> {
        let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
        let address = format!("file://{}", self.path("bucket").display());
        open(&address, &S3Options::default(), self.runtime.handle(), &random).unwrap()
    }
}

#[test]
fn a_new_folder_is_for_its_user_alone_and_one_that_is_there_stays_as_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.bucket();
    let mode = || std::fs::metadata(world.path("bucket")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o700);
    std::fs::set_permissions(world.path("bucket"), std::fs::Permissions::from_mode(0o770)).unwrap();
    world.bucket();
    assert_eq!(mode(), 0o770);
}

#[test]
fn records_are_closed_to_others_in_a_bucket_that_all_may_read() {
    use std::os::unix::fs::PermissionsExt as _;
    for (bucket, most) in [(0o755, 0o750), (0o770, 0o770), (0o700, 0o700)] {
        let world = World::new();
        std::fs::create_dir(world.path("bucket")).unwrap();
        std::fs::set_permissions(world.path("bucket"), std::fs::Permissions::from_mode(bucket)).unwrap();
        let opened = world.bucket();
        for folder in ["records", "audit"] {
            assert_eq!(opened.put(&format!("{folder}/access/1"), b"secret").unwrap(), Put::Created);
            let path = world.path(&format!("bucket/{folder}"));
            let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            // The umask of the tests may remove more.
            assert_eq!((mode & !most, mode & 0o700), (0, 0o700), "{folder} in {bucket:o}: {mode:o}");
        }
        assert!(opened.list("audit/").unwrap().len() == 1 && world.bucket().list("records/").unwrap().len() == 1);
    }
}

#[test]
fn objects_are_created_once_read_in_ranges_and_deleted() {
    let world = World::new();
    let (one, two) = (world.bucket(), world.bucket());
    assert_eq!(one.put("a/b/1", b"0123456789").unwrap(), Put::Created);
    assert_eq!(two.put("a/b/1", b"other").unwrap(), Put::Exists);
    assert_eq!(two.get("a/b/1").unwrap(), b"0123456789");
    assert_eq!(two.put("a/b/2", b"").unwrap(), Put::Created);
    let mut range = [0; 4];
    two.get_range("a/b/1", 3, &mut range).unwrap();
    assert_eq!(&range, b"3456");
    assert_eq!(two.get_range("a/b/1", 8, &mut range).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!((two.len("a/b/1").unwrap(), two.len("a/b/2").unwrap()), (10, 0));
    assert_eq!(one.list("a/").unwrap(), ["a/b/1", "a/b/2"]);
    assert!(one.list("b/").unwrap().is_empty());
    one.settle("a/b/1").unwrap();
    one.delete("a/b/1").unwrap();
    one.delete("a/b/1").unwrap();
    for missing in [two.get("a/b/1").unwrap_err(), two.len("a/b/1").unwrap_err(), two.settle("a/b/1").unwrap_err()] {
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
    assert_eq!(one.put("a/../b", b"").unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn what_is_no_file_in_the_folder_is_refused_with_its_path_and_never_waited_on() {
    let world = World::new();
    let bucket = world.bucket();
    assert_eq!(bucket.put("wal/1", b"1").unwrap(), Put::Created);
    let path = |name: &str| world.path(&format!("bucket/wal/{name}"));
    assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    // With both of its ends open nothing waits, so that a test without the check ends as well.
    let _ends = std::fs::OpenOptions::new().read(true).write(true).open(path("pipe")).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("device")).unwrap();
    for name in ["pipe", "socket", "device"] {
        let object = format!("wal/{name}");
        let span = Span { name: object.as_str().into(), range: 0..4 };
        let errors = [
            bucket.len(&object).unwrap_err(),
            bucket.modified(&object).unwrap_err(),
            bucket.settle(&object).unwrap_err(),
            bucket.get(&object).unwrap_err(),
            bucket.get_range(&object, 0, &mut [0; 4]).unwrap_err(),
            bucket.get_ranges(&[span]).remove(0).unwrap_err(),
        ];
        for error in errors {
            let message = error.to_string();
            assert!(message.contains(&format!("bucket/wal/{name}: expected a file")), "{message}");
        }
        assert_eq!(bucket.put(&object, b"2").unwrap(), Put::Exists, "{name}");
    }
    // A folder is no object either, as in other stores.
    for absent in [bucket.get("wal").unwrap_err(), bucket.len("wal").unwrap_err(), bucket.settle("wal").unwrap_err()] {
        assert_eq!(absent.kind(), ErrorKind::NotFound);
    }
    assert_eq!(bucket.list("wal/").unwrap(), ["wal/1"]);
    bucket.delete("wal/pipe").unwrap();
    assert_eq!(bucket.put("wal/pipe", b"2").unwrap(), Put::Created);
}

#[test]
fn a_pipe_that_takes_the_place_of_a_file_holds_no_reader_up() {
    let world = World::new();
    let bucket = world.bucket();
    assert_eq!(bucket.put("wal/1", b"1").unwrap(), Put::Created);
    let path = |name: &str| world.path(&format!("bucket/wal/{name}"));
    assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    std::thread::scope(|scope| {
        let swaps = scope.spawn(|| {
            for _ in 0..5_000 {
                for (from, to) in [("1", "file"), ("pipe", "1"), ("1", "pipe"), ("file", "1")] {
                    std::fs::rename(path(from), path(to)).unwrap();
                }
            }
        });
        while !swaps.is_finished() {
            match bucket.get("wal/1") {
                Ok(bytes) => assert_eq!(bytes, b"1"),
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput),
                    "neither absent nor refused: {error}"
                ),
            }
        }
    });
    assert_eq!(bucket.get("wal/1").unwrap(), b"1");
}

#[test]
fn an_object_of_any_size_gets_its_name_whole_and_if_it_is_free() {
    let world = World::new();
    let bucket = world.bucket();
    for (name, bytes) in [("small", 1000), ("one part", 8 << 20), ("large", (20 << 20) + 17)] {
        let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        let name = format!("x/{}", name.replace(' ', "-"));
        let upload = |content: &[u8]| {
            let mut upload = bucket.upload(&name).unwrap();
            content.chunks(700_000).for_each(|piece| upload.write(piece).unwrap());
            upload
        };
        let pending = upload(&content);
        assert_eq!(bucket.get(&name).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        assert_eq!(pending.finish().unwrap(), Put::Created, "{name}");
        assert!(bucket.get(&name).unwrap() == content, "{name}");
        assert_eq!(upload(&vec![1; content.len()]).finish().unwrap(), Put::Exists, "{name}");
        // An abandoned upload leaves nothing.
        drop(upload(&content));
        assert!(bucket.get(&name).unwrap() == content, "{name}");
    }
    let files: Vec<_> = std::fs::read_dir(world.path("bucket/x")).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_with_its_name() {
    let world = World::new();
    std::fs::write(world.path("file"), b"").unwrap();
    let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
    let address = format!("file://{}/b", world.path("file").display());
    let refused = open(&address, &S3Options::default(), world.runtime.handle(), &random);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("could not create") && message.contains("file/b"), "{message}");
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

fn events(c: &Collection, from: i64, to: i64) -> Batch {
    let mut builder = BatchBuilder::new(c.schema());
    for n in from..to {
        builder.set_id(format!("e{n}")).unwrap();
        builder.set_point((n % 360) as f64 - 180.0, (n % 180) as f64 - 90.0).unwrap();
        builder.set(0, Value::Time(1_700_000_000_000_000 + n)).unwrap();
        builder.set(1, Value::Int(n)).unwrap();
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

fn options(data: &Path) -> Options {
    Options { segment_rows_min: 64, ..Options::at(data) }
}

/// An owner with a lease, its successor, and a reader: in one process, with a data folder each.
#[test]
fn an_owner_is_followed_by_another_and_a_reader_sees_it_all() {
    let world = World::new();
    let ttl = Duration::from_millis(400);
    let lease = |node: &str| Lease::new(&world.bucket(), "owner", node, format!("{node}:7070"), ttl, &Seams::real());
    let first_lease = lease("one");
    assert!(matches!(first_lease.turn().unwrap(), LeaseState::Owner(_)));
    let first = Store::open_shared(options(&world.path("one")), Seams::real(), world.bucket()).unwrap();
    let c = first.create("t", "c", schema(), Settings::default()).unwrap();
    c.write(Write::new(events(&c, 0, 3000))).unwrap();
    c.flush().unwrap();
    c.write(Write::new(events(&c, 3000, 3010))).unwrap();
    c.delete(&["e7".to_owned()]).unwrap();
    let reader = Store::open_read_only(options(&world.path("reader")), Seams::real(), world.bucket()).unwrap();
    let read = reader.collection("t", "c").unwrap();
    assert_eq!(read.stats().events, 3000, "what was flushed");

    // The first stops renewing; the second sees the term unchanged for long enough.
    let second_lease = lease("two");
    let mut turns = 0;
    while !matches!(second_lease.turn().unwrap(), LeaseState::Owner(_)) {
        turns += 1;
        assert!(turns < 200, "it never gets its turn");
        Seams::real().clock.sleep(ttl / 8);
    }
    assert!(!first_lease.holds());
    let (_, term) = Terms::new(&world.bucket(), "owner").newest().unwrap().unwrap();
    assert_eq!((term.address.as_str(), term.epoch), ("two:7070", 2));
    let second = Store::open_shared(options(&world.path("two")), Seams::real(), world.bucket()).unwrap();
    let taken = second.collection("t", "c").unwrap();
    assert_eq!(taken.stats().events, 3009);
    taken.write(Write::new(events(&taken, 3010, 3020))).unwrap();
    let late = c.write(Write::new(events(&c, 9000, 9001)));
    assert!(matches!(late, Err(WriteError::Busy(_))), "{late:?}");
    assert!(first.is_outdated() && !second.is_outdated());
    assert!(first_lease.turn().is_ok_and(|standing| matches!(standing, LeaseState::Other(Some(_), _))));
    second.close().unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(read.stats().events, 3019);
    assert_eq!(reader.check(), []);
    // What came between may have taken longer than its lease.
    assert!(matches!(second_lease.turn().unwrap(), LeaseState::Owner(_)));
    second_lease.resign().unwrap();
    assert!(matches!(first_lease.turn().unwrap(), LeaseState::Owner(_)), "it need not wait");
}
