//! Questions as descriptor commands: JSON whose members are the parameters of the HTTP route, with the same names.
//!
//! Each value becomes the text of its parameter, which is parsed like any HTTP parameter. Meanings, defaults and errors
//! are therefore the same.

use crate::contract::links;
use crate::protocol::problem::{Kind as ProblemKind, Problem, Result};
use arrow_flight::FlightDescriptor;
use arrow_flight::flight_descriptor::DescriptorType;
use meridian_model::unrepeated::Unrepeated;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Max bytes of a command: what fits in an HTTP target.
const COMMAND_BYTES_MAX: usize = 64 << 10;
/// Number of parts of an answer if the question does not name it.
const PARTS_DEFAULT: usize = 8;
/// Max parts of an answer.
const PARTS_MAX: usize = 64;

/// Names that exist over HTTP but not in Flight: the format is always Arrow, and the place is in the ticket.
const ABSENT: [&str; 3] = ["f", "token", "explain"];
/// Members of a command that are no parameters over HTTP.
const OWN: [&str; 3] = ["collection", "kind", "parallel"];

/// The kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Events.
    Items,
    /// Events by their distance from a position.
    Near,
    /// Counts, sums, averages and extremes of groups.
    Aggregate,
    /// Counts on a grid.
    Density,
    /// The positions of one object.
    Track,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Items, Kind::Near, Kind::Aggregate, Kind::Density, Kind::Track];

    const fn name(self) -> &'static str {
        match self {
            Kind::Items => "items",
            Kind::Near => "near",
            Kind::Aggregate => "aggregate",
            Kind::Density => "density",
            Kind::Track => "track",
        }
    }

    /// Returns its mandatory parameter.
    const fn needs(self) -> Option<&'static str> {
        match self {
            Kind::Near => Some("near"),
            Kind::Track => Some("track"),
            Kind::Items | Kind::Aggregate | Kind::Density => None,
        }
    }
}

/// A question to one collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The collection.
    pub collection: String,
    /// The kind.
    pub kind: Kind,
    /// Its parameters, as a query string.
    pub query: String,
}

/// A question, and the number of parts in which its answer is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlightQuery {
    /// The question.
    pub question: Question,
    /// The number of parts, at least 1.
    pub parts: usize,
}

impl Question {
    /// Returns the question for all events of a collection.
    pub fn all(collection: &str) -> Question {
        Question { collection: collection.to_owned(), kind: Kind::Items, query: String::new() }
    }

    /// Returns the path and query of its HTTP route.
    pub fn target(&self) -> String {
        let collection = links::escape(&self.collection);
        let query = &self.query;
        match self.kind {
            // Events have an Arrow format over HTTP too.
            Kind::Items | Kind::Near => {
                let and = if query.is_empty() { "" } else { "&" };
                format!("/collections/{collection}/items?{query}{and}f=arrow")
            }
            Kind::Track => format!("/collections/{collection}/items?{query}"),
            Kind::Aggregate | Kind::Density => format!("/collections/{collection}/{}?{query}", self.kind.name()),
        }
    }

    /// Returns whether its rows are ordered.
    pub fn is_ordered(&self) -> bool {
        let orders = |pair: &str| pair.starts_with("sortby=") || pair.starts_with("near=");
        self.kind != Kind::Items || self.query.split('&').any(orders)
    }
}

impl FlightQuery {
    /// Parses a descriptor: a path naming one collection, or a command.
    ///
    /// # Errors
    /// 400 with the member at fault.
    pub fn of(descriptor: &FlightDescriptor) -> Result<FlightQuery> {
        match DescriptorType::try_from(descriptor.r#type) {
            Ok(DescriptorType::Path) => match descriptor.path.as_slice() {
                [collection] => Ok(FlightQuery { question: Question::all(collection), parts: 1 }),
                other => Err(invalid("path", format!("{} segments: expected one, a collection", other.len()))),
            },
            Ok(DescriptorType::Cmd) => FlightQuery::of_command(&descriptor.cmd),
            _ => Err(invalid("descriptor", "expected a path or a command")),
        }
    }

