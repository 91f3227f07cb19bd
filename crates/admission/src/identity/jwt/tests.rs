//! Tokens with each kind of key, and invalid tokens.

use super::super::tests::registry;
use super::super::{Registry, Session, SessionLimits, Tenant};
use super::*;
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
const NOW_S: i64 = 1_795_478_400;
const NOW: i64 = NOW_S * 1_000_000;
const ISSUER: &str = "https://login.example.org/";
const SECRET: &[u8] = b"a secret of this test that has more than 32 bytes";

fn settings(name: &str, issuer: &str, keys: KeySource) -> IssuerSettings {
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
struct Keys {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

impl Keys {
    fn new() -> Keys {
        let random = SystemRandom::new();
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Keys {
            // Used by this test only: ring cannot generate RSA keys.
            rsa: RsaKeyPair::from_der(include_bytes!("rsa-of-tests.der")).unwrap(),
            ec: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random).unwrap(),
            ed: Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap(),
        }
    }

    fn set(&self) -> Value {
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

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
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

    fn token(&self, head: Value, claims: &Value) -> String {
        self.sealed_text(&head, &claims.to_string())
    }

    fn sealed_text(&self, head: &Value, claims: &str) -> String {
        let algorithm = head["alg"].as_str().unwrap();
        let message = format!("{}.{}", BASE64.encode(head.to_string().as_bytes()), BASE64.encode(claims.as_bytes()));
        sealed_message(&message, |message| self.sign(algorithm, message))
    }
}

fn hmac(secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec()
}

fn sealed(head: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let message =
        format!("{}.{}", BASE64.encode(head.to_string().as_bytes()), BASE64.encode(claims.to_string().as_bytes()));
    sealed_message(&message, sign)
}

fn sealed_message(message: &str, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    format!("{message}.{}", BASE64.encode(&sign(message.as_bytes())))
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "sub": "mary", "aud": ["other", "meridian"], "exp": NOW_S + 600, "groups": ["all", "sailors"] })
}

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = claims();
    change(&mut claims);
    claims
}

