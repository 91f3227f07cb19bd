//! Dead rows: which rows of a part were replaced or deleted, and since when.

use crate::codec::{Reader, put_u32, put_u64};
use crate::part::CHUNK_ROWS;
use meridian_model::Seq;
use std::ops::Range;
use std::sync::Arc;

/// Dead rows of one chunk in order, each with its death.
type Deaths = Vec<(u32, u64)>;

/// The dead rows of one part, each with the number of the write that killed it.
///
/// A value never changes once readers see it: a writer clones it (cheap: rows are kept by chunk, and chunks are
/// shared) and changes its copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeadRows {
    /// By chunk of [`CHUNK_ROWS`] rows; missing ones at the end are empty.
    chunks: Vec<Option<Arc<Deaths>>>,
    count: u64,
}

impl DeadRows {
    /// How many rows are dead by now.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Marks a row dead from `seq` on; a row already dead keeps its first death. Says whether it was alive.
    pub(crate) fn kill(&mut self, row: u32, seq: u64) -> bool {
        let chunk = (row / CHUNK_ROWS) as usize;
        if self.chunks.len() <= chunk {
            self.chunks.resize(chunk + 1, None);
        }
        let rows = Arc::make_mut(self.chunks[chunk].get_or_insert_default());
        match rows.binary_search_by_key(&row, |(r, _)| *r) {
            Ok(_) => false,
            Err(at) => {
                rows.insert(at, (row, seq));
                self.count += 1;
                true
            }
        }
    }

    /// When a row died, if it did.
    pub(crate) fn death(&self, row: u32) -> Option<u64> {
        let rows = self.chunks.get((row / CHUNK_ROWS) as usize)?.as_ref()?;
        rows.binary_search_by_key(&row, |(r, _)| *r).ok().map(|at| rows[at].1)
    }

    /// Dead rows in a range with the time of their death, in order.
    pub(crate) fn range(&self, rows: Range<u32>) -> impl Iterator<Item = (u32, u64)> + '_ {
        let first = ((rows.start / CHUNK_ROWS) as usize).min(self.chunks.len());
        let last = (rows.end.div_ceil(CHUNK_ROWS) as usize).clamp(first, self.chunks.len());
        self.chunks[first..last].iter().flatten().flat_map(move |chunk| {
            let from = chunk.partition_point(|(r, _)| *r < rows.start);
            let to = chunk.partition_point(|(r, _)| *r < rows.end);
            chunk[from..to.max(from)].iter().copied()
        })
    }

    /// Whether no row of the range is dead in the eyes of a snapshot.
    pub(crate) fn all_alive(&self, rows: Range<u32>, seq: Seq) -> bool {
        self.count == 0 || self.range(rows).all(|(_, death)| death > seq.0)
    }

    /// All of them in order of row.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.chunks.iter().flatten().flat_map(|chunk| chunk.iter().copied())
    }

    /// Deaths up to `last`, as bytes for a file.
    pub(crate) fn encode(&self, last: Seq) -> Vec<u8> {
        let rows: Vec<(u32, u64)> = self.iter().filter(|(_, death)| *death <= last.0).collect();
        let mut bytes = Vec::with_capacity(8 + rows.len() * 12);
        put_u64(&mut bytes, rows.len() as u64);
        for (row, _) in &rows {
            put_u32(&mut bytes, *row);
        }
        for (_, death) in &rows {
            put_u64(&mut bytes, *death);
        }
        bytes
    }

    /// Reads what [`DeadRows::encode`] wrote for a part of so many rows.
    pub(crate) fn decode(bytes: &[u8], part_rows: u32) -> Result<DeadRows, String> {
        let mut reader = Reader::new(bytes);
        let count = reader.u64()?;
        if count > u64::from(part_rows) {
            return Err(format!("{count} dead rows of {part_rows}"));
        }
        let rows = (0..count).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>()?;
        let mut dead = DeadRows::default();
        for row in rows {
            if row >= part_rows {
                return Err(format!("dead row {row} of {part_rows}"));
            }
            dead.kill(row, reader.u64()?);
        }
        reader.end()?;
        Ok(dead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_are_seen_by_snapshots_that_come_after_them() {
        let mut dead = DeadRows::default();
        assert!(dead.kill(5, 100));
        assert!(!dead.kill(5, 200));
        assert!(dead.kill(9000, 300));
        assert_eq!(dead.death(5), Some(100));
        assert!(dead.all_alive(0..10_000, Seq(99)));
        assert!(!dead.all_alive(0..10_000, Seq(100)));
        assert!(dead.all_alive(6..9000, Seq(1000)));
        assert!(dead.all_alive(6..6, Seq(1000)));
        assert!(dead.all_alive(20_000..30_000, Seq(1000)));
        assert_eq!(dead.range(5..9001).collect::<Vec<_>>(), vec![(5, 100), (9000, 300)]);
        assert_eq!(dead.count(), 2);
        let back = DeadRows::decode(&dead.encode(Seq(100)), 10_000).unwrap();
        assert_eq!(back.iter().collect::<Vec<_>>(), vec![(5, 100)]);
        assert!(DeadRows::decode(&dead.encode(Seq(1000)), 9000).is_err());
    }

    #[test]
    fn a_clone_does_not_see_later_deaths() {
        let mut dead = DeadRows::default();
        dead.kill(1, 1);
        let before = dead.clone();
        dead.kill(2, 2);
        assert_eq!(before.death(2), None);
        assert_eq!(dead.death(2), Some(2));
    }
}
