//! The footer of a segment: its content and the places of its blocks.

use super::blocks::{BLOCK_REF_BYTES, BlockRef};
use crate::codec::{Reader, put_bytes, put_i64, put_u16, put_u32, put_u64};
use crate::part::rows::CHUNK_ROWS;
use meridian_model::Schema;

/// The columns of the time projection: physical columns of the schema, with the time first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeColumns {
    pub(crate) columns: Vec<u16>,
    /// First block; for each 4096 places there are the columns, then the rows.
    pub(crate) first_block: u32,
    /// Block of the trees over time.
    pub(crate) forest_block: u32,
}

/// The sidecar from objects to rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectPages {
    /// Object and time of the first entry of each page.
    pub(crate) fences: Vec<(u64, i64)>,
    pub(crate) first_block: u32,
    pub(crate) filter_block: u32,
}

/// The decoded footer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Footer {
    pub(crate) rows: u32,
    /// The schema of the rows when written.
    pub(crate) schema: Schema,
    /// Physical columns, without the sequence numbers.
    pub(crate) columns: u16,
    pub(crate) seq_min: u64,
    pub(crate) seq_max: u64,
    pub(crate) chunk_seq_max: Vec<u64>,
    /// First row of each (size class, time bucket).
    pub(crate) buckets: Vec<(u8, u64, u32)>,
    /// First key of each page of the key sidecar.
    pub(crate) key_fences: Vec<u64>,
    pub(crate) first_key_block: u32,
    pub(crate) filter_block: Option<u32>,
    /// Present if the schema has an object field.
    pub(crate) objects: Option<ObjectPages>,
    pub(crate) forest_block: u32,
    /// Counts per map cell, in collections of points.
    pub(crate) pyramid_block: Option<u32>,
    pub(crate) time: Option<TimeColumns>,
    pub(crate) blocks: Vec<BlockRef>,
}

const NONE: u32 = u32::MAX;

