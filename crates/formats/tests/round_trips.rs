//! What a writer wrote, the reader of that format reads back to the same events.
#![allow(clippy::unwrap_used)]

mod common;

use common::{BOTH_WAYS, build, events, read_all, write};
use meridian_formats::{BatchLimits, Format, ReadOptions, infer};
use proptest::prelude::*;
use std::io::Cursor;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_format_gives_back_what_it_took((schema, events) in events(), rows in 1usize..6) {
        let batch = build(&schema, &events);
        let cut = batch.rows() / 2;
        let parts = [batch.slice(0, cut), batch.slice(cut, batch.rows() - cut)];
        for format in BOTH_WAYS {
            let bytes = write(format, &parts, &schema);
            let limits = BatchLimits { rows, ..BatchLimits::default() };
            let back = match read_all(format, bytes.clone(), &schema, &ReadOptions::default(), &limits) {
                Ok(back) => back,
                Err(error) => return Err(TestCaseError::fail(format!("{format}: {error}\n{}", String::from_utf8_lossy(&bytes)))),
            };
            prop_assert_eq!(back.rows(), batch.rows(), "{}", format);
            for (i, (mine, theirs)) in back.columns().iter().zip(batch.columns()).enumerate() {
                prop_assert_eq!(mine, theirs, "{} column {}", format, batch.layout().columns[i].name());
            }
        }
    }

    #[test]
    fn what_was_written_is_detected_and_inferred((schema, events) in events()) {
        // Fields of these names with numbers that are no degrees are told to be places, and then refused: by design.
        prop_assume!(schema.field_index("lon").is_none() && schema.field_index("lat").is_none());
        let batch = build(&schema, &events);
        for format in BOTH_WAYS {
            let bytes = write(format, std::slice::from_ref(&batch), &schema);
            if batch.rows() > 1 && format != Format::Csv {
                prop_assert_eq!(Format::detect("", &bytes), Some(format));
            }
            // What is inferred need not be the same schema, but it must take its own sample.
            let Ok(inferred) = infer(format, Box::new(Cursor::new(bytes.clone())), &ReadOptions::default()) else { continue };
            let read = read_all(format, bytes.clone(), &inferred.clone().into(), &ReadOptions::default(), &BatchLimits::default());
            match read {
                Ok(back) => prop_assert_eq!(back.rows(), batch.rows()),
                Err(error) => return Err(TestCaseError::fail(format!("{format}: {error}\n{inferred:?}\n{}", String::from_utf8_lossy(&bytes)))),
            }
        }
    }
}
