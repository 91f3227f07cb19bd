//! Tokens and keys of JSON Web Token issuers.

use crate::callers::Kept;
use data_encoding::BASE64URL_NOPAD as BASE64;
use meridian_admission::identity::Registry;
use meridian_admission::identity::jwt::{IssuerSettings, Issuers, KeySource, Rule};
use meridian_model::policy::access::{Grant, Role};
use ring::hmac;
use std::sync::Arc;
use std::time::Duration;

/// The secret of the issuer of the tokens.
const SECRET: &[u8] = b"a secret of this target, which is in its source";

fn registry(keys: KeySource) -> Registry {
    registry_of("a", keys)
}

fn registry_of(issuer: &str, keys: KeySource) -> Registry {
    let rule = |claim: &str, value: &str, tenant: Option<&str>, role| Rule {
        claim: Some(claim.to_owned()),
        value: value.to_owned(),
        tenant: tenant.map(str::to_owned),
        grant: Grant::over_all(role),
    };
    let issuer = IssuerSettings {
        name: "fuzz".to_owned(),
        issuer: issuer.to_owned(),
        audiences: ["meridian".to_owned()].into(),
        keys,
        skew: Duration::from_secs(30),
        refresh: Duration::from_secs(900),
        refresh_min: Duration::from_secs(30),
        rules: vec![
            rule("operator", "true", None, Role::Operator),
            rule("/realm/roles", "gis", Some("default"), Role::Writer),
            rule("scope", "read", Some("default"), Role::Reader),
        ],
        sign_in: None,
    };
    Registry::open_trusting(Arc::new(Kept(Vec::new())), Issuers::new(vec![issuer])).unwrap()
}

/// A token with this head and these claims, signed with the issuer's secret (HS256).
pub fn signed(head: &str, claims: &str) -> String {
    with_signature(&format!("{}.{}", BASE64.encode(head.as_bytes()), BASE64.encode(claims.as_bytes())))
}

fn with_signature(message: &str) -> String {
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), message.as_bytes());
    format!("{message}.{}", BASE64.encode(signature.as_ref()))
}

/// A JSON Web Token: as it is, and re-signed so that its claims are reached.
pub fn jwt(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let registry = registry(KeySource::Secret("/secret".into()));
    let issuers = registry.issuers();
    issuers.take_keys(issuers.iter().next().unwrap(), SECRET).unwrap();
    let message = text.rsplit_once('.').map_or(text, |(message, _)| message);
    let signed = with_signature(message);
    if let Ok(caller) = registry.caller(text, 0) {
        assert!(text == signed, "{text} without a right signature is {caller:?}");
    }
    if let Ok(caller) = registry.caller(&signed, 0) {
        let head = BASE64.decode(message.split('.').next().unwrap().as_bytes()).unwrap();
        assert!(head.windows(5).any(|part| part == b"HS256"), "{signed} is {caller:?}");
        assert!(
            caller.name.starts_with("jwt:fuzz:") && caller.gives_until().is_some_and(|end| !caller.is_void(end - 1))
        );
    }
}

/// A JSON Web Key Set.
pub fn key_set(bytes: &[u8]) {
    let registry = registry(KeySource::File("/keys".into()));
    let issuers = registry.issuers();
    let issuer = issuers.iter().next().unwrap();
    let taken = issuers.take_keys(issuer, bytes);
    assert_eq!(taken.is_ok(), issuer.key_count() > 0);
    // Whatever the keys are, none has signed this.
    for head in [r#"{"alg":"RS256"}"#, r#"{"alg":"ES256"}"#, r#"{"alg":"EdDSA"}"#, r#"{"alg":"HS256"}"#] {
        let claims = r#"{"iss":"a","sub":"mary","aud":"meridian","exp":9,"operator":true}"#;
        assert!(registry.caller(&signed(head, claims), 0).is_err(), "{head}");
    }
}

/// The discovery document of an issuer on another machine. All its endpoints must belong to the issuer and use TLS.
pub fn discovery(bytes: &[u8]) {
    let registry = registry_of("https://login.example.org/", KeySource::Discovered);
    let issuers = registry.issuers();
    let issuer = issuers.iter().next().unwrap();
    let Ok((keys, endpoints)) = issuer.discovered(bytes) else { return };
    let signing_in = endpoints.iter().flat_map(|found| [&found.authorization, &found.token]);
    for url in signing_in.chain([&keys]) {
        assert!(url.starts_with("https://") && !url.contains('#'), "{url}");
    }
    issuer.take_endpoints(endpoints.clone());
    assert_eq!(issuer.endpoints().as_deref(), endpoints.as_ref());
}
