//! What a sample seems to hold and was not taken as: sentences for the user of a load.

use super::guess::{Column, kinds};
use crate::date_format::fitting;
use crate::roles::{LAT, LON, TIME, rank};
use crate::values::shorten;
use meridian_model::{FieldType, Schema, TimeRole};

/// Sentences about the columns that became fields.
pub(super) fn of(columns: &[Column], schema: &Schema, events: u64) -> Vec<String> {
    let mut notes: Vec<String> = columns
        .iter()
        .filter_map(|column| {
            let kind = schema.fields.get(schema.field_index(&column.name)?)?.kind;
            of_column(column, kind).map(|note| format!("column {}: {note}", shorten(&column.name)))
        })
        .collect();
    if schema.time == TimeRole::None {
        notes.extend(columns.iter().find_map(|column| partly_timed(column, events)));
    }
    if schema.geometry.is_none() {
        notes.extend(placed(columns));
    }
    notes
}

/// What a column seems to be besides what it is kept as.
fn of_column(column: &Column, kind: FieldType) -> Option<String> {
    match column.kinds {
        kinds::TEXT => of_texts(column),
        k if k & kinds::LOCAL_TIME != 0 && k & !(kinds::TIME | kinds::LOCAL_TIME) == 0 && kind == FieldType::Text => {
            Some(if column.dates == column.values {
                "dates, kept as text: a schema with the format date keeps them as days".to_owned()
            } else {
                "times without a zone, kept as text: --zone UTC, or another zone, reads them".to_owned()
            })
        }
        kinds::INT if kind == FieldType::Int && is_time_name(&column.name) => {
            let unit = epoch_of(column.course.magnitude())?;
            Some(format!("looks like times as numbers since 1970, kept as integers: --epoch {unit} reads them"))
        }
        _ => None,
    }
}

fn of_texts(column: &Column) -> Option<String> {
    let texts = column.texts.iter().map(|text| text.trim());
    let example = column.texts.first()?;
    let patterns = fitting(texts.clone());
    if let Some((first, rest)) = patterns.split_first() {
        let other =
            rest.first().map_or_else(String::new, |other| format!(" (or '{other}': the sample does not tell which)"));
        let example = shorten(example);
        return Some(format!(
            "looks like times such as {example}, kept as text: --date-format '{first}'{other} reads them"
        ));
    }
    if texts.clone().all(is_decimal_comma) {
        let example = shorten(example);
        return Some(format!(
            "looks like numbers with a decimal comma such as {example}, kept as text: --decimal-comma reads them"
        ));
    }
    if texts.clone().all(is_pair) {
        let example = shorten(example);
        return Some(format!(
            "looks like positions such as {example}, kept as text: two columns of numbers, or WKT, are read as places"
        ));
    }
    None
}

fn is_decimal_comma(text: &str) -> bool {
    let bare = text.strip_prefix('-').unwrap_or(text);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    bare.split_once(',').is_some_and(|(whole, fraction)| digits(whole) && digits(fraction))
}

/// Whether a text is two coordinates with decimals.
fn is_pair(text: &str) -> bool {
    let bare = text.trim_matches(['(', ')', '[', ']']);
    let Some((one, other)) = bare.split_once([',', ';']).or_else(|| bare.split_once(' ')) else { return false };
    [one, other].iter().all(|part| part.contains('.') && part.trim().parse::<f64>().is_ok_and(|x| x.abs() <= 180.0))
}

fn is_time_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    rank(&name, TIME).is_some() || ["time", "epoch", "date"].iter().any(|word| name.contains(word))
}

/// The unit of numbers since 1970 that lie between 1990 and 2100.
fn epoch_of(magnitude: f64) -> Option<&'static str> {
    let years = 6.3e8..4.1e9;
    [(1.0, "s"), (1e3, "ms"), (1e6, "us")]
        .into_iter()
        .find(|(unit, _)| years.contains(&(magnitude / unit)))
        .map(|(_, name)| name)
}

/// A column of times that some events lack, so that it is not the time of each.
fn partly_timed(column: &Column, events: u64) -> Option<String> {
    let times = kinds::TIME | kinds::LOCAL_TIME;
    let some = column.kinds & times != 0 && column.kinds & !times == 0 && column.values > 0 && column.values < events;
    (some && rank(&column.name, TIME).is_some()).then(|| {
        let name = shorten(&column.name);
        let without = events - column.values;
        format!(
            "column {name}: {without} of {events} events have no time in it, kept as a field: --time {name} --invalid skip \
             takes it and leaves them out"
        )
    })
}

/// Two columns of numbers with names of coordinates that were not taken as a place.
fn placed(columns: &[Column]) -> Option<String> {
    let numeric = |c: &&Column| c.values > 0 && c.kinds & !(kinds::INT | kinds::FLOAT) == 0;
    let like = |words: &[&str], names: &[&str]| {
        let fits = |c: &&Column| {
            let name = c.name.to_ascii_lowercase();
            rank(&name, names).is_some() || words.iter().any(|word| name.contains(word))
        };
        columns.iter().filter(numeric).find(fits)
    };
    let lat = like(&["latitude", "lat_", "_lat"], LAT)?;
    let lon = like(&["longitude", "lon_", "_lon", "lng"], LON).filter(|lon| lon.name != lat.name)?;
    let (x, y) = (shorten(&lon.name), shorten(&lat.name));
    if lon.course.magnitude() > 180.0 || lat.course.magnitude() > 90.0 {
        let line = format!("-oo X_POSSIBLE_NAMES={x} -oo Y_POSSIBLE_NAMES={y} -s_srs EPSG:CODE");
        return Some(format!(
            "columns {x} and {y}: positions of a projected system, not taken: ogr2ogr {line} -t_srs EPSG:4326 converted.fgb {}",
            crate::reference::INPUT
        ));
    }
    Some(format!("columns {x} and {y}: may be positions, not taken: --lon {x} --lat {y} takes them"))
}
