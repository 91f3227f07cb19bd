//! Encoding of a pyramid.

use super::layer::Layer;
use super::{BASE_LEVEL, CountPyramid, LAYER_STEP};
use crate::codec::{Reader, write_array, write_u32};
use crate::error::IndexError;
use arrow_buffer::Buffer;

/// Magic and version of an encoded pyramid.
const MAGIC: [u8; 4] = *b"MPYR";

const VERSION: u8 = 1;

impl CountPyramid {
    /// Encodes the pyramid. `docs/format.md` has the layout, under "Counts per map cell".
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes() + 4096);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, 0, 0, 0]);
        bytes.extend_from_slice(&self.width.to_le_bytes());
        bytes.extend_from_slice(&self.total.to_le_bytes());
        write_u32(&mut bytes, self.layers.len() as u32);
        for layer in &self.layers {
            write_u32(&mut bytes, layer.level.into());
            write_u32(&mut bytes, layer.bins.len() as u32);
            write_u32(&mut bytes, layer.cells.len() as u32);
        }
        for layer in &self.layers {
            write_array(&mut bytes, &layer.bins);
            write_array(&mut bytes, &layer.firsts);
            write_array(&mut bytes, &layer.cells);
            write_array(&mut bytes, &layer.counts);
        }
        bytes
    }

    /// Decodes the output of [`CountPyramid::encode`], copying it once.
    pub fn decode(bytes: &[u8]) -> Result<CountPyramid, IndexError> {
        CountPyramid::decode_shared(&Buffer::from_slice_ref(bytes))
    }

    /// Decodes the output of [`CountPyramid::encode`] without copying, if the buffer is aligned to 8 bytes in memory.
    pub fn decode_shared(bytes: &Buffer) -> Result<CountPyramid, IndexError> {
        let mut reader = Reader::open("count pyramid", bytes, MAGIC, VERSION)?;
        let (width, total) = (reader.u64()? as i64, reader.u64()?);
        let count = reader.u32()?;
        // Before these numbers are used: a damaged count must not request memory.
        if width < 0 || count > u32::from(BASE_LEVEL / LAYER_STEP) + 1 {
            return Err(reader.damaged(format!("bins of {width} µs and {count} layers")));
        }
        let heads =
            (0..count).map(|_| Ok([reader.u32()?, reader.u32()?, reader.u32()?])).collect::<Result<Vec<_>, _>>()?;
        let mut layers: Vec<Layer> = Vec::with_capacity(heads.len());
        for [level, bins, cells] in heads {
            let layer = Layer {
                level: level.min(255) as u8,
                bins: reader.array(bins as usize)?,
                firsts: reader.array(bins as usize + 1)?,
                cells: reader.array(cells as usize)?,
                counts: reader.array(cells as usize)?,
            };
            let expected = layers.last().map_or(layer.level, |last| last.level.wrapping_sub(LAYER_STEP));
            if layer.level > BASE_LEVEL || layer.level != expected {
                return Err(reader.damaged(format!("a layer of level {level}")));
            }
            layer.check().map_err(|detail| reader.damaged(detail))?;
            layers.push(layer);
        }
        reader.finish()?;
        Ok(CountPyramid { width, total, layers })
    }
}
