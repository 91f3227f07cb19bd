//! Extents on the process's own disk: one file of equal slots, each with an extent and what identifies it.
//!
//! Layout: a head of 4 KiB, then slots of 4 KiB plus an extent. The head of a slot has the extent's key, its length,
//! and a checksum of its bytes; a checksum of the head follows. Nothing is synced, and the order of writes does not
//! matter. A slot that a crash cut short or the disk has damaged fails its checksums, and its extent is then read from
//! the bucket again.
//!
//! After a start a thread first reads the heads, then writes. Until the heads are read nothing is found.

use super::{EXTENT_BYTES, ExtentKey};
use crate::codec::{Reader, put_u32, put_u64};
use crate::seams::{Disk, DiskFile, OpenMode};
use bytes::Bytes;
use meridian_model::policy::places::Places;
use parking_lot::Mutex;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::Builder;

const MAGIC: &[u8; 8] = b"MRDNEXTS";
const VERSION: u32 = 1;
/// Bytes before the first slot, and before the extent of each slot.
const HEAD_BYTES: u64 = 4 << 10;
const SLOT_BYTES: u64 = HEAD_BYTES + EXTENT_BYTES;
/// Bytes of a slot's head that are in use.
const USED_BYTES: usize = 36;
/// Max extents waiting to be written; the rest is not kept on disk.
const QUEUE: usize = 32;
/// Number of extents to skip after a failed write, as a full disk stays full for a while.
const PAUSE: u64 = 64;

/// The file of slots.
#[derive(Debug)]
pub(super) struct Slots {
    file: Arc<dyn DiskFile>,
    /// Never held across a call to the disk.
    places: Mutex<Places<ExtentKey>>,
    damaged: AtomicU64,
    failed: AtomicBool,
}

impl Slots {
    /// Opens the file, and creates it if it is absent or of another version. It takes at most `bytes` bytes.
    pub(super) fn open(disk: &Arc<dyn Disk>, path: &Path, bytes: u64) -> io::Result<Slots> {
        let max = u32::try_from(bytes.saturating_sub(HEAD_BYTES) / SLOT_BYTES).unwrap_or(u32::MAX);
        let mut head = MAGIC.to_vec();
        put_u32(&mut head, VERSION);
        put_u64(&mut head, EXTENT_BYTES);
        let file = match disk.open(path, OpenMode::ReadWrite) {
            // For this user only, as it holds events.
            Err(error) if error.kind() == ErrorKind::NotFound => disk.open(path, OpenMode::CreatePrivate)?,
            opened => opened?,
        };
        let mut found = vec![0; head.len()];
        if file.read_at(0, &mut found).is_err() || found != head {
            file.set_len(0)?;
            file.write_at(0, &head)?;
        }
        // Anything beyond a lowered limit is cut off.
        let most = HEAD_BYTES + u64::from(max) * SLOT_BYTES;
        if file.len()? > most {
            file.set_len(most)?;
        }
        let (places, damaged, failed) = (Mutex::new(Places::new(max)), AtomicU64::new(0), AtomicBool::new(false));
        Ok(Slots { file, places, damaged, failed })
    }

    /// Restores the index of a previous run from the heads of the slots.
    fn restore(&self) -> io::Result<()> {
        let len = self.file.len()?;
        let slots = len.saturating_sub(HEAD_BYTES).div_ceil(SLOT_BYTES);
        // In steps, so that a reader waits for few of them.
        let mut heads = Vec::new();
        for slot in 0..u32::try_from(slots).unwrap_or(u32::MAX) {
            let mut head = [0; USED_BYTES];
            let read = self.file.read_at(place_of(slot), &mut head);
            heads.push((slot, read.ok().and_then(|()| decode(&head)).map(|(key, _, _)| key)));
        }
        let mut places = self.places.lock();
        for (slot, key) in heads {
            places.restore(key, slot);
        }
        Ok(())
    }

    /// Returns an extent of this length, if present and intact.
    pub(super) fn read(&self, key: ExtentKey, len: usize) -> Option<Bytes> {
        let slot = self.places.lock().find(&key)?;
        let mut bytes = vec![0; HEAD_BYTES as usize + len];
        let read = self.file.read_at(place_of(slot), &mut bytes);
        let head = read.ok().and_then(|()| decode(bytes.get(..USED_BYTES)?));
        let extent = Bytes::from(bytes).slice(HEAD_BYTES as usize..);
        if head.is_some_and(|(of, held, crc)| of == key && held == len && crc == crc32c::crc32c(&extent)) {
            return Some(extent);
        }
        let mut places = self.places.lock();
        // If the slot was reassigned to another extent meanwhile, nothing is damaged.
        if places.find(&key) == Some(slot) {
            places.forget(&key);
            // Relaxed: only statistics.
            self.damaged.fetch_add(1, Ordering::Relaxed);
            tracing::warn!("an extent on disk is damaged: it is read from the bucket again");
        }
        None
    }

