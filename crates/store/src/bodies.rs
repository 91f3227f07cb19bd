//! Bodies of log records.

use crate::codec::{Reader, put_bytes, put_u16, put_u32, put_u64};
use crate::ipc;
use crate::part::Context;
use crate::stage::Target;
use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use meridian_model::Batch;

/// Events: the number of physical columns (the schema may have grown since), six zero bytes, an Arrow message.
pub(crate) fn encode_events(batch: &Batch) -> Result<Vec<u8>, String> {
    let columns: Option<Vec<ArrayRef>> = batch.columns().iter().cloned().collect();
    let columns = columns.ok_or("a column was left out")?;
    let mut body = Vec::new();
    put_u16(&mut body, columns.len() as u16);
    body.extend_from_slice(&[0; 6]);
    body.extend_from_slice(&ipc::encode(&batch.layout().columns, columns, batch.rows())?);
    Ok(body)
}

/// Reads what [`encode_events`] wrote, in the schema of now.
pub(crate) fn decode_events(context: &Context, body: Vec<u8>) -> Result<Batch, String> {
    let count = usize::from(Reader::new(&body).u16()?);
    let bytes = Buffer::from(body);
    if bytes.len() < 8 || count > context.layout.columns.len() {
        return Err(format!("{count} columns where the schema has {}", context.layout.columns.len()));
    }
    let (columns, rows) = ipc::decode(&context.layout.columns[..count], &bytes.slice(8))?;
    let missing = context.layout.columns[count..].iter().map(|f| arrow_array::new_null_array(f.data_type(), rows));
    let columns = columns.into_iter().chain(missing).map(Some).collect();
    Batch::new(context.schema.clone(), context.layout.clone(), rows, columns).map_err(|e| e.to_string())
}

/// Deletions: how many, then for each the number and the id.
pub(crate) fn encode_targets(targets: &[Target]) -> Vec<u8> {
    let mut body = Vec::new();
    put_u32(&mut body, targets.len() as u32);
    for target in targets {
        put_u64(&mut body, target.seq);
        put_bytes(&mut body, target.id.as_bytes());
    }
    body
}

/// The instant of an expiry.
pub(crate) fn encode_expiry(before: i64) -> Vec<u8> {
    before.to_le_bytes().to_vec()
}

/// Reads what [`encode_expiry`] wrote.
pub(crate) fn decode_expiry(body: &[u8]) -> Result<i64, String> {
    let mut reader = Reader::new(body);
    let before = reader.i64()?;
    reader.end()?;
    Ok(before)
}

/// Reads what [`encode_targets`] wrote.
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
