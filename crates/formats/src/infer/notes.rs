//! Notes for the user of a load: interpretations of a sample that were considered and not adopted.

use super::column::{Column, FEW};
use super::wording::{but, misfits, mostly, shell};
use super::{kinds, numbers, places};
use crate::date_format::{fits, fitting, lacks_zone};
use crate::options::ReadOptions;
use crate::roles::{INTERVALS, TIME, rank};
use meridian_model::error::shorten;
use meridian_model::{FieldType, Schema, TimeRole};

const TIMES: u8 = kinds::TIME | kinds::LOCAL_TIME;

/// Returns sentences about the columns that became fields. `features` have their geometry apart from their columns;
/// `has_own_shape` if the file names its geometry.
pub(super) fn of(
    columns: &[Column],
    schema: &Schema,
    events: u64,
    features: bool,
    has_own_shape: bool,
    options: &ReadOptions,
) -> Vec<String> {
    let (no_time, no_place) = (schema.time == TimeRole::None, schema.geometry.is_none());
    // Columns that may be the time or the place get one note for that, and none as fields.
    let time = no_time.then(|| partly_timed(columns, events, options)).flatten();
    let place = (no_place && !features).then(|| places::placed(columns)).flatten();
    let mut roles: Vec<&str> = time.iter().map(|(name, _)| *name).collect();
    roles.extend(place.iter().flat_map(|(names, _)| names));
    let wants_time = no_time && time.is_none();
    let of_fields = columns.iter().filter(|column| !roles.contains(&column.name.as_str())).filter_map(|column| {
        let kind = schema.fields.get(schema.field_index(&column.name)?)?.kind;
        let may_be_time = wants_time && column.values == events;
        let named = || of_named(column).filter(|_| wants_time);
        let note = of_column(column, kind, may_be_time, has_own_shape).or_else(named)?;
        Some(format!("column {}: {note}", shorten(&column.name)))
    });
    let nothing = (no_time && no_place && time.is_none() && place.is_none()).then(|| nowhere(features));
    let of_fields: Vec<String> = of_fields.collect();
    let of_roles = time.map(|(_, note)| note).into_iter().chain(place.map(|(_, note)| note));
    of_fields.into_iter().chain(of_roles).chain(nothing).collect()
}

/// Returns the note on events without place and time: no map and no line of time shows them.
fn nowhere(features: bool) -> String {
    if features {
        "no event has a geometry, and no property is taken as the time: --time names one".to_owned()
    } else {
        let options = "--lon and --lat, or --geometry, name the place, and --time the time";
        format!("no column is taken as the place or the time: {options}")
    }
}

/// Returns the option that takes a column of each event as the time, if its name does not show that it is one.
fn as_time(column: &Column) -> Option<String> {
    let is_end = INTERVALS.iter().any(|(start, end)| rank(&column.name, &[*start, *end]).is_some());
    let unusual = rank(&column.name, TIME).is_none() && !is_end;
    unusual.then(|| format!("--time {}", shell(&column.name)))
}

