//! Parses values in text into the fields of an event.

use crate::instant;
use crate::json::{Json, Number, Scalar};
use crate::options::ReadOptions;
use meridian_model::builder::Value;
use meridian_model::error::shorten;
use meridian_model::{BatchBuilder, FieldType, Invalid};

/// Characters that may surround a value in a text table.
pub(crate) const BLANKS: [char; 2] = [' ', '\t'];

/// Below this magnitude, 2^53, a float holds every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns whether a text is an integer that the float read from it does not hold.
pub(crate) fn is_rounded(text: &str, float: f64) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    float.abs() >= EXACT
        && digits.bytes().all(|b| b.is_ascii_digit())
        && digits.trim_start_matches('0') != format!("{:.0}", float.abs())
}

/// Adds a field's name to an error without one.
pub(crate) fn blame(mistake: Invalid, field: &str) -> Invalid {
    if mistake.field.is_some() { mistake } else { Invalid { field: Some(field.to_owned()), ..mistake } }
}

/// Takes the next JSON value as the value of a field.
pub(crate) fn set_json(
    builder: &mut BatchBuilder,
    field: usize,
    json: &mut Json<'_>,
    options: &ReadOptions,
) -> Result<(), Invalid> {
    let kind = builder.schema().fields[field].kind;
    let named = |builder: &BatchBuilder, mistake| blame(mistake, &builder.schema().fields[field].name);
    let wrong = |builder: &BatchBuilder, found: &str| {
        let spec = &builder.schema().fields[field];
        Err(Invalid::field(&spec.name, format!("{found} where {} was expected", spec.kind.noun())))
    };
    match json.peek() {
        Some(b'{') => return wrong(builder, "an object"),
        Some(b'[') if kind != FieldType::TextList => return wrong(builder, "a list"),
        Some(b'[') => {
            let list = text_list(json).map_err(|e| named(builder, e))?;
            return builder.set(field, Value::TextList(list));
        }
        _ => {}
    }
    let from = json.at();
    let value = match json.scalar().map_err(|e| named(builder, e))? {
        Scalar::Null => return Ok(()),
        Scalar::Bool(b) => Value::Bool(b),
        Scalar::Number(Number::Int(n)) if kind.is_time() => match options.epoch {
            Some(unit) => Value::Time(epoch(n, unit.micros()).map_err(|e| named(builder, e))?),
            None => return wrong(builder, &format!("the integer {n}")),
        },
        Scalar::Number(Number::Int(n)) => Value::Int(n),
        Scalar::Number(Number::Float(x)) => {
            // An integer beyond 64 bits is read as a float; the builder sees to shorter ones.
            let given = json.slice(from, json.at());
            if kind == FieldType::Float && is_rounded(given, x) {
                builder.note_rounded(field, given, x);
            }
            Value::Float(x)
        }
        Scalar::Text(text) if kind.is_time() => {
            Value::Time(instant::parse_as(kind, &text, options).map_err(|e| named(builder, e))?)
        }
        Scalar::Text(text) => return builder.set_text(field, &text),
    };
    builder.set(field, value)
}

/// Takes a JSON array of strings.
pub(crate) fn text_list(json: &mut Json<'_>) -> Result<Vec<String>, Invalid> {
    let mut list = Vec::new();
    json.open_array()?;
    let mut first = true;
    while json.element(&mut first)? {
        if json.peek() != Some(b'"') {
            return Err(Invalid::new("a list may hold strings only"));
        }
        list.push(json.string()?.into_owned());
    }
    Ok(list)
}

/// Converts an integer since 1970 to microseconds.
pub(crate) fn epoch(n: i64, unit_micros: i64) -> Result<i64, Invalid> {
    let micros = n.checked_mul(unit_micros).unwrap_or(i64::MAX);
    meridian_model::time::in_range(micros, &n)
}

/// Takes a field of a text table, which is not empty, as the value of a field.
pub(crate) fn set_text(
    builder: &mut BatchBuilder,
    field: usize,
    text: &str,
    options: &ReadOptions,
) -> Result<(), Invalid> {
    let spec = &builder.schema().fields[field];
    let wrong = || {
        let what = format!("{:?} where {} was expected", shorten(text), spec.kind.noun());
        Err(Invalid::field(&spec.name, what))
    };
    // Not for texts: blanks around those belong to the value.
    let bare = text.trim_matches(BLANKS);
    let value = match spec.kind {
        FieldType::Text => return builder.set_text(field, text),
        FieldType::Int => match bare.parse::<i64>() {
            Ok(n) => Value::Int(n),
            // Spreadsheets write whole numbers as `3.0`. The builder refuses other fractions.
            Err(_) => match decimal(bare, options) {
                Some(x) => Value::Float(x),
                None => return wrong(),
            },
        },
        FieldType::Float => match decimal(bare, options) {
            Some(x) => {
                if is_rounded(bare, x) {
                    builder.note_rounded(field, bare, x);
                }
                Value::Float(x)
            }
            None => return wrong(),
        },
        FieldType::Bool if bare == "1" || bare.eq_ignore_ascii_case("true") => Value::Bool(true),
        FieldType::Bool if bare == "0" || bare.eq_ignore_ascii_case("false") => Value::Bool(false),
        FieldType::Bool => return wrong(),
        FieldType::Time | FieldType::Date => {
            let micros = match (options.epoch, bare.parse::<i64>()) {
                (Some(unit), Ok(n)) => epoch(n, unit.micros()),
                _ => instant::parse_as(spec.kind, bare, options),
            };
            Value::Time(micros.map_err(|e| blame(e, &spec.name))?)
        }
        FieldType::TextList => {
            let mut json = Json::new(bare);
            match text_list(&mut json).and_then(|list| json.end().map(|()| list)) {
                Ok(list) => Value::TextList(list),
                Err(mistake) => {
                    let detail = format!("expected a list such as [\"a\",\"b\"]: {}", mistake.detail);
                    return Err(Invalid::field(&spec.name, detail));
                }
            }
        }
    };
    builder.set(field, value)
}

/// Parses a decimal number as a table writes it: with a comma, if the options set so.
pub(crate) fn decimal(text: &str, options: &ReadOptions) -> Option<f64> {
    if options.decimal_comma && !text.contains('.') { float(&text.replacen(',', ".", 1)) } else { float(text) }
}

/// Parses a decimal number. NaN and infinities are accepted, so that the check that follows can name them.
pub(crate) fn float(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Converts a single-precision number to the double with the same text: 52.1 stays 52.1.
pub(crate) fn single(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}