    fn of_command(command: &[u8]) -> Result<FlightQuery> {
        let mut members = object(command)?;
        let collection = take_text(&mut members, "collection")?
            .ok_or_else(|| invalid("collection", "the command names none: expected \"collection\": NAME"))?;
        let kind = match take_text(&mut members, "kind")? {
            None => Kind::Items,
            Some(name) => Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
                invalid("kind", format!("{name:?}: expected {}", Kind::ALL.map(Kind::name).join(", ")))
            })?,
        };
        let parts = take_parts(members.remove("parallel"))?;
        if let Some(needed) = kind.needs()
            && members.get(needed).is_none_or(Value::is_null)
        {
            return Err(invalid(needed, format!("a question of the kind {} needs it", kind.name())));
        }
        let question = Question { collection, kind, query: query(members, kind)? };
        if parts > 1 {
            may_be_cut(&question)?;
        }
        Ok(FlightQuery { question, parts })
    }
}

/// Parses a command.
///
/// # Errors
/// 400 if it is not a JSON object, or is too large.
pub fn object(command: &[u8]) -> Result<Map<String, Value>> {
    if command.len() > COMMAND_BYTES_MAX {
        return Err(invalid("cmd", format!("the command is over the limit of {COMMAND_BYTES_MAX} bytes")));
    }
    match serde_json::from_slice(command) {
        Ok(Unrepeated(Value::Object(members))) => Ok(members),
        Ok(_) => Err(invalid("cmd", "the command is not a JSON object")),
        Err(e) => Err(invalid("cmd", format!("the command is not JSON: {e}"))),
    }
}

/// Takes a text from a command.
///
/// # Errors
/// 400 if it is something else.
pub fn take_text(members: &mut Map<String, Value>, name: &str) -> Result<Option<String>> {
    match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(invalid(name, format!("{other}: expected a string"))),
    }
}

/// Parses the number of parts requested by `parallel`.
fn take_parts(parallel: Option<Value>) -> Result<usize> {
    match parallel {
        None | Some(Value::Null | Value::Bool(false)) => Ok(1),
        Some(Value::Bool(true)) => Ok(PARTS_DEFAULT),
        Some(value) => {
            let parts = value.as_u64().and_then(|parts| usize::try_from(parts).ok());
            parts.filter(|parts| (1..=PARTS_MAX).contains(parts)).ok_or_else(|| {
                invalid("parallel", format!("{value}: expected true, false or a number of parts from 1 to {PARTS_MAX}"))
            })
        }
    }
}

/// Refuses to split an answer that has an order or a limit, which apply to the answer as a whole.
fn may_be_cut(question: &Question) -> Result<()> {
    let has = |name: &str| question.query.split('&').any(|pair| pair.split('=').next() == Some(name));
    match ["sortby", "limit", "near", "nearest"].into_iter().find(|name| has(name)) {
        _ if question.kind != Kind::Items => Err(invalid(
            "parallel",
            format!("only items have parts: the question is of the kind {}", question.kind.name()),
        )),
        Some(name) => Err(invalid("parallel", format!("an answer with {name} has no parts: leave out one of the two"))),
        None => Ok(()),
    }
}

/// Formats the members of a command as the query string of its route.
fn query(members: Map<String, Value>, kind: Kind) -> Result<String> {
    let mut pairs: Vec<(String, String)> = Vec::with_capacity(members.len());
    for (name, value) in members {
        if ABSENT.contains(&name.as_str()) {
            return Err(invalid(&name, "not for Flight: leave it out"));
        }
        if name == "track" && kind != Kind::Track {
            return Err(invalid("track", "expected \"kind\": \"track\" too"));
        }
        let name = if name == "fields" { "properties".to_owned() } else { name };
        match value {
            Value::Null => return Err(invalid(&name, "null: leave the member out, or give it a value")),
            // The only parameter that is itself JSON.
            Value::Object(_) if name == "filter" => {
                pairs.push((name, value.to_string()));
                pairs.push(("filter-lang".to_owned(), "cql2-json".to_owned()));
            }
            value => {
                let text = text(&name, value)?;
                pairs.push((name, text));
            }
        }
    }
    let escape = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", links::escape(name), escape(value)));
    Ok(pairs.collect::<Vec<_>>().join("&"))
}

