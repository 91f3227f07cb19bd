//! Users and their sessions: how long they last, and what ends them.

use super::*;

/// Records that are separate files, one of which cannot be removed.
#[derive(Default)]
struct Apart {
    memory: Memory,
    stuck: Mutex<String>,
}

impl Vault for Apart {
    fn since(&self, version: u64) -> Result<Option<RecordChanges>, VaultError> {
        let news = if version == 0 { self.memory.since(0)? } else { None };
        Ok(news.map(|news| RecordChanges { version: 1, ..news }))
    }

    fn commit(&self, _: u64, changes: &[RecordChange]) -> Result<Option<u64>, VaultError> {
        for change in changes {
            if change.content.is_none() && change.name == *self.stuck.lock() {
                return Err(VaultError::Failed("it cannot be removed".to_owned()));
            }
            self.memory.make(std::slice::from_ref(change));
        }
        Ok(Some(1))
    }

    fn is_shared(&self) -> bool {
        false
    }
}

#[test]
fn a_session_lasts_while_it_is_used_and_not_beyond_its_lifetime() {
    let (vault, registry) = registry();
    let (login, password) = user(&registry, None, "anna");
    assert!(!registry.is_empty() && registry.has_users());
    let (session, text) = registry.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
    assert_eq!((&*session.caller().name, &*session.caller().tenant), ("user:anna", DEFAULT_TENANT));
    assert!(session.caller().is_revocable() && session.caller().gives_until().is_none());
    for step in 1..12 {
        assert!(registry.session(&text, &LIMITS, NOW + step * 90).is_ok() == (step < 12), "{step}");
    }
    assert_eq!(registry.session(&text, &LIMITS, NOW + 1_000).unwrap_err(), Unknown::Expired);
    assert_eq!(registry.session(&text, &LIMITS, NOW + 990 + 100).unwrap_err(), Unknown::Expired);
    // A restart restores the recorded time, which lags by at most an eighth of the idle time.
    registry.tend_sessions(&LIMITS, NOW + 990).unwrap();
    let again = Registry::open(vault.clone()).unwrap();
    assert!(again.session(&text, &LIMITS, NOW + 999).is_ok());
    again.tend_sessions(&LIMITS, NOW + 1_000).unwrap();
    assert!(!vault.records.lock().keys().any(|name| name.starts_with("session-")));
    let (_, text) = again.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
    for content in vault.records.lock().values() {
        let content = String::from_utf8_lossy(content).into_owned();
        assert!(!content.contains(text.rsplit('_').next().unwrap()) && !content.contains("correct horse"));
    }
    assert_eq!(again.session(&text.replace("mrs_", "mrd_"), &LIMITS, NOW).unwrap_err(), Unknown::Credential);
    assert_eq!(again.caller(&text, NOW).unwrap_err(), Unknown::Credential);
}

#[test]
fn a_changed_user_has_no_session_even_where_its_record_stays() {
    let (vault, registry) = registry();
    let (login, password) = user(&registry, None, "anna");
    let (session, text) = registry.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
    let kept: Vec<_> =
        vault.records.lock().clone().into_iter().filter(|(name, _)| name.starts_with("session-")).collect();
    let change = UserChange { disabled: Some(false), ..UserChange::default() };
    registry.change_user(&registry.user(&login).unwrap(), change).unwrap();
    assert!(session.caller().is_void(NOW));
    assert_eq!(registry.session(&text, &LIMITS, NOW).unwrap_err(), Unknown::Credential);
    // As after a crash between the two.
    for (name, content) in &kept {
        vault.put(name, content);
    }
    let again = Registry::open(vault.clone()).unwrap();
    assert_eq!(again.session(&text, &LIMITS, NOW).unwrap_err(), Unknown::Credential);
    assert!(!vault.records.lock().contains_key(&kept[0].0), "it is removed");
    // A damaged session costs its user a sign-in; a damaged user keeps the server from starting.
    vault.put(&kept[0].0, b"{");
    let again = Registry::open(vault.clone()).unwrap();
    assert!(again.begin_session(&login, &PasswordDigest::of_nobody(), &LIMITS, NOW).unwrap().is_none());
    assert!(again.begin_session(&login, &password, &LIMITS, NOW).unwrap().is_some());
    let name = vault.records.lock().keys().find(|name| name.starts_with("user-")).unwrap().clone();
    vault.put(&name, b"{}");
    assert!(matches!(Registry::open(vault), Err(Fault::Vault(_))));
}

