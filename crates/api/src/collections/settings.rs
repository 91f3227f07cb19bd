//! Settings of a collection. A change that removes events must be confirmed with their number.

use crate::access::audit::AuditDetails;
use crate::contract::text::retention_text;
use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::protocol::tags::{self, Tags};
use crate::request::errors;
use crate::request::scope::{Scope, no_collection};
use crate::state::AppState;
use axum::http::{HeaderMap, header};
use meridian_backend::{
    Collection, Definition, Durability, PARTITIONS_MAX, Settings, SettingsChange, StoreError, WriteError,
};
use meridian_model::schema::validate_name;
use meridian_model::{Field, IdRole, Invalid, Mode, Schema, schema_json};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Takes the settings named by the parameters of a request.
pub fn take(params: &mut Params) -> Result<SettingsChange> {
    let durability = match params.take("durability").as_deref() {
        None => None,
        Some("local") => Some(Durability::Local),
        Some("ephemeral") => Some(Durability::Ephemeral),
        Some("replicated") => Some(Durability::Replicated),
        Some(other) => {
            return Err(Problem::parameter(
                "durability",
                format!("{other:?}: expected ephemeral, local or replicated"),
            ));
        }
    };
    let retention = params.take("retention").map(|text| duration(&text).map(Some)).transpose();
    let retention = retention.map_err(|e| Problem::invalid_parameter("retention", e))?;
    let retention_bytes = take_whole(params, "retention_bytes", 1)?.map(Some);
    let partitions = take_whole(params, "partitions", 1)?.map(|n| {
        let number = u16::try_from(n).ok().filter(|n| *n <= PARTITIONS_MAX);
        number.ok_or_else(|| Problem::parameter("partitions", format!("{n}: expected 1 to {PARTITIONS_MAX}")))
    });
    Ok(SettingsChange { durability, retention, retention_bytes, partitions: partitions.transpose()? })
}

/// Returns the number of partitions of a new collection if the request names none.
pub fn partitions(state: &AppState, schema: &Schema) -> u16 {
    // With both, an event would have one partition by its id and another by its object.
    match schema.mode == Mode::Latest && schema.id == IdRole::Given {
        true => 1,
        false => state.config.partitions,
    }
}

/// Takes the number of events whose removal the client confirms.
pub fn take_confirmed(params: &mut Params) -> Result<Option<u64>> {
    take_whole(params, "confirm", 0)
}

fn take_whole(params: &mut Params, name: &'static str, min: u64) -> Result<Option<u64>> {
    let Some(n) = params.take_number(name)? else { return Ok(None) };
    let whole = n >= min as f64 && n <= 2f64.powi(53) && n.fract() == 0.0;
    let wrong = || Problem::parameter(name, format!("expected a whole number from {min} up"));
    whole.then_some(Some(n as u64)).ok_or_else(wrong)
}

fn duration(text: &str) -> Result<Duration, Invalid> {
    let micros = schema_json::parse_duration(text)?;
    match u64::try_from(micros) {
        Ok(micros) if micros > 0 => Ok(Duration::from_micros(micros)),
        _ => Err(Invalid::new(format!("{text:?} is not a length of time that events can be kept"))),
    }
}

/// Takes the new name of a collection from the body of a PATCH; `None` if the name stays.
pub fn take_name(change: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Invalid> {
    let new = match change.shift_remove("id") {
        None => return Ok(None),
        Some(Value::String(new)) => new,
        Some(other) => return Err(Invalid::field("id", format!("{other}: expected the new name as a text"))),
    };
    if new == name {
        return Ok(None);
    }
    validate_name("collection", &new).map_err(|e| Invalid { field: Some("id".to_owned()), ..e })?;
    // Settings and name are stored in two places, so a crash could leave one changed without the other.
    if let Some(other) = change.keys().next() {
        return Err(Invalid::field("id", format!("a new name comes alone: change {other:?} by another request")));
    }
    Ok(Some(new))
}

/// Parses the body of a PATCH of a collection with this schema: the settings that it names, and new fields.
pub fn read(schema: &Schema, change: Map<String, Value>) -> Result<(SettingsChange, Vec<Field>), Invalid> {
    let mut named = SettingsChange::default();
    let mut fields = Vec::new();
    for (name, value) in change {
        let wrong = |expected: &str| Invalid::field(name.as_str(), format!("{value}: expected {expected}"));
        match (name.as_str(), &value) {
            ("retention", Value::Null) => named.retention = Some(None),
            ("retention", Value::String(text)) => {
                named.retention = Some(Some(duration(text).map_err(|e| Invalid { field: Some(name), ..e })?));
            }
            ("retention", _) => return Err(wrong("an ISO 8601 duration such as P30D, or null")),
            ("retention_bytes", Value::Null) => named.retention_bytes = Some(None),
            ("retention_bytes", value) => {
                let bytes = value.as_u64().filter(|n| *n > 0);
                named.retention_bytes = Some(Some(bytes.ok_or_else(|| wrong("a number of bytes from 1 up, or null"))?));
            }
            ("properties", Value::Object(properties)) => fields = new_fields(schema, properties)?,
            ("properties", _) => return Err(wrong("an object of JSON Schemas, one for each new property")),
            (other, _) => {
                let detail = "cannot be changed: expected id, retention, retention_bytes or properties";
                return Err(Invalid::field(other, detail));
            }
        }
    }
    Ok((named, fields))
}

/// Describes a change for the audit log.
pub fn note(named: &SettingsChange, fields: &[Field]) -> AuditDetails {
    let mut words = Vec::new();
    if let Some(retention) = named.retention {
        words.push(format!("retention {}", retention.map_or_else(|| "none".to_owned(), retention_text)));
    }
    if let Some(bytes) = named.retention_bytes {
        words.push(format!("retention_bytes {}", bytes.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string())));
    }
    if let Some(partitions) = named.partitions {
        words.push(format!("partitions {partitions}"));
    }
    words.extend(fields.iter().map(|field| format!("new property {}", field.name)));
    AuditDetails { change: (!words.is_empty()).then(|| words.join(", ")), ..AuditDetails::default() }
}