/// Returns a note on an alternative interpretation of a column; `may_be_time` if an option can take it as the time,
/// `has_own_shape` if the file names its geometry.
fn of_column(column: &Column, kind: FieldType, may_be_time: bool, has_own_shape: bool) -> Option<String> {
    if let Some(note) = of_rounded(column).filter(|_| kind == FieldType::Text) {
        return Some(note);
    }
    let as_time = may_be_time.then(|| as_time(column)).flatten();
    let kinds = column.but_few_texts();
    let kept_as_text = kind == FieldType::Text && kinds != 0;
    if column.plain > 0
        && kept_as_text
        && column.kinds & !(kinds::TEXT | kinds::NUMBERS) == 0
        && let Some(note) = of_decimals(column)
    {
        return Some(note);
    }
    match kinds {
        kinds::TEXT => of_texts(column, as_time),
        k if k & kinds::LOCAL_TIME != 0 && k & !TIMES == 0 && kept_as_text && column.plain == 0 => {
            // A column without a value has a type of times, and no dates.
            let dates = column.values > 0 && column.dates == column.values;
            Some(match as_time {
                Some(option) if dates => format!("dates, kept as text: {option} takes them as the time"),
                Some(option) => {
                    let options = format!("{option} and --zone UTC, or another zone,");
                    format!("times without a zone, kept as text: {options} take them as the time")
                }
                None if dates => "dates, kept as text: a schema with the format date keeps them as days".to_owned(),
                None => "times without a zone, kept as text: --zone UTC, or another zone, reads them".to_owned(),
            })
        }
        kinds::SHAPE if kept_as_text && has_own_shape => None,
        kinds::SHAPE if kept_as_text && column.values > 0 => Some(places::of_shapes(column)),
        k if k & !kinds::NUMBERS == 0
            && let Some(note) = numbers::of(column, kind, may_be_time) =>
        {
            Some(note)
        }
        k if k & !TIMES == 0 && kept_as_text && column.plain > 0 => Some(few(column, "time", "times")),
        // Codes such as 12a are legitimate texts.
        k if k & !kinds::NUMBERS == 0
            && kept_as_text
            && column.plain > 0
            && !column.texts.iter().any(|t| has_digit(t)) =>
        {
            Some(few(column, "number", "numbers"))
        }
        _ => None,
    }
}

/// Returns the note on a field that is a text because of a few of its values.
fn few(column: &Column, one: &str, several: &str) -> String {
    let what = misfits(column, one, several);
    let word = column.texts.first().filter(|first| column.bare && column.texts.iter().all(|text| text == *first));
    match word {
        Some(word) => {
            let word = word.replace('\'', "'\\''");
            format!("{what}, kept as text: --null='{word}' reads the others as {several}")
        }
        None => format!(
            "{what}, kept as text: --schema with {several} in this column, and --invalid skip, leaves these events out"
        ),
    }
}

/// Returns the note on fractions beside integers that a float does not keep.
fn of_rounded(column: &Column) -> Option<String> {
    let (example, line) = column.rounded.as_ref()?;
    // Integers beyond 64 bits are texts, as are codes such as 007.
    let are_numbers = column.texts.iter().all(|text| kinds::of_number(text, &ReadOptions::default()).is_some());
    let has_fractions = column.kinds & kinds::FLOAT != 0 && column.kinds & !(kinds::TEXT | kinds::NUMBERS) == 0;
    (has_fractions && are_numbers).then(|| {
        format!(
            "fractions beside integers of too many digits such as {example} on line {line}, kept as text: --schema \
             with numbers in this column rounds them"
        )
    })
}

/// Detects numbers that are written with a decimal comma, or with thousands separators.
fn of_decimals(column: &Column) -> Option<String> {
    let texts: Vec<&str> = column.texts.iter().map(|text| text.trim()).collect();
    let grouped = texts.iter().find(|text| is_grouped(text));
    let comma = ReadOptions { decimal_comma: true, ..ReadOptions::default() };
    let passes = |text: &str| text.contains(',') && kinds::of_number(text, &comma).is_some() || is_grouped(text);
    let like = mostly(&texts, passes)?;
    let but = but(&texts, passes);
    Some(match grouped {
        Some(example) => format!(
            "looks like numbers with separators of thousands such as {}{but}, kept as text: take these separators out first",
            shorten(example)
        ),
        None => format!(
            "looks like numbers with a decimal comma such as {}{but}, kept as text: --decimal-comma reads them",
            shorten(like)
        ),
    })
}

