//! Encodes dead rows for a sidecar.

use super::{DeadInterval, DeadRows, FOR_GOOD};
use crate::codec::{Reader, put_bytes, put_u32, put_u64};
use meridian_model::Seq;
use roaring::RoaringBitmap;
use std::sync::Arc;

impl DeadRows {
    /// Encodes the deaths up to `last` for a file.
    pub(crate) fn encode(&self, last: Seq) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let layers: Vec<_> = self.layers.range(..=last.0).collect();
        put_u32(&mut bytes, layers.len() as u32);
        for (seq, rows) in layers {
            put_u64(&mut bytes, *seq);
            let mut packed = Vec::with_capacity(rows.serialized_size());
            rows.serialize_into(&mut packed).map_err(|e| e.to_string())?;
            put_bytes(&mut bytes, &packed);
        }
        let singles: Vec<DeadInterval> = self.singles().filter(|d| d.from <= last.0).collect();
        put_u64(&mut bytes, singles.len() as u64);
        singles.iter().for_each(|d| put_u32(&mut bytes, d.row));
        singles.iter().for_each(|d| put_u64(&mut bytes, d.from));
        singles.iter().for_each(|d| put_u64(&mut bytes, if d.until <= last.0 { d.until } else { FOR_GOOD }));
        Ok(bytes)
    }

    /// Decodes the output of [`DeadRows::encode`] for a part of `part_rows` rows.
    pub(crate) fn decode(bytes: &[u8], part_rows: u32) -> Result<DeadRows, String> {
        let mut reader = Reader::new(bytes);
        let mut dead = DeadRows::default();
        let fits = |row: u32| if row < part_rows { Ok(()) } else { Err(format!("dead row {row} of {part_rows}")) };
        for _ in 0..reader.u32()? {
            let seq = reader.u64()?;
            let rows = RoaringBitmap::deserialize_from(reader.bytes()?).map_err(|e| e.to_string())?;
            rows.max().map_or(Ok(()), fits)?;
            dead.count += rows.len();
            dead.last = dead.last.max(seq);
            dead.layers.insert(seq, Arc::new(rows));
        }
        let count = reader.u64()?;
        if count.saturating_mul(20) > reader.left() as u64 {
            return Err(format!("{count} deaths are more than the bytes hold"));
        }
        let rows = (0..count).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>()?;
        let from = (0..count).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
        for (row, from) in rows.into_iter().zip(from) {
            fits(row)?;
            let until = reader.u64()?;
            dead.count += u64::from(until == FOR_GOOD);
            dead.insert(DeadInterval { row, from, until });
        }
        reader.end()?;
        if dead.count > u64::from(part_rows) {
            return Err(format!("{} dead rows of {part_rows}", dead.count));
        }
        Ok(dead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_dead_are_read_as_written_and_never_beyond_the_part(
            acts in prop::collection::vec((0..200u32, prop::collection::btree_set(0..200u32, 0..150), 0..3u8), 0..30),
            last in 0..40u64,
            harm in prop::option::of((any::<prop::sample::Index>(), 1..=255u8)),
        ) {
            let mut dead = DeadRows::default();
            for (seq, (row, rows, act)) in (1u64..).zip(acts) {
                match act {
                    0 => drop(dead.kill(row, seq)),
                    1 => drop(dead.kill_all(rows.into_iter().collect(), seq)),
                    _ => drop(dead.revive(row, seq)),
                }
            }
            let mut bytes = dead.encode(Seq(last)).unwrap();
            if let Some((at, bits)) = harm {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
                if let Ok(read) = DeadRows::decode(&bytes, 200) {
                    prop_assert!(read.count() <= 200 && read.range(0..400, Seq(u64::MAX)).all(|row| row < 200));
                }
                return Ok(());
            }
            let read = DeadRows::decode(&bytes, 200).unwrap();
            for seq in 0..=last {
                let of = |rows: &DeadRows| rows.range(0..200, Seq(seq)).collect::<Vec<_>>();
                prop_assert_eq!(of(&read), of(&dead), "at {}", seq);
            }
            // Later deaths are not in the file.
            let later = |rows: &DeadRows, seq| rows.range(0..200, Seq(seq)).collect::<Vec<_>>();
            prop_assert_eq!(later(&read, u64::MAX - 1), later(&dead, last));
        }
    }
}