/// Builds a registry with a tenant that trusts the issuer, and an issuer with a secret.
fn trusting(keys: &Keys) -> Registry {
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
        ("the issuer twice", "malformed", twice("iss", "https://evil.example.org/")),
        ("the audience twice", "malformed", twice("aud", "other")),
        ("the subject twice", "malformed", twice("sub", "root")),
        (
            "the end twice",
            "malformed",
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

/// Returns settings of an issuer at which users sign in with this role.
fn signing_in(role: Role) -> Vec<IssuerSettings> {
    let mut company = settings("company", "internal", KeySource::Secret(PathBuf::from("/key")));
    company.rules[0].grant.role = role;
    company.sign_in = Some(SignInSettings {
        client_id: "client".to_owned(),
        client_secret: None,
        title: "Company".to_owned(),
        scopes: Vec::new(),
        session: Duration::from_secs(3600),
    });
    vec![company]
}

#[test]
fn a_session_at_an_issuer_counts_wherever_its_rules_are_the_same_and_nowhere_else() {
    let (vault, first) = registry();
    vault.shared.store(true, Ordering::Relaxed);
    first.create_tenant(Tenant::new("harbour")).unwrap();
    let open = |role| {
        let registry = Registry::open_trusting(vault.clone(), Issuers::new(signing_in(role))).unwrap();
        registry.issuers().take_keys(registry.issuers().iter().next().unwrap(), SECRET).unwrap();
        registry
    };
    let [one, two, other] = [Role::Writer, Role::Writer, Role::Reader].map(open);
    let limits = SessionLimits::default();
    let sign_in = |registry: &Registry| {
        let claims = json!({
            "iss": "internal", "sub": "mary", "aud": "client", "exp": NOW_S + 60, "iat": NOW_S, "nonce": "n",
            "groups": "sailors"
        });
        let token = sealed(&json!({ "alg": "HS256" }), &claims, |message| hmac(SECRET, message));
        registry.begin_session_at("company", &token, "n", &limits, NOW).unwrap().unwrap()
    };
    let follow = || [&one, &two, &other].map(|registry| registry.follow().unwrap());
    let counts = |registry: &Registry, text: &str, now| registry.session(text, &limits, now);
    let sessions = || vault.records.lock().keys().filter(|name| name.starts_with("session-")).count();

    let (begun, text) = sign_in(&one);
    assert_eq!(counts(&two, &text, NOW).unwrap_err(), Unknown::Credential, "not heard of yet");
    follow();
    let there: Arc<Session> = counts(&two, &text, NOW).unwrap();
    let of = |session: &Session| {
        let caller = session.caller();
        (
            caller.name.clone(),
            caller.tenant.clone(),
            caller.grant.role,
            session.expires(),
            caller.user().map(str::to_owned),
        )
    };
    assert_eq!(of(&there), of(&begun));
    assert_eq!((there.user(), there.caller().gives_until()), ("jwt:company:mary", Some(NOW + 3_600_000_000)));
    assert!(there.caller().grant.collections.covers("ships-2") && !there.caller().grant.collections.covers("vault"));
    // Another server grants her other rights, so it asks the issuer again but keeps the record. A server that does not
    // know the issuer does the same.
    assert_eq!(counts(&other, &text, NOW).unwrap_err(), Unknown::Credential);
    for registry in [&other, &first, &open(Role::Reader)] {
        registry.tend_sessions(&limits, NOW).unwrap();
    }
    follow();
    assert!(counts(&one, &text, NOW).is_ok() && counts(&two, &text, NOW).is_ok() && sessions() == 1);
    // The session outlives a restart with the same rules.
    assert!(counts(&open(Role::Writer), &text, NOW).is_ok());
    // A session ends everywhere: by signing out, with its tenant, or when its time is over.
    two.end_session(&text).unwrap().expect("it was one");
    follow();
    assert!(begun.caller().is_void(NOW) && counts(&one, &text, NOW).is_err() && sessions() == 0);
    let (begun, text) = sign_in(&one);
    follow();
    let suspend = |suspended| {
        two.change_tenant("harbour", |tenant| {
            tenant.suspended = suspended;
            Ok(())
        })
        .unwrap();
    };
    suspend(true);
    follow();
    assert!(begun.caller().is_void(NOW) && counts(&two, &text, NOW).is_err() && sessions() == 0);
    suspend(false);
    follow();
    assert!(counts(&one, &text, NOW).is_err());
    let (_, text) = sign_in(&two);
    follow();
    assert!(counts(&one, &text, NOW + 3_599_999_999).is_ok());
    assert_eq!(counts(&one, &text, NOW + 3_600_000_000).unwrap_err(), Unknown::Expired);
    // The server with other rules removes the record as well, but much later.
    other.tend_sessions(&limits, NOW + 3_600_000_000).unwrap();
    assert_eq!(sessions(), 1);
    other.tend_sessions(&limits, NOW + 2 * 86_400_000_000).unwrap();
    assert_eq!(sessions(), 0);
}

#[test]
fn a_session_at_an_issuer_ends_with_its_tenant_while_no_server_has_its_rules() {
    let (vault, first) = registry();
    vault.shared.store(true, Ordering::Relaxed);
    first.create_tenant(Tenant::new("harbour")).unwrap();
    let open = || Registry::open_trusting(vault.clone(), Issuers::new(signing_in(Role::Writer))).unwrap();
    let (limits, server) = (SessionLimits::default(), open());
    server.issuers().take_keys(server.issuers().iter().next().unwrap(), SECRET).unwrap();
    let claims = json!({
        "iss": "internal", "sub": "mary", "aud": "client", "exp": NOW_S + 60, "iat": NOW_S, "nonce": "n",
        "groups": "sailors"
    });
    let token = sealed(&json!({ "alg": "HS256" }), &claims, |message| hmac(SECRET, message));
    let (_, text) = server.begin_session_at("company", &token, "n", &limits, NOW).unwrap().unwrap();
    drop(server);
    // Like a command that works on the records, it knows no issuer.
    first.follow().unwrap();
    let suspend = |suspended| {
        first
            .change_tenant("harbour", |tenant| {
                tenant.suspended = suspended;
                Ok(())
            })
            .unwrap();
    };
    suspend(true);
    suspend(false);
    assert_eq!(open().session(&text, &limits, NOW).unwrap_err(), Unknown::Credential);
    assert!(vault.records.lock().keys().all(|name| !name.starts_with("session-")));
}
