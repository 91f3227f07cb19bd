//! Reads profiles from JSON field by field, so that errors name the field.

use super::profile::{AttemptPlan, Profile, Profiles, ServerShare, WAIT_FOR_EVER};
use crate::Invalid;
use serde_json::{Map, Value};
use std::time::Duration;

/// A JSON object whose fields are taken one by one. Fields left at the end are unknown.
struct Fields {
    /// The name of the object, for its errors: `profile 2`.
    name: String,
    map: Map<String, Value>,
}

impl Profiles {
    /// Reads a JSON list of profiles.
    ///
    /// # Errors
    /// The invalid value, with its field.
    pub fn parse(json: &str) -> Result<Profiles, Invalid> {
        let profiles = profiles(json)?;
        match profiles.iter().filter(|profile| profile.is_default).count() {
            // Exactly one, so that a scan of any type has a profile.
            1 => {}
            n => {
                return Err(Invalid::field("isDefault", format!("{n} profiles are the default: expected exactly one")));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for name in profiles.iter().flat_map(|profile| &profile.scan_types) {
            // Otherwise the order of the list would silently decide which profile applies.
            if !seen.insert(name) {
                let detail = format!("{name:?} is named twice: a scan type belongs to one profile");
                return Err(Invalid::field("scanTypeActivations", detail));
            }
        }
        Ok(Profiles(profiles))
    }
}

/// The list.
fn profiles(json: &str) -> Result<Vec<Profile>, Invalid> {
    let expected = "expected a JSON list of profiles with attemptPlans";
    let list: Value = serde_json::from_str(json)
        .map_err(|e| Invalid::new(format!("{e}: {expected}")).at_line(u64::try_from(e.line()).unwrap_or(u64::MAX)))?;
    let Value::Array(list) = list else { return Err(Invalid::new(format!("{}: {expected}", kind(&list)))) };
    list.into_iter().zip(1..).map(|(value, n)| profile(Fields::of(value, format!("profile {n}"))?)).collect()
}

fn profile(mut fields: Fields) -> Result<Profile, Invalid> {
    let multiplier = match fields.take("busyTimeoutMultiplier") {
        None => 8,
        Some(value) => value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 1).ok_or_else(|| {
            fields.wrong("busyTimeoutMultiplier", format!("{value}: expected a whole number of at least 1"))
        })?,
    };
    let plans = match fields.take("attemptPlans") {
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(Value::Array(_)) => {
            return Err(fields.wrong("attemptPlans", "the list is empty: expected at least one plan"));
        }
        Some(other) => return Err(fields.wrong("attemptPlans", format!("{}: expected a list", kind(&other)))),
        None => return Err(fields.wrong("attemptPlans", "it is missing: expected a list of at least one plan")),
    };
    let name = |n| format!("{}, attempt plan {n}", fields.name);
    let attempt_plans =
        plans.into_iter().zip(1..).map(|(value, n)| plan(Fields::of(value, name(n))?)).collect::<Result<_, _>>()?;
    let profile = Profile {
        is_default: fields.flag("isDefault")?,
        scan_types: fields.names("scanTypeActivations")?,
        group: fields.text("group")?.unwrap_or_else(|| "default".to_owned()),
        max_busy_timeout: fields.duration("maxBusyTimeout")?.unwrap_or(Duration::from_secs(300)),
        busy_timeout_multiplier: multiplier,
        time_to_wait: fields.duration("timeToWaitForScanServers")?.unwrap_or(WAIT_FOR_EVER),
        attempt_plans,
    };
    fields.end()?;
    Ok(profile)
}

fn plan(mut fields: Fields) -> Result<AttemptPlan, Invalid> {
    let servers = match fields.take("servers") {
        // Operators also write counts without quotes, which is unambiguous.
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => text,
        Some(other) => return Err(fields.wrong("servers", format!("{}: {SHARE}", kind(&other)))),
        None => return Err(fields.wrong("servers", format!("it is missing: {SHARE}"))),
    };
    let busy_timeout = fields.duration("busyTimeout")?;
    let plan = AttemptPlan {
        servers: share(&servers).map_err(|detail| fields.wrong("servers", detail))?,
        busy_timeout: busy_timeout.ok_or_else(|| fields.wrong("busyTimeout", format!("it is missing: {DURATION}")))?,
        salt: fields.text("salt")?.unwrap_or_default(),
    };
    fields.end()?;
    Ok(plan)
}

impl Fields {
    fn of(value: Value, name: String) -> Result<Fields, Invalid> {
        match value {
            Value::Object(map) => Ok(Fields { name, map }),
            other => Err(Invalid::field(name, format!("{}: expected an object", kind(&other)))),
        }
    }

    /// A field; `null` counts as absent.
    fn take(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    fn wrong(&self, field: &str, detail: impl std::fmt::Display) -> Invalid {
        Invalid::field(format!("{}, {field}", self.name), detail)
    }

    fn flag(&mut self, field: &str) -> Result<bool, Invalid> {
        match self.take(field) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.wrong(field, format!("{}: expected true or false", kind(&other)))),
        }
    }

    fn text(&mut self, field: &str) -> Result<Option<String>, Invalid> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(field, format!("{}: expected a text", kind(&other)))),
        }
    }

    fn names(&mut self, field: &str) -> Result<Vec<String>, Invalid> {
        let expected = "expected a list of names";
        let list = match self.take(field) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(self.wrong(field, format!("{}: {expected}", kind(&other)))),
        };
        let name = |value| match value {
            Value::String(name) => Ok(name),
            other => Err(self.wrong(field, format!("{} in the list: {expected}", kind(&other)))),
        };
        list.into_iter().map(name).collect()
    }

    fn duration(&mut self, field: &str) -> Result<Option<Duration>, Invalid> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => duration(&text).map(Some).map_err(|detail| self.wrong(field, detail)),
            Some(other) => Err(self.wrong(field, format!("{}: {DURATION}", kind(&other)))),
        }
    }

    /// Rejects remaining fields: a misspelt field would otherwise silently take its default.
    fn end(self) -> Result<(), Invalid> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(field) => Err(Invalid::field(&self.name, format_args!("unknown field `{field}`"))),
        }
    }
}

/// The type of a value, without quoting it: it may be of any size.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

const SHARE: &str = "expected a count such as \"3\", or a share in (0,100] such as \"50%\"";
const DURATION: &str = "expected a duration such as 33ms, 5m or 1h";

fn share(text: &str) -> Result<ServerShare, String> {
    let trimmed = text.trim();
    let read = match trimmed.strip_suffix('%') {
        Some(percent) => percent.trim().parse().ok().filter(|p| *p > 0.0 && *p <= 100.0).map(ServerShare::Percent),
        None => trimmed.parse().ok().filter(|n| *n > 0).map(ServerShare::Count),
    };
    read.ok_or_else(|| format!("{text:?}: {SHARE}"))
}

/// Parses a duration with one of the units d, h, m, s, ms; seconds without one.
fn duration(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let number: Option<u64> = trimmed[..digits].parse().ok();
    let unit_ms = match trimmed[digits..].trim() {
        "d" => Some(86_400_000),
        "h" => Some(3_600_000),
        "m" => Some(60_000),
        "s" | "" => Some(1_000),
        "ms" => Some(1),
        _ => None,
    };
    let ms = number.zip(unit_ms).and_then(|(n, unit): (u64, u64)| n.checked_mul(unit));
    ms.map(Duration::from_millis).ok_or_else(|| format!("{text:?}: {DURATION}"))
}