#[test]
fn users_and_sessions_end_with_their_tenant() {
    let (vault, registry) = registry();
    registry.create_tenant(Tenant::new("other")).unwrap();
    let (login, password) = user(&registry, Some("other"), "anna");
    let begin = || registry.begin_session(&login, &password, &LIMITS, NOW).unwrap();
    let (session, text) = begin().unwrap();
    let suspend = |suspended| {
        let set = |tenant: &mut Tenant| {
            tenant.suspended = suspended;
            Ok(())
        };
        registry.change_tenant("other", set).unwrap();
    };
    suspend(true);
    assert!(session.caller().is_void(NOW) && begin().is_none());
    suspend(false);
    assert_eq!(registry.session(&text, &LIMITS, NOW).unwrap_err(), Unknown::Credential, "it has ended for good");
    let (session, _) = begin().unwrap();
    remove(&registry, "other");
    assert!(session.caller().is_void(NOW) && begin().is_none() && !registry.has_users());
    assert!(vault.records.lock().keys().all(|name| name.starts_with("tenant-")));
}

#[test]
fn a_user_that_cannot_be_written_does_not_change() {
    let (vault, registry) = registry();
    let (login, password) = user(&registry, None, "anna");
    let (_, text) = registry.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
    vault.full.store(true, Ordering::Relaxed);
    assert!(matches!(
        registry.change_user(&registry.user(&login).unwrap(), UserChange::default()),
        Err(Fault::Vault(_))
    ));
    assert!(matches!(registry.remove_user(&registry.user(&login).unwrap()), Err(Fault::Vault(_))));
    assert!(matches!(registry.begin_session(&login, &password, &LIMITS, NOW), Err(Fault::Vault(_))));
    assert!(registry.session(&text, &LIMITS, NOW).is_ok());
    // Signing out takes effect at once, and reports that a restart may bring the session back.
    assert!(matches!(registry.end_session(&text), Err(Fault::Vault(_))));
    assert!(registry.session(&text, &LIMITS, NOW).is_err());
}

#[test]
fn sessions_begin_and_end_without_a_copy_of_all_users_and_tokens() {
    let (_, registry) = registry();
    let (login, password) = user(&registry, None, "anna");
    let before = registry.now.load_full();
    let (_, text) = registry.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
    registry.session(&text, &LIMITS, NOW + 90).unwrap();
    registry.tend_sessions(&LIMITS, NOW + 90).unwrap();
    registry.end_session(&text).unwrap().unwrap();
    assert!(Arc::ptr_eq(&before, &registry.now.load_full()));
}

#[test]
fn a_record_that_cannot_be_removed_keeps_no_other() {
    let vault = Arc::new(Apart::default());
    let registry = Registry::open(vault.clone()).unwrap();
    let (login, password) = user(&registry, None, "anna");
    for _ in 0..8 {
        registry.begin_session(&login, &password, &LIMITS, NOW).unwrap().unwrap();
    }
    let sessions = || -> Vec<String> {
        vault.memory.records.lock().keys().filter(|name| name.starts_with("session-")).cloned().collect()
    };
    let stuck = sessions()[3].clone();
    vault.stuck.lock().clone_from(&stuck);
    registry.change_user(&registry.user(&login).unwrap(), UserChange::default()).unwrap();
    assert_eq!((registry.count_sessions(), sessions()), (0, vec![stuck]));
    assert!(registry.tend_sessions(&LIMITS, NOW).is_err());
    vault.stuck.lock().clear();
    registry.tend_sessions(&LIMITS, NOW).unwrap();
    assert_eq!(sessions(), Vec::<String>::new());
}
