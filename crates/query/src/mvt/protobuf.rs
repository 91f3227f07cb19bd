//! The protobuf encodings used by a tile.

use super::Value;

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A length-delimited field.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn put_packed(out: &mut Vec<u8>, field: u64, values: &[u32]) {
    if values.is_empty() {
        return;
    }
    put_varint(out, field << 3 | 2);
    put_varint(out, values.iter().map(|&value| varint_length(value)).sum::<u64>());
    values.iter().for_each(|&value| put_varint(out, u64::from(value)));
}

/// Bytes of a varint: 7 bits each, at least one.
fn varint_length(value: u32) -> u64 {
    u64::from((u32::BITS - (value | 1).leading_zeros()).div_ceil(7))
}

pub(super) fn put_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Text(text) => put_bytes(out, 1, text.as_bytes()),
        Value::Float(x) => {
            put_varint(out, 3 << 3 | 1);
            out.extend_from_slice(&x.to_le_bytes());
        }
        Value::Int(n) if n >= 0 => {
            put_varint(out, 5 << 3);
            put_varint(out, n as u64);
        }
        Value::Int(n) => {
            put_varint(out, 6 << 3);
            put_varint(out, (n << 1 ^ n >> 63) as u64);
        }
        Value::Bool(b) => {
            put_varint(out, 7 << 3);
            put_varint(out, u64::from(b));
        }
    }
}
