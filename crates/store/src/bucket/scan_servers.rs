//! Discovery of a cluster's scan servers by gateways, from the status in their pins.

use super::Bucket;
use super::pins::{self, PinContent, ScanServerStatus};
use crate::error::StoreError;
use crate::seams::Clock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Max scan servers known at a time; more would not be a real cluster.
const SERVERS_MAX: usize = 4_096;

/// A scan server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanServer {
    /// The random number of this start of its process.
    pub reader: u64,
    /// Its reported status.
    pub serves: ScanServerStatus,
}

/// Discovers the scan servers of a cluster by polling.
#[derive(Debug)]
pub struct ScanServers {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    known: Mutex<BTreeMap<String, ServerRecord>>,
}

#[derive(Debug)]
struct ServerRecord {
    number: u64,
    /// When this number was first seen.
    since: i64,
    /// `None` if it serves no gateways, or its status cannot be parsed.
    serves: Option<ScanServerStatus>,
}

impl ScanServers {
    /// Creates one for a bucket; no server is known yet.
    pub fn new(bucket: Arc<dyn Bucket>, clock: Arc<dyn Clock>) -> ScanServers {
        ScanServers { bucket, clock, known: Mutex::default() }
    }

    /// Returns the servers with a live pin, in order of their numbers. A server that left disappears at once, a killed
    /// one after a pin's lifetime.
    ///
    /// # Errors
    /// Errors of the bucket: previously known servers stay known.
    pub fn look(&self) -> Result<Vec<ScanServer>, StoreError> {
        let mut known = self.known.lock();
        let path = Path::new(&self.bucket.place()).join(pins::FOLDER);
        let names = self.bucket.list(pins::FOLDER).map_err(StoreError::io("list", &path))?;
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        for (reader, number) in names.iter().filter_map(|name| pins::parse(name)) {
            let last = newest.entry(reader).or_default();
            *last = number.max(*last);
        }
        let now = self.clock.elapsed();
        known.retain(|reader, _| newest.contains_key(reader.as_str()));
        for (reader, number) in newest.into_iter().take(SERVERS_MAX) {
            if known.get(reader).is_some_and(|known| known.number == number) {
                continue;
            }
            let serves = match pins::read(self.bucket.as_ref(), reader, number) {
                Ok(PinContent { serves, .. }) => serves,
                // Renewed since the listing: read at the next poll.
                Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => continue,
                Err(StoreError::Corrupt { .. } | StoreError::NewerFormat { .. }) => None,
                Err(error) => return Err(error),
            };
            known.insert(reader.to_owned(), ServerRecord { number, since: now, serves });
        }
        let live = known.iter().filter(|(_, known)| now - known.since <= pins::ttl_us());
        let server = |(reader, known): (&String, &ServerRecord)| {
            let reader = u64::from_str_radix(reader, 16).ok()?;
            Some(ScanServer { reader, serves: known.serves.clone()? })
        };
        Ok(live.filter_map(server).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{MemoryBucket, Pin};
    use crate::seams::ManualClock;

    fn serves(address: &str) -> ScanServerStatus {
        ScanServerStatus {
            address: address.to_owned(),
            group: "default".to_owned(),
            working: 1,
            started: 2,
            waiting: 3,
        }
    }

    #[test]
    fn servers_are_found_while_they_say_so() {
        let (bucket, clock) = (MemoryBucket::new(), Arc::new(ManualClock::new(0)));
        let servers = ScanServers::new(Arc::new(bucket.clone()), clock.clone());
        let pin = |reader| Pin::new(Arc::new(bucket.clone()), clock.clone(), reader);
        let (one, two, check) = (pin(1), pin(2), pin(3));
        check.renew(Vec::new).unwrap();
        assert!(servers.look().unwrap().is_empty(), "it reads, and answers nobody");
        one.announce(Arc::new(|| serves("one:1")));
        one.renew(Vec::new).unwrap();
        two.renew(Vec::new).unwrap();
        // Announced after its first pin, so another pin is due at once.
        two.announce(Arc::new(|| serves("two:2")));
        two.renew(Vec::new).unwrap();
        let found = |servers: &ScanServers| -> Vec<(u64, String)> {
            servers.look().unwrap().into_iter().map(|found| (found.reader, found.serves.address)).collect()
        };
        assert_eq!(found(&servers), [(1, "one:1".to_owned()), (2, "two:2".to_owned())]);
        // One leaves, and a renewal in progress does not bring it back. The other is killed.
        one.release();
        one.renew(Vec::new).unwrap();
        assert_eq!(found(&servers), [(2, "two:2".to_owned())]);
        clock.advance(pins::ttl_us() + 1);
        assert!(found(&servers).is_empty());
        two.renew(Vec::new).unwrap();
        assert_eq!(found(&servers), [(2, "two:2".to_owned())]);
        bucket.cut(true);
        assert!(servers.look().is_err());
    }
}
