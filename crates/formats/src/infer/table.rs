//! Samples of delimited text.

use super::guess::{Guess, time_kind};
use super::kinds;
use crate::error::Fault;
use crate::json::Json;
use crate::options::ReadOptions;
use crate::read::is_null_number;
use crate::rows::Rows;
use crate::values::{BLANKS, decimal, is_rounded, text_list};
use crate::wkt;
use meridian_model::Invalid;
use meridian_model::error::shorten;
use std::io::Read;

/// Inspects the rows of a table with a header.
pub(crate) fn table(source: Box<dyn Read + Send>, options: &ReadOptions, cut: bool) -> Result<Guess, Fault> {
    let (mut rows, names) = Rows::with_header(source, options)?;
    let mut guess = Guess::default();
    // The fields of a row that have a column.
    let named: Vec<usize> = (0..names.len()).filter(|i| !names[*i].is_empty()).collect();
    for (column, &field) in named.iter().enumerate() {
        let name = &names[field];
        if guess.column(name, column, options) != column {
            return Err(Fault::stop(Invalid::field(name, "two columns have this name").at_line(1)));
        }
        guess.columns[column].bare = true;
        guess.columns[column].cells = true;
    }
    while guess.events < options.sample_rows as u64 {
        let seen = rows.next().and_then(|more| match more {
            true if rows.len() != names.len() => {
                let what = format!("a row of {} fields where the header has {}", rows.len(), names.len());
                Err(Fault::Event(Invalid::new(what).at_line(rows.line())))
            }
            true => {
                let checked = rows.check_unnamed(&names, options);
                checked.map(|()| true).map_err(|e| Fault::Event(e.at_line(rows.line())))
            }
            false => Ok(false),
        });
        match seen {
            // A truncated value may look like another kind.
            Ok(true) if cut && !rows.whole && guess.events > 0 => break,
            Ok(true) => {}
            Ok(false) => break,
            Err(_) if cut && guess.events > 0 => break,
            Err(fault) => {
                guess.leave_out(fault, rows.line(), options)?;
                continue;
            }
        }
        for (column, &field) in named.iter().enumerate() {
            let text = rows.text(field);
            if is_null_number(text, rows.quoted(field), options) {
                continue;
            }
            let text = text.trim_matches(BLANKS);
            note(&mut guess, column, text, rows.line(), options);
            guess.columns[column].bare &= !rows.quoted(field);
            guess.saw_id(column, text);
        }
        guess.events += 1;
    }
    Ok(guess)
}

fn note(guess: &mut Guess, column: usize, text: &str, line: u64, options: &ReadOptions) {
    if wkt::looks_like(text) {
        // An unreadable shape is still a shape: the reader reports the error and its line.
        let kind = wkt::kind(text, options);
        return guess.saw_shape(column, kind);
    }
    // Days such as 20260131 are numbers too: they are times in the column named as the time.
    if options.date_format.is_some() && options.time.as_ref() == Some(&guess.columns[column].name) {
        return guess.saw_text(column, text, options);
    }
    let is_long = kinds::of_number(text, options) == Some(kinds::TEXT);
    if is_long || decimal(text, options).is_some_and(|x| is_rounded(text, x)) {
        guess.columns[column].rounded.get_or_insert_with(|| (shorten(text), line));
    }
    match kind(text, options) {
        number @ (kinds::INT | kinds::FLOAT) => {
            guess.saw_number(column, number, decimal(text, options).unwrap_or(0.0));
        }
        kinds::TIME | kinds::LOCAL_TIME => guess.saw_text(column, text, options),
        kinds::TEXT => guess.saw_plain(column, text),
        other => guess.saw(column, other),
    }
}

/// Returns the narrowest kind of a text.
fn kind(text: &str, options: &ReadOptions) -> u8 {
    if let Some(number) = kinds::of_number(text, options) {
        return number;
    }
    if let Some(time) = time_kind(text, options) {
        return time.kind;
    }
    if ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return kinds::BOOL;
    }
    if text.starts_with('[') {
        let mut json = Json::new(text);
        if text_list(&mut json).is_ok() && json.end().is_ok() {
            return kinds::LIST;
        }
    }
    kinds::TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_no_values_and_pairs_of_letters_are_places_only_when_whole() {
        let infer = |text: &'static str| {
            let options = ReadOptions { nulls: vec!["NA".into()], ..ReadOptions::default() };
            table(Box::new(text.as_bytes()), &options, false)
                .and_then(|g| Ok(g.schema(&options, false)?.schema))
                .unwrap()
        };
        let kinds = |schema: &meridian_model::Schema| schema.fields.iter().map(|f| f.kind).collect::<Vec<_>>();
        use meridian_model::FieldType::{Bool, Float, Int, Text};
        assert_eq!(kinds(&infer("a,b,c\ntrue,1,NA\n\" \", NA,x\ntRue,,\"\"\n")), [Bool, Int, Text]);
        // A quoted value is meant as text.
        assert_eq!(kinds(&infer("a\n1\n\"NA\"\n")), [Text]);
        assert_eq!(kinds(&infer("x,y\n,0.5\n0.5,0.5\n")), [Float, Float]);
        assert!(infer("x,y\n0.5,0.5\n0.5,0.5\n").geometry.is_some());
        // Empty columns without a name are none.
        assert_eq!(kinds(&infer(",a,,b,\n,1,\" \",x,\n")), [Int, Text]);
    }

    #[test]
    fn texts_have_kinds() {
        for (text, expected) in [
            ("0", kinds::INT),
            ("-12", kinds::INT),
            ("9223372036854775808", kinds::TEXT),
            ("007", kinds::TEXT),
            ("-01", kinds::TEXT),
            ("+49", kinds::TEXT),
            ("0.5", kinds::FLOAT),
            ("-.5", kinds::FLOAT),
            ("1e5", kinds::FLOAT),
            ("1e999", kinds::TEXT),
            ("nan", kinds::TEXT),
            ("inf", kinds::TEXT),
            ("True", kinds::BOOL),
            ("2026-01-31T12:00:00Z", kinds::TIME),
            ("2026-01-31T12:00:00+08:00", kinds::TIME),
            ("2026-01-31 12:00", kinds::LOCAL_TIME),
            ("2026-01-31", kinds::LOCAL_TIME),
            ("2026-99-31", kinds::TEXT),
            ("[\"a\"]", kinds::LIST),
            ("[a]", kinds::TEXT),
            ("-", kinds::TEXT),
        ] {
            assert_eq!(kind(text, &ReadOptions::default()), expected, "{text}");
        }
    }

    #[test]
    fn a_number_with_a_comma_has_the_kind_of_one_with_a_dot() {
        let comma = ReadOptions { decimal_comma: true, ..ReadOptions::default() };
        for text in [".5", "-.5", "4.", "-4.", "0.5", "1.5e3", "00.5", "+.5", ".", "-.", "1.2.3", "4", "007"] {
            let written = text.replace('.', ",");
            assert_eq!(kind(&written, &comma), kind(text, &ReadOptions::default()), "{text}");
        }
        assert_eq!([",5", "4,"].map(|text| kind(text, &comma)), [kinds::FLOAT; 2]);
        assert_eq!([",5", "4,"].map(|text| kind(text, &ReadOptions::default())), [kinds::TEXT; 2]);
    }
}
