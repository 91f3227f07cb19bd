//! JSON of clients and of their tokens, in which no object repeats a member.
//!
//! Of a repeated member some readers take the first, others the last (RFC 8259, 4; RFC 7519, 4). A proxy that checks a
//! document would then see another one than this server. Types with derived parsers refuse repeated members themselves;
//! a [`Value`] takes the last.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// A value in which no object repeats a member.
#[derive(Debug)]
pub struct Unrepeated(pub Value);

impl<'de> Deserialize<'de> for Unrepeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unrepeated, D::Error> {
        deserializer.deserialize_any(UnrepeatedVisitor).map(Unrepeated)
    }
}

/// Parses an object as a map that repeats no member, within a type with a derived parser.
pub fn unrepeated_map<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, V>, D::Error> {
    deserializer.deserialize_map(MapVisitor(PhantomData))
}

struct MapVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for MapVisitor<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<BTreeMap<String, V>, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(name) = object.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format_args!("the member {name:?} is repeated")));
            }
            members.insert(name, object.next_value()?);
        }
        Ok(members)
    }
}

struct UnrepeatedVisitor;

impl<'de> Visitor<'de> for UnrepeatedVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unrepeated(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            match members.entry(name) {
                Entry::Vacant(member) => {
                    let Unrepeated(value) = object.next_value()?;
                    member.insert(value);
                }
                Entry::Occupied(member) => {
                    return Err(A::Error::custom(format_args!("the member {:?} is repeated", member.key())));
                }
            }
        }
        Ok(Value::Object(members))
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
        fn a_value_without_repetition_is_what_the_library_reads(value in json()) {
            let Unrepeated(read) = serde_json::from_str(&value.to_string()).unwrap();
            prop_assert_eq!(read, value);
        }
    }

    #[test]
    fn a_value_is_read_as_by_the_library_unless_it_repeats_a_member() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,1.5e300,"x\n",{}],"b":{"a":1},"c":[{"a":1},{"a":2}]}"#;
        let Unrepeated(value) = serde_json::from_str(text).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        for text in [r#"{"a":1,"b":2,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            let why = serde_json::from_str::<Unrepeated>(text).unwrap_err().to_string();
            assert!(why.starts_with("the member \"a\" is repeated at line 1"), "{why}");
        }
        let map = |text| unrepeated_map::<u32, _>(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(map(r#"{"a":1,"b":2}"#).unwrap().len(), 2);
        assert!(map(r#"{"a":1,"a":1}"#).unwrap_err().to_string().contains("\"a\" is repeated"));
    }
}
