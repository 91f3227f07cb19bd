//! Columns that did not come from a builder are either rejected or satisfy what readers of a batch rely on.

use super::*;
use crate::builder::{BatchBuilder, Value};
use crate::schema::GeometryType;
use crate::schema_json::tests::schemas;
use arrow_schema::DataType;
use proptest::prelude::*;
use proptest::sample::Index;

/// A batch of a few events with a value in every field.
fn sound(schema: &Arc<Schema>, rows: usize) -> Batch {
    let mut builder = BatchBuilder::new(schema.clone());
    for row in 0..rows {
        builder.set_id(format!("e{row}")).unwrap();
        for (i, field) in schema.fields.iter().enumerate() {
            let value = match field.kind {
                FieldType::Text => Value::Text("a".to_owned()),
                FieldType::Int => Value::Int(row as i64),
                FieldType::Float => Value::Float(0.5),
                FieldType::Bool => Value::Bool(true),
                FieldType::Time | FieldType::Date => Value::Time(0),
                FieldType::TextList => Value::TextList(vec!["a".to_owned()]),
            };
            builder.set(i, value).unwrap();
        }
        // Half of the events have a geometry, where the collection takes points.
        if row % 2 == 0 && schema.geometry.is_some_and(|kind| kind.takes(GeometryType::Point)) {
            builder.set_point(1.0, 2.0).unwrap();
        }
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

/// A mutation of a batch's columns.
#[derive(Debug, Clone)]
enum Harm {
    Null(Index, Index),
    Type(Index, DataType),
    Short(Index),
    LeftOut(Index),
    Drop,
}

fn harms() -> impl Strategy<Value = Harm> {
    let at = any::<Index>;
    let kinds = vec![DataType::Utf8, DataType::LargeUtf8, DataType::Int32, DataType::Float64, DataType::Binary];
    prop_oneof![
        4 => (at(), at()).prop_map(|(i, row)| Harm::Null(i, row)),
        1 => (at(), prop::sample::select(kinds)).prop_map(|(i, kind)| Harm::Type(i, kind)),
        1 => at().prop_map(Harm::Short),
        1 => at().prop_map(Harm::LeftOut),
        1 => Just(Harm::Drop),
    ]
}

fn harmed(columns: &mut Vec<Option<ArrayRef>>, rows: usize, harm: &Harm) {
    let column = |at: &Index| at.index(columns.len().max(1));
    let nulled = |array: &ArrayRef, row: usize| {
        let others = UInt32Array::from_iter((0..array.len()).map(|r| (r != row).then_some(r as u32)));
        arrow_select::take::take(array.as_ref(), &others, None).unwrap()
    };
    match harm {
        Harm::Drop => drop(columns.pop()),
        _ if columns.is_empty() => {}
        Harm::LeftOut(at) => {
            let at = column(at);
            columns[at] = None;
        }
        Harm::Null(at, row) => {
            let at = column(at);
            columns[at] = columns[at].as_ref().map(|array| nulled(array, row.index(rows)));
        }
        Harm::Type(at, kind) => {
            let at = column(at);
            columns[at] = Some(arrow_array::new_null_array(kind, rows));
        }
        Harm::Short(at) => {
            let at = column(at);
            columns[at] = columns[at].as_ref().map(|array| array.slice(0, array.len().saturating_sub(1)));
        }
    }
}

proptest! {
    #[test]
    fn harmed_columns_are_refused_or_hold_what_readers_rely_on(
        schema in schemas(),
        rows in 1usize..4,
        harms in prop::collection::vec(harms(), 0..3),
    ) {
        let schema = Arc::new(schema);
        let sound = sound(&schema, rows);
        prop_assert_eq!(sound.check_nulls(), Ok(()));
        let (layout, mut columns) = (sound.layout().clone(), sound.columns().to_vec());
        harms.iter().for_each(|harm| harmed(&mut columns, rows, harm));
        let batch = Batch::new(schema.clone(), layout.clone(), rows, columns.clone());
        let is_of_the_layout = columns.len() == layout.columns.len()
            && columns.iter().zip(&layout.columns).all(|(column, expected)| {
                column.as_ref().is_none_or(|c| c.data_type() == expected.data_type() && c.len() == rows)
            });
        prop_assert_eq!(batch.is_ok(), is_of_the_layout);
        let Ok(batch) = batch else { return Ok(()) };
        let null = |column: usize, row: usize| batch.column(column).is_some_and(|c| c.is_null(row));
        let required = schema.fields.iter().enumerate().filter(|(_, field)| field.required);
        let mut required = required.map(|(i, _)| layout.field(i)).chain(layout.id);
        let lacks_a_value = required.any(|column| (0..rows).any(|row| null(column, row)));
        let id = usize::from(layout.id.is_some());
        let geometry: Vec<usize> = (id..layout.first_field).filter(|i| batch.column(*i).is_some()).collect();
        let in_part = (0..rows).any(|row| geometry.iter().any(|i| null(*i, row) != null(geometry[0], row)));
        prop_assert_eq!(batch.check_nulls().is_err(), lacks_a_value || in_part);
        for row in 0..rows {
            let _ = (batch.bounds(row), batch.geometry(row), batch.id_of(row, crate::Seq(7)));
        }
    }
}
