//! The objects that readers in other processes use, so that the owner keeps them. Gateways find scan servers by the
//! same pins (`scan_servers.rs`).
//!
//! A reader has one pin: an object with an entry for each collection. It creates the next one,
//! `pins/{reader}/{number}`, well before a pin expires, and deletes the previous one. An owner lists the pins
//! periodically. It measures by its own clock how long the newest pin of a reader stays the same. A reader counts from
//! before it wrote the pin, and so stops before the owner does: clocks are never compared.
//!
//! A pin need not be written first. An object stays for a grace period after the last manifest that named it, and that
//! is longer than a pin's lifetime.

mod pin;

pub(crate) use pin::{Announcement, Pin};

use super::Bucket;
use crate::codec::unframe;
use crate::error::StoreError;
use crate::seams::Clock;
use meridian_model::policy::pins::{InUse, PartitionUse, PinTable};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::Builder;
use std::time::Duration;

const MAGIC: &[u8; 8] = b"MRDNPINS";
const VERSION: u32 = 1;
pub(super) const FOLDER: &str = "pins/";
/// How often the pin is renewed; a pin holds for much longer.
const RENEW: Duration = Duration::from_secs(5);

/// Lifetime of a pin without renewal.
pub(crate) const TTL: Duration = Duration::from_secs(60);
/// An owner waits longer than a pin's lifetime by this fraction of it, because clocks of two machines differ in rate.
pub(super) const MARGIN_PART: i64 = 4;
/// Interval at which an owner reads the pins, in microseconds.
const LOOK_US: i64 = 10_000_000;

/// The status that a scan server reports. Its load is that at the last write of its pin, up to a third of a pin's
/// lifetime ago.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanServerStatus {
    /// Host and port at which gateways reach it.
    pub address: String,
    /// Its group, as named in profiles.
    pub group: String,
    /// Scans that are working on a batch.
    pub working: u64,
    /// Scans that have started but not ended.
    pub started: u64,
    /// Scans that wait to start.
    pub waiting: u64,
}

/// The content of a pin. For a reader that serves no gateways it is just the list.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PinContent {
    pub(super) in_use: Vec<InUse>,
    pub(super) serves: Option<ScanServerStatus>,
}

/// The two formats of it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Alone(Vec<InUse>),
    Whole(PinContent),
}

impl PinContent {
    fn into_form(self) -> Form {
        if self.serves.is_some() { Form::Whole(self) } else { Form::Alone(self.in_use) }
    }

    fn of(form: Form) -> PinContent {
        match form {
            Form::Alone(in_use) => PinContent { in_use, serves: None },
            Form::Whole(said) => said,
        }
    }
}

pub(super) fn ttl_us() -> i64 {
    i64::try_from(TTL.as_micros()).unwrap_or(i64::MAX)
}

/// The pins of all readers, as known to an owner.
#[derive(Debug)]
pub(crate) struct Pins {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the pins are read next.
    next: i64,
    /// Whether the last read succeeded.
    known: bool,
    table: PinTable,
    /// Uses by folder.
    in_use: HashMap<String, PartitionUse>,
}

impl Pins {
    /// Tracks the pins of a bucket. `tokens` is how long the snapshots of a reader are kept after it is gone.
    pub(crate) fn new(bucket: Arc<dyn Bucket>, clock: Arc<dyn Clock>, tokens: Duration) -> Pins {
        let table =
            PinTable::new(ttl_us() + ttl_us() / MARGIN_PART, i64::try_from(tokens.as_micros()).unwrap_or(i64::MAX));
        let state = State { next: i64::MIN, known: false, table, in_use: HashMap::new() };
        Pins { bucket, clock, state: Mutex::new(state) }
    }

    /// Returns true if the pins are known; reads them again if that is due. While they are unknown nothing may be
    /// deleted.
    pub(super) fn look(&self) -> bool {
        // Held across the calls: only maintenance takes it.
        let mut state = self.state.lock();
        let now = self.clock.elapsed();
        if now < state.next {
            return state.known;
        }
        state.next = now.saturating_add(LOOK_US);
        let read = self.read_all(&mut state, now);
        if let Err(error) = &read {
            tracing::warn!(%error, "the pins of readers cannot be read: nothing is removed meanwhile");
        }
        state.known = read.is_ok();
        state.known
    }

