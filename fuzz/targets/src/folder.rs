//! Files of a data folder: one is replaced, and the store must open, check, read and repair the folder.

use crate::{sealed, world};
use meridian_model::Projection;
use meridian_store::seams::{CrashStyle, Disk, MemoryDisk, OpenMode};
use meridian_store::{Act, BackupFolder, BackupScope, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Bytes before the first record of a log file.
pub const LOG_HEAD: usize = 8192;

/// The files of a data folder.
pub fn files() -> &'static Files {
    static FILES: LazyLock<Files> = LazyLock::new(|| {
        let disk = MemoryDisk::new();
        let store = world::open(&disk).unwrap();
        world::fill(&store);
        for act in ["createToken", "putCollection", "removeToken"] {
            let (who, target) = ("user:anna".to_owned(), "/tokens".to_owned());
            store.audit().append(&[Act { who, target, act: act.to_owned(), ..Act::default() }]).unwrap();
        }
        store.records("saved").put_twice("search", b"a record").unwrap();
        // As a kill leaves it: with records in the log.
        disk.crash(CrashStyle::Lose);
        drop(store);
        read_all(&disk)
    });
    &FILES
}

fn read_all(disk: &MemoryDisk) -> Files {
    let read = |path: &Path| {
        let file = disk.open(path, OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        bytes
    };
    disk.files().into_iter().map(|(path, _)| (path.clone(), read(&path))).collect()
}

/// The first file whose path has this ending.
pub fn file(ending: &str) -> (&'static Path, &'static [u8]) {
    let (path, bytes) = files().iter().find(|(path, _)| path.to_string_lossy().ends_with(ending)).unwrap();
    (path, bytes)
}

/// The folder with these files replaced.
fn disk(changed: &[(&Path, &[u8])]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    for (path, bytes) in files() {
        disk.create_dir(path.parent().unwrap()).unwrap();
        path.ancestors().skip(1).for_each(|dir| disk.sync_dir(dir).unwrap());
        disk.put(path, bytes.clone());
    }
    for (path, bytes) in changed {
        disk.put(path, bytes.to_vec());
    }
    disk
}

fn opened(changed: &[(&Path, &[u8])]) {
    let Ok(store) = world::open(&disk(changed)) else { return };
    let problems = store.check();
    read(&store);
    if !problems.is_empty() {
        store.repair();
        read(&store);
    }
}

/// Reads all rows of all collections.
pub fn read(store: &Store) {
    for collection in store.list("t") {
        let snapshot = collection.snapshot();
        for part in snapshot.parts.iter() {
            let rows = 0..part.rows().min(world::EVENTS as u32);
            let _ = part.read(rows.clone(), &Projection::all(&snapshot.layout));
            let _ = part.visible(rows.clone());
            if let Some(order) = part.time_order() {
                let _ = order.read(rows, &Projection::all(part.layout()));
            }
        }
    }
}

/// The content of a manifest, which is JSON; its copy is identical.
pub fn manifest(bytes: &[u8]) {
    let framed = sealed::framed(b"MRDNMANI", 1, bytes);
    opened(&[(file("MANIFEST").0, &framed), (file("MANIFEST.copy").0, &framed)]);
}

/// Records of the log, after the header of their file.
pub fn log(bytes: &[u8]) {
    let (path, head) = file(".log");
    let epoch = path.file_stem().and_then(|name| u64::from_str_radix(name.to_str()?, 16).ok()).unwrap();
    let mut bytes = [&head[..LOG_HEAD], bytes].concat();
    sealed::records(&mut bytes, LOG_HEAD, epoch);
    opened(&[(path, &bytes)]);
}

fn blocks(ending: &str, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    sealed::blocks(&mut bytes);
    opened(&[(file(ending).0, &bytes)]);
}

/// The indexes served beside an archive: trees, keys, time order, counts.
pub fn segment(bytes: &[u8]) {
    blocks(".segment", bytes);
}

/// Sorted events.
pub fn rows(bytes: &[u8]) {
    blocks(".rows", bytes);
}

/// Dead rows, idempotency keys, records and the name of the newest log file, chosen by the magic.
pub fn sidecar(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    sealed::frame(&mut bytes);
    let same = |kept: &[u8]| kept.len() >= 8 && bytes.starts_with(&kept[..8]);
    if let Some((path, _)) = files().iter().find(|(_, kept)| same(kept)) {
        opened(&[(path, &bytes)]);
    }
}

/// Lines of the audit log, each with the hash of the previous one.
pub fn audit_log(bytes: &[u8]) {
    let disk = disk(&[(file(".ndjson").0, &sealed::lines(bytes))]);
    let Ok(store) = world::open(&disk) else { return };
    let (log, act) = (store.audit(), || Act { act: "createTenant".to_owned(), ..Act::default() });
    let found = log.page(0, 100, &|_| true);
    store.check();
    if let Ok(n) = log.append(&[act(), act()]) {
        let lines = log.page(n - 1, 10, &|_| true).unwrap().lines;
        assert!(lines.iter().any(|line| line.n == n && line.act == act()), "line {n} was stored");
        // The existing lines are still there.
        if let Ok(found) = found {
            let again = log.page(0, 100, &|_| true).unwrap().lines;
            assert!(again.len() > found.lines.len() || found.next.is_some(), "lines are gone");
        }
    }
}

/// A backup, as the server sends it and `meridian backup` reads it.
pub fn backup(bytes: &[u8]) {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    disk.create_dir(Path::new("/backup")).unwrap();
    let folder = BackupFolder::open(disk, Path::new("/backup")).unwrap();
    let _ = folder.receive(&mut &bytes[..], &mut |_| ());
}

/// Inputs for the targets of this module: the files themselves.
pub fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let named = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut seeds = Vec::new();
    for (path, bytes) in files() {
        let name = named(path);
        let ending = name.rsplit('.').next().unwrap();
        match ending {
            "MANIFEST" => seeds.push(("manifest", name, bytes[sealed::FRAME..].to_vec())),
            "log" => {
                let end = bytes.iter().rposition(|byte| *byte != 0).map_or(LOG_HEAD, |at| (at + 9).max(LOG_HEAD));
                seeds.push(("log", name, bytes[LOG_HEAD..end.min(bytes.len())].to_vec()));
            }
            "ndjson" => seeds.push(("audit_log", name, bytes.clone())),
            "segment" => seeds.push(("segment", name, bytes.clone())),
            "rows" => seeds.push(("rows", name, bytes.clone())),
            "dead" | "keys" | "hidden" | "NEWEST" | "search" => seeds.push(("sidecar", name, bytes.clone())),
            _ => {}
        }
    }
    let store = world::open(&MemoryDisk::new()).unwrap();
    world::fill(&store);
    let mut backup = Vec::new();
    store.backup(&BackupScope::everything(), &BTreeMap::new(), &mut backup, &|| false).unwrap();
    seeds.push(("backup", "whole".to_owned(), backup));
    seeds
}
