//! Extents: pieces of a bucket's objects, kept in memory and on the process's own disk.
//!
//! An extent is 1 MiB of an object, or its last bytes. Objects never change, so an extent is never stale. Reads of
//! blocks, footers and trees go through here: [`Extents::read`] serves from memory, from disk (`slots.rs`) or from the
//! bucket, in this order. [`Extents::load`] prefetches what a caller will read soon: neighbouring extents in one range,
//! and all ranges concurrently. When several callers miss an extent at once, one fetches it and the others wait for it
//! (`flight.rs`).
//!
//! Extents on disk are verified with each read. A separate thread writes them, and nothing waits for it.

mod flight;
mod slots;

use crate::manifest::FileEnd;
use crate::seams::Bucket;
use crate::seams::Disk;
use crate::seams::Span;
use crate::stats::ExtentStats;
use bytes::Bytes;
use flight::Flights;
use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};
use sha2::{Digest, Sha256};
use slots::{Slots, Writer};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of an extent.
pub(crate) const EXTENT_BYTES: u64 = 1 << 20;
/// Max neighbouring extents of one range: longer ranges are split and read concurrently.
const RANGE_EXTENTS: u64 = 4;
/// Max extents fetched at a time.
const BATCH_EXTENTS: usize = 64;
/// Share of the memory for extents that are used repeatedly. New ones have the rest: prefetched extents must not evict
/// each other.
const HOT: f64 = 0.5;
/// Share of the memory that is prefetched at once, as a divisor. Half of what new extents have, because shards fill
/// unevenly.
const AHEAD_PART: u64 = 4;

/// An extent: a digest that identifies its object, and its number within the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ExtentKey {
    object: u128,
    number: u32,
}

/// An object of the bucket, as known to this cache.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    name: Arc<str>,
    bytes: u64,
    digest: u128,
    /// Whether its extents are kept on disk: only for objects whose content the manifest describes.
    lasting: bool,
}

impl Source {
    fn key(&self, number: u64) -> ExtentKey {
        ExtentKey { object: self.digest, number: u32::try_from(number).unwrap_or(u32::MAX) }
    }