/// Parses properties that the schema does not have yet; all must be optional.
fn new_fields(schema: &Schema, properties: &Map<String, Value>) -> Result<Vec<Field>, Invalid> {
    for (name, property) in properties {
        if schema.field_index(name).is_some() || *name == schema.geometry_name || *name == schema.id_name {
            return Err(Invalid::field(name.as_str(), "is a property already: only new ones can be added"));
        }
        if property.get("x-ogc-role").is_some() || property.get("x-meridian-object").is_some() {
            return Err(Invalid::field(name.as_str(), "a property added later cannot have a role"));
        }
    }
    let document = json!({ "type": "object", "properties": properties });
    Ok(schema_json::from_json(&document)?.fields)
}

/// Applies the settings of a PUT to an existing collection; unchanged settings have no effect.
pub fn put(state: &AppState, collection: &dyn Collection, named: SettingsChange, confirmed: Option<u64>) -> Result<()> {
    let named = changeable(state, collection, named)?;
    let before = collection.settings();
    // A repeated PUT must succeed without a confirmation.
    match named.of(&before) == before {
        true => Ok(()),
        false => apply(collection, Vec::new(), &named, confirmed, None),
    }
}

/// Returns the named settings that can be changed.
///
/// # Errors
/// 409 if a setting cannot be changed and differs from the collection's.
pub fn changeable(state: &AppState, collection: &dyn Collection, named: SettingsChange) -> Result<SettingsChange> {
    let before = collection.settings();
    // A store in memory ignores the durability of its collections, whatever was requested when they were created.
    let durability = named.durability.filter(|_| !state.backend.is_ephemeral());
    if durability.is_some_and(|durability| durability != before.durability) {
        let detail = format!(
            "the durability of a collection cannot be changed, and that of {:?} is {}",
            collection.name(),
            json!(before.durability)
        );
        return Err(Problem::new(Kind::Conflict, detail).with("field", "durability"));
    }
    if named.partitions.is_some_and(|partitions| partitions != before.partitions) {
        let detail = format!(
            "the number of partitions of a collection cannot be changed, and that of {:?} is {}",
            collection.name(),
            before.partitions
        );
        return Err(Problem::new(Kind::Conflict, detail).with("field", "partitions"));
    }
    Ok(SettingsChange { durability: None, partitions: None, ..named })
}

/// Returns whether a PUT may only create a collection: `If-None-Match: *`.
///
/// # Errors
/// 400 for any other value: a condition must not be ignored, and no creation tests tags.
pub fn only_creates(headers: &HeaderMap) -> Result<bool> {
    let name = header::IF_NONE_MATCH;
    match Tags::of(headers, &name).map_err(|why| Problem::parameter(name.as_str(), why))? {
        None => Ok(false),
        Some(Tags::Any) => Ok(true),
        Some(Tags::Listed(_)) => {
            Err(Problem::parameter(name.as_str(), "a collection is created on the condition * alone: expected that"))
        }
    }
}

/// Returns the problem for a collection that exists and may only be created.
pub fn exists(name: &str) -> Problem {
    let detail = format!("there is a collection {name:?} already, and If-None-Match asks for none");
    Problem::new(Kind::PreconditionFailed, detail)
}

/// Returns the definition that a change with `If-Match` replaces; `None` if it replaces any.
///
/// # Errors
/// 400 for a value that is not a list of tags: it must not be ignored. 412 if the collection has another definition.
pub fn expected(collection: &dyn Collection, headers: &HeaderMap) -> Result<Option<Definition>> {
    let Some(tags) = tags_of(headers)? else { return Ok(None) };
    let seen = seen(collection, &tags)?;
    seen.map(Some).ok_or_else(|| errors::store_problem(StoreError::Changed))
}