/// Restates the refusal of an unknown parameter with the members that a command may have instead.
pub fn restate(problem: &mut Value) {
    let Some(known) = problem.get("known").and_then(Value::as_array) else { return };
    let known = known.iter().filter_map(Value::as_str).filter(|name| !ABSENT.contains(name));
    let mut members: Vec<&str> = OWN.into_iter().chain(known).collect();
    if members.contains(&"properties") {
        members.push("fields");
    }
    let name = problem["field"].as_str().unwrap_or_default();
    let detail = format!("the member {name:?} is not known here: expected one of {}", members.join(", "));
    let known = Value::from(members);
    problem["detail"] = detail.into();
    problem["known"] = known;
}

/// The parameters that are comma-separated lists over HTTP. A list for any other would become one text, which means
/// something else.
const LISTS: [&str; 6] = ["bbox", "near", "properties", "sortby", "function", "fields"];

/// Formats a parameter's value; a list becomes its elements separated by commas.
fn text(name: &str, value: Value) -> Result<String> {
    match value {
        Value::Array(_) if !LISTS.contains(&name) => {
            Err(invalid(name, "a list: expected one string, number, true or false"))
        }
        Value::String(text) => Ok(text),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Array(list) => {
            let each = list.into_iter().map(|element| match element {
                Value::Array(_) => Err(invalid(name, "a list within a list: expected a string, a number or a list")),
                element => text(name, element),
            });
            Ok(each.collect::<Result<Vec<_>>>()?.join(","))
        }
        Value::Null | Value::Object(_) => {
            Err(invalid(name, format!("{value}: expected a string, a number, true or false, or a list of them")))
        }
    }
}

