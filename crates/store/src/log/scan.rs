//! Reads one file of the log: finds the good records, and classifies places that hold none.

use super::record;
use crate::error::StoreError;
use crate::seams::Record;
use std::path::Path;

pub(super) struct Scan {
    /// Good records that no manifest covers.
    pub(super) records: Vec<Record>,
    /// First and last position of all good records.
    pub(super) positions: Option<(u64, u64)>,
    /// Bytes of all good records.
    pub(super) bytes: u64,
    /// Where the good records at the front end.
    pub(super) end: usize,
    /// Offset up to which the file was synced when the last record was written.
    pub(super) synced: u64,
    pub(super) damage: Vec<StoreError>,
    pub(super) torn_bytes: u64,
}

/// Reads the records of one file from `head` on, and keeps those after `flushed`.
pub(super) fn scan(path: &Path, bytes: &[u8], epoch: u64, flushed: u64, head: usize) -> Scan {
    let mut scan = Scan {
        records: Vec::new(),
        positions: None,
        bytes: 0,
        end: head,
        synced: 0,
        damage: Vec::new(),
        torn_bytes: 0,
    };
    let mut at = head;
    let mut sound = true;
    loop {
        while let Some(stored) = record::read_at(bytes, at, epoch) {
            if let Some((_, last)) = scan.positions.filter(|(_, last)| sound && stored.position != last + 1) {
                let detail = format!("the record at byte {at} is write {}: {} was expected", stored.position, last + 1);
                scan.damage.push(StoreError::corrupt(path, detail));
            }
            scan.synced = stored.synced;
            scan.positions = Some((scan.positions.map_or(stored.position, |(first, _)| first), stored.position));
            if stored.position > flushed {
                scan.records.push(stored.to_record());
            }
            scan.bytes += stored.stored_len() as u64;
            at += stored.stored_len();
        }
        if sound {
            scan.end = at;
        }
        // The next header of this epoch that was written when this place was already synced.
        let bad = at;
        let mut later = (at + 8..bytes.len())
            .step_by(8)
            .filter_map(|place| record::header_at(bytes, place, epoch).map(|header| (place, header.synced)));
        let torn_from = later.clone().next();
        match later.find(|(_, synced)| *synced > bad as u64) {
            Some((place, _)) => {
                sound = false;
                let what = record::header_at(bytes, bad, epoch)
                    .map(|header| format!(" (the write {} of {} events)", header.position, header.events));
                scan.damage.push(StoreError::corrupt(
                    path,
                    format!(
                        "the record at byte {bad}{} does not read, while the one at byte {place} does",
                        what.unwrap_or_default()
                    ),
                ));
                // Reading resumes after the damage. The end of the front part stays, because only that part is
                // contiguous.
                at = place;
            }
            None => {
                if torn_from.is_some() || record::header_at(bytes, bad, epoch).is_some() {
                    scan.torn_bytes = bytes.len().saturating_sub(bad) as u64;
                }
                return scan;
            }
        }
    }
}
