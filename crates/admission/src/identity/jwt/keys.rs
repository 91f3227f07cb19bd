//! The keys of an issuer. Each key has one algorithm, and a token's header must name the same one.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// Max bytes of a key set, and of other documents of an issuer.
pub const DOCUMENT_BYTES_MAX: usize = 256 << 10;
/// Max keys of an issuer.
const KEYS_MAX: usize = 100;
/// Max keys of one id and algorithm that are tried: each costs a forged token a verification.
const SAME_ID_MAX: usize = 4;
/// Min bytes of a secret, equal to the length of its digest (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;

/// Where an issuer's keys come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A JSON Web Key Set at this URL.
    Url(String),
    /// A JSON Web Key Set in a file.
    File(PathBuf),
    /// A JSON Web Key Set named by the issuer's discovery document.
    Discovered,
    /// A file that holds the secret of HS256.
    Secret(PathBuf),
}

/// A JSON Web Key Set. Its keys are parsed one by one: one of an unknown kind is not an error (RFC 7517, 5).
#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// A key and its algorithm.
pub(super) struct Key {
    pub id: Option<String>,
    pub algorithm: Algorithm,
    pub key: DecodingKey,
    /// Digest of the source text, to compare keys.
    digest: [u8; 32],
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        (&self.id, self.algorithm, self.digest) == (&other.id, other.algorithm, other.digest)
    }
}

/// The keys of an issuer.
#[derive(Default, PartialEq)]
pub(super) struct KeySet(Vec<Key>);

impl KeySet {
    /// Parses the document of a source. Skips keys of other uses or algorithms.
    pub fn read(source: &KeySource, document: &[u8]) -> Result<KeySet, String> {
        if let KeySource::Secret(_) = source {
            // Editors end a file with a newline; all other bytes belong to the secret.
            let secret = document.strip_suffix(b"\n").unwrap_or(document);
            let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
            if secret.len() < SECRET_BYTES_MIN {
                return Err(format!("the secret has {} bytes: expected {SECRET_BYTES_MIN} or more", secret.len()));
            }
            let (key, digest) = (DecodingKey::from_secret(secret), Sha256::digest(secret).into());
            return Ok(KeySet(vec![Key { id: None, algorithm: Algorithm::HS256, key, digest }]));
        }
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(format!("the key set has more than {DOCUMENT_BYTES_MAX} bytes"));
        }
        let set: Document =
            serde_json::from_slice(document).map_err(|e| format!("it is not a JSON Web Key Set: {e}"))?;
        if set.keys.len() > KEYS_MAX {
            return Err(format!("it has {} keys: at most {KEYS_MAX} are read", set.keys.len()));
        }
        let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::read).collect();
        if keys.is_empty() {
            return Err("it has no key for signatures by RS256, ES256 or EdDSA (Ed25519)".to_owned());
        }
        Ok(KeySet(keys))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the keys that may have signed a token with this algorithm and this key id, or no key id. There are
    /// several if an issuer gives the same id to more than one key (RFC 7517, 4.5), and at most [`SAME_ID_MAX`].
    pub fn fitting(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<&Key> {
        let of_algorithm = self.0.iter().filter(|key| key.algorithm == algorithm);
        match id {
            Some(id) if self.0.iter().any(|key| key.id.is_some()) => {
                of_algorithm.filter(|key| key.id.as_deref() == Some(id)).take(SAME_ID_MAX).collect()
            }
            _ => {
                let all: Vec<&Key> = of_algorithm.take(2).collect();
                // Without a key id, there must be exactly one key of this algorithm.
                if all.len() == 1 { all } else { Vec::new() }
            }
        }
    }
}

impl Key {
    fn read(value: Value) -> Option<Key> {
        let digest = Sha256::digest(value.to_string()).into();
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let (algorithm, named) = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                (Algorithm::ES256, KeyAlgorithm::ES256)
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
            }
            // A secret in a public document would not be secret.
            _ => return None,
        };
        let signs = jwk.common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
        let fits = jwk.common.key_algorithm.is_none_or(|of| of == named);
        let verifies = jwk.common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        if !signs || !fits || !verifies {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Key { id: jwk.common.key_id, algorithm, key, digest })
    }
}
