//! Reads a [`Scenario`] from a file and `--set`; every error names the file, line or key.

use super::Scenario;
use meridian_lab_results::error::{LabError, Result};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::io;
use std::path::Path;

impl Scenario {
    /// Reads a file, overlays `sets` (`key=value`, dotted keys), fills in defaults and checks the whole. `read` reads a
    /// scenario: bounded, and a regular file alone. `expect` refuses what is none among the files that the scenario names.
    pub fn load(
        path: &Path,
        sets: &[String],
        read: impl FnOnce(&Path) -> io::Result<String>,
        expect: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<Scenario> {
        let shown = path.display().to_string();
        let text = read(path).map_err(|e| LabError::scenario(format!("{shown}: the scenario cannot be read: {e}")))?;
        let mut scenario = Scenario::parse(&text, &shown, sets)?;
        let checked = scenario.files_beside(path.parent().unwrap_or(Path::new("")), expect);
        checked.map_err(|e| LabError::scenario(format!("{shown}: {e}")))?;
        Ok(scenario)
    }

    /// Like `load`, for a text; `shown` is its name in messages.
    pub fn parse(text: &str, shown: &str, sets: &[String]) -> Result<Scenario> {
        let read = if sets.is_empty() {
            toml::from_str::<Scenario>(text).map_err(|e| mistake(shown, text, &e))?
        } else {
            let mut table = toml::from_str::<toml::Table>(text).map_err(|e| mistake(shown, text, &e))?;
            for set in sets {
                lay(&mut table, set)?;
            }
            table.try_into::<Scenario>().map_err(|e| {
                // Errors in the file itself are reported by line.
                match toml::from_str::<Scenario>(text) {
                    Err(own) => mistake(shown, text, &own),
                    Ok(_) => LabError::scenario(format!("--set: {}", one_line(&e.to_string()))),
                }
            })?
        };
        let stem = Path::new(shown).file_stem().map_or_else(|| "run".into(), |stem| stem.to_string_lossy());
        read.resolve(&stem).map_err(|e| LabError::scenario(format!("{shown}: {e}")))
    }
}

/// Describes an error in a TOML text as a sentence with its line.
pub(crate) fn mistake(shown: &str, text: &str, error: &toml::de::Error) -> LabError {
    let place = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    let place = place.map_or_else(String::new, |line| format!(":{line}"));
    LabError::scenario(format!("{shown}{place}: {}", one_line(error.message())))
}

fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Overlays one `key=value` on a table. The value is TOML if it parses as such, otherwise a string. A number among the
/// keys is an index (`population.0.patience_s`); a table and an array of one table are equivalent, as in the file.
fn lay(table: &mut toml::Table, set: &str) -> Result<()> {
    let Some((key, value)) = set.split_once('=') else {
        return Err(LabError::scenario(format!("--set {set}: expected key=value, such as arrival.rate=200")));
    };
    let parsed = toml::from_str::<toml::Table>(&format!("v = {value}")).ok().and_then(|mut t| t.remove("v"));
    let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let keys: Vec<&str> = key.trim().split('.').collect();
    let Some((last, path)) = keys.split_last().filter(|_| keys.iter().all(|key| !key.is_empty())) else {
        return Err(LabError::scenario(format!("--set {set}: the key is empty or has an empty part")));
    };
    let mut place = table;
    let mut path = path.iter().peekable();
    while let Some(part) = path.next() {
        let next = place.entry((*part).to_owned()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        let next = match next {
            toml::Value::Array(items) => {
                let index = path.peek().and_then(|part| part.parse::<usize>().ok());
                if index.is_some() {
                    path.next();
                }
                let (at, count) = (index.unwrap_or(0), items.len());
                if index.is_none() && count != 1 {
                    return Err(LabError::scenario(format!(
                        "--set {set}: there are {count} of {part}: expected {part}.0 to {part}.{}",
                        count.saturating_sub(1)
                    )));
                }
                let Some(item) = items.get_mut(at) else {
                    return Err(LabError::scenario(format!("--set {set}: there is no {part}.{at}, only {count}")));
                };
                item
            }
            other => {
                if path.peek().is_some_and(|part| **part == "0") {
                    path.next();
                }
                other
            }
        };
        let toml::Value::Table(inner) = next else {
            return Err(LabError::scenario(format!("--set {set}: {part} is a value, not a table")));
        };
        place = inner;
    }
    place.insert((*last).to_owned(), value);
    Ok(())
}

/// Treats `[thing]` and `[[thing]]` alike.
pub(super) fn one_or_many<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Either<T>(std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a table or an array of tables")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
            Ok(vec![T::deserialize(MapAccessDeserializer::new(map))?])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq))
        }
    }

    from.deserialize_any(Either(std::marker::PhantomData))
}
