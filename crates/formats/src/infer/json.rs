//! Samples of JSON: features and flat objects.

use super::guess::Guess;
use super::kinds;
use crate::error::Fault;
use crate::input::Input;
use crate::json::{Json, Number, Scalar};
use crate::options::{OnError, ReadOptions};
use crate::read::document::{Features, placed};
use crate::read::feature::{ObjectKind, object_kind};
use crate::read::lines::{Framing, next_text, record};
use crate::roles::{GEOMETRY, rank};
use crate::shape;
use crate::survey::Survey;
use crate::values::{blame, text_list};
use crate::wkt;
use meridian_model::Invalid;
use std::io::Read;

/// Inspects the features of a GeoJSON document, or the objects of an array.
pub(crate) fn document(source: Box<dyn Read + Send>, options: &ReadOptions, cut: bool) -> Result<Guess, Fault> {
    let mut features = Features::new(source, options);
    let mut guess = Guess::default();
    while guess.events < options.sample_rows as u64 {
        let seen = features.next_with(|text, is_element| {
            whole(text, cut)?;
            if is_element {
                return object(text, &mut guess, options);
            }
            try_alone(options, Guess::of_features(), |scratch| feature(text, scratch, options))?;
            guess.features = true;
            feature(text, &mut guess, options).map_err(Fault::from)
        });
        match seen {
            Ok(Some(())) => guess.events += 1,
            Ok(None) => break,
            Err(_) if cut && guess.events > 0 => break,
            Err(fault) => guess.leave_out(fault, features.ordinal, options)?,
        }
    }
    Ok(guess)
}

/// Inspects the records of NDJSON.
pub(crate) fn ndjson(source: Box<dyn Read + Send>, options: &ReadOptions, cut: bool) -> Result<Guess, Fault> {
    lines(Input::new(source, options), options, (Framing::Lines, false), cut)
}

/// Inspects the records of a text sequence, which may have no separators.
pub(crate) fn sequence(source: Box<dyn Read + Send>, options: &ReadOptions, cut: bool) -> Result<Guess, Fault> {
    let input = Input::new(source, options).with_lines();
    lines(input, options, (Framing::Sequence { separated: None }, false), cut)
}

/// Inspects the lines that a converter of another format makes.
pub(crate) fn converted(source: Box<dyn Read + Send>, options: &ReadOptions, cut: bool) -> Result<Guess, Fault> {
    lines(Input::new(source, options), options, (Framing::Lines, true), cut)
}

fn lines(
    mut input: Input,
    options: &ReadOptions,
    (mut framing, is_converted): (Framing, bool),
    cut: bool,
) -> Result<Guess, Fault> {
    let mut guess = Guess::default();
    let mut line = 0;
    while guess.events < options.sample_rows as u64 {
        let seen = next_text(&mut input, &mut framing, &mut line).and_then(|range| match range {
            None => Ok(false),
            Some(range) => {
                let text = record(input.bytes(range.clone()), is_converted).map_err(Fault::from);
                let seen = text.and_then(|text| {
                    whole(text, cut)?;
                    object(text, &mut guess, options)
                });
                seen.map(|()| true).map_err(|fault| placed(fault, &input, range))
            }
        });
        match seen {
            Ok(true) => guess.events += 1,
            Ok(false) => break,
            Err(_) if cut && guess.events > 0 => break,
            Err(fault) => guess.leave_out(fault, line, options)?,
        }
    }
    Ok(guess)
}

/// Records a feature, or an object of plain keys.
fn object(text: &str, guess: &mut Guess, options: &ReadOptions) -> Result<(), Fault> {
    match object_kind(Json::new(text))? {
        ObjectKind::Feature => {
            try_alone(options, Guess::of_features(), |scratch| feature(text, scratch, options))?;
            guess.features = true;
            feature(text, guess, options)?;
        }
        ObjectKind::Flat => {
            try_alone(options, Guess::default(), |scratch| flat(text, scratch, options))?;
            flat(text, guess, options)?;
        }
        ObjectKind::OtherGeoJson(kind) => {
            return Err(Invalid::field("type", format!("expected a Feature, found a {kind}")).into());
        }
    }
    Ok(())
}

