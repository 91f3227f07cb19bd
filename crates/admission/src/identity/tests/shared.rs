//! Tests of two registries over one vault, as two servers share records.

use super::super::registry::{KINDS, record};
use super::*;
use std::collections::BTreeSet;

fn shared() -> (Arc<Memory>, Registry) {
    let (vault, registry) = registry();
    vault.shared.store(true, Ordering::Relaxed);
    (vault, registry)
}

#[test]
fn what_one_process_changes_counts_at_the_other() {
    for forgets in [false, true] {
        let (vault, one) = shared();
        let two = Registry::open(vault.clone()).unwrap();
        vault.forgets.store(forgets, Ordering::Relaxed);
        one.create_tenant(Tenant::new("other")).unwrap();
        let (token, text) = one.create_token(&reader(Some("other"), None), NOW).unwrap();
        let (_, stays) = one.create_token(&reader(None, None), NOW).unwrap();
        let passing = two.create_passing(NOW).unwrap();
        let (login, password) = user(&one, Some("other"), "anna");
        let (_, session) = one.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
        assert_eq!(two.caller(&text, NOW).unwrap_err(), Unknown::Credential, "not heard of yet");
        assert!(two.follow().unwrap().contains("other"));
        assert!(two.follow().unwrap().is_empty(), "nothing new");
        let (caller, begun) = (two.caller(&text, NOW).unwrap(), two.session(&session, &LIMITS, NOW).unwrap());
        let kept = two.caller(&stays, NOW).unwrap();
        assert!(two.caller(&passing, NOW).is_ok());
        // The session is used here, which the other learns from the record.
        two.session(&session, &LIMITS, NOW + 90).unwrap();
        two.tend_sessions(&LIMITS, NOW + 90).unwrap();
        one.follow().unwrap();
        assert!(one.session(&session, &LIMITS, NOW + 150).is_ok());
        // A token is revoked at either, and its work ends at both.
        two.revoke_token(None, &token.id).unwrap();
        assert!(caller.is_void(NOW));
        one.follow().unwrap();
        assert_eq!(one.caller(&text, NOW).unwrap_err(), Unknown::Credential);
        one.change_tenant("other", |tenant| {
            tenant.suspended = true;
            Ok(())
        })
        .unwrap();
        two.follow().unwrap();
        assert!(begun.caller().is_void(NOW) && two.count_sessions() == 0);
        assert!(two.tenant("other").unwrap().suspended);
        let ledger = two.ledger("other").unwrap();
        one.remove_tenant("other", 0).unwrap();
        assert!(two.follow().unwrap().contains("other"));
        assert!(ledger.is_closed() && two.tenant("other").is_none() && !two.has_users());
        assert!(!kept.is_void(NOW) && two.caller(&passing, NOW).is_ok(), "the rest goes on");
        assert!(
            vault.records.lock().keys().all(|name| name.starts_with("token-")),
            "{:?}",
            vault.records.lock().keys()
        );
        // A tenant created again under the same name is a different one.
        one.create_tenant(Tenant { created: NOW, ..Tenant::new("third") }).unwrap();
        two.follow().unwrap();
        let before = two.ledger("third").unwrap();
        remove(&one, "third");
        one.create_tenant(Tenant { created: NOW + 1, ..Tenant::new("third") }).unwrap();
        two.follow().unwrap();
        assert!(before.is_closed() && !two.ledger("third").unwrap().is_closed());
    }
}

#[test]
fn of_two_changes_at_once_the_second_is_made_of_what_the_first_left() {
    let (vault, one) = shared();
    one.create_tenant(Tenant::new("other")).unwrap();
    let two = Arc::new(Registry::open(vault.clone()).unwrap());
    let between = |act: fn(&Registry)| {
        let two = two.clone();
        *vault.meanwhile.lock() = Some(Box::new(move || act(&two)));
    };
    let quota = |registry: &Registry, quota, limit| {
        registry.change_tenant("other", |tenant| tenant.quotas.set(quota, Some(limit))).unwrap();
    };
    // Neither overwrites the other's settings.
    between(|two| drop(two.change_tenant("other", |tenant| tenant.quotas.set(Quota::Searches, Some(2))).unwrap()));
    quota(&one, Quota::EventsPerSecond, 7);
    let ledger = one.ledger("other").unwrap();
    assert_eq!((ledger.limit(Quota::Searches), ledger.limit(Quota::EventsPerSecond)), (Some(2), Some(7)));
    // A name is not given twice, and nothing is created in what is gone.
    between(|two| drop(user(two, None, "anna")));
    let grant = Grant { role: Role::Reader, collections: Pattern::all() };
    let password = PasswordDigest::of_nobody();
    let new = NewUser { name: "anna".to_owned(), tenant: None, grant, password };
    assert_eq!(one.create_user(new, NOW).unwrap_err(), Fault::Exists("user", "anna".to_owned()));
    between(|two| remove(two, "other"));
    assert!(matches!(one.create_token(&reader(Some("other"), None), NOW), Err(Fault::Invalid(_))));
    let (login, password) = user(&one, None, "berta");
    two.follow().unwrap();
    between(|two| two.remove_user(&two.user(&Login::of("", "berta")).unwrap()).unwrap());
    assert!(one.begin_session(&login, &password, &LIMITS, NOW).unwrap().is_none());
    assert!(!vault.records.lock().keys().any(|name| name.starts_with("session-")));
}

