//! Sessions that began at an issuer: they count wherever the rules of the issuer are the same.

use super::super::super::tests::registry;
use super::super::super::{Registry, Session, SessionLimits, Tenant};
use super::super::*;
use super::issuer::{NOW, NOW_S, SECRET, hmac, sealed, settings};
use meridian_model::policy::access::Role;
use serde_json::json;
use std::path::PathBuf;

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
    // Another server grants the user other rights, so it asks the issuer again but keeps the record. A server that does
    // not know the issuer does the same.
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
