//! API tokens: their text, and what is kept of them.
//!
//! A token reads `mrd_ID_SECRET`: the id names it in lists and logs, the secret is 256 random bits in hexadecimal. Only
//! its SHA-256 is kept. A slow hash would protect nothing: a random secret cannot be guessed from its digest.

use meridian_model::policy::access::{Grant, Pattern, Role};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "mrd_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// A token, as its record has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// When it was made, in microseconds since 1970.
    pub created: i64,
    /// When it expires, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// SHA-256 of the secret, in hexadecimal.
    pub(super) digest: String,
}

/// A token's text in its two parts.
pub(super) struct Parts<'a> {
    pub id: &'a str,
    secret: &'a str,
}

impl<'a> Parts<'a> {
    /// Reads a token's text; `None` if it is not the text of a token.
    pub fn read(text: &'a str) -> Option<Parts<'a>> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let hexadecimal = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let fits =
            id.len() == 2 * ID_BYTES && secret.len() == 2 * SECRET_BYTES && hexadecimal(id) && hexadecimal(secret);
        fits.then_some(Parts { id, secret })
    }

    /// Whether the secret is the one with this digest. The time it takes says nothing about the digest.
    pub fn matches(&self, digest: &[u8; 32]) -> bool {
        Sha256::digest(self.secret.as_bytes()).as_slice().ct_eq(digest).into()
    }
}

impl Token {
    /// Makes a token and its text, which nothing keeps.
    pub(super) fn make(
        tenant: &str,
        grant: &Grant,
        created: i64,
        expires: Option<i64>,
    ) -> Result<(Token, String), getrandom::Error> {
        let mut random = [0; ID_BYTES + SECRET_BYTES];
        getrandom::fill(&mut random)?;
        let id = data_encoding::HEXLOWER.encode(&random[..ID_BYTES]);
        let secret = data_encoding::HEXLOWER.encode(&random[ID_BYTES..]);
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(secret.as_bytes()));
        let text = format!("{PREFIX}{id}_{secret}");
        let (role, collections) = (grant.role, grant.collections.clone());
        Ok((Token { id, tenant: tenant.to_owned(), role, collections, created, expires, digest }, text))
    }

    /// The digest as bytes; `None` where the record holds something else.
    pub(super) fn digest(&self) -> Option<[u8; 32]> {
        data_encoding::HEXLOWER.decode(self.digest.as_bytes()).ok()?.try_into().ok()
    }

    /// The rights of its holder.
    pub fn grant(&self) -> Grant {
        Grant { role: self.role, collections: self.collections.clone() }
    }
}

/// A value as its text.
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

/// A value that may be absent, as its text.
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
