//! Tests of the registry, over an in-memory vault that can fail.

mod sessions;
mod shared;

use super::*;
use meridian_model::policy::access::Pattern;
use meridian_model::policy::quota::Quota;
use meridian_model::{RecordChange, RecordChanges};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

/// Records shared by several registries, as processes share a bucket.
#[derive(Default)]
pub(super) struct Memory {
    pub records: Mutex<BTreeMap<String, Vec<u8>>>,
    /// All changes; the version is their number.
    changes: Mutex<Vec<RecordChange>>,
    full: AtomicBool,
    /// Whether other processes change them.
    pub shared: AtomicBool,
    /// Records that cannot be read.
    damaged: Mutex<BTreeMap<String, String>>,
    /// A reader of an older version gets all records.
    forgets: AtomicBool,
    /// The change that another process makes just before the next one.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Memory {
    fn put(&self, name: &str, content: &[u8]) {
        self.make(&[RecordChange::put(name, content)]);
    }

    fn make(&self, changes: &[RecordChange]) -> u64 {
        let mut records = self.records.lock();
        for RecordChange { name, content } in changes {
            match content {
                Some(content) => records.insert(name.clone(), content.clone()),
                None => records.remove(name),
            };
        }
        let mut all = self.changes.lock();
        all.extend_from_slice(changes);
        all.len() as u64
    }
}

impl Vault for Memory {
    fn since(&self, version: u64) -> Result<Option<RecordChanges>, VaultError> {
        let (records, changes) = (self.records.lock(), self.changes.lock());
        let now = changes.len() as u64;
        let whole = version == 0 || self.forgets.load(Ordering::Relaxed);
        let damaged = self.damaged.lock();
        let sound = records.iter().filter(|(name, _)| !damaged.contains_key(*name));
        let changes = match whole {
            true => sound.map(|(name, content)| RecordChange::put(name, content.clone())).collect(),
            false => changes[version as usize..].to_vec(),
        };
        Ok((now > version).then_some(RecordChanges { version: now, whole, changes }))
    }

    fn damaged(&self) -> Vec<(String, String)> {
        self.damaged.lock().clone().into_iter().collect()
    }

    fn commit(&self, follows: u64, changes: &[RecordChange]) -> Result<Option<u64>, VaultError> {
        let meanwhile = self.meanwhile.lock().take();
        meanwhile.into_iter().for_each(|act| act());
        if self.full.load(Ordering::Relaxed) {
            return Err(VaultError::Failed("the disk is full".to_owned()));
        }
        let newest = self.changes.lock().len() as u64;
        Ok((newest == follows).then(|| self.make(changes)))
    }

    fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }
}

const NOW: i64 = 1_000_000;

pub(super) fn registry() -> (Arc<Memory>, Registry) {
    let vault = Arc::new(Memory::default());
    (vault.clone(), Registry::open(vault).unwrap())
}

/// Suspends and removes a tenant.
fn remove(registry: &Registry, name: &str) {
    let suspended = registry.change_tenant(name, |tenant| {
        tenant.suspended = true;
        Ok(())
    });
    registry.remove_tenant(name, suspended.unwrap().created).unwrap();
}

fn reader(tenant: Option<&str>, expires: Option<i64>) -> NewToken {
    let grant = Grant { role: Role::Reader, collections: "ships*".parse().unwrap() };
    NewToken { tenant: tenant.map(str::to_owned), grant, expires }
}

#[test]
fn a_token_stands_for_its_caller_until_it_expires() {
    let (_, registry) = registry();
    let (token, text) = registry.create_token(&reader(None, Some(NOW + 10)), NOW).unwrap();
    let caller = registry.caller(&text, NOW).unwrap();
    assert_eq!((&*caller.tenant, &*caller.name), (DEFAULT_TENANT, &*token.id));
    assert!(caller.grant.collections.covers("ships-2") && !caller.grant.collections.covers("planes"));
    assert_eq!(registry.caller(&text, NOW + 10).unwrap_err(), Unknown::Expired);
    assert!(!caller.is_void(NOW + 9) && caller.is_void(NOW + 10));
    // No other text of the same form identifies a caller.
    for at in [0, 4, 5, 21, text.len() - 1] {
        let mut other = text.clone().into_bytes();
        other[at] = if other[at] == b'0' { b'1' } else { b'0' };
        let other = String::from_utf8(other).unwrap();
        assert_eq!(registry.caller(&other, NOW).unwrap_err(), Unknown::Credential, "{other}");
    }
    for wrong in ["", "mrd_", "mrd__", &text[..text.len() - 1], &format!("{text}0"), &text.to_uppercase()] {
        assert_eq!(registry.caller(wrong, NOW).unwrap_err(), Unknown::Credential, "{wrong}");
    }
}

