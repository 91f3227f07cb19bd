//! Records of users and sessions, and the part of all callers' records in a backup.

use crate::callers::Kept;
use crate::named;
use meridian_admission::identity::{Login, Password, PasswordDigest, Registry, SessionLimits, backup_part};
use serde_json::Value;
use std::sync::Arc;

/// Records that refer to each other, by name. The secret of token and session is 64 zeros.
const RECORDS: [(&str, &str); 4] = [
    ("tenant-harbour", r#"{"name":"harbour","created":0}"#),
    (
        "user-00000000000000aa",
        r#"{"id":"00000000000000aa","name":"anna","tenant":"harbour","role":"writer","collections":"ships*","created":0,"disabled":false,"password":"$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHRzYWx0$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","stamp":"1"}"#,
    ),
    (
        "session-00000000000000bb",
        r#"{"id":"00000000000000bb","user":"00000000000000aa","stamp":"1","created":0,"seen":0,"expires":1700000000000000,"digest":"60e05bd1b195af2f94112fa7197a5c88289058840ce7c6df9693756bc6250f55"}"#,
    ),
    (
        "token-0123456789abcdef",
        r#"{"id":"0123456789abcdef","tenant":"harbour","role":"reader","collections":"*","created":0,"digest":"60e05bd1b195af2f94112fa7197a5c88289058840ce7c6df9693756bc6250f55"}"#,
    ),
];

/// A record of a tenant, a user, a session or a token, by its name, among others.
pub fn user_record(bytes: &[u8]) {
    let Some((name, content)) = named::of(bytes) else { return };
    for only in [None, Some("harbour")] {
        let part = backup_part(only, name, content);
        let Some(plain) = part.plain.filter(|_| part.secret.is_some()) else { continue };
        let plain: Value = serde_json::from_slice(&plain).unwrap();
        let nobody = serde_json::to_value(PasswordDigest::of_nobody()).unwrap();
        match name.starts_with("token-") {
            true => assert_eq!(plain["digest"], "0".repeat(64), "the digest of a token is in a backup"),
            false => assert_eq!(plain["password"], nobody, "the digest of a password is in a backup"),
        }
    }
    let mut all: Vec<(String, Vec<u8>)> =
        RECORDS.iter().map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec())).collect();
    all.retain(|(known, _)| known != name);
    all.push((name.to_owned(), content.to_vec()));
    let Ok(registry) = Registry::open(Arc::new(Kept(all))) else { return };
    let zeros = "0".repeat(64);
    if let Ok(session) = registry.session(&format!("mrs_00000000000000bb_{zeros}"), &SessionLimits::default(), 1) {
        assert!(!session.caller().is_void(1) && !session.user().is_empty());
    }
    let _ = registry.caller(&format!("mrd_0123456789abcdef_{zeros}"), 1);
    for user in registry.users(None) {
        let (login, grant) = (user.login(), user.grant());
        let _ = registry.user(&login).map(|found| assert_eq!(found.login(), login));
        let _ = registry.check_user(&user.name, Some(&*user.tenant), &grant);
        let digest = registry.password(Some(&login));
        if let Some(password) = Password::typed("correct horse battery").filter(|_| digest.is_whole()) {
            assert!(!password.has(&digest), "a password that nobody chose");
        }
    }
    let _ = registry.password(Login::typed("harbour/anna").as_ref());
    let _ = registry.tend_sessions(&SessionLimits::default(), 1);
}

/// Inputs for [`user_record`].
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    RECORDS.iter().map(|(name, content)| (*name, named::input(name, content.as_bytes()))).collect()
}