impl Footer {
    /// Returns the number of chunks of rows.
    pub(crate) fn chunks(&self) -> u32 {
        self.rows.div_ceil(CHUNK_ROWS)
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, String> {
        let mut b = Vec::new();
        put_u32(&mut b, self.rows);
        put_bytes(&mut b, &serde_json::to_vec(&self.schema).map_err(|e| e.to_string())?);
        put_u16(&mut b, self.columns);
        put_u64(&mut b, self.seq_min);
        put_u64(&mut b, self.seq_max);
        put_u32(&mut b, self.chunk_seq_max.len() as u32);
        self.chunk_seq_max.iter().for_each(|s| put_u64(&mut b, *s));
        put_u32(&mut b, self.buckets.len() as u32);
        for (class, bucket, row) in &self.buckets {
            b.push(*class);
            put_u64(&mut b, *bucket);
            put_u32(&mut b, *row);
        }
        put_u32(&mut b, self.key_fences.len() as u32);
        self.key_fences.iter().for_each(|k| put_u64(&mut b, *k));
        put_u32(&mut b, self.first_key_block);
        put_u32(&mut b, self.filter_block.unwrap_or(NONE));
        b.push(self.objects.is_some().into());
        if let Some(objects) = &self.objects {
            put_u32(&mut b, objects.fences.len() as u32);
            for (object, time) in &objects.fences {
                put_u64(&mut b, *object);
                put_i64(&mut b, *time);
            }
            put_u32(&mut b, objects.first_block);
            put_u32(&mut b, objects.filter_block);
        }
        put_u32(&mut b, self.forest_block);
        put_u32(&mut b, self.pyramid_block.unwrap_or(NONE));
        let columns = self.time.as_ref().map_or(&[][..], |t| &t.columns);
        put_u16(&mut b, columns.len() as u16);
        columns.iter().for_each(|c| put_u16(&mut b, *c));
        put_u32(&mut b, self.time.as_ref().map_or(NONE, |t| t.first_block));
        put_u32(&mut b, self.time.as_ref().map_or(NONE, |t| t.forest_block));
        put_u32(&mut b, self.blocks.len() as u32);
        self.blocks.iter().for_each(|block| block.encode(&mut b));
        Ok(b)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Footer, String> {
        let mut r = Reader::new(bytes);
        let rows = r.u32()?;
        let schema: Schema =
            serde_json::from_slice(r.bytes()?).map_err(|e| format!("its schema does not read: {e}"))?;
        let columns = r.u16()?;
        let (seq_min, seq_max) = (r.u64()?, r.u64()?);
        let chunk_seq_max = list(&mut r, 8, |r| r.u64())?;
        let buckets = list(&mut r, 13, |r| Ok((r.u8()?, r.u64()?, r.u32()?)))?;
        let key_fences = list(&mut r, 8, |r| r.u64())?;
        let first_key_block = r.u32()?;
        let filter_block = Some(r.u32()?).filter(|b| *b != NONE);
        let objects = match r.u8()? {
            0 => None,
            _ => Some(ObjectPages {
                fences: list(&mut r, 16, |r| Ok((r.u64()?, r.i64()?)))?,
                first_block: r.u32()?,
                filter_block: r.u32()?,
            }),
        };
        let forest_block = r.u32()?;
        let pyramid_block = Some(r.u32()?).filter(|b| *b != NONE);
        let time_columns = (0..r.u16()?).map(|_| r.u16()).collect::<Result<Vec<_>, _>>()?;
        let (first_block, time_forest) = (r.u32()?, r.u32()?);
        let time = (!time_columns.is_empty()).then_some(TimeColumns {
            columns: time_columns,
            first_block,
            forest_block: time_forest,
        });
        let blocks = list(&mut r, BLOCK_REF_BYTES, BlockRef::decode)?;
        r.end()?;
        let footer = Footer {
            rows,
            schema,
            columns,
            seq_min,
            seq_max,
            chunk_seq_max,
            buckets,
            key_fences,
            first_key_block,
            filter_block,
            objects,
            forest_block,
            pyramid_block,
            time,
            blocks,
        };
        // Checked once here, so that readers may index blocks and columns without a test at each access.
        footer.validate()?;
        Ok(footer)
    }

    /// Checks that numbers are consistent, so that readers may index by them.
    fn validate(&self) -> Result<(), String> {
        let layout = meridian_model::Layout::of(&self.schema);
        let chunks = self.chunks() as usize;
        let time_blocks = self.time.as_ref().map_or(0, |t| chunks * (t.columns.len() + 1));
        let within = |first: u32, count: usize| first as usize + count <= self.blocks.len();
        let fits = layout.columns.len() == usize::from(self.columns)
            && self.chunk_seq_max.len() == chunks
            && within(self.first_key_block, self.key_fences.len())
            && self.filter_block.is_none_or(|b| within(b, 1))
            && self.objects.as_ref().is_none_or(|o| {
                within(o.first_block, o.fences.len()) && within(o.filter_block, 1) && o.fences.is_sorted()
            })
            && within(self.forest_block, 1)
            && self.pyramid_block.is_none_or(|b| within(b, 1))
            && self.time.as_ref().is_none_or(|t| {
                within(t.first_block, time_blocks)
                    && within(t.forest_block, 1)
                    && t.columns.iter().all(|c| *c < self.columns)
            })
            && self.buckets.is_sorted_by(|a, b| a.2 < b.2 && (a.0, a.1) < (b.0, b.1))
            && self.buckets.iter().all(|b| b.2 < self.rows)
            && self.key_fences.is_sorted();
        if fits { Ok(()) } else { Err("its numbers do not fit each other".to_owned()) }
    }
}

/// Decodes a count, and as many items of at least `bytes` bytes each. The count is checked before memory is allocated.
pub(super) fn list<T>(
    reader: &mut Reader<'_>,
    bytes: usize,
    item: impl Fn(&mut Reader<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let count = reader.u32()? as usize;
    // Checked before the list is allocated: a damaged count could ask for gigabytes.
    if count.saturating_mul(bytes) > reader.left() {
        return Err(format!("a list of {count} items is longer than the footer"));
    }
    (0..count).map(|_| item(reader)).collect()
}
