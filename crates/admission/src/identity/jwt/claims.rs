//! The claims of a token, each named once.

use meridian_model::unrepeated::Unrepeated;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The claims of a token. A name that comes twice, in the claims or in an object of them, is an error (RFC 7519, 4).
/// Otherwise two readers could see two different tokens.
#[derive(Debug)]
pub(super) struct Claims(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Claims, D::Error> {
        match Unrepeated::deserialize(deserializer)?.0 {
            Value::Object(claims) => Ok(Claims(claims)),
            _ => Err(D::Error::custom("expected an object")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
