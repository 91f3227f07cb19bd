//! Samples of record batches.

use super::guess::Guess;
use super::kinds;
use crate::columns::{Column, Texts};
use crate::error::Fault;
use crate::geo_metadata::GeoColumns;
use crate::options::{ReadOptions, Unknown};
use crate::read::columnar::Batches;
use crate::survey::Survey;
use crate::wkt;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use meridian_model::Invalid;
use std::collections::BTreeSet;

/// Inspects the rows of record batches.
pub(crate) fn columnar(mut batches: impl Batches, options: &ReadOptions, cut: bool) -> Result<Guess, Fault> {
    let (schema, geo) = batches.open()?;
    let geo = GeoColumns::of(&schema, geo.as_deref(), options).map_err(Fault::stop)?;
    let set_aside = geo.geometry.as_deref().filter(|declared| !options.takes(declared));
    let mut guess = Guess::of_declared(geo.geometry.clone());
    let mut positions = Vec::new();
    let mut left_out = BTreeSet::new();
    // Counted as the reader counts them, so that both name an event the same.
    let mut ordinal = 0;
    for (position, field) in schema.fields().iter().enumerate() {
        if !geo.covering.contains(field.name()) {
            if guess.column(field.name(), positions.len(), options) != positions.len() {
                return Err(Fault::stop(Invalid::new(format!("two columns have the name {:?}", field.name()))));
            }
            positions.push(position);
        }
    }
    batches.want(&(0..schema.fields().len()).collect::<Vec<_>>())?;
    while guess.events < options.sample_rows as u64 {
        let batch = match batches.next() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(_) if cut && guess.events > 0 => break,
            Err(fault) => {
                ordinal += 1;
                guess.leave_out(fault, ordinal, options)?;
                continue;
            }
        };
        ordinal += batch.num_rows() as u64;
        let rows = batch.num_rows().min(options.sample_rows - guess.events as usize);
        for (column, &position) in positions.iter().enumerate() {
            let name = guess.columns[column].name.clone();
            let may_lack = options.unknown == Unknown::Ignore || set_aside == Some(name.as_str());
            let Some(values) = values(batch.column(position), &name, may_lack)? else {
                left_out.insert(column);
                continue;
            };
            let is_shape = geo.geometry.as_ref() == Some(&name);
            // A column has its type even if it has no value.
            guess.columns[column].days =
                matches!(schema.field(position).data_type(), DataType::Date32 | DataType::Date64);
            guess.columns[column].only_shape = matches!(values, Column::Binary(_) | Column::Points { .. });
            guess.columns[column].kinds |= if is_shape { kinds::SHAPE } else { kind_of_type(&values) };
            (0..rows).for_each(|row| note(&mut guess, column, &values, row, is_shape, options));
        }
        guess.events += rows as u64;
    }
    guess.unkept = left_out.iter().map(|column| guess.columns[*column].name.clone()).collect();
    // From the last on, as each one moves those behind it.
    left_out.into_iter().rev().for_each(|column| drop(guess.columns.remove(column)));
    // Called last: a source may record notes while it is read.
    guess.notes.extend(batches.notes());
    Ok(guess)
}

/// Returns the values of a column; `None` if its type is not kept and the column `may_lack`.
fn values(array: &ArrayRef, name: &str, may_lack: bool) -> Result<Option<Column>, Fault> {
    match Column::of(array, name) {
        Ok(values) => Ok(Some(values)),
        Err(_) if may_lack => Ok(None),
        Err(mistake) => {
            let detail = format!("{}: --ignore-unknown leaves it out", mistake.detail);
            Err(Fault::stop(Invalid { detail, ..mistake }))
        }
    }
}

fn kind_of_type(values: &Column) -> u8 {
    match values {
        // Text may turn out to be times or shapes.
        Column::Null | Column::Text(_) => 0,
        Column::Int(_) => kinds::INT,
        Column::Float(_) => kinds::FLOAT,
        Column::Wide(numbers) if numbers.are_whole() => kinds::INT,
        Column::Wide(_) => kinds::FLOAT,
        Column::Bool(_) => kinds::BOOL,
        Column::Time(times) if times.zoned => kinds::TIME,
        Column::Time(_) => kinds::LOCAL_TIME,
        Column::List { .. } => kinds::LIST,
        Column::Binary(_) | Column::Points { .. } => kinds::SHAPE,
    }
}

fn note(guess: &mut Guess, column: usize, values: &Column, row: usize, is_shape: bool, options: &ReadOptions) {
    match values {
        Column::Null => {}
        Column::Text(texts) => note_text(guess, column, texts, row, is_shape, options),
        Column::Int(a) if a.is_valid(row) => {
            guess.saw_number(column, kinds::INT, a.value(row) as f64);
            guess.saw_id(column, itoa::Buffer::new().format(a.value(row)));
        }
        Column::Float(a) if a.is_valid(row) => guess.saw_number(column, kinds::FLOAT, a.value(row)),
        Column::Wide(numbers) => {
            // The reader reports an integer that is too large, with its row.
            if let (Some(text), Some(x)) = (numbers.text(row), numbers.float(row)) {
                guess.saw_number(column, kind_of_type(values), x);
                if numbers.are_whole() {
                    guess.saw_id(column, &text);
                }
            }
        }
        Column::Bool(a) if a.is_valid(row) => guess.saw(column, kinds::BOOL),
        Column::Int(_) | Column::Float(_) | Column::Bool(_) => {}
        Column::Time(times) => {
            let kind = if times.zoned { kinds::TIME } else { kinds::LOCAL_TIME };
            match times.get(row) {
                Some(Ok(micros)) if guess.columns[column].days => guess.saw_day(column, micros as f64),
                Some(Ok(micros)) => guess.saw_number(column, kind, micros as f64),
                // The reader reports a time out of range, with its row.
                Some(Err(_)) => guess.saw(column, kind),
                None => {}
            }
        }
        Column::List { nulls, .. } => {
            if nulls.as_ref().is_none_or(|n| n.is_valid(row)) {
                guess.saw(column, kinds::LIST);
            }
        }
        Column::Binary(_) | Column::Points { .. } => {
            // An unreadable shape is left to the reader to report, with its row.
            if let Ok(Some(shape)) = values.shape(row, "", &mut Survey::for_kinds(options)) {
                guess.saw_shape(column, shape.kind_when_mended(options.mend));
            }
        }
    }
}

fn note_text(guess: &mut Guess, column: usize, texts: &Texts, row: usize, is_shape: bool, options: &ReadOptions) {
    let Some(text) = texts.get(row) else { return };
    if is_shape || wkt::looks_like(text) {
        let kind = wkt::kind(text, options);
        return guess.saw_shape(column, kind);
    }
    guess.saw_text(column, text, options);
    guess.saw_id(column, text);
}