    /// Returns how readers use the partition in a folder.
    pub(super) fn in_use(&self, folder: &str) -> Option<PartitionUse> {
        self.state.lock().in_use.get(folder).copied()
    }

    /// Returns the min sequence number of a snapshot of it that readers use. While the pins are unknown, every snapshot
    /// counts as used.
    pub(super) fn min_seq(&self, folder: &str) -> Option<u64> {
        let state = self.state.lock();
        if state.known { state.in_use.get(folder).map(|used| used.seq) } else { Some(0) }
    }

    fn read_all(&self, state: &mut State, now: i64) -> Result<(), StoreError> {
        let place = self.bucket.place();
        let names = self.bucket.list(FOLDER).map_err(StoreError::io("list", &Path::new(&place).join(FOLDER)))?;
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        let pins = || names.iter().filter_map(|name| Some((name, parse(name)?)));
        for (_, (reader, number)) in pins() {
            let known = newest.entry(reader).or_default();
            *known = number.max(*known);
        }
        let table = &mut state.table;
        for (reader, number) in &newest {
            if table.has(reader, *number) {
                continue;
            }
            match read(self.bucket.as_ref(), reader, *number) {
                Ok(PinContent { in_use, .. }) => table.take(reader, *number, in_use, now),
                // Renewed since the listing, so its reader lives.
                Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => table.renew(reader, now),
                // Its reader lives.
                Err(error @ (StoreError::Corrupt { .. } | StoreError::NewerFormat { .. })) => {
                    tracing::warn!(%error, "a reader's pin does not read");
                    table.take_unread(reader, *number, now);
                }
                Err(error) => return Err(error),
            }
        }
        for (name, (reader, number)) in pins() {
            if !table.counts(reader, now) || newest.get(reader).is_some_and(|newest| number < *newest) {
                // Retried when it is listed again.
                let _ = self.bucket.delete(name);
            }
        }
        // A listing may be stale: a pin that it does not show counts until it expires as well.
        state.in_use = table.in_use(now);
        Ok(())
    }
}

/// Returns the name of a pin.
pub(super) fn name_of(reader: &str, number: u64) -> String {
    format!("{FOLDER}{reader}/{number:016x}")
}

/// Reads the pin of this number.
pub(super) fn read(bucket: &dyn Bucket, reader: &str, number: u64) -> Result<PinContent, StoreError> {
    let name = name_of(reader, number);
    let path = Path::new(&bucket.place()).join(&name);
    let bytes = bucket.get(&name).map_err(StoreError::io("read", &path))?;
    let content = unframe(&path, MAGIC, VERSION, &bytes)?;
    let form = serde_json::from_slice::<Form>(content);
    form.map(PinContent::of).map_err(|e| StoreError::corrupt(&path, format!("it does not read: {e}")))
}

/// Splits the name of a pin into reader and number.
pub(super) fn parse(name: &str) -> Option<(&str, u64)> {
    let (reader, number) = name.strip_prefix(FOLDER)?.split_once('/')?;
    Some((reader, u64::from_str_radix(number, 16).ok()?))
}

