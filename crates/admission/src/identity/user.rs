//! Users: people who sign in with a name and a password.

use super::newer::UnknownFields;
use super::password::PasswordDigest;
use super::{DEFAULT_TENANT, token};
use meridian_model::Invalid;
use meridian_model::policy::access::{Grant, Pattern, Role};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Max bytes of a user's name.
const NAME_BYTES_MAX: usize = 100;

/// A user, as stored in its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    /// Names its record; 16 hexadecimal digits.
    pub(super) id: String,
    /// Its name, unique in its tenant.
    pub name: String,
    /// The tenant that it belongs to; empty for an operator.
    pub tenant: String,
    /// Its role.
    #[serde(with = "token::text")]
    pub role: Role,
    /// The collections that its rights cover.
    #[serde(with = "token::text")]
    pub collections: Pattern,
    /// When it was created, in microseconds since 1970.
    pub created: i64,
    /// Whether the user is barred from signing in.
    #[serde(default)]
    pub disabled: bool,
    /// The stored form of its password.
    pub(super) password: PasswordDigest,
    /// Renewed with every change. A session whose stamp differs from its user's is void, even if a crash kept its
    /// record.
    pub(super) stamp: String,
    /// Fields written by a newer program. A user with such a field may not sign in.
    #[serde(flatten)]
    pub(super) newer: UnknownFields,
}

impl User {
    /// Returns the rights of the user.
    pub fn grant(&self) -> Grant {
        Grant { role: self.role, collections: self.collections.clone() }
    }

    /// Returns the login of the user.
    pub fn login(&self) -> Login {
        Login::of(&self.tenant, &self.name)
    }
}

/// A login: `anna`, or `harbour/anna` outside the default tenant. Operators and users of the default tenant share one
/// namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Login(String);

impl Login {
    /// Returns the login of a user of a tenant; the tenant is empty for an operator.
    pub fn of(tenant: &str, name: &str) -> Login {
        match tenant {
            "" | DEFAULT_TENANT => Login(name.to_owned()),
            tenant => Login(format!("{tenant}/{name}")),
        }
    }

    /// Parses a typed login; `None` if no user can have it. The case of the name does not matter.
    pub fn typed(text: &str) -> Option<Login> {
        let text = text.trim();
        let (tenant, name) = text.split_once('/').unwrap_or(("", text));
        let name = name.to_ascii_lowercase();
        let plain = check_name(&name).is_ok() && tenant.len() <= NAME_BYTES_MAX && !tenant.contains('/');
        plain.then(|| Login::of(tenant, &name))
    }

    /// Returns the tenant that it names, which may not exist.
    pub fn tenant(&self) -> &str {
        self.0.split_once('/').map_or(DEFAULT_TENANT, |(tenant, _)| tenant)
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks the name of a user.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let plain = name.bytes().all(|b| letter(b) || b"-_.+@".contains(&b)) && name.bytes().next().is_some_and(letter);
    match plain && name.len() <= NAME_BYTES_MAX {
        true => Ok(()),
        false => Err(Invalid::field(
            "name",
            format_args!(
                "{name:?} is not a name of a user: expected 1 to {NAME_BYTES_MAX} small letters, digits, '-', '_', '.', '+' or '@', \
                 beginning with a letter or digit"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_names_the_tenant_unless_it_is_the_default_one() {
        let login = |text| Login::typed(text).map(|login| login.to_string());
        assert_eq!(login("anna"), Some("anna".to_owned()));
        assert_eq!(login(" Anna@Example.org "), Some("anna@example.org".to_owned()));
        assert_eq!(login("default/anna"), login("anna"));
        assert_eq!(login("Harbour/anna"), Some("Harbour/anna".to_owned()));
        for wrong in ["", "/", "a/b/c", "a b", "-a", "ä", "harbour/", &"a".repeat(101)] {
            assert_eq!(login(wrong), None, "{wrong}");
        }
        assert_eq!(Login::of("", "anna"), Login::of(DEFAULT_TENANT, "anna"));
        assert_ne!(Login::of("harbour", "anna"), Login::of("", "anna"));
    }
}
