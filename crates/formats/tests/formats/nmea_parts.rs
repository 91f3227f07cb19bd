//! AIS messages of several sentences: assembled in any order, and reported if a part never arrives.

use crate::common::read_all;
use meridian_formats::{BatchLimits, Format, OnError, ReadError, ReadOptions, infer, reader};
use meridian_model::{Batch, FieldColumn, Invalid, Schema, TimeRole};
use std::io::Cursor;
use std::sync::Arc;

const FIRST: &str = "!AIVDM,2,1,0,A,539>Ji029E4@@S333@1<PU23@000000000000016000004000Bj0C@UDQh00,0*24";
const SECOND: &str = "!AIVDM,2,2,0,A,00000000000,2*24";
/// The first part of another ship's message under the same number.
const OTHER: &str = "!AIVDM,2,1,0,A,539>JnP29E5`@S33;H1<PU23;H00000000000016000004000Bj0C@UDQh00,0*61";

fn schema() -> Arc<Schema> {
    let log = include_bytes!("files/ais.nmea").to_vec();
    let mut schema = infer(Format::Nmea, Box::new(Cursor::new(log)), &ReadOptions::default()).unwrap().schema;
    // The sentences here have no times.
    schema.fields.iter_mut().for_each(|field| field.required = false);
    schema.time = TimeRole::None;
    Arc::new(schema)
}

/// Returns the events of a log, the number of its messages left out, and the first of them.
fn skipping(log: String) -> (usize, u64, Vec<Invalid>) {
    let options = ReadOptions { on_error: OnError::Skip, ..ReadOptions::default() };
    let mut events = reader(Format::Nmea, Box::new(Cursor::new(log.into_bytes())), schema(), &options).unwrap();
    let mut rows = 0;
    while let Some(batch) = events.next_batch(&BatchLimits::default()).unwrap() {
        rows += batch.rows();
    }
    let report = events.report();
    (rows, report.skipped, report.skipped_first)
}

fn all(lines: &[&str]) -> Result<Batch, ReadError> {
    // The receiver's own position, so that there is always an event.
    let log = format!("{}\n$GPRMC,081836,A,3751.65,S,14507.36,E,005.5,360.0,130998,011.3,E*62\n", lines.join("\n"));
    read_all(Format::Nmea, log.into_bytes(), &schema(), &ReadOptions::default(), &BatchLimits::default())
}

#[test]
fn parts_are_put_together_in_any_order() {
    let name = |batch: &Batch, row: usize| match batch.field(batch.schema().field_index("mmsi").unwrap()) {
        Some(FieldColumn::Int(numbers)) => numbers.value(row),
        _ => panic!("no column of numbers"),
    };
    let usual = all(&[FIRST, SECOND]).unwrap();
    let turned = all(&[SECOND, FIRST]).unwrap();
    assert_eq!((usual.rows(), turned.rows()), (2, 2));
    assert_eq!(name(&turned, 0), name(&usual, 0));
    // Two interleaved messages under one number.
    let both = all(&[FIRST, OTHER, SECOND, SECOND]).unwrap();
    assert_eq!(both.rows(), 3);
    assert_eq!(name(&both, 1), name(&usual, 0));
    assert_ne!(name(&both, 0), name(&usual, 0));
}

#[test]
fn a_message_without_all_its_parts_is_an_invalid_event() {
    let refusal = all(&[FIRST]).unwrap_err().to_string();
    assert_eq!(refusal, "line 1: a message in 2 sentences: part 2 is missing up to the end of the input");
    let refusal = all(&[SECOND]).unwrap_err().to_string();
    assert!(refusal.contains("part 1 is missing"), "{refusal}");
    let whole = "!AIVDM,1,1,,A,139>Jh0P3g39JAPGQA2==rJ1P000,0*68\n";
    let (rows, skipped, first) = skipping(format!("{whole}{SECOND}\n{whole}"));
    assert_eq!((rows, skipped, first[0].line), (2, 1, Some(2)));
    // All are counted, but few are held: the window gives the first ones up.
    let (rows, skipped, first) = skipping(format!("{}{whole}", format!("{FIRST}\n").repeat(10_000)));
    assert_eq!((rows, skipped), (1, 10_000));
    assert!(first[0].detail.contains("among the sentences that follow"), "{first:?}");
    assert_eq!((first[0].line, first[1].line), (Some(1), Some(2)));
    // A part that arrives too late counts as one without the others.
    let between = FIRST.replace(",0,A,", ",7,B,").split('*').next().unwrap().to_owned() + "\n";
    let late = format!("{FIRST}\n{}{SECOND}\n", between.repeat(100));
    let (rows, skipped, _) = skipping(late);
    assert_eq!((rows, skipped), (0, 102));
}

#[test]
fn a_message_that_would_be_no_event_is_not_missed_and_a_long_payload_is_refused() {
    let binary = "!AIVDM,2,1,3,A,85PnJ9R0,0";
    assert_eq!(all(&[binary]).unwrap().rows(), 1);
    let long = format!("!AIVDM,2,1,3,A,{},0", "0".repeat(5000));
    assert!(all(&[long.as_str()]).unwrap_err().to_string().contains("a payload of 5000 characters"));
}
