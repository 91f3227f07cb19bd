//! An issuer of these tests: its keys, the tokens that it signs, and a registry that trusts it.

#![allow(clippy::disallowed_methods, reason = "keys of tests come from the system")]

use super::super::super::tests::registry;
use super::super::super::{Registry, Tenant};
use super::super::*;
use ::ring::hmac;
use ::ring::rand::SystemRandom;
use ::ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use data_encoding::BASE64URL_NOPAD as BASE64;
use meridian_model::policy::access::Role;
use serde_json::{Value, json};
use std::path::PathBuf;

/// 2026-11-24T00:00:00Z in seconds since 1970.
pub(super) const NOW_S: i64 = 1_795_478_400;
pub(super) const NOW: i64 = NOW_S * 1_000_000;
pub(super) const ISSUER: &str = "https://login.example.org/";
pub(super) const SECRET: &[u8] = b"a secret of this test that has more than 32 bytes";

pub(super) fn settings(name: &str, issuer: &str, keys: KeySource) -> IssuerSettings {
    let rule = |value: &str, tenant: Option<&str>, role, collections: &str| Rule {
        claim: Some("groups".to_owned()),
        value: value.to_owned(),
        tenant: tenant.map(str::to_owned),
        grant: Grant { role, collections: collections.parse().unwrap() },
    };
    IssuerSettings {
        name: name.to_owned(),
        issuer: issuer.to_owned(),
        audiences: BTreeSet::from(["meridian".to_owned()]),
        keys,
        skew: Duration::from_secs(30),
        refresh: Duration::from_secs(900),
        refresh_min: Duration::from_secs(30),
        rules: vec![
            rule("sailors", Some("harbour"), Role::Writer, "ships*"),
            rule("operations", None, Role::Operator, "*"),
            rule("lost", Some("nowhere"), Role::Reader, "*"),
        ],
        sign_in: None,
    }
}

/// The keys of the issuer.
pub(super) struct Keys {
    pub(super) rsa: RsaKeyPair,
    pub(super) ec: EcdsaKeyPair,
    pub(super) ed: Ed25519KeyPair,
}

impl Keys {
    pub(super) fn new() -> Keys {
        let random = SystemRandom::new();
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Keys {
            // Used by this test only: ring cannot generate RSA keys.
            rsa: RsaKeyPair::from_der(include_bytes!("../rsa-of-tests.der")).unwrap(),
            ec: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random).unwrap(),
            ed: Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap(),
        }
    }

    pub(super) fn set(&self) -> Value {
        let components: ::ring::rsa::PublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        let (n, e) = (BASE64.encode(&components.n), BASE64.encode(&components.e));
        let point = self.ec.public_key().as_ref();
        let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
        json!({ "keys": [
            { "kid": "rsa", "kty": "RSA", "alg": "RS256", "use": "sig", "n": n, "e": e },
            { "kid": "ec", "kty": "EC", "crv": "P-256", "x": x, "y": y },
            { "kid": "ed", "kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(self.ed.public_key().as_ref()) },
            { "kid": "for-secrets", "kty": "RSA", "alg": "RSA-OAEP", "use": "enc", "n": n, "e": e },
            { "kid": "shared", "kty": "oct", "k": BASE64.encode(SECRET) },
            { "kid": "new", "kty": "AKP", "pub": "AAAA" },
        ] })
    }

    pub(super) fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match algorithm {
            "RS256" => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            "ES256" => self.ec.sign(&random, message).unwrap().as_ref().to_vec(),
            "EdDSA" => self.ed.sign(message).as_ref().to_vec(),
            "HS256" => hmac(SECRET, message),
            _ => Vec::new(),
        }
    }

    pub(super) fn token(&self, head: Value, claims: &Value) -> String {
        self.sealed_text(&head, &claims.to_string())
    }

    pub(super) fn sealed_text(&self, head: &Value, claims: &str) -> String {
        let algorithm = head["alg"].as_str().unwrap();
        let message = format!("{}.{}", BASE64.encode(head.to_string().as_bytes()), BASE64.encode(claims.as_bytes()));
        sealed_message(&message, |message| self.sign(algorithm, message))
    }
}

pub(super) fn hmac(secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec()
}

pub(super) fn sealed(head: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let message =
        format!("{}.{}", BASE64.encode(head.to_string().as_bytes()), BASE64.encode(claims.to_string().as_bytes()));
    sealed_message(&message, sign)
}

pub(super) fn sealed_message(message: &str, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    format!("{message}.{}", BASE64.encode(&sign(message.as_bytes())))
}

pub(super) fn claims() -> Value {
    json!({ "iss": ISSUER, "sub": "mary", "aud": ["other", "meridian"], "exp": NOW_S + 600, "groups": ["all", "sailors"] })
}

pub(super) fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = claims();
    change(&mut claims);
    claims
}

/// Builds a registry with a tenant that trusts the issuer, and an issuer with a secret.
pub(super) fn trusting(keys: &Keys) -> Registry {
    let (vault, registry) = registry();
    registry.create_tenant(Tenant::new("harbour")).unwrap();
    let issuers = vec![
        settings("login", ISSUER, KeySource::Url("https://login.example.org/keys".to_owned())),
        settings("internal", "internal", KeySource::Secret(PathBuf::from("/key"))),
    ];
    let registry = Registry::open_trusting(vault, Issuers::new(issuers)).unwrap();
    let issuers = registry.issuers();
    let documents = [keys.set().to_string().into_bytes(), SECRET.to_vec()];
    for (issuer, document) in issuers.iter().zip(documents) {
        issuers.take_keys(issuer, &document).unwrap();
    }
    registry
}
