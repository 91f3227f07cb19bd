//! A setting: a key with its meaning, and how its value is shown, parsed and checked.

use super::Config;
use crate::units;
use std::str::FromStr;
use toml::Value;

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const TIB: u64 = 1 << 40;

/// One setting: its key in the file, its meaning, and how it is shown and set.
pub(super) struct Setting {
    pub(super) key: &'static str,
    pub(super) help: &'static str,
    pub(super) get: fn(&Config) -> Value,
    pub(super) set: fn(&mut Config, &Value) -> Result<(), String>,
}

/// A text, taken as it is.
macro_rules! plain {
    ($key:literal, $help:literal, $($place:ident).+) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::String(c.$($place).+.clone()),
            set: |c, v| text(v).map(|t| c.$($place).+ = t),
        }
    };
}

/// A size in bytes: a whole number, or a text such as "64 MiB".
macro_rules! size {
    ($key:literal, $help:literal, $($place:ident).+, $min:expr, $max:expr) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::String(units::size_text(c.$($place).+ as u64)),
            set: |c, v| {
                c.$($place).+ = within(size(v)?, $min, $max, units::size_text)? as _;
                Ok(())
            },
        }
    };
}

/// A whole number.
macro_rules! count {
    ($key:literal, $help:literal, $($place:ident).+, $min:expr, $max:expr) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::Integer(c.$($place).+ as i64),
            set: |c, v| {
                let n = v.as_integer().and_then(|n| u64::try_from(n).ok()).ok_or("expected a whole number")?;
                c.$($place).+ = within(n, $min, $max, |n| n.to_string())? as _;
                Ok(())
            },
        }
    };
}

/// A duration: a text such as "30s" or "PT30S".
macro_rules! duration {
    ($key:literal, $help:literal, $($place:ident).+, $min:literal, $max:literal) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::String(units::duration_text(c.$($place).+)),
            set: |c, v| {
                let text = v.as_str().ok_or("expected a length of time such as \"30s\", \"5m\" or \"1d\"")?;
                // Compared as durations: the limits are texts only so that they are shown as written.
                let value = units::duration(text)?;
                let (min, max) = (units::duration($min)?, units::duration($max)?);
                if value < min || value > max {
                    return Err(format!("{text:?} is outside {} to {}", $min, $max));
                }
                c.$($place).+ = value;
                Ok(())
            },
        }
    };
}

/// A file; an empty text is none.
macro_rules! file {
    ($key:literal, $help:literal, $($place:ident).+) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::String(c.$($place).+.as_ref().map(|file| file.display().to_string()).unwrap_or_default()),
            set: |c, v| text(v).map(|t| c.$($place).+ = (!t.is_empty()).then(|| PathBuf::from(t))),
        }
    };
}

/// A list of texts, each with its own form.
macro_rules! list {
    ($key:literal, $help:literal, $($place:ident).+) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::Array(c.$($place).+.iter().map(|one| Value::String(one.to_string())).collect()),
            set: |c, v| texts(v).map(|list| c.$($place).+ = list),
        }
    };
}

/// Reads a list of texts.
pub(super) fn texts<T: FromStr<Err = String>>(value: &Value) -> Result<Vec<T>, String> {
    let expected = "expected a list of texts in quotes, as in [\"one\", \"two\"]";
    let list = value.as_array().ok_or(expected)?;
    list.iter().map(|one| one.as_str().ok_or(expected)?.parse()).collect()
}

pub(super) fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| "expected a text in quotes".to_owned())
}

pub(super) fn truth(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "expected true or false".to_owned())
}

pub(super) fn size(value: &Value) -> Result<u64, String> {
    let expected = "expected a size such as \"64 MiB\", or a number of bytes";
    match value {
        Value::Integer(n) => u64::try_from(*n).map_err(|_| expected.to_owned()),
        Value::String(text) => units::size(text),
        _ => Err(expected.to_owned()),
    }
}

pub(super) fn within(n: u64, min: u64, max: u64, show: impl Fn(u64) -> String) -> Result<u64, String> {
    if (min..=max).contains(&n) { Ok(n) } else { Err(format!("{} is outside {} to {}", show(n), show(min), show(max))) }
}
