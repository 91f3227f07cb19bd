//! Tokens with each kind of key, and invalid tokens.

mod issuer;
mod sessions;

use super::*;
use ::ring::signature::{Ed25519KeyPair, KeyPair};
use data_encoding::BASE64URL_NOPAD as BASE64;
use issuer::{ISSUER, Keys, NOW, NOW_S, SECRET, claims, hmac, sealed, sealed_message, trusting, with};
use meridian_model::policy::access::Role;
use serde_json::{Value, json};

#[test]
fn a_token_of_every_kind_of_key_stands_for_its_subject() {
    let keys = Keys::new();
    let registry = trusting(&keys);
    assert!(!registry.is_empty(), "an issuer is a credential");
    let internal = with(|claims| claims["iss"] = json!("internal"));
    for (head, claims, name) in [
        (json!({ "alg": "RS256", "kid": "rsa", "typ": "at+jwt" }), &claims(), "jwt:login:mary"),
        (json!({ "alg": "ES256", "kid": "ec" }), &claims(), "jwt:login:mary"),
        (json!({ "alg": "EdDSA", "kid": "ed" }), &claims(), "jwt:login:mary"),
        // If there is only one key of this algorithm, it needs no id.
        (json!({ "alg": "EdDSA" }), &claims(), "jwt:login:mary"),
        (json!({ "alg": "HS256" }), &internal, "jwt:internal:mary"),
        (json!({ "alg": "HS256", "kid": "any" }), &internal, "jwt:internal:mary"),
    ] {
        let token = keys.token(head.clone(), claims);
        let caller = registry.caller(&token, NOW).unwrap_or_else(|why| panic!("{head}: {why:?}"));
        assert_eq!((&*caller.name, &*caller.tenant, caller.grant.role), (name, "harbour", Role::Writer));
        assert!(caller.grant.collections.covers("ships-2") && !caller.grant.collections.covers("vault"));
        // The second time it is not verified again: it is the very same caller.
        assert!(Arc::ptr_eq(&caller, &registry.caller(&token, NOW).unwrap()));
        // The caller becomes void when the token expires, skew included.
        assert!(!caller.is_void(NOW + 629_999_999) && caller.is_void(NOW + 630_000_000));
        assert_eq!(caller.gives_until(), Some(NOW + 630_000_000));
        assert_eq!(registry.caller(&token, NOW + 630_000_000).unwrap_err(), Unknown::Expired);
    }
    let operator = keys.token(json!({ "alg": "EdDSA" }), &with(|claims| claims["groups"] = json!("operations")));
    assert!(registry.caller(&operator, NOW).unwrap().is_operator());
}