/// Returns the tags of `If-Match`; `None` without it or for `*`.
fn tags_of(headers: &HeaderMap) -> Result<Option<Tags>> {
    let name = header::IF_MATCH;
    let listed = Tags::of(headers, &name).map_err(|why| Problem::parameter(name.as_str(), why))?;
    Ok(listed.filter(|listed| *listed != Tags::Any))
}

/// Returns the definition of a collection if a tag names it.
fn seen(collection: &dyn Collection, tags: &Tags) -> Result<Option<Definition>> {
    let definition = collection.definition();
    let present = tags::definition_name(collection.created(), &definition).map_err(Problem::internal)?;
    Ok(tags.have_strong(|tag| tags::is_of_definition(tag, &present)).then_some(definition))
}

/// Removes a collection. With `If-Match`, it must have the definition that the client has seen, and no events ever: no
/// tag may remove those that came after it.
///
/// # Errors
/// 400 as [`expected`]; 501 if it has several partitions, whatever the tag. 412 if it is another one, was changed or was
/// written to; 404 if another request has removed it.
pub fn remove(state: &Scope, collection: &dyn Collection, headers: &HeaderMap) -> Result<()> {
    let name = collection.name();
    let Some(tags) = tags_of(headers)? else {
        return state.view().remove(name).map(drop).map_err(errors::store_problem);
    };
    // Their owners may differ, and no single one sees every write.
    if collection.settings().partitions > 1 {
        let detail = "the condition if-match is not supported for a collection of several partitions: send the request without it";
        return Err(Problem::new(Kind::NotImplemented, detail).with("field", "if-match"));
    }
    let removed = match seen(collection, &tags)? {
        Some(seen) => state.view().remove_unwritten(name, collection.created(), &seen),
        None => Err(StoreError::Changed),
    };
    match removed {
        Ok(true) => Ok(()),
        Ok(false) => Err(no_collection(name)),
        Err(StoreError::Changed) => {
            let detail = "the collection is another one, was changed or was written to, and stays: DELETE without If-Match removes it";
            Err(Problem::new(Kind::PreconditionFailed, detail))
        }
        Err(error) => Err(errors::store_problem(error)),
    }
}

/// Changes a collection, unless that would remove more events than the client confirmed, or its definition is not the
/// one that was `seen`.
pub fn apply(
    collection: &dyn Collection,
    fields: Vec<Field>,
    named: &SettingsChange,
    confirmed: Option<u64>,
    seen: Option<&Definition>,
) -> Result<()> {
    // A collection that refuses writes refuses changes too, and the request is not at fault.
    if let Some(why) = collection.stats().refuses {
        return Err(errors::write_problem(collection, WriteError::Refused(why)));
    }
    let before = seen.map_or_else(|| collection.settings(), |seen| seen.settings.clone());
    let after = Some(named.of(&before)).filter(|after| *after != before);
    if let Some(after) = &after {
        confirm(collection, after, confirmed)?;
    }
    collection.change_from(seen, fields, after).map_err(errors::store_problem)
}

fn confirm(collection: &dyn Collection, settings: &Settings, confirmed: Option<u64>) -> Result<()> {
    // Counted now and compared with the number confirmed by the client: late events may have increased it.
    let count = collection.removed_by(settings).map_err(errors::store_problem)?;
    if count <= confirmed.unwrap_or(0) {
        return Ok(());
    }
    let known = confirmed.map_or_else(String::new, |n| format!(", which is more than {n}"));
    let detail = format!(
        "this retention removes {count} events within seconds{known}: nothing was changed; confirm={count} in the query confirms the change"
    );
    Err(Problem::new(Kind::Conflict, detail).with("removes", count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{components, members};
    use std::collections::BTreeSet;

    /// Parses a body with one member. Returns whether it is taken.
    fn takes(name: &str, value: &Value) -> bool {
        let mut change = Map::from_iter([(name.to_owned(), value.clone())]);
        match take_name(&mut change, "ships") {
            Ok(None) => read(&Schema::default(), change).is_ok(),
            renamed => renamed.is_ok(),
        }
    }

    #[test]
    fn the_described_members_are_those_that_are_taken() {
        let values = [
            ("id", json!("boats")),
            ("retention", json!("P30D")),
            ("retention_bytes", json!(1)),
            ("properties", json!({ "depth": { "type": "number" } })),
        ];
        let names: BTreeSet<String> = values.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(members("Settings"), names);
        let all = components();
        for (name, value) in &values {
            assert!(takes(name, value), "{name}");
            let kinds = all["Settings"]["properties"][*name]["type"].as_array();
            let nullable = kinds.is_some_and(|kinds| kinds.contains(&json!("null")));
            assert_eq!(takes(name, &Value::Null), nullable, "{name}");
        }
        let min = all["Settings"]["properties"]["retention_bytes"]["minimum"].as_u64().unwrap();
        assert!(takes("retention_bytes", &json!(min)) && !takes("retention_bytes", &json!(min - 1)));
        assert!(!takes("durability", &json!("local")), "it is not described either");
    }
}
