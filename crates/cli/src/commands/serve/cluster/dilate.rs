//! Dilated time: studies large servers on a small machine. All processes are real, and so are queries and results. Only
//! processor time and storage are modelled, by the simulator's rules, and slowed down by a factor.
//!
//! An environment variable names the file with the parameters (`MERIDIAN_DILATE`; `bench/scans` writes it). Without the
//! feature `dilate` or debug assertions this module is not built (decision 063). An event of a study stands for a
//! batch. Its fields `read` and `returned` count entries, and `batch` is 0 in the first event of a scan.

use crate::config::Config;
use crate::failure::Failure;
use meridian_lab_plan::simulate::Scenario;
use meridian_lab_plan::simulate::events::micros;
use meridian_lab_plan::simulate::scan::{Costs, SharedCores, Work};
use meridian_model::{Batch, FieldColumn};
use meridian_remote::Pace;
use meridian_store::seams::read_named_text;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Environment variable with the file.
const FILE: &str = "MERIDIAN_DILATE";

/// Parameters of dilated time: the contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dilation {
    /// Scenario of the simulator, a scan tier with `[costs]`.
    scenario: PathBuf,
    /// Its changes, as by `--set`.
    set: Vec<String>,
    /// Factor by which everything is slowed down.
    times: u32,
    /// Folder of the storage nodes, shared by all processes.
    storage: PathBuf,
    /// Max concurrent requests of a gateway, which only wait.
    slots: usize,
}

impl Dilation {
    /// Reads the one named by the environment.
    fn read() -> Result<Option<Dilation>, Failure> {
        let Some(path) = std::env::var_os(FILE) else { return Ok(None) };
        let wrong = |e: &dyn std::fmt::Display| Failure::Usage(format!("{FILE} {}: {e}", Path::new(&path).display()));
        let text = read_named_text(Path::new(&path)).map_err(|e| wrong(&e))?;
        toml::from_str(&text).map(Some).map_err(|e| wrong(&e))
    }
}

/// Returns the pace of an owner (`immediate`) or a scan server.
pub(super) fn pace(immediate: bool) -> Result<Option<Arc<dyn Pace>>, Failure> {
    let Some(dilation) = Dilation::read()? else { return Ok(None) };
    let pace = DilatedServer::of(&dilation, immediate);
    pace.map(|pace| Some(Arc::new(pace) as Arc<dyn Pace>)).map_err(|why| Failure::Usage(format!("{FILE}: {why}")))
}

/// Raises a gateway's max concurrent requests to the number of clients in the study.
pub(super) fn widen(config: &mut Config) -> Result<(), Failure> {
    if let Some(dilation) = Dilation::read()? {
        config.server.processors = Some(dilation.slots);
        config.server.requests_running_max = dilation.slots;
    }
    Ok(())
}

/// A server of the study.
#[derive(Debug)]
struct DilatedServer {
    costs: Costs,
    immediate: bool,
    times: u32,
    turnaround: Duration,
    storage: Storage,
    cores: Cores,
}

impl DilatedServer {
    fn of(dilation: &Dilation, immediate: bool) -> Result<DilatedServer, String> {
        let file = dilation.scenario.display();
        let text = read_named_text(&dilation.scenario).map_err(|e| format!("{file}: {e}"))?;
        let Scenario::Scan(tier) = Scenario::read(&text, &dilation.set)? else {
            return Err(format!("{file}: expected a scan tier"));
        };
        let costs = tier.costs.ok_or_else(|| format!("{file}: expected a table [costs]"))?;
        let turnaround_ms = tier.work().map_or(0.0, |work| work.turnaround_ms);
        let storage = Storage::open(&dilation.storage, tier.machine.storage_nodes);
        Ok(DilatedServer {
            costs,
            immediate,
            times: dilation.times,
            turnaround: Duration::from_micros(micros(turnaround_ms / 1e3)) * dilation.times,
            storage: storage.map_err(|e| format!("storage {}: {e}", dilation.storage.display()))?,
            cores: Cores::new(tier.machine.cores),
        })
    }
}

impl Pace for DilatedServer {
    fn take(&self, batch: &Batch) -> io::Result<()> {
        let of = |name| {
            let values = batch.schema().field_index(name).and_then(|field| batch.field(field));
            values.and_then(|values| match values {
                FieldColumn::Int(values) => Some(values.clone()),
                _ => None,
            })
        };
        let (Some(read), Some(returned), Some(number)) = (of("read"), of("returned"), of("batch")) else {
            return Ok(());
        };
        for row in 0..batch.rows() {
            let entries = |of: i64| of.max(0) as f64;
            let (read, returned) = (entries(read.value(row)), entries(returned.value(row)));
            let taken = self.costs.batch(self.immediate, read, returned, number.value(row) == 0);
            self.storage.read(Duration::from_micros(taken.storage) * self.times)?;
            self.cores.compute(taken.work * Work::from(self.times));
        }
        Ok(())
    }

