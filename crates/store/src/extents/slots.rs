//! Extents on the process's own disk: one file of slots of one size, in which a slot holds an extent and what identifies it.
//!
//! Layout: 4 KiB of head, then slots of 4 KiB and an extent each. The head of a slot has the extent's key, its length, and a checksum of its
//! bytes; a checksum of the head follows. Nothing is synced, and the order of writes does not matter. A slot that a crash cut short or that
//! the disk has damaged does not pass its checksums. Its extent is then read from the bucket again.
//!
//! After a start a thread reads the heads, and then writes. Until then nothing is found.

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
/// Max extents that wait to be written; those beyond are not kept on disk.
const QUEUE: usize = 32;
/// Extents that are not written after a write has failed, as a full disk stays full for a while.
const PAUSE: u64 = 64;

/// The file.
#[derive(Debug)]
pub(super) struct Slots {
    file: Arc<dyn DiskFile>,
    /// Held for no call to the disk.
    places: Mutex<Places<ExtentKey>>,
    damaged: AtomicU64,
    failed: AtomicBool,
}

impl Slots {
    /// Opens the file, and makes it if it is absent or of another version. It takes at most `bytes` bytes.
    pub(super) fn open(disk: &Arc<dyn Disk>, path: &Path, bytes: u64) -> io::Result<Slots> {
        let max = u32::try_from(bytes.saturating_sub(HEAD_BYTES) / SLOT_BYTES).unwrap_or(u32::MAX);
        let mut head = MAGIC.to_vec();
        put_u32(&mut head, VERSION);
        put_u64(&mut head, EXTENT_BYTES);
        let file = match disk.open(path, OpenMode::ReadWrite) {
            // For this user alone, as it holds events.
            Err(error) if error.kind() == ErrorKind::NotFound => disk.open(path, OpenMode::CreatePrivate)?,
            opened => opened?,
        };
        let mut found = vec![0; head.len()];
        if file.read_at(0, &mut found).is_err() || found != head {
            file.set_len(0)?;
            file.write_at(0, &head)?;
        }
        // What is beyond a lower limit goes.
        let most = HEAD_BYTES + u64::from(max) * SLOT_BYTES;
        if file.len()? > most {
            file.set_len(most)?;
        }
        let (places, damaged, failed) = (Mutex::new(Places::new(max)), AtomicU64::new(0), AtomicBool::new(false));
        Ok(Slots { file, places, damaged, failed })
    }

    /// Takes up what the file holds from before, by the heads of its slots.
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

    /// An extent of this length, if it is there and whole.
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
        // The slot may have been given to another extent meanwhile: then nothing is damaged.
        if places.find(&key) == Some(slot) {
            places.forget(&key);
            // Relaxed: a figure for people.
            self.damaged.fetch_add(1, Ordering::Relaxed);
            tracing::warn!("an extent on disk is damaged: it is read from the bucket again");
        }
        None
    }

    /// Writes an extent that is not there yet. One thread at a time.
    fn write(&self, key: ExtentKey, extent: &Bytes) -> io::Result<()> {
        let slot = {
            let mut places = self.places.lock();
            if places.holds(&key) {
                return Ok(());
            }
            // From here on readers do not find what the slot held, and not yet what it will hold.
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

    /// An extent is not used again; `false`: it is not there.
    pub(super) fn forget(&self, key: &ExtentKey) -> bool {
        let mut places = self.places.lock();
        let held = places.holds(key);
        places.forget(key);
        held
    }

    pub(super) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Bytes of the slots in use.
    pub(super) fn bytes(&self) -> u64 {
        self.places.lock().len() as u64 * SLOT_BYTES
    }
}

/// Where a slot begins in the file.
fn place_of(slot: u32) -> u64 {
    HEAD_BYTES + u64::from(slot) * SLOT_BYTES
}

/// The head of a slot, as far as it is in use.
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

/// Key, length and checksum of an extent; `None`: this is no head, or a damaged one.
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

/// Writes extents behind the readers.
#[derive(Debug)]
pub(super) struct Writer {
    slots: Arc<Slots>,
    /// `None`: the caller writes.
    queue: Option<SyncSender<(ExtentKey, Bytes)>>,
}

impl Writer {
    /// Takes up what the file holds. The thread ends with the writer.
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

    /// Has an extent written soon, unless too many wait.
    pub(super) fn write(&self, key: ExtentKey, extent: Bytes) {
        match &self.queue {
            Some(queue) => drop(queue.try_send((key, extent))),
            None => drop(self.slots.write(key, &extent)),
        }
    }
}