#[test]
fn the_records_hold_everything_but_the_secrets() {
    let (vault, registry) = registry();
    registry.create_tenant(Tenant { anonymous: Some(Pattern::all()), weight: 7, ..Tenant::new("other") }).unwrap();
    let (token, text) = registry.create_token(&reader(Some("other"), None), NOW).unwrap();
    let secret = text.rsplit('_').next().unwrap();
    for content in vault.records.lock().values() {
        assert!(!String::from_utf8_lossy(content).contains(secret));
    }
    let again = Registry::open(vault.clone()).unwrap();
    assert_eq!(again.tokens(Some("other")), std::slice::from_ref(&token));
    assert_eq!(again.tenant("other"), registry.tenant("other"));
    assert_eq!(&*again.caller(&text, NOW).unwrap().tenant, "other");
    assert_eq!(again.token(Some("other"), &token.id), Some(token.clone()));
    assert_eq!(again.token(None, &token.id), Some(token.clone()));
    assert_eq!(again.token(Some(DEFAULT_TENANT), &token.id), None);
    assert_eq!(again.token(None, "unknown"), None);
    again.revoke_token(Some("other"), &token.id).unwrap();
    assert_eq!(again.token(None, &token.id), None);
    assert!(Registry::open(vault).unwrap().is_empty());
}