    fn range_of(&self, number: u64) -> Range<u64> {
        number * EXTENT_BYTES..((number + 1) * EXTENT_BYTES).min(self.bytes)
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<ExtentKey, Bytes> for Weight {
    fn weight(&self, _: &ExtentKey, extent: &Bytes) -> u64 {
        64 + extent.len() as u64
    }
}

#[derive(Debug, Default)]
struct Counts {
    memory_hits: AtomicU64,
    memory_misses: AtomicU64,
    disk_hits: AtomicU64,
    disk_misses: AtomicU64,
    bytes_fetched: AtomicU64,
    ranges_fetched: AtomicU64,
}

fn add(counter: &AtomicU64, n: u64) {
    // Relaxed: only statistics.
    counter.fetch_add(n, Ordering::Relaxed);
}

/// The cache of a process.
#[derive(Debug)]
pub(crate) struct Extents {
    bucket: Arc<dyn Bucket>,
    memory: Cache<ExtentKey, Bytes, Weight, BuildHasherDefault<DefaultHasher>>,
    memory_max: u64,
    flights: Flights<ExtentKey, Bytes>,
    /// Set once the data folder is locked.
    disk: OnceLock<(Arc<Slots>, Writer)>,
    counts: Counts,
}

impl Extents {
    /// Creates a cache in memory of at most `memory_max` bytes.
    pub(crate) fn new(bucket: Arc<dyn Bucket>, memory_max: u64) -> Extents {
        let items = usize::try_from(memory_max / EXTENT_BYTES).unwrap_or(usize::MAX).clamp(1, 1 << 22);
        let mut options = OptionsBuilder::new();
        let options = options.estimated_items_capacity(items).weight_capacity(memory_max).hot_allocation(HOT).build();
        let (hasher, lifecycle) = (BuildHasherDefault::default(), Default::default());
        let memory = match options {
            Ok(options) => Cache::with_options(options, Weight, hasher, lifecycle),
            Err(_) => Cache::with(items, memory_max, Weight, hasher, lifecycle),
        };
        Extents {
            bucket,
            memory,
            memory_max,
            flights: Flights::default(),
            disk: OnceLock::new(),
            counts: Counts::default(),
        }
    }

    /// Also keeps extents in a file of at most `bytes` bytes from now on. If the file cannot be opened, the cache stays
    /// in memory only.
    ///
    /// `background` makes a separate thread write them; otherwise the caller that fetched them does, for simulations.
    pub(crate) fn keep_on_disk(&self, disk: &Arc<dyn Disk>, path: &Path, bytes: u64, background: bool) {
        let opened = Slots::open(disk, path, bytes).map(Arc::new).and_then(|slots| {
            let writer = Writer::start(&slots, background)?;
            Ok((slots, writer))
        });
        match opened {
            Ok(opened) => drop(self.disk.set(opened)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "extents are kept in memory only");
            }
        }
    }

    /// Identifies an object. `end` is what the manifest records of it, if anything; `bytes` is its length.
    pub(crate) fn source(&self, name: &str, bytes: u64, end: Option<&FileEnd>) -> Source {
        let mut digest = Sha256::new();
        // The bucket and the content count too: the folder may have served another bucket, with other objects of the
        // same names.
        for part in [self.bucket.place().as_bytes(), name.as_bytes()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.update(bytes.to_le_bytes());
        digest.update(end.map_or(0, |end| end.crc32c).to_le_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&digest.finalize()[..16]);
        Source { name: name.into(), bytes, digest: u128::from_le_bytes(first), lasting: end.is_some() }
    }

    /// Fills `into` from an object. The range must lie within it.
    pub(crate) fn read(&self, source: &Source, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let end = offset + into.len() as u64;
        let numbers: Vec<u64> = (offset / EXTENT_BYTES..end.div_ceil(EXTENT_BYTES)).collect();
        for batch in numbers.chunks(BATCH_EXTENTS) {
            let wanted: Vec<_> = batch.iter().map(|number| (source, *number)).collect();
            for (number, extent) in batch.iter().zip(self.get(&wanted)?) {
                let held = source.range_of(*number);
                let (from, to) = (held.start.max(offset), held.end.min(end));
                let piece = extent.get((from - held.start) as usize..(to - held.start) as usize);
                let piece = piece.ok_or(ErrorKind::UnexpectedEof)?;
                into[(from - offset) as usize..(to - offset) as usize].copy_from_slice(piece);
            }
        }
        Ok(())
    }

    /// Prefetches ranges of objects that will be read soon, up to a quarter of the memory. Failures are reported by the
    /// read itself.
    pub(crate) fn load(&self, wanted: &[(Source, Range<u64>)]) {
        let mut left = self.memory_max / AHEAD_PART;
        let (mut extents, mut seen) = (Vec::<(&Source, u64)>::new(), HashSet::new());
        for (source, range) in wanted {
            let range = range.start..range.end.min(source.bytes);
            for number in range.start / EXTENT_BYTES..range.end.div_ceil(EXTENT_BYTES) {
                let held = source.range_of(number);
                if left < held.end - held.start || !seen.insert(source.key(number)) {
                    continue;
                }
                left -= held.end - held.start;
                extents.push((source, number));
            }
        }
        for batch in extents.chunks(BATCH_EXTENTS) {
            if let Err(error) = self.get(batch) {
                tracing::debug!(%error, "extents could not be read ahead");
                return;
            }
        }
    }

    /// Drops a cached range that turned out to be damaged, either by this machine or in the bucket, where it may be
    /// restored. Returns true if reading it again makes sense.
    pub(crate) fn forget(&self, source: &Source, range: Range<u64>) -> bool {
        let mut held = false;
        for number in range.start / EXTENT_BYTES..range.end.div_ceil(EXTENT_BYTES) {
            let key = source.key(number);
            held |= self.memory.remove(&key).is_some();
            held |= self.disk.get().is_some_and(|(slots, _)| slots.forget(&key));
        }
        held
    }

    /// Returns its counters and size.
    pub(crate) fn stats(&self) -> ExtentStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (counts, disk) = (&self.counts, self.disk.get());
        ExtentStats {
            memory_hits: of(&counts.memory_hits),
            memory_misses: of(&counts.memory_misses),
            disk_hits: of(&counts.disk_hits),
            disk_misses: of(&counts.disk_misses),
            damaged: disk.map_or(0, |(slots, _)| slots.damaged()),
            bytes_fetched: of(&counts.bytes_fetched),
            ranges_fetched: of(&counts.ranges_fetched),
            memory_bytes: self.memory.weight(),
            disk_bytes: disk.map_or(0, |(slots, _)| slots.bytes()),
        }
    }

    /// Returns these extents, in order; they must all be different.
    fn get(&self, wanted: &[(&Source, u64)]) -> io::Result<Vec<Bytes>> {
        let mut found: Vec<Option<Bytes>> = Vec::with_capacity(wanted.len());
        found.extend(wanted.iter().map(|(source, number)| self.memory.get(&source.key(*number))));
        let missing: Vec<usize> = (0..wanted.len()).filter(|at| found[*at].is_none()).collect();
        add(&self.counts.memory_hits, (wanted.len() - missing.len()) as u64);
        add(&self.counts.memory_misses, missing.len() as u64);
        if !missing.is_empty() {
            let keys: Vec<ExtentKey> = missing.iter().map(|at| wanted[*at].0.key(wanted[*at].1)).collect();
            // One state machine for each extent: claimed here, landed here, or awaited from another caller. Claims land
            // before anything is awaited, so no two callers wait for each other.
            let (mut claims, awaited) = self.flights.join(&keys);
            let mut open: Vec<usize> = Vec::new();
            for at in missing.iter().copied() {
                let (source, number) = wanted[at];
                let key = source.key(number);
                if !claims.has(&key) {
                    continue;
                }
                // It may have landed between the lookup above and the claim.
                match self.memory.get(&key).or_else(|| self.read_disk(source, number)) {
                    Some(extent) => found[at] = Some(self.land(&mut claims, key, extent)),
                    None => open.push(at),
                }
            }
            self.fetch(wanted, &open, &mut found, &mut claims)?;
            for (at, flight) in missing.iter().zip(awaited) {
                if let Some(flight) = flight {
                    found[*at] = Some(flight.wait()?);
                }
            }
        }
        found.into_iter().map(|extent| extent.ok_or_else(|| ErrorKind::UnexpectedEof.into())).collect()
    }

    fn land(&self, claims: &mut flight::Claims<'_, ExtentKey, Bytes>, key: ExtentKey, extent: Bytes) -> Bytes {
        // In memory before the flight ends: later readers find it there.
        self.memory.insert(key, extent.clone());
        claims.land(&key, extent.clone());
        extent
    }

    fn read_disk(&self, source: &Source, number: u64) -> Option<Bytes> {
        let (slots, _) = self.disk.get().filter(|_| source.lasting)?;
        let held = source.range_of(number);
        let found = slots.read(source.key(number), (held.end - held.start) as usize);
        add(if found.is_some() { &self.counts.disk_hits } else { &self.counts.disk_misses }, 1);
        found
    }

    /// Reads extents from the bucket: neighbours in one range, and all ranges concurrently.
    fn fetch(
        &self,
        wanted: &[(&Source, u64)],
        open: &[usize],
        found: &mut [Option<Bytes>],
        claims: &mut flight::Claims<'_, ExtentKey, Bytes>,
    ) -> io::Result<()> {
        let mut order = open.to_vec();
        order.sort_by_key(|at| (wanted[*at].0.digest, wanted[*at].1));
        let near = |a: &usize, b: &usize| {
            let ((one, first), (two, second)) = (wanted[*a], wanted[*b]);
            one.digest == two.digest && second == first + 1
        };
        let runs: Vec<&[usize]> = order.chunk_by(near).flat_map(|run| run.chunks(RANGE_EXTENTS as usize)).collect();
        let span = |run: &&[usize]| {
            let ((source, first), (_, last)) = (wanted[run[0]], wanted[run[run.len() - 1]]);
            Span { name: source.name.clone(), range: source.range_of(first).start..source.range_of(last).end }
        };
        let spans: Vec<Span> = runs.iter().map(span).collect();
        if spans.is_empty() {
            return Ok(());
        }
        let mut failed = None;
        for ((run, span), answer) in runs.iter().zip(&spans).zip(self.bucket.get_ranges(&spans)) {
            add(&self.counts.ranges_fetched, 1);
            let bytes = match answer {
                Ok(bytes) => Bytes::from(bytes),
                Err(error) => {
                    run.iter().for_each(|at| claims.fail(&wanted[*at].0.key(wanted[*at].1), &error));
                    failed.get_or_insert(error);
                    continue;
                }
            };
            add(&self.counts.bytes_fetched, bytes.len() as u64);
            for at in run.iter().copied() {
                let (source, number) = wanted[at];
                let held = source.range_of(number);
                let piece = (held.start - span.range.start) as usize..(held.end - span.range.start) as usize;
                let Some(piece) = bytes.get(piece) else { continue };
                // Copied unless it is the whole range: a slice would keep the whole range in memory.
                let extent = if run.len() == 1 { bytes.clone() } else { Bytes::copy_from_slice(piece) };
                found[at] = Some(self.land(claims, source.key(number), extent.clone()));
                if let Some((_, writer)) = self.disk.get().filter(|_| source.lasting) {
                    writer.write(source.key(number), extent);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;

    #[test]
    fn what_is_read_ahead_stays_until_it_is_read_where_the_cache_is_full() {
        const BYTES: u64 = 64 << 10;
        let bucket = MemoryBucket::new();
        let extents = Extents::new(Arc::new(bucket.clone()), 4 << 20);
        let object = |number: u8| {
            let name = format!("o{number}");
            bucket.put(&name, &vec![number; BYTES as usize]).unwrap();
            extents.source(&name, BYTES, None)
        };
        let read = |source: &Source| {
            let mut bytes = vec![0; BYTES as usize];
            extents.read(source, 0, &mut bytes).unwrap();
            bytes
        };
        (0..100).map(object).for_each(|source| drop(read(&source)));
        let ahead: Vec<Source> = (100..116).map(object).collect();
        extents.load(&ahead.iter().map(|source| (source.clone(), 0..BYTES)).collect::<Vec<_>>());
        assert_eq!(extents.stats().ranges_fetched, 116);
        for (source, number) in ahead.iter().zip(100..) {
            assert!(read(source).iter().all(|byte| *byte == number));
        }
        assert_eq!(extents.stats().ranges_fetched, 116, "nothing was fetched a second time");
    }
}
