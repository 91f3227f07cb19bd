//! Bodies of log records.

use crate::codec::{Reader, put_bytes, put_u16, put_u32, put_u64};
use crate::ingest::stage::Target;
use crate::part::Context;
use crate::part::columns;
use crate::part::ipc;
use arrow_buffer::Buffer;
use meridian_model::Batch;

/// Encodes events: the number of physical columns (`u16`; the schema may have grown since) and of rows (`u32`), then
/// the columns.
pub(crate) fn encode_events(batch: &Batch) -> Result<Vec<u8>, String> {
    let mut body = Vec::with_capacity(6 + batch.columns().len() * (9 * batch.rows() + 16));
    put_u16(&mut body, batch.columns().len() as u16);
    put_u32(&mut body, batch.rows() as u32);
    for column in batch.columns() {
        columns::encode(column.as_ref().ok_or("a column was left out")?, &mut body)?;
    }
    Ok(body)
}

/// Decodes the output of [`encode_events`], in the current schema.
pub(crate) fn decode_events(context: &Context, body: &[u8]) -> Result<Batch, String> {
    let mut reader = Reader::new(body);
    let (count, rows) = (usize::from(reader.u16()?), reader.u32()? as usize);
    let all = &context.layout.columns;
    let (there, missing) =
        all.split_at_checked(count).ok_or_else(|| format!("{count} columns where the schema has {}", all.len()))?;
    let mut columns = Vec::with_capacity(all.len());
    let mut rows = rows;
    if rows == 0 {
        // A write always has events, so this one is from before decision 015: two more zero bytes and an Arrow message.
        reader.take(2)?;
        let (arrays, found) = ipc::decode(there, &Buffer::from(reader.rest()))?;
        columns.extend(arrays.into_iter().map(Some));
        rows = found;
    } else {
        for field in there {
            columns.push(Some(columns::decode(field.data_type(), rows, &mut reader)?));
        }
        reader.end()?;
    }
    // Fields added after the record was written are null in it, as they are in older segments.
    columns.extend(missing.iter().map(|field| Some(arrow_array::new_null_array(field.data_type(), rows))));
    Batch::new(context.schema.clone(), context.layout.clone(), rows, columns).map_err(|e| e.to_string())
}

/// Encodes deletions: their number, then for each the number and the id.
pub(crate) fn encode_targets(targets: &[Target]) -> Vec<u8> {
    let mut body = Vec::new();
    put_u32(&mut body, targets.len() as u32);
    for target in targets {
        put_u64(&mut body, target.seq);
        put_bytes(&mut body, target.id.as_bytes());
    }
    body
}

/// Encodes the instant of an expiry.
pub(crate) fn encode_expiry(before: i64) -> Vec<u8> {
    before.to_le_bytes().to_vec()
}

/// Decodes the output of [`encode_expiry`].
pub(crate) fn decode_expiry(body: &[u8]) -> Result<i64, String> {
    let mut reader = Reader::new(body);
    let before = reader.i64()?;
    reader.end()?;
    Ok(before)
}

/// Decodes the output of [`encode_targets`].
pub(crate) fn decode_targets(body: &[u8]) -> Result<Vec<Target>, String> {
    let mut reader = Reader::new(body);
    let count = reader.u32()?;
    let mut targets = Vec::new();
    for _ in 0..count {
        let seq = reader.u64()?;
        let id = std::str::from_utf8(reader.bytes()?).map_err(|e| e.to_string())?.to_owned();
        targets.push(Target { seq, id });
    }
    reader.end()?;
    Ok(targets)
}
