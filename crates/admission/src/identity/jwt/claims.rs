//! The claims of a token, each named once.

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The claims of a token. A name that comes twice, in the claims or in an object of them, is an error (RFC 7519, 4).
/// Otherwise two readers could see two different tokens.
#[derive(Debug)]
pub(super) struct Claims(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Claims, D::Error> {
        match Unique::deserialize(deserializer)?.0 {
            Value::Object(claims) => Ok(Claims(claims)),
            _ => Err(D::Error::custom("expected an object")),
        }
    }
}

/// A JSON value without an object that names a member twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unique, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Unique)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Unique(value)) = list.next_element()? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Unique(value))) = members.next_entry::<String, Unique>()? {
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a name comes twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            "[a-c\"\\\\é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn claims_are_what_the_plain_reader_reads(members in prop::collection::btree_map("[a-c]{1,2}", json(), 0..4)) {
            let claims: Map<String, Value> = members.into_iter().collect();
            let text = Value::Object(claims.clone()).to_string();
            prop_assert_eq!(serde_json::from_str::<Claims>(&text).unwrap().0, claims);
        }
    }

    #[test]
    fn a_name_that_comes_twice_is_refused_wherever_it_is() {
        for text in [
            r#"{"groups":["gis"],"groups":["ops"]}"#,
            r#"{"groups":["gis"],"g\u0072oups":["ops"]}"#,
            r#"{"realm":{"roles":[],"roles":["admin"]}}"#,
            r#"{"list":[{"a":1,"a":1}]}"#,
            "[]",
            "1",
        ] {
            assert!(serde_json::from_str::<Claims>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Claims>(r#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
    }
}
