//! Dotted keys: how `--set` and calibration address values in a scenario.

use toml::{Table, Value};

/// Sets the value of a dotted key. A part of the key may name an entry of a list of tables by its `name`
/// (`source.slow.call.mean_s`) or by its index from 0. The last part may be new; all parts before it must exist.
pub fn set(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let mut parts = key.split('.');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let Some(last) = rest.last() else {
        table.insert(first.to_owned(), value);
        return Ok(());
    };
    let unknown = |part: &str| format!("--set {key}: the scenario has no {part:?}");
    let mut at = table.get_mut(first).ok_or_else(|| unknown(first))?;
    for part in &rest[..rest.len() - 1] {
        at = step(at, part).ok_or_else(|| unknown(part))?;
    }
    match at {
        Value::Table(table) => {
            table.insert((*last).to_owned(), value);
            Ok(())
        }
        _ => Err(format!("--set {key}: what stands before {last:?} is no table")),
    }
}

/// Returns the number at a dotted key.
pub fn number(table: &Table, key: &str) -> Result<f64, String> {
    let mut parts = key.split('.');
    let first = parts.next().unwrap_or_default();
    let mut root = table.clone();
    let mut at = root.get_mut(first);
    for part in parts {
        at = at.and_then(|value| step(value, part));
    }
    match at {
        Some(Value::Float(x)) => Ok(*x),
        Some(Value::Integer(n)) => Ok(*n as f64),
        _ => Err(format!("{key}: the scenario has no such number")),
    }
}

/// Splits `key=value`. A value that is not TOML is taken as text, so that `--set workload=grep` needs no quotes.
pub fn assignment(text: &str) -> Result<(&str, Value), String> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| format!("--set {text}: expected key=value, such as workers=16"))?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || key.split('.').any(str::is_empty) {
        return Err(format!("--set {text}: expected a dotted key before the ="));
    }
    // A bare value is no TOML document, so it is parsed as that of a key.
    let parsed = toml::from_str::<Table>(&format!("v = {value}")).ok().and_then(|mut table| table.remove("v"));
    Ok((key, parsed.unwrap_or_else(|| Value::String(value.to_owned()))))
}

fn step<'a>(value: &'a mut Value, part: &str) -> Option<&'a mut Value> {
    match value {
        Value::Table(table) => table.get_mut(part),
        Value::Array(list) => match part.parse::<usize>() {
            Ok(place) => list.get_mut(place),
            // By index or by name: indexes change when a file is edited, names read well but are optional.
            Err(_) => list.iter_mut().find(|entry| entry.get("name").and_then(Value::as_str) == Some(part)),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_keys_reach_tables_and_named_entries() {
        let mut table: Table = toml::from_str("a = 1\n[b]\nc = 2\n[[s]]\nname = 'x'\nt = { mean_s = 3.5 }").unwrap();
        for (text, key, expected) in
            [("a=4", "a", 4.0), ("b.c=5.5", "b.c", 5.5), ("b.d=6", "b.d", 6.0), ("s.x.t.mean_s=7", "s.x.t.mean_s", 7.0)]
        {
            let (k, value) = assignment(text).unwrap();
            set(&mut table, k, value).unwrap();
            assert_eq!(number(&table, key), Ok(expected));
        }
        assert_eq!(assignment("w=grep").unwrap().1, Value::String("grep".to_owned()));
        assert!(assignment("w").unwrap_err().contains("expected key=value"));
        assert!(assignment("a..b=1").unwrap_err().contains("dotted key"));
        assert!(set(&mut table, "s.y.t.mean_s", Value::Integer(1)).unwrap_err().contains("no \"y\""));
        assert!(set(&mut table, "a.b", Value::Integer(1)).unwrap_err().contains("no table"));
    }
}