/// Runs `work` while the pin is renewed.
pub(crate) fn renewing<T>(renew: &(dyn Fn() + Sync), work: impl FnOnce() -> T) -> T {
    let (done, waits) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let renew = move || {
            while waits.recv_timeout(RENEW) == Err(RecvTimeoutError::Timeout) {
                renew();
            }
        };
        // Without a thread, objects still stay for the owner's grace period.
        let _renewing = Builder::new().spawn_scoped(scope, renew);
        // Dropped at the end, even if `work` panics: that stops the thread.
        let _done = done;
        work()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;
    use crate::seams::ManualClock;
    use std::sync::atomic::Ordering;

    const SECOND: i64 = 1_000_000;

    fn used(manifest: u64, seq: u64) -> Vec<InUse> {
        vec![InUse { folder: "f".to_owned(), manifest, seq }]
    }

    /// How long snapshots outlive their reader.
    const TOKENS: Duration = Duration::from_secs(300);

    fn of(pins: &Pins) -> Option<(Option<u64>, u64)> {
        pins.in_use("f").map(|used| (used.manifest, used.seq))
    }

    fn pins_of(bucket: &MemoryBucket) -> usize {
        bucket.objects().iter().filter(|(name, _)| name.starts_with(FOLDER)).count()
    }

    #[test]
    fn a_pin_counts_while_it_is_renewed_and_its_reader_stops_first() {
        let (bucket, clock, owners) = (MemoryBucket::new(), ManualClock::new(0), ManualClock::new(0));
        let (clock, owners) = (Arc::new(clock), Arc::new(owners));
        let pins = Pins::new(Arc::new(bucket.clone()), owners.clone(), TOKENS);
        let one = Pin::new(Arc::new(bucket.clone()), clock.clone(), 1);
        let two = Pin::new(Arc::new(bucket.clone()), clock.clone(), 2);
        let holds = |pin: &Pin| clock.elapsed() < pin.until().load(Ordering::Acquire);
        let pass = |seconds: i64| {
            clock.advance(seconds * SECOND);
            owners.advance(seconds * SECOND);
        };
        assert!(pins.look() && pins.in_use("f").is_none() && !holds(&one));
        one.renew(|| used(7, 70)).unwrap();
        two.renew(|| used(9, 60)).unwrap();
        assert!(holds(&one));
        pass(10);
        assert!(pins.look());
        assert_eq!(of(&pins), Some((Some(7), 60)), "the min of all readers");
        assert_eq!(pins.in_use("g"), None);
        // Two continues; one falls silent.
        for _ in 0..20 {
            pass(5);
            two.renew(|| used(9, 60)).unwrap();
            assert!(pins.look());
            assert!(!holds(&one) || of(&pins) == Some((Some(7), 60)), "the owner let go first");
        }
        assert!(!holds(&one));
        assert_eq!(of(&pins), Some((Some(9), 60)));
        assert_eq!(pins_of(&bucket), 1, "old pins go, and those of readers that are no more");
        two.release();
        assert_eq!(pins_of(&bucket), 0);
        // Snapshots of either reader stay for as long as a page token.
        for passed in (0..40).map(|n| n * 10) {
            assert!(pins.look());
            // The last pin was read up to one interval before that.
            if !(370..=375).contains(&passed) {
                assert_eq!(pins.min_seq("f"), (passed < 370).then_some(60), "{passed} s after it left");
            }
            pass(10);
        }
    }

    #[test]
    fn a_damaged_pin_counts_for_its_time_and_goes() {
        let (bucket, clock) = (MemoryBucket::new(), Arc::new(ManualClock::new(0)));
        let pins = Pins::new(Arc::new(bucket.clone()), clock.clone(), TOKENS);
        let pin = Pin::new(Arc::new(bucket.clone()), clock.clone(), 1);
        pin.renew(|| used(7, 70)).unwrap();
        assert!(pins.look());
        clock.advance(30 * SECOND);
        pin.renew(|| used(8, 80)).unwrap();
        let (name, _) = bucket.objects().into_iter().find(|(name, _)| name.starts_with(FOLDER)).unwrap();
        bucket.harm(&name, Some(b"damaged".to_vec()));
        for passed in 0..9 {
            assert!(pins.look());
            assert_eq!(of(&pins), Some(((passed * 10 <= 75).then_some(7), 70)), "{passed}");
            clock.advance(LOOK_US);
        }
        assert_eq!(pins_of(&bucket), 0);
    }

    #[test]
    fn pins_that_cannot_be_read_are_not_taken_for_none() {
        let (bucket, clock) = (MemoryBucket::new(), Arc::new(ManualClock::new(0)));
        let pins = Pins::new(Arc::new(bucket.clone()), clock.clone(), TOKENS);
        bucket.cut(true);
        assert!(!pins.look() && !pins.look());
        assert_eq!(pins.min_seq("f"), Some(0), "any snapshot may be in use");
        bucket.cut(false);
        clock.advance(LOOK_US);
        assert!(pins.look());
        // A reader without the bucket holds nothing once its pin has expired, and a later pin counts again.
        let pin = Pin::new(Arc::new(bucket.clone()), clock.clone(), 1);
        pin.renew(|| used(7, 70)).unwrap();
        bucket.cut(true);
        clock.advance(ttl_us());
        assert!(pin.renew(|| used(7, 70)).is_err());
        assert!(clock.elapsed() >= pin.until().load(Ordering::Acquire));
        bucket.cut(false);
        pin.renew(|| used(8, 80)).unwrap();
        assert!(clock.elapsed() < pin.until().load(Ordering::Acquire));
        assert!(pins.look());
        assert_eq!(of(&pins), Some((Some(8), 80)), "a reader's last pin names all that it has in use");
    }
}