#[test]
fn keys_of_one_id_all_count_within_a_bound() {
    let keys = Keys::new();
    let registry = trusting(&keys);
    let issuer = registry.issuers().iter().next().unwrap();
    let ed = |seed: u8| Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
    let key = |seed: u8| json!({ "kid": "same", "kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(ed(seed).public_key().as_ref()) });
    // One of another kind is tried for its own algorithm alone.
    let mut rsa = keys.set()["keys"][0].clone();
    rsa["kid"] = json!("same");
    let set = json!({ "keys": [rsa, key(20), key(21), key(22), key(23), key(24)] });
    registry.issuers().take_keys(issuer, set.to_string().as_bytes()).unwrap();
    let by = |seed: u8| {
        sealed(&json!({ "alg": "EdDSA", "kid": "same" }), &claims(), |message| ed(seed).sign(message).as_ref().to_vec())
    };
    for seed in 20..24 {
        assert_eq!(&*registry.caller(&by(seed), NOW).unwrap().name, "jwt:login:mary", "{seed}");
    }
    for seed in [24, 30] {
        assert_eq!(registry.caller(&by(seed), NOW).unwrap_err(), Unknown::Jwt("its signature is wrong"), "{seed}");
    }
    let of_rsa = keys.token(json!({ "alg": "RS256", "kid": "same" }), &claims());
    assert!(registry.caller(&of_rsa, NOW).is_ok());
    // What a later key signed must still be for this server.
    let foreign = with(|claims| claims["aud"] = json!("other"));
    let foreign =
        sealed(&json!({ "alg": "EdDSA", "kid": "same" }), &foreign, |message| ed(21).sign(message).as_ref().to_vec());
    assert_eq!(registry.caller(&foreign, NOW).unwrap_err(), Unknown::Jwt("it is for another audience"));
}

#[test]
fn a_token_that_is_not_what_it_claims_stands_for_nobody() {
    let keys = Keys::new();
    let registry = trusting(&keys);
    let ed = || json!({ "alg": "EdDSA", "kid": "ed" });
    let good = keys.token(ed(), &claims());
    assert!(registry.caller(&good, NOW).is_ok());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (head, payload) = message.split_once('.').unwrap();
    let other = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
    let admin = BASE64.encode(with(|claims| claims["groups"] = json!("operations")).to_string().as_bytes());
    let none = |name: &str| format!("{}.{payload}.", BASE64.encode(json!({ "alg": name }).to_string().as_bytes()));
    let public = keys.rsa.public_key().as_ref().to_vec();
    let mut flipped = BASE64.decode(signature.as_bytes()).unwrap();
    flipped[10] ^= 1;
    let claim = |change: &dyn Fn(&mut Value)| keys.token(ed(), &with(|claims| change(claims)));
    let text = claims().to_string();
    let twice = |name: &str, other: &str| {
        let other = format!("{{\"{name}\":\"{other}\",");
        keys.sealed_text(&ed(), &text.replacen('{', &other, 1))
    };
    let cases = [
        ("forged", "signature", format!("{message}.{}", BASE64.encode(&flipped))),
        ("other claims", "signature", format!("{head}.{admin}.{signature}")),
        ("no signature", "signature", format!("{message}.")),
        ("a part less", "head cannot", message.to_owned()),
        ("a part more", "head cannot", format!("{good}.x")),
        ("wrong key", "signature", sealed(&ed(), &claims(), |message| other.sign(message).as_ref().to_vec())),
        ("none", "head cannot", none("none")),
        ("None", "head cannot", none("None")),
        ("no algorithm", "head cannot", format!("{}.{payload}.{signature}", BASE64.encode(b"{}"))),
        // The public key, which everyone knows, used as a secret.
        (
            "confused",
            "key is not known",
            sealed(&json!({ "alg": "HS256", "kid": "rsa" }), &claims(), |message| hmac(&public, message)),
        ),
        (
            "confused, without a name",
            "key is not known",
            sealed(&json!({ "alg": "HS256" }), &claims(), |message| hmac(&public, message)),
        ),
        ("shared in public", "key is not known", keys.token(json!({ "alg": "HS256", "kid": "shared" }), &claims())),
        (
            "wrong algorithm for the key",
            "key is not known",
            keys.token(json!({ "alg": "ES256", "kid": "ed" }), &claims()),
        ),
        (
            "a key for other things",
            "key is not known",
            keys.token(json!({ "alg": "RS256", "kid": "for-secrets" }), &claims()),
        ),
        (
            "an algorithm that is not served",
            "key is not known",
            keys.token(json!({ "alg": "RS512", "kid": "rsa" }), &claims()),
        ),
        ("unknown key", "key is not known", keys.token(json!({ "alg": "EdDSA", "kid": "ed2" }), &claims())),
        (
            "a key of its own",
            "key is not known",
            keys.token(json!({ "alg": "EdDSA", "kid": "x", "jwk": keys.set()["keys"][2] }), &claims()),
        ),
        ("a key of its own under a known name", "signature", {
            let x = BASE64.encode(other.public_key().as_ref());
            let head = json!({ "alg": "EdDSA", "kid": "ed", "jwk": { "kty": "OKP", "crv": "Ed25519", "x": x } });
            sealed(&head, &claims(), |message| other.sign(message).as_ref().to_vec())
        }),
        (
            "critical",
            "not supported",
            keys.token(json!({ "alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": false }), &claims()),
        ),
        (
            "a token for other things",
            "its type",
            keys.token(json!({ "alg": "EdDSA", "kid": "ed", "typ": "logout+jwt" }), &claims()),
        ),
        ("the issuer twice", "claims cannot", twice("iss", "https://evil.example.org/")),
        ("the audience twice", "claims cannot", twice("aud", "other")),
        ("the groups twice", "claims cannot", twice("groups", "ops")),
        ("the subject twice", "claims cannot", twice("sub", "root")),
        (
            "the end twice",
            "claims cannot",
            keys.sealed_text(&ed(), &text.replacen("\"exp\":", "\"exp\":99999999999,\"exp\":", 1)),
        ),
        ("the algorithm twice", "head cannot", {
            let head = BASE64.encode(br#"{"alg":"EdDSA","alg":"EdDSA","kid":"ed"}"#);
            sealed_message(&format!("{head}.{payload}"), |message| keys.sign("EdDSA", message))
        }),
        (
            "foreign issuer",
            "issuer is not trusted",
            claim(&|claims| claims["iss"] = json!("https://evil.example.org/")),
        ),
        ("two issuers", "issuer is not trusted", claim(&|claims| claims["iss"] = json!([ISSUER, "x"]))),
        ("the issuer of another key", "key is not known", claim(&|claims| claims["iss"] = json!("internal"))),
        ("foreign audience", "another audience", claim(&|claims| claims["aud"] = json!("other"))),
        ("no audience", "malformed", claim(&|claims| claims["aud"] = json!(null))),
        ("no subject", "malformed", claim(&|claims| claims["sub"] = json!(null))),
        ("a subject with a line", "short text", claim(&|claims| claims["sub"] = json!("mary\nroot"))),
        (
            "a subject that turns a line around",
            "short text",
            claim(&|claims| claims["sub"] = json!("mary\u{202e}toor")),
        ),
        ("long subject", "short text", claim(&|claims| claims["sub"] = json!("m".repeat(256)))),
        ("no end", "malformed", claim(&|claims| claims["exp"] = json!(null))),
        ("an end in words", "malformed", claim(&|claims| claims["exp"] = json!("never"))),
        ("an end before all time", "malformed", claim(&|claims| claims["exp"] = json!(-1))),
        ("an end after all time", "malformed", claim(&|claims| claims["exp"] = json!(1e300))),
        ("expired", "Expired", claim(&|claims| claims["exp"] = json!(NOW_S - 31))),
        ("not yet valid", "not valid yet", claim(&|claims| claims["nbf"] = json!(NOW_S + 31))),
        ("a beginning in words", "claim of time", claim(&|claims| claims["nbf"] = json!("99999999999"))),
        ("no rule", "NoRule", claim(&|claims| claims["groups"] = json!(["all"]))),
        ("a tenant that does not exist", "NoTenant", claim(&|claims| claims["groups"] = json!("lost"))),
        ("oversized", "too many bytes", claim(&|claims| claims["more"] = json!("x".repeat(TOKEN_BYTES_MAX)))),
        ("bytes", "head cannot", "\u{0}.\u{0}.\u{0}".to_owned()),
        ("dots", "head cannot", "..".to_owned()),
    ];
    for (what, why, token) in cases {
        let refused = format!("{:?}", registry.caller(&token, NOW).unwrap_err());
        assert!(refused.contains(why), "{what}: {refused}");
    }
    // Within the skew.
    assert!(registry.caller(&claim(&|claims| claims["exp"] = json!(NOW_S - 29)), NOW).is_ok());
    assert!(registry.caller(&claim(&|claims| claims["nbf"] = json!(NOW_S as f64 + 29.5)), NOW).is_ok());
}

#[test]
fn a_suspension_ends_the_callers_of_its_tenant_and_the_token_is_refused() {
    let keys = Keys::new();
    let registry = trusting(&keys);
    let suspend = |suspended| {
        let changed = registry.change_tenant("harbour", |tenant| {
            tenant.suspended = suspended;
            Ok(())
        });
        changed.unwrap();
    };
    let token = keys.token(json!({ "alg": "EdDSA" }), &claims());
    let operator = keys.token(json!({ "alg": "EdDSA" }), &with(|claims| claims["groups"] = json!("operations")));
    let (before, at_work) = (registry.caller(&token, NOW).unwrap(), registry.caller(&operator, NOW).unwrap());
    suspend(true);
    assert!(before.is_void(NOW) && before.is_revocable());
    assert_eq!(registry.caller(&token, NOW).unwrap_err(), Unknown::Suspended);
    assert!(!at_work.is_void(NOW) && registry.caller(&operator, NOW).is_ok());
    suspend(false);
    let after = registry.caller(&token, NOW).unwrap();
    assert!(before.is_void(NOW) && !after.is_void(NOW));
    suspend(true);
    registry.remove_tenant("harbour", registry.tenant("harbour").unwrap().created).unwrap();
    assert!(after.is_void(NOW) && registry.caller(&token, NOW).is_err());
}

#[test]
fn forged_tokens_of_an_address_are_refused_unverified_and_good_ones_that_are_known_are_not() {
    let keys = Keys::new();
    let registry = trusting(&keys);
    let (bad, other) = (Some("192.0.2.1".parse().unwrap()), Some("192.0.2.2".parse().unwrap()));
    let good = |subject: &str| keys.token(json!({ "alg": "EdDSA" }), &with(|claims| claims["sub"] = json!(subject)));
    let (known, new) = (good("mary"), good("anna"));
    assert!(registry.caller_from(&known, bad, NOW).is_ok());
    // Of another key, but with the head and claims of a good one.
    let forged = format!("{}.{}", known.rsplit_once('.').unwrap().0, new.rsplit_once('.').unwrap().1);
    for _ in 0..failures::FREE {
        assert_eq!(registry.caller_from(&forged, bad, NOW).unwrap_err(), Unknown::Jwt("its signature is wrong"));
    }
    assert!(matches!(registry.caller_from(&forged, bad, NOW), Err(Unknown::TooMany(_))));
    assert!(matches!(registry.caller_from(&new, bad, NOW), Err(Unknown::TooMany(_))));
    assert!(registry.caller_from(&known, bad, NOW).is_ok(), "it costs no check");
    assert_eq!(registry.caller_from(&forged, other, NOW).unwrap_err(), Unknown::Jwt("its signature is wrong"));
    // A good one after a short wait does not count.
    assert!(registry.caller_from(&new, bad, NOW + failures::FORGOTTEN).is_ok());
    assert!(registry.caller_from(&good("eve"), bad, NOW + failures::FORGOTTEN).is_ok());
}

#[test]
fn keys_that_are_withdrawn_verify_nothing_and_bad_ones_change_nothing() {
    let keys = Keys::new();
    let registry = trusting(&keys);
    let (issuers, token) = (registry.issuers(), keys.token(json!({ "alg": "EdDSA", "kid": "ed" }), &claims()));
    let issuer = issuers.iter().next().unwrap();
    assert!(registry.caller(&token, NOW).is_ok());
    let long = " ".repeat(DOCUMENT_BYTES_MAX + 1);
    for bad in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#, "<html>", &long] {
        assert!(issuers.take_keys(issuer, bad.as_bytes()).is_err());
        assert!(registry.caller(&token, NOW).is_ok());
    }
    assert!(issuers.take_keys(issuers.iter().nth(1).unwrap(), b" too short \n").unwrap_err().contains("32"));
    let mut set = keys.set();
    set["keys"].as_array_mut().unwrap().remove(2);
    issuers.take_keys(issuer, set.to_string().as_bytes()).unwrap();
    assert!(registry.caller(&token, NOW).is_err(), "though it was verified before");
}

#[test]
fn the_tokens_that_are_remembered_are_bounded() {
    let keys = Keys::new();
    let registry = trusting(&keys);
    for n in 0..VERIFIED_MAX + 500 {
        let token = sealed(
            &json!({ "alg": "HS256" }),
            &with(|claims| {
                claims["iss"] = json!("internal");
                claims["sub"] = json!(format!("user-{n}"));
            }),
            |message| hmac(SECRET, message),
        );
        assert!(registry.caller(&token, NOW).is_ok());
    }
    assert!(registry.issuers().verified.len() <= VERIFIED_MAX);
}