fn invalid(field: &str, detail: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::InvalidParameter, detail.into()).with("field", field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn asked(command: &Value) -> Result<FlightQuery> {
        FlightQuery::of(&FlightDescriptor::new_cmd(command.to_string()))
    }

    fn field(command: &Value) -> String {
        asked(command).unwrap_err().document()["field"].as_str().unwrap().to_owned()
    }

    #[test]
    fn members_are_parameters_of_the_route() {
        let command = json!({
            "collection": "a b", "bbox": [1, -2.5, 3, 4], "filter": {"op": "isNull", "args": [{"property": "n"}]},
            "fields": ["n", "m"], "history": true, "limit": 7, "datetime": "../2020-01-01T00:00:00Z"
        });
        let FlightQuery { question, parts } = asked(&command).unwrap();
        assert_eq!((parts, question.kind, question.is_ordered()), (1, Kind::Items, false));
        let target = question.target();
        let (path, query) = target.split_once('?').unwrap();
        assert_eq!(path, "/collections/a%20b/items");
        let mut params = crate::protocol::params::Params::parse(Some(query)).unwrap();
        for (name, value) in [
            ("bbox", "1,-2.5,3,4"),
            ("filter", r#"{"op":"isNull","args":[{"property":"n"}]}"#),
            ("filter-lang", "cql2-json"),
            ("properties", "n,m"),
            ("history", "true"),
            ("limit", "7"),
            ("datetime", "../2020-01-01T00:00:00Z"),
            ("f", "arrow"),
        ] {
            assert_eq!(params.take_other(name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(params.remaining().count(), 0);
        let groups = json!({"collection": "q", "kind": "aggregate", "function": "count,sum(n)"});
        assert_eq!(asked(&groups).unwrap().question.target(), "/collections/q/aggregate?function=count%2Csum%28n%29");
    }

    #[test]
    fn the_member_at_fault_is_named() {
        for (command, at) in [
            (json!({}), "collection"),
            (json!({"collection": 1}), "collection"),
            (json!({"collection": "q", "kind": "rows"}), "kind"),
            (json!({"collection": "q", "kind": "near"}), "near"),
            (json!({"collection": "q", "kind": "track"}), "track"),
            // Without it, each would be a different question.
            (json!({"collection": "q", "kind": "near", "near": null}), "near"),
            (json!({"collection": "q", "kind": "track", "track": null}), "track"),
            (json!({"collection": "q", "track": "a"}), "track"),
            (json!({"collection": "q", "f": "json"}), "f"),
            (json!({"collection": "q", "token": "x"}), "token"),
            (json!({"collection": "q", "bbox": {"w": 1}}), "bbox"),
            (json!({"collection": "q", "bbox": [[1]]}), "bbox"),
            (json!({"collection": "q", "bbox": [1, null, 3, 4]}), "bbox"),
            // Each would silently become a different question.
            (json!({"collection": "q", "filter": null}), "filter"),
            (json!({"collection": "q", "name": ["a", "b"]}), "name"),
            (json!({"collection": "q", "limit": [1, 2]}), "limit"),
            (json!({"collection": "q", "parallel": 0}), "parallel"),
            (json!({"collection": "q", "parallel": 65}), "parallel"),
            (json!({"collection": "q", "parallel": "yes"}), "parallel"),
            (json!({"collection": "q", "parallel": true, "limit": 3}), "parallel"),
            (json!({"collection": "q", "parallel": 2, "sortby": "n"}), "parallel"),
            (json!({"collection": "q", "parallel": 2, "kind": "aggregate"}), "parallel"),
            (json!(["q"]), "cmd"),
        ] {
            assert_eq!(field(&command), at, "{command}");
        }
        assert_eq!(asked(&json!({"collection": "q", "parallel": true})).unwrap().parts, PARTS_DEFAULT);
        assert!(asked(&json!({"collection": "q", "near": [1, 2]})).unwrap().question.is_ordered());
        assert!(FlightQuery::of(&FlightDescriptor::new_path(vec!["a".into(), "b".into()])).is_err());
        assert!(FlightQuery::of(&FlightDescriptor::default()).is_err());
        let twice = FlightDescriptor::new_cmd(r#"{"collection":"q","limit":1,"limit":2}"#);
        let why = FlightQuery::of(&twice).unwrap_err();
        assert!(why.detail().contains("\"limit\" is repeated"), "{}", why.detail());
    }

    #[test]
    fn a_refusal_names_the_members_that_a_command_may_have() {
        let mut params = crate::protocol::params::Params::parse(Some("fitler=1")).unwrap();
        for name in ["explain", "f", "filter", "properties", "token", "track"] {
            params.take(name);
        }
        let mut problem = params.finish_with(&["mag"]).unwrap_err().document();
        restate(&mut problem);
        let known = json!(["collection", "kind", "parallel", "filter", "properties", "track", "mag", "fields"]);
        assert_eq!(problem["known"], known);
        assert_eq!(
            problem["detail"],
            "the member \"fitler\" is not known here: expected one of collection, kind, parallel, filter, properties, track, mag, fields"
        );
        let other = Problem::parameter("bbox", "expected four numbers").document();
        let mut same = other.clone();
        restate(&mut same);
        assert_eq!(same, other);
    }

    proptest! {
        /// A member sets no other parameter, whatever its name and value.
        #[test]
        fn a_member_is_one_parameter(name in "[a-z&=#%+ é]{1,8}", value in "\\PC{0,20}") {
            prop_assume!(!["f", "token", "track", "kind", "fields", "filter", "explain", "parallel"].contains(&name.as_str()));
            let question = asked(&json!({"collection": "q", &name: value})).unwrap().question;
            let target = question.target();
            let (_, query) = target.split_once('?').unwrap();
            let mut params = crate::protocol::params::Params::parse(Some(query)).unwrap();
            prop_assert_eq!(params.take_other(&name), Some(value));
            prop_assert_eq!(params.take_other("f"), Some("arrow".to_owned()));
            prop_assert_eq!(params.remaining().count(), 0);
        }
    }
}