    fn turnaround(&self) -> Duration {
        self.turnaround
    }
}

/// The cores of a server: batches sleep for the time that they would compute.
#[derive(Debug)]
struct Cores {
    shared: Mutex<SharedCores<u64>>,
    left: Condvar,
    begun: Instant,
    batches: AtomicU64,
}

impl Cores {
    fn new(cores: u32) -> Cores {
        let shared = Mutex::new(SharedCores::new(cores));
        Cores { shared, left: Condvar::new(), begun: Instant::now(), batches: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Sleeps until this much work is done.
    fn compute(&self, work: Work) {
        let batch = self.batches.fetch_add(1, Ordering::Relaxed);
        let mut shared = held(&self.shared);
        shared.begin(batch, work, self.now());
        loop {
            let were_shared = shared.are_shared();
            // Finished batches leave, whichever thread notices first.
            if !shared.done(self.now()).is_empty() && were_shared {
                // From here on the others have more of the cores. An arrival needs no notification: they wake too
                // early, and sleep again.
                self.left.notify_all();
            }
            let Some(left) = shared.time_left(batch) else { return };
            let waited = self.left.wait_timeout(shared, Duration::from_micros(left));
            shared = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Storage nodes shared by all processes: each serves one read at a time, in order of arrival. The file of a node holds
/// the time from which it is free.
#[derive(Debug)]
struct Storage {
    nodes: Vec<Mutex<File>>,
    reads: AtomicU64,
}

impl Storage {
    fn open(folder: &Path, nodes: u32) -> io::Result<Storage> {
        let open = |number: u32| {
            let path = folder.join(format!("node-{number}"));
            File::options().read(true).write(true).create(true).truncate(false).open(path).map(Mutex::new)
        };
        // Each process starts at another node.
        let reads = AtomicU64::new(std::process::id().into());
        Ok(Storage { nodes: (0..nodes).map(open).collect::<io::Result<_>>()?, reads })
    }

    /// Sleeps until a node has served a read that takes this long.
    fn read(&self, time: Duration) -> io::Result<()> {
        let number = self.reads.fetch_add(1, Ordering::Relaxed) % (self.nodes.len().max(1) as u64);
        let Some(node) = self.nodes.get(number as usize).filter(|_| !time.is_zero()) else { return Ok(()) };
        let left = {
            let mut file = held(node);
            file.lock()?;
            let booked = book(&mut file, time);
            file.unlock()?;
            booked?
        };
        std::thread::sleep(left);
        Ok(())
    }
}

/// Books a read at a node whose file is locked; returns the time until it is done.
fn book(file: &mut File, time: Duration) -> io::Result<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let free =
        <[u8; 8]>::try_from(bytes).map_or(Duration::ZERO, |bytes| Duration::from_micros(u64::from_le_bytes(bytes)));
    let done = free.max(now) + time;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&u64::try_from(done.as_micros()).map_err(io::Error::other)?.to_le_bytes())?;
    Ok(done - now)
}

/// Locks a mutex. Ignores poisoning: each change is a single step, so the data is consistent.
fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_sleep_share_the_cores() {
        let (cores, begun) = (Cores::new(2), Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| cores.compute(20_000_000));
            }
        });
        // Three times as many as cores, so at least as long as one after the other on each.
        assert!(begun.elapsed() >= Duration::from_millis(60), "{:?}", begun.elapsed());
        assert_eq!(held(&cores.shared).next_done(), None);
    }

    #[test]
    fn a_storage_node_serves_the_reads_of_all_processes_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [0, 1].map(|_| Storage::open(folder.path(), 1).unwrap());
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for storage in [&one, &two, &one, &two] {
                scope.spawn(|| storage.read(Duration::from_millis(20)).unwrap());
            }
        });
        assert!(begun.elapsed() >= Duration::from_millis(80), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_file_that_cannot_be_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("tier.toml");
        let (file, storage) = (scenario.clone(), folder.path().to_owned());
        let dilation = Dilation { scenario, set: Vec::new(), times: 20, storage, slots: 8 };
        let why = |text: &str| {
            std::fs::write(&file, text).unwrap();
            DilatedServer::of(&dilation, false).unwrap_err()
        };
        assert!(why("kind = 1").contains("scan-tier"));
        let tier = include_str!("../../../../../../bench/studies/scan-tier.toml");
        assert!(why(tier).contains("[costs]"));
    }
}