#[test]
fn a_record_of_another_process_that_does_not_read_changes_nothing() {
    let (vault, one) = shared();
    let (_, text) = one.create_token(&reader(None, None), NOW).unwrap();
    vault.put("token-1", b"{");
    assert!(matches!(one.follow(), Err(Fault::Vault(why)) if why.contains("token-1")));
    assert!(one.caller(&text, NOW).is_ok());
    assert!(matches!(one.create_token(&reader(None, None), NOW), Err(Fault::Vault(_))), "nothing is built on it");
}

#[test]
fn a_user_that_is_removed_and_made_again_is_found_where_all_records_are_taken_up() {
    let (vault, one) = shared();
    let two = Registry::open(vault.clone()).unwrap();
    vault.forgets.store(true, Ordering::Relaxed);
    let (login, _) = user(&one, None, "anna");
    two.follow().unwrap();
    one.remove_user(&one.user(&login).unwrap()).unwrap();
    let (login, password) = user(&one, None, "anna");
    two.follow().unwrap();
    assert_eq!(two.user(&login).map(|user| user.id.clone()), one.user(&login).map(|user| user.id.clone()));
    assert!(two.begin_session(&login, &password, &LIMITS, NOW).unwrap().is_some());
    let grant = Grant { role: Role::Reader, collections: Pattern::all() };
    assert!(matches!(two.check_user("anna", None, &grant), Err(Fault::Exists(..))), "no name is given twice");
}

#[test]
fn records_that_are_taken_up_again_change_no_tenant() {
    let (vault, one) = shared();
    let two = Registry::open(vault.clone()).unwrap();
    vault.forgets.store(true, Ordering::Relaxed);
    one.create_tenant(Tenant { suspended: true, ..Tenant::new("other") }).unwrap();
    assert_eq!(two.follow().unwrap(), BTreeSet::from(["other".to_owned()]));
    one.create_tenant(Tenant::new("third")).unwrap();
    assert_eq!(two.follow().unwrap(), BTreeSet::from(["third".to_owned()]));
    assert!(one.follow().unwrap().is_empty(), "who makes a change knows of it");
}

#[test]
fn a_session_whose_record_could_not_be_removed_ends_everywhere_once_it_can() {
    let (vault, one) = shared();
    let two = Registry::open(vault.clone()).unwrap();
    let (login, password) = user(&one, None, "anna");
    let (_, text) = one.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
    two.follow().unwrap();
    vault.full.store(true, Ordering::Relaxed);
    assert!(matches!(one.end_session(&text), Err(Fault::Vault(_))));
    vault.full.store(false, Ordering::Relaxed);
    // It does not come back when all records are read again.
    vault.forgets.store(true, Ordering::Relaxed);
    two.create_token(&reader(None, None), NOW).unwrap();
    one.follow().unwrap();
    assert!(one.session(&text, &LIMITS, NOW).is_err() && two.session(&text, &LIMITS, NOW).is_ok());
    one.tend_sessions(&LIMITS, NOW).unwrap();
    two.follow().unwrap();
    assert!(two.session(&text, &LIMITS, NOW).is_err());
    assert!(!vault.records.lock().keys().any(|name| name.starts_with("session-")));
}

