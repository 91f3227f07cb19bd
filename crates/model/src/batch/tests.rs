//! Record batches that no [`Batch`] gave are refused, or read without a panic.

use super::*;
use crate::builder::{BatchBuilder, Value};
use crate::schema_json::tests::schemas;
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use proptest::prelude::*;
use proptest::sample::Index;

/// A batch of a few events with a value in each field.
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
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

/// What is done to a record batch.
#[derive(Debug, Clone)]
enum Harm {
    Nulls(Index),
    Type(Index, DataType),
    Name(Index),
    Swap(Index, Index),
    Drop(Index),
    More,
}

fn harms() -> impl Strategy<Value = Harm> {
    let at = any::<Index>;
    let kinds = vec![DataType::Utf8, DataType::LargeUtf8, DataType::Int32, DataType::Float64, DataType::Binary];
    prop_oneof![
        at().prop_map(Harm::Nulls),
        (at(), prop::sample::select(kinds)).prop_map(|(i, kind)| Harm::Type(i, kind)),
        at().prop_map(Harm::Name),
        (at(), at()).prop_map(|(i, j)| Harm::Swap(i, j)),
        at().prop_map(Harm::Drop),
        Just(Harm::More),
    ]
}

fn harmed(record: &RecordBatch, harm: &Harm) -> RecordBatch {
    let rows = record.num_rows();
    let mut fields: Vec<ArrowField> = record.schema().fields().iter().map(|f| f.as_ref().clone()).collect();
    let mut columns = record.columns().to_vec();
    let nulls = |kind: &DataType| arrow_array::new_null_array(kind, rows);
    match harm {
        Harm::More => {
            fields.push(ArrowField::new("more", DataType::Utf8, true));
            columns.push(nulls(&DataType::Utf8));
        }
        _ if columns.is_empty() => {}
        Harm::Nulls(at) => {
            let at = at.index(columns.len());
            columns[at] = nulls(columns[at].data_type());
        }
        Harm::Type(at, kind) => {
            let at = at.index(columns.len());
            columns[at] = nulls(kind);
            fields[at] = ArrowField::new(fields[at].name(), kind.clone(), true);
        }
        Harm::Name(at) => {
            let at = at.index(columns.len());
            fields[at] = ArrowField::new("@another", fields[at].data_type().clone(), true);
        }
        Harm::Swap(a, b) => {
            let (a, b) = (a.index(columns.len()), b.index(columns.len()));
            columns.swap(a, b);
            fields.swap(a, b);
        }
        Harm::Drop(at) => {
            let at = at.index(columns.len());
            columns.remove(at);
            fields.remove(at);
        }
    }
    // A hostile sender calls every column nullable.
    let fields: Vec<ArrowField> = fields.into_iter().map(|field| field.with_nullable(true)).collect();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options).unwrap()
}

proptest! {
    #[test]
    fn record_batches_come_back(schema in schemas(), rows in 0usize..4) {
        let schema = Arc::new(schema);
        let batch = sound(&schema, rows);
        let back = Batch::from_record_batch(schema, &batch.to_record_batch().unwrap()).unwrap();
        prop_assert_eq!((back.rows(), back.columns()), (batch.rows(), batch.columns()));
    }

    #[test]
    fn harmed_record_batches_are_refused_or_read_whole(
        schema in schemas(),
        rows in 1usize..4,
        harms in prop::collection::vec(harms(), 1..4),
    ) {
        let schema = Arc::new(schema);
        let record = harms.iter().fold(sound(&schema, rows).to_record_batch().unwrap(), |r, harm| harmed(&r, harm));
        let Ok(batch) = Batch::from_record_batch(schema.clone(), &record) else { return Ok(()) };
        let layout = batch.layout().clone();
        prop_assert_eq!(batch.rows(), rows);
        // Every column that the batch holds is the one of that name.
        for (i, field) in record.schema().fields().iter().enumerate() {
            prop_assert_eq!((field.name(), field.data_type()), (layout.columns[i].name(), layout.columns[i].data_type()));
        }
        prop_assert!(layout.id.is_none() || batch.ids().is_some_and(|ids| ids.null_count() == 0));
        for (i, field) in schema.fields.iter().enumerate() {
            // A field added since is null, required or not.
            let is_held = layout.field(i) < record.num_columns();
            prop_assert!(batch.field(i).is_some());
            let nulls = batch.column(layout.field(i)).map_or(0, |column| column.null_count());
            prop_assert!(!(is_held && field.required) || nulls == 0, "{}", field.name);
        }
        for row in 0..rows {
            let _ = (batch.bounds(row), batch.geometry(row), batch.id_of(row, crate::Seq(7)));
        }
    }
}
