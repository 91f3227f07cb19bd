//! Notes on columns of numbers that look like times.

use super::column::Column;
use super::kinds;
use super::places::words;
use super::wording::{misfits, mostly, shell};
use crate::date_format::fits;
use crate::roles::{TIME, rank};
use meridian_model::FieldType;
use std::ops::Range;

/// Patterns of times that are written as one number, each with the number that stands for a year.
const DIGITS: [(f64, &str); 3] = [(1e4, "%Y%m%d"), (1e8, "%Y%m%d%H%M"), (1e10, "%Y%m%d%H%M%S")];
/// Years of such times. The digits of other numbers are rarely a day of one of these.
const YEARS: Range<f64> = 1900.0..2100.0;
/// Days in spreadsheets, which count from 1899-12-30, of the years 2000 to 2064.
const SHEET_DAYS: Range<f64> = 36_526.0..60_000.0;

/// Returns a note on numbers that look like times; `may_be_time` if an option can take them as the time.
pub(super) fn of(column: &Column, kind: FieldType, may_be_time: bool) -> Option<String> {
    let kept = match kind {
        FieldType::Int => "integers",
        FieldType::Float => "numbers",
        _ => return of_epochs(column, kind),
    };
    let reads = |options: &str, format: &str| match may_be_time {
        true => format!("{options} --time {} reads them", shell(&column.name)),
        false => format!("{options} and a schema with the format {format} read them"),
    };
    let of_digits = || {
        let like = |&(year, pattern): &(f64, &'static str)| {
            let passes = |number: f64| YEARS.contains(&(number / year)) && fits(pattern, &number.to_string());
            Some((pattern, mostly(&column.numbers, passes)?))
        };
        let (pattern, example) = DIGITS.iter().find_map(like)?;
        let (format, zone) = if pattern.contains("%H") { ("date-time", " --zone UTC") } else { ("date", "") };
        // A pattern reads whole numbers of a text table, and texts of every format.
        let written = if column.cells && kind == FieldType::Int { "" } else { "written as text, " };
        let reads = reads(&format!("--date-format '{pattern}'{zone}"), format);
        Some(format!("looks like dates such as {example}, kept as {kept}: {written}{reads}"))
    };
    let of_sheet_days = || {
        let named = is_named_as_date(&column.name, kind == FieldType::Float);
        let example = named.then(|| mostly(&column.numbers, |number| SHEET_DAYS.contains(&number))).flatten()?;
        let reads = reads("--epoch s", "date-time");
        let seconds = "as round((days - 25569) * 86400)";
        Some(format!("looks like days of a spreadsheet such as {example}, kept as {kept}: {seconds}, {reads}"))
    };
    of_epochs(column, kind).or_else(of_digits).or_else(of_sheet_days)
}

/// Returns a note on numbers since 1970.
fn of_epochs(column: &Column, kind: FieldType) -> Option<String> {
    let unit = is_time_name(&column.name).then(|| epoch_of(column.trend.magnitude())).flatten()?;
    let like = "looks like times as numbers since 1970, kept as";
    match kind {
        FieldType::Int => Some(format!("{like} integers: --epoch {unit} reads them")),
        FieldType::Float => mostly(&column.numbers, |number| epoch_of(number) == Some(unit))
            .map(|_| format!("{like} numbers: rounded to integers, --epoch {unit} reads them")),
        FieldType::Text if column.but_few_texts() == kinds::INT => {
            let (what, name) = (misfits(column, "number", "numbers"), shell(&column.name));
            Some(format!("{like} text: {what}: --epoch {unit} --time {name} --invalid skip reads them"))
        }
        _ => None,
    }
}

fn is_time_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    rank(&name, TIME).is_some() || ["time", "epoch", "date"].iter().any(|word| name.contains(word))
}

/// Returns whether a word of a name is that of a date, or also of a time. Whole words: `runtime` and `candidate` are
/// neither.
fn is_named_as_date(name: &str, or_time: bool) -> bool {
    words(name).iter().any(|word| match word.as_str() {
        "date" | "datetime" => true,
        "time" | "timestamp" | "day" => or_time,
        _ => false,
    })
}

/// Returns the unit of numbers since 1970 that lie between 1990 and 2100.
fn epoch_of(magnitude: f64) -> Option<&'static str> {
    let years = 6.3e8..4.1e9;
    [(1.0, "s"), (1e3, "ms"), (1e6, "us")]
        .into_iter()
        .find(|(unit, _)| years.contains(&(magnitude / unit)))
        .map(|(_, name)| name)
}
