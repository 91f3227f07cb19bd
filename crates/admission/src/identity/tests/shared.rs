//! Two registries over one vault, as two servers share records.

use super::*;

#[test]
fn what_one_process_changes_counts_at_the_other() {
    for forgets in [false, true] {
        let (vault, one) = registry();
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
        // Used here, which the other one learns from the record.
        two.session(&session, &LIMITS, NOW + 90).unwrap();
        two.tend_sessions(&LIMITS, NOW + 90).unwrap();
        one.follow().unwrap();
        assert!(one.session(&session, &LIMITS, NOW + 150).is_ok());
        // A token is revoked at either, and what works for it ends at both.
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
        one.remove_tenant("other").unwrap();
        assert!(two.follow().unwrap().contains("other"));
        assert!(ledger.is_closed() && two.tenant("other").is_none() && !two.has_users());
        assert!(!kept.is_void(NOW) && two.caller(&passing, NOW).is_ok(), "the rest goes on");
        assert!(
            vault.records.lock().keys().all(|name| name.starts_with("token-")),
            "{:?}",
            vault.records.lock().keys()
        );
        // A tenant of the name that was made anew is another.
        one.create_tenant(Tenant { created: NOW, ..Tenant::new("third") }).unwrap();
        two.follow().unwrap();
        let before = two.ledger("third").unwrap();
        one.remove_tenant("third").unwrap();
        one.create_tenant(Tenant { created: NOW + 1, ..Tenant::new("third") }).unwrap();
        two.follow().unwrap();
        assert!(before.is_closed() && !two.ledger("third").unwrap().is_closed());
    }
}

#[test]
fn of_two_changes_at_once_the_second_is_made_of_what_the_first_left() {
    let (vault, one) = registry();
    one.create_tenant(Tenant::new("other")).unwrap();
    let two = Arc::new(Registry::open(vault.clone()).unwrap());
    let between = |act: fn(&Registry)| {
        let two = two.clone();
        *vault.meanwhile.lock() = Some(Box::new(move || act(&two)));
    };
    let quota = |registry: &Registry, quota, limit| {
        registry.change_tenant("other", |tenant| tenant.quotas.set(quota, Some(limit))).unwrap();
    };
    // Neither loses what the other has set.
    between(|two| drop(two.change_tenant("other", |tenant| tenant.quotas.set(Quota::Searches, Some(2))).unwrap()));
    quota(&one, Quota::EventsPerSecond, 7);
    let ledger = one.ledger("other").unwrap();
    assert_eq!((ledger.limit(Quota::Searches), ledger.limit(Quota::EventsPerSecond)), (Some(2), Some(7)));
    // Nor is a name given twice, or something made in what has gone.
    between(|two| drop(user(two, None, "anna")));
    let grant = Grant { role: Role::Reader, collections: Pattern::all() };
    let password = PasswordDigest::of_nobody();
    let new = NewUser { name: "anna".to_owned(), tenant: None, grant, password };
    assert_eq!(one.create_user(new, NOW).unwrap_err(), Fault::Exists("user", "anna".to_owned()));
    between(|two| two.remove_tenant("other").unwrap());
    assert!(matches!(one.create_token(&reader(Some("other"), None), NOW), Err(Fault::Invalid(_))));
    let (login, password) = user(&one, None, "berta");
    two.follow().unwrap();
    between(|two| two.remove_user(&two.user(&Login::of("", "berta")).unwrap()).unwrap());
    assert!(one.begin_session(&login, &password, &LIMITS, NOW).unwrap().is_none());
    assert!(!vault.records.lock().keys().any(|name| name.starts_with("session-")));
}

#[test]
fn a_record_of_another_process_that_does_not_read_changes_nothing() {
    let (vault, one) = registry();
    let (_, text) = one.create_token(&reader(None, None), NOW).unwrap();
    vault.put("token-1", b"{");
    assert!(matches!(one.follow(), Err(Fault::Vault(why)) if why.contains("token-1")));
    assert!(one.caller(&text, NOW).is_ok());
    assert!(matches!(one.create_token(&reader(None, None), NOW), Err(Fault::Vault(_))), "nothing is built on it");
}
