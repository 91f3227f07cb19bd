//! API tokens.

use super::newer::UnknownFields;
use super::secret::{self, Digest};
use meridian_model::policy::access::{Grant, Pattern, Role};
use serde::{Deserialize, Serialize};

/// Prefix of the text of a token.
pub(super) const PREFIX: &str = "mrd_";

/// A token, as stored in its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Its id, 16 hexadecimal digits.
    pub id: String,
    /// The tenant that it belongs to; empty for an operator's.
    pub tenant: String,
    /// The role of its holder.
    #[serde(with = "text")]
    pub role: Role,
    /// The collections that it covers.
    #[serde(with = "text")]
    pub collections: Pattern,
    /// When it was created, in microseconds since 1970.
    pub created: i64,
    /// When it expires, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// SHA-256 of the secret, in hexadecimal.
    pub(super) digest: String,
    /// Fields written by a newer program. A token with such a field admits no caller.
    #[serde(flatten)]
    pub(super) newer: UnknownFields,
}

impl Token {
    /// Creates a token and its text, which is not stored.
    pub(super) fn make(
        tenant: &str,
        grant: &Grant,
        created: i64,
        expires: Option<i64>,
    ) -> Result<(Token, String), getrandom::Error> {
        let secret::NewSecret { id, text, digest } = secret::make(PREFIX)?;
        let (role, collections) = (grant.role, grant.collections.clone());
        let tenant = tenant.to_owned();
        Ok((Token { id, tenant, role, collections, created, expires, digest, newer: UnknownFields::default() }, text))
    }

    /// Returns the digest as bytes; `None` if the record's text is invalid.
    pub(super) fn digest(&self) -> Option<Digest> {
        secret::digest(&self.digest)
    }

    /// Returns the rights of its holder.
    pub fn grant(&self) -> Grant {
        Grant { role: self.role, collections: self.collections.clone() }
    }
}

/// Serializes a value as text.
pub(super) mod text {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use std::fmt::Display;
    use std::str::FromStr;

    pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Serializes an optional value as text.
pub(super) mod optional_text {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use std::fmt::Display;
    use std::str::FromStr;

    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
    }
}
