//! Columns of large values, which are stored in pages smaller than a chunk.

use crate::world::World;
use arrow_array::Array;
use meridian_model::builder::Value;
use meridian_model::{BatchBuilder, Field, FieldColumn, FieldType, IdRole, Projection, Schema};
use meridian_store::{CHUNK_ROWS, PartView, Settings, Write};
use std::time::{Duration, Instant};

/// Returns a text whose length and content follow from its number; some are empty, some absent.
fn text_of(n: i64) -> Option<String> {
    (n % 11 != 0).then(|| format!("{n} ").repeat((n * 7919 % 500) as usize))
}

fn read_wrong(part: &PartView, rows: std::ops::Range<u32>) -> usize {
    let batch = part.read(rows, &Projection::all(part.layout())).unwrap();
    let (Some(FieldColumn::Int(n)), Some(FieldColumn::Text(text))) = (batch.field(0), batch.field(1)) else {
        return batch.rows();
    };
    let given = |row: usize| text.is_valid(row).then(|| text.value(row).to_owned());
    (0..batch.rows()).filter(|row| given(*row) != text_of(n.value(*row))).count()
}

#[test]
fn rows_are_the_same_through_pages_and_few_are_read_for_few() {
    let field = |name: &str, kind| Field { name: name.into(), kind, required: false, title: None };
    let schema = Schema {
        fields: vec![field("n", FieldType::Int), field("text", FieldType::Text)],
        id: IdRole::Made,
        ..Schema::default()
    };
    for mut world in World::each() {
        world.options.cache_bytes = 64 << 10;
        let store = world.open();
        let c = store.create("t", "c", schema.clone(), Settings::default()).unwrap();
        let mut builder = BatchBuilder::new(c.schema());
        for n in 0..6000 {
            builder.set(0, Value::Int(n)).unwrap();
            text_of(n).map_or(Ok(()), |text| builder.set(1, Value::Text(text))).unwrap();
            builder.end_event().unwrap();
        }
        c.write(Write::new(builder.finish().unwrap())).unwrap();
        c.flush().unwrap();
        for archived in [false, true] {
            if archived {
                drop(c.files(Instant::now() + Duration::from_secs(60), &|| false).unwrap());
            }
            let snapshot = c.snapshot();
            let [part] = &snapshot.parts[..] else { panic!("{} parts", snapshot.parts.len()) };
            let all = Projection::all(part.layout());
            for chunk in [0, 1] {
                let paged: Vec<usize> = part.paged(chunk, &all).unwrap().columns().collect();
                assert_eq!(paged, [part.layout().field(1)], "the text, not the number");
            }
            assert_eq!(read_wrong(part, 0..part.rows()), 0);
            for from in (0..part.rows()).step_by(97) {
                for rows in [1, 63, 64, 65, 700, CHUNK_ROWS] {
                    assert_eq!(read_wrong(part, from..(from + rows).min(part.rows())), 0, "{rows} rows from {from}");
                }
            }
            let read = |rows| {
                let before = c.stats().bytes_read;
                part.read(rows, &part.paged(0, &all).unwrap()).unwrap();
                c.stats().bytes_read - before
            };
            let (chunk, few) = (read(0..CHUNK_ROWS), read(2000..2010));
            assert!(few > 0 && few * 8 < chunk, "{few} bytes for ten rows, {chunk} for all");
        }
        assert_eq!(store.check(), []);
    }
}