/// If unreadable events are left out, nothing of them may be recorded, so each is parsed first.
fn try_alone(
    options: &ReadOptions,
    mut scratch: Guess,
    look: impl FnOnce(&mut Guess) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    if options.on_error == OnError::Skip { look(&mut scratch) } else { Ok(()) }
}

/// In a sample that may be cut off, checks that a record is complete before anything of it is recorded.
fn whole(text: &str, cut: bool) -> Result<(), Invalid> {
    if !cut {
        return Ok(());
    }
    let mut json = Json::new(text);
    json.skip().and_then(|()| json.end())
}

fn feature(text: &str, guess: &mut Guess, options: &ReadOptions) -> Result<(), Invalid> {
    let mut json = Json::new(text);
    json.open_object()?;
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        match key.as_ref() {
            "id" => match json.scalar().map_err(|e| blame(e, "id"))? {
                Scalar::Text(id) => guess.saw_feature_id(&id),
                Scalar::Number(Number::Int(id)) => guess.saw_feature_id(itoa::Buffer::new().format(id)),
                _ => {}
            },
            "geometry" => {
                if let Some(shape) =
                    shape::read(&mut json, &mut Survey::new(options)).map_err(|e| blame(e, "geometry"))?
                {
                    guess.saw_feature_shape(shape.kind_when_mended(options.mend));
                }
            }
            "properties" if json.peek() == Some(b'{') => members(&mut json, guess, options)?,
            _ => json.skip()?,
        }
    }
    json.end()
}

fn flat(text: &str, guess: &mut Guess, options: &ReadOptions) -> Result<(), Invalid> {
    let mut json = Json::new(text);
    members(&mut json, guess, options)?;
    json.end()
}

/// Records the members of an object, each as a column.
fn members(json: &mut Json<'_>, guess: &mut Guess, options: &ReadOptions) -> Result<(), Invalid> {
    json.open_object()?;
    let mut first = true;
    let mut next = 0;
    while let Some(key) = json.key(&mut first)? {
        let column = guess.column(&key, next, options);
        // Keys mostly come in the same order, so the next column is tried first.
        next = column + 1;
        // Only in flat objects: in a feature the geometry has its own member, and properties are no geometries.
        let may_be_shape = !guess.features && may_be_shape(&key, options);
        match json.peek() {
            Some(b'{') if may_be_shape => {
                if let Some(shape) = shape::read(json, &mut Survey::new(options)).map_err(|e| blame(e, &key))? {
                    guess.saw_shape(column, shape.kind_when_mended(options.mend));
                }
                continue;
            }
            Some(b'{') => {
                return Err(Invalid::field(
                    key,
                    "an object: a property may be a string, number, boolean, date-time or a list of strings",
                ));
            }
            Some(b'[') => {
                text_list(json).map_err(|e| blame(e, &key))?;
                guess.saw(column, kinds::LIST);
                continue;
            }
            _ => {}
        }
        match json.scalar().map_err(|e| blame(e, &key))? {
            Scalar::Null => {}
            Scalar::Bool(_) => guess.saw(column, kinds::BOOL),
            Scalar::Number(Number::Int(id)) => {
                guess.saw_number(column, kinds::INT, id as f64);
                guess.saw_id(column, itoa::Buffer::new().format(id));
            }
            Scalar::Number(Number::Float(x)) => guess.saw_number(column, kinds::FLOAT, x),
            // An unreadable shape is still a shape: the reader reports the error and its line.
            Scalar::Text(text) if may_be_shape && wkt::looks_like(&text) => {
                guess.saw_shape(column, wkt::kind(&text, options));
            }
            // As a cell without a value, which is no geometry of another kind.
            Scalar::Text(text) if may_be_shape && text.trim().is_empty() => {}
            Scalar::Text(text) => {
                guess.saw_text(column, &text, options);
                guess.saw_id(column, &text);
            }
        }
    }
    Ok(())
}

fn may_be_shape(key: &str, options: &ReadOptions) -> bool {
    match &options.geometry {
        Some(name) => name == key,
        None => rank(key, GEOMETRY).is_some(),
    }
}