fn of_texts(column: &Column, as_time: Option<String>) -> Option<String> {
    let texts: Vec<&str> = column.texts.iter().map(|text| text.trim()).collect();
    let patterns = fitting(&texts, texts.len() / FEW);
    if let Some((first, rest)) = patterns.split_first() {
        let example = shorten(mostly(&texts, |text| fits(first, text))?);
        let other =
            rest.first().map_or_else(String::new, |other| format!(" (or '{other}': the sample does not tell which)"));
        let but = but(&texts, |text| fits(first, text));
        let skip = if but.is_empty() { "" } else { " with --invalid skip" };
        let zone = if lacks_zone(first) { " and --zone" } else { "" };
        let time = as_time.map_or_else(String::new, |option| format!(" and {option}"));
        let options = format!("--date-format '{first}'{other}{time}{zone}{skip}");
        return Some(format!("looks like times such as {example}{but}, kept as text: {options} reads them"));
    }
    places::of_texts(column, &texts)
}

/// Returns the note on texts in no usual form of times, if the column is named as one: the user sees a time, and the
/// map shows none.
fn of_named(column: &Column) -> Option<String> {
    let is_named = column.but_few_texts() == kinds::TEXT && is_named_as_time(&column.name);
    let texts: Vec<&str> = column.texts.iter().map(|text| text.trim()).collect();
    let example = shorten(mostly(&texts, may_be_day).filter(|_| is_named)?);
    Some(format!(
        "named as a time, but texts such as {example:?} have no usual form of a day: kept as text: --date-format reads \
         other forms"
    ))
}

/// Returns whether a pattern of days may read a text: one with the digits of a day and a year, and no time of day
/// alone, such as 25:10:00, 12h05 or 1:05 PM.
fn may_be_day(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let rest = text.trim_start_matches(is_digit);
    let is_clock = (1..=2).contains(&(text.len() - rest.len()))
        && rest.starts_with([':', 'h', 'H'])
        && !has_digit(rest[1..].trim_start_matches(|c: char| is_digit(c) || ":.,+-m".contains(c)));
    text.chars().filter(|c| is_digit(*c)).count() >= 3 && !is_clock
}

fn is_named_as_time(name: &str) -> bool {
    places::words(name).iter().any(|word| ["date", "datetime", "time", "timestamp"].contains(&word.as_str()))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a text is a number with thousands separators and decimals: 1.234,56 or 1,234.56.
fn is_grouped(text: &str) -> bool {
    let bare = text.strip_prefix('-').unwrap_or(text);
    [('.', ','), (',', '.')].into_iter().any(|(group, decimal)| {
        let Some((whole, fraction)) = bare.split_once(decimal) else { return false };
        let mut groups = whole.split(group);
        let first = groups.next().is_some_and(|first| is_digits(first) && first.len() <= 3);
        let mut rest = groups.peekable();
        first && rest.peek().is_some() && rest.all(|part| is_digits(part) && part.len() == 3) && is_digits(fraction)
    })
}

/// Finds a column of times that some events lack, so that it cannot be the time of each. One with a customary name goes
/// first, then one with a few other texts.
fn partly_timed<'a>(columns: &'a [Column], events: u64, options: &ReadOptions) -> Option<(&'a str, String)> {
    let partly = |c: &&Column| {
        let kinds = c.but_few_texts();
        kinds & !TIMES == 0 && c.values > c.plain && (c.plain > 0 || c.values < events)
    };
    let usual = columns.iter().filter(partly).find(|c| rank(&c.name, TIME).is_some());
    let column = usual.or_else(|| columns.iter().filter(partly).find(|c| c.plain > 0))?;
    let timed = column.values - column.plain;
    let without = events.saturating_sub(timed);
    let name = shorten(&column.name);
    let have = if without == 1 { "has" } else { "have" };
    let example = column.texts.first().map_or_else(String::new, |text| format!(", such as {:?}", shorten(text)));
    let local = column.kinds & kinds::LOCAL_TIME != 0 && column.dates < timed && options.zone.is_none();
    let zone = if local { " --zone UTC" } else { "" };
    let note = format!(
        "column {name}: {without} of {events} events {have} no time in it{example}, kept as a field: --time {option}{zone} \
         --invalid skip takes it and leaves them out",
        option = shell(&column.name)
    );
    Some((&column.name, note))
}