    /// Writes an extent that is not present yet. Called by one thread at a time.
    fn write(&self, key: ExtentKey, extent: &Bytes) -> io::Result<()> {
        let slot = {
            let mut places = self.places.lock();
            if places.holds(&key) {
                return Ok(());
            }
            // From here on readers no longer find the slot's old content, and not yet its new one.
            let Some(slot) = places.take() else { return Ok(()) };
            slot
        };
        let mut bytes = encode(key, extent);
        bytes.resize(HEAD_BYTES as usize, 0);
        bytes.extend_from_slice(extent);
        let written = self.file.write_at(place_of(slot), &bytes);
        let mut places = self.places.lock();
        match written {
            Ok(()) => places.put(key, slot),
            Err(_) => places.release(slot),
        }
        if written.is_err() != self.failed.swap(written.is_err(), Ordering::Relaxed)
            && let Err(error) = &written
        {
            tracing::warn!(%error, "extents cannot be written to disk for now: they are read from the bucket");
        }
        written
    }

    /// Drops an extent; returns false if it is not present.
    pub(super) fn forget(&self, key: &ExtentKey) -> bool {
        let mut places = self.places.lock();
        let held = places.holds(key);
        places.forget(key);
        held
    }

    pub(super) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the slots in use.
    pub(super) fn bytes(&self) -> u64 {
        self.places.lock().len() as u64 * SLOT_BYTES
    }
}

/// Returns the offset of a slot in the file.
fn place_of(slot: u32) -> u64 {
    HEAD_BYTES + u64::from(slot) * SLOT_BYTES
}

/// Encodes the used part of a slot's head.
fn encode(key: ExtentKey, extent: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD_BYTES as usize + extent.len());
    put_u64(&mut head, key.object as u64);
    put_u64(&mut head, (key.object >> 64) as u64);
    put_u32(&mut head, key.number);
    put_u64(&mut head, extent.len() as u64);
    put_u32(&mut head, crc32c::crc32c(extent));
    let crc = crc32c::crc32c(&head);
    put_u32(&mut head, crc);
    debug_assert_eq!(head.len(), USED_BYTES);
    head
}

/// Decodes key, length and checksum of an extent; `None` if this is not a head, or a damaged one.
fn decode(head: &[u8]) -> Option<(ExtentKey, usize, u32)> {
    let mut reader = Reader::new(head);
    let mut parse = || -> Result<_, String> {
        let object = u128::from(reader.u64()?) | u128::from(reader.u64()?) << 64;
        Ok((object, reader.u32()?, reader.u64()?, reader.u32()?, reader.u32()?))
    };
    let (object, number, len, crc, own) = parse().ok()?;
    let whole = own == crc32c::crc32c(&head[..USED_BYTES - 4]) && (1..=EXTENT_BYTES).contains(&len);
    whole.then_some((ExtentKey { object, number }, len as usize, crc))
}

/// Writes extents without blocking readers.
#[derive(Debug)]
pub(super) struct Writer {
    slots: Arc<Slots>,
    /// Queue of the writing thread; `None` if the caller writes.
    queue: Option<SyncSender<(ExtentKey, Bytes)>>,
}

impl Writer {
    /// Restores the content of the file, then writes. The thread ends when the writer is dropped.
    pub(super) fn start(slots: &Arc<Slots>, background: bool) -> io::Result<Writer> {
        if !background {
            slots.restore()?;
            return Ok(Writer { slots: slots.clone(), queue: None });
        }
        let (queue, waiting) = sync_channel::<(ExtentKey, Bytes)>(QUEUE);
        let of_thread = slots.clone();
        Builder::new().name("meridian-extents".to_owned()).spawn(move || {
            if let Err(error) = of_thread.restore() {
                tracing::warn!(%error, "the extents on disk could not be read: they are not used");
            }
            let mut pause = 0u64;
            for (key, extent) in waiting {
                match pause {
                    0 if of_thread.write(key, &extent).is_err() => pause = PAUSE,
                    0 => {}
                    _ => pause -= 1,
                }
            }
        })?;
        Ok(Writer { slots: slots.clone(), queue: Some(queue) })
    }

    /// Queues an extent to be written, unless too many wait.
    pub(super) fn write(&self, key: ExtentKey, extent: Bytes) {
        match &self.queue {
            Some(queue) => drop(queue.try_send((key, extent))),
            None => drop(self.slots.write(key, &extent)),
        }
    }
}