#[test]
fn a_damaged_record_does_not_open_the_door() {
    let (vault, registry) = registry();
    let (lost, text) = registry.create_token(&reader(None, None), NOW).unwrap();
    let name = format!("token-{}", lost.id);
    for content in [&b"{"[..], b"{}", br#"{"id":"1"}"#] {
        vault.records.lock().insert(name.clone(), content.to_vec());
        let again = Registry::open(vault.clone()).unwrap();
        assert!(!again.is_empty() && again.tokens(None).is_empty());
        assert_eq!(again.caller(&text, NOW).unwrap_err(), Unknown::Credential);
        assert!(again.damaged_tokens()[&lost.id].contains(&name), "{:?}", again.damaged_tokens());
        // Other processes may be able to read it, and it may be one of several changes.
        vault.shared.store(true, Ordering::Relaxed);
        assert!(matches!(Registry::open(vault.clone()), Err(Fault::Vault(_))));
        vault.shared.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_damaged_token_locks_out_its_holder_alone_until_it_is_removed() {
    let (vault, registry) = registry();
    let [(lost, lost_text), (_, text)] = [0, 1].map(|_| registry.create_token(&reader(None, None), NOW).unwrap());
    registry.create_tenant(Tenant { suspended: true, ..Tenant::new("other") }).unwrap();
    vault.damaged.lock().insert(format!("token-{}", lost.id), "its checksum is wrong".to_owned());
    vault.damaged.lock().insert("session-1".to_owned(), "its checksum is wrong".to_owned());
    let again = Registry::open(vault.clone()).unwrap();
    assert!(again.caller(&text, NOW).is_ok());
    assert_eq!(again.caller(&lost_text, NOW).unwrap_err(), Unknown::Credential);
    assert_eq!(
        again.damaged_tokens().into_iter().collect::<Vec<_>>(),
        [(lost.id.clone(), "its checksum is wrong".to_owned())]
    );
    // Changes of others leave it as it is.
    again.create_token(&reader(None, None), NOW).unwrap();
    assert_eq!(again.damaged_tokens().len(), 1);
    assert!(again.has_damaged_token(&lost.id) && again.token(None, &lost.id).is_none());
    again.remove_damaged_token(&lost.id).unwrap();
    assert!(!again.has_damaged_token(&lost.id));
    assert!(matches!(again.remove_damaged_token(&lost.id), Err(Fault::Absent(..))));
    assert!(again.damaged_tokens().is_empty() && !vault.records.lock().contains_key(&format!("token-{}", lost.id)));
    // Without the record of a tenant its suspension would be lost.
    *vault.damaged.lock() = BTreeMap::from([("tenant-other".to_owned(), "its checksum is wrong".to_owned())]);
    assert!(matches!(Registry::open(vault), Err(Fault::Vault(why)) if why.contains("checksum")));
}

#[test]
fn what_cannot_be_written_is_not_done() {
    let (vault, registry) = registry();
    let (token, text) = registry.create_token(&reader(None, None), NOW).unwrap();
    registry.create_tenant(Tenant::new("other")).unwrap();
    registry.create_tenant(Tenant { suspended: true, ..Tenant::new("leaving") }).unwrap();
    vault.full.store(true, Ordering::Relaxed);
    assert!(matches!(registry.create_token(&reader(None, None), NOW), Err(Fault::Vault(_))));
    assert!(matches!(registry.create_tenant(Tenant::new("third")), Err(Fault::Vault(_))));
    assert!(matches!(
        registry.change_tenant("other", |tenant| {
            tenant.suspended = true;
            Ok(())
        }),
        Err(Fault::Vault(_))
    ));
    assert!(matches!(registry.revoke_token(None, &token.id), Err(Fault::Vault(_))));
    assert!(matches!(registry.remove_tenant("leaving", 0), Err(Fault::Vault(_))));
    assert!(registry.tenant("leaving").is_some());
    assert_eq!(registry.tokens(None).len(), 1);
    assert!(registry.caller(&text, NOW).is_ok());
    assert_eq!(registry.tenants().iter().filter(|tenant| !tenant.suspended).count(), 2);
}

#[test]
fn a_suspension_or_removal_ends_what_its_callers_do() {
    let (_, registry) = registry();
    registry.create_tenant(Tenant::new("other")).unwrap();
    let (_, text) = registry.create_token(&reader(Some("other"), None), NOW).unwrap();
    let before = registry.caller(&text, NOW).unwrap();
    registry
        .change_tenant("other", |tenant| {
            tenant.suspended = true;
            Ok(())
        })
        .unwrap();
    assert!(before.is_void(NOW));
    assert_eq!(registry.caller(&text, NOW).unwrap_err(), Unknown::Suspended);
    registry
        .change_tenant("other", |tenant| {
            tenant.suspended = false;
            Ok(())
        })
        .unwrap();
    let after = registry.caller(&text, NOW).unwrap();
    assert!(!after.is_void(NOW) && before.is_void(NOW));
    remove(&registry, "other");
    assert!(after.is_void(NOW));
    assert_eq!(registry.caller(&text, NOW).unwrap_err(), Unknown::Credential);
    assert_eq!(registry.create_token(&reader(Some("other"), None), NOW).map(drop).unwrap_err(), {
        let detail = "there is no tenant \"other\": create it first";
        Fault::Invalid(meridian_model::Invalid::field("tenant", detail))
    });
}

#[test]
fn an_operator_works_in_every_tenant_and_ends_with_its_token() {
    let (_, registry) = registry();
    registry.create_tenant(Tenant::new("other")).unwrap();
    let operator = NewToken { tenant: None, grant: Grant::over_all(Role::Operator), expires: None };
    let (token, text) = registry.create_token(&operator, NOW).unwrap();
    let caller = registry.caller(&text, NOW).unwrap();
    let elsewhere = caller.within(&registry.ledger("other").unwrap());
    assert_eq!((&*caller.tenant, &*elsewhere.tenant), (DEFAULT_TENANT, "other"));
    registry.revoke_token(None, &token.id).unwrap();
    assert!(caller.is_void(NOW) && elsewhere.is_void(NOW));
    let wrong = NewToken { tenant: Some("other".to_owned()), ..operator };
    assert!(matches!(registry.create_token(&wrong, NOW), Err(Fault::Invalid(_))));
}

#[test]
fn a_passing_token_is_neither_listed_nor_recorded() {
    let (vault, registry) = registry();
    let text = registry.create_passing(NOW).unwrap();
    assert!(registry.caller(&text, NOW).unwrap().is_operator());
    assert!(!registry.is_empty() && registry.tokens(None).is_empty() && vault.records.lock().is_empty());
}

#[test]
fn a_tenant_keeps_its_ledger_through_changes() {
    let (vault, registry) = registry();
    registry.create_tenant(Tenant::new("other")).unwrap();
    let (_, text) = registry.create_token(&reader(Some("other"), None), NOW).unwrap();
    let caller = registry.caller(&text, NOW).unwrap();
    let limit = |tenant: &mut Tenant| {
        tenant.weight = 3;
        tenant.quotas.set(Quota::Searches, Some(2))
    };
    registry.change_tenant("other", limit).unwrap();
    assert_eq!((caller.ledger.weight(), caller.ledger.limit(Quota::Searches)), (3, Some(2)), "at once");
    assert!(registry.change_tenant("other", |tenant| tenant.quotas.set(Quota::EventsPerSecond, Some(0))).is_err());
    let reopened = Registry::open(vault).unwrap();
    assert_eq!(reopened.caller(&text, NOW).unwrap().ledger.limit(Quota::Searches), Some(2));
    assert_eq!(reopened.tenant("other"), registry.tenant("other"));
}

fn user(registry: &Registry, tenant: Option<&str>, name: &str) -> (Login, PasswordDigest) {
    let password = Password::chosen("correct horse battery").unwrap().hash().unwrap();
    let grant = Grant { role: Role::Reader, collections: "ships*".parse().unwrap() };
    let new = NewUser { name: name.to_owned(), tenant: tenant.map(str::to_owned), grant, password: password.clone() };
    (registry.create_user(new, NOW).unwrap().login(), password)
}

const LIMITS: SessionLimits =
    SessionLimits { idle: Duration::from_micros(100), lifetime: Duration::from_micros(1_000) };