#[test]
fn a_session_is_not_removed_by_a_server_that_has_not_heard_of_its_use() {
    let (vault, one) = shared();
    let two = Registry::open(vault.clone()).unwrap();
    let (login, password) = user(&one, None, "anna");
    let (_, text) = one.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
    two.follow().unwrap();
    one.session(&text, &LIMITS, NOW + 90).unwrap();
    two.tend_sessions(&LIMITS, NOW + 100).unwrap();
    one.follow().unwrap();
    assert!(one.session(&text, &LIMITS, NOW + 150).is_ok());
    assert_eq!(two.session(&text, &LIMITS, NOW + 150).unwrap_err(), Unknown::Expired);
    one.tend_sessions(&LIMITS, NOW + 150).unwrap();
    two.follow().unwrap();
    assert!(two.session(&text, &LIMITS, NOW + 200).is_ok(), "it hears of the use");
    // An eighth of the idle time and two minutes after its end.
    two.tend_sessions(&LIMITS, NOW + 300 + 12 + 120_000_000).unwrap();
    assert!(!vault.records.lock().keys().any(|name| name.starts_with("session-")));
}

#[test]
fn a_tenant_that_another_process_has_resumed_or_made_again_is_not_removed() {
    let (vault, one) = shared();
    one.create_tenant(Tenant { suspended: true, created: NOW, ..Tenant::new("other") }).unwrap();
    let two = Arc::new(Registry::open(vault.clone()).unwrap());
    let between = |act: fn(&Registry)| {
        let two = two.clone();
        *vault.meanwhile.lock() = Some(Box::new(move || act(&two)));
    };
    let changed = Fault::Changed("tenant", "other".to_owned());
    between(|two| {
        let resumed = two.change_tenant("other", |tenant| {
            tenant.suspended = false;
            Ok(())
        });
        resumed.unwrap();
    });
    assert_eq!(one.remove_tenant("other", NOW).unwrap_err(), changed);
    remove(&two, "other");
    two.create_tenant(Tenant { suspended: true, created: NOW + 1, ..Tenant::new("other") }).unwrap();
    assert_eq!(one.remove_tenant("other", NOW).unwrap_err(), changed);
    one.remove_tenant("other", NOW + 1).unwrap();
}

#[test]
fn a_session_that_only_this_process_cannot_read_stays() {
    for is_shared in [true, false] {
        let (vault, _) = registry();
        vault.shared.store(is_shared, Ordering::Relaxed);
        vault.put("session-1", br#"{"of":"a newer version"}"#);
        let registry = Registry::open(vault.clone()).unwrap();
        registry.tend_sessions(&LIMITS, NOW).unwrap();
        assert_eq!(vault.records.lock().contains_key("session-1"), is_shared);
    }
}

/// Adds a field to a record, as a newer program would.
fn add_field(vault: &Memory, name: &str) {
    let content = vault.records.lock().get(name).cloned().unwrap();
    let mut record: serde_json::Value = serde_json::from_slice(&content).unwrap();
    record["of_a_newer_program"] = serde_json::json!({"only": ["from here"]});
    vault.put(name, &serde_json::to_vec(&record).unwrap());
}

#[test]
fn a_record_of_a_newer_program_lets_nobody_in_is_kept_and_stops_nothing_else() {
    let (vault, one) = shared();
    let (token, text) = one.create_token(&reader(None, None), NOW).unwrap();
    let (_, other) = one.create_token(&reader(None, None), NOW).unwrap();
    let (login, password) = user(&one, None, "anna");
    one.create_tenant(Tenant::new("other")).unwrap();
    let (caller, before) = (one.caller(&text, NOW).unwrap(), one.password(Some(&login)));
    let id = one.user(&login).unwrap().id.clone();
    let names = [record(KINDS.token, &token.id), record(KINDS.user, &id), record(KINDS.tenant, "other")];
    names.iter().for_each(|name| add_field(&vault, name));
    one.follow().unwrap();
    // The field may be a restriction: work under the token ends as well.
    assert_eq!(one.caller(&text, NOW).unwrap_err(), Unknown::Credential);
    assert!(caller.is_void(NOW) && one.password(Some(&login)) != before);
    assert!(one.begin_session(&login, &password, &LIMITS, NOW).unwrap().is_none());
    assert!(one.caller(&other, NOW).is_ok() && !one.is_empty());
    // A change made here preserves the unknown field.
    one.change_tenant("other", |tenant| {
        tenant.weight = 7;
        Ok(())
    })
    .unwrap();
    let content = vault.records.lock().get(&names[2]).cloned().unwrap();
    let content: serde_json::Value = serde_json::from_slice(&content).unwrap();
    assert!(content["of_a_newer_program"].is_object() && content["weight"] == 7, "{content}");
    assert_eq!(Registry::open(vault.clone()).unwrap().caller(&text, NOW).unwrap_err(), Unknown::Credential);
}
