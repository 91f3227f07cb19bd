//! Damaged bytes that make a foreign decoder panic are an input error and leave no log entry.
//!
//! A separate test binary, as it checks the hook of the process.
#![allow(clippy::unwrap_used)]

#[path = "formats/common/mod.rs"]
mod common;

use meridian_formats::{BatchLimits, Format, ReadError, ReadOptions, decoder_panics, reader};
use meridian_model::{Batch, BatchBuilder, Field, FieldType, Schema};
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static REPORTED: AtomicU64 = AtomicU64::new(0);

fn batch(schema: &Arc<Schema>) -> Batch {
    let mut builder = BatchBuilder::new(schema.clone());
    for n in 0..20 {
        builder.set(0, meridian_model::builder::Value::Text(format!("text {n}"))).unwrap();
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

#[test]
fn decoders_panic_in_silence_and_the_input_is_blamed() {
    std::panic::set_hook(Box::new(|_| {
        REPORTED.fetch_add(1, Ordering::Relaxed);
    }));
    let field = Field { name: "a".into(), kind: FieldType::Text, required: false, title: None };
    let schema = Arc::new(Schema { fields: vec![field], ..Schema::default() });
    let whole = common::write(Format::Arrow, &[batch(&schema)], &schema);
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let read = reader(Format::Arrow, Box::new(Cursor::new(bytes)), schema.clone(), &ReadOptions::default())
                .and_then(|mut events| events.next_batch(&BatchLimits::default()));
            assert!(matches!(read, Ok(_) | Err(ReadError::Invalid(_))), "{at} {byte}: {read:?}");
        }
    }
    let panics = decoder_panics();
    assert!(panics > 0, "no byte made the decoder panic: this tests nothing");
    assert_eq!(REPORTED.load(Ordering::Relaxed), 0, "of {panics} panics");
    // Any other panic is still reported.
    drop(std::panic::catch_unwind(|| panic!("on purpose")));
    assert_eq!(REPORTED.load(Ordering::Relaxed), 1);
}
