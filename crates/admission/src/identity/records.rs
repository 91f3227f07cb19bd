//! Which parts of a registry's records a backup contains.
//!
//! Instead of its secret, a record in a backup holds a digest that no known secret or password has. A restored server
//! therefore knows its tokens and users but accepts none of them, and is not open to everyone.

use super::registry::KINDS;
use super::{PasswordDigest, Tenant, Token, User, secret};
use meridian_model::RecordPart;
use serde::Serialize;

/// Returns the part of this record that belongs in a backup of one tenant, or of all.
pub fn backup_part(only: Option<&str>, name: &str, content: &[u8]) -> RecordPart {
    let takes = |tenant: &str| only.is_none_or(|only| only == tenant);
    if name.starts_with(KINDS.session) {
        // Sessions are short-lived, and a restore would also bring back ended ones.
        return RecordPart::absent();
    }
    if name.starts_with(KINDS.tenant)
        && let Ok(tenant) = serde_json::from_slice::<Tenant>(content)
    {
        return if takes(&tenant.name) { RecordPart::plain(content) } else { RecordPart::absent() };
    }
    // Operators' records belong to no tenant, and therefore to no tenant's backup.
    if name.starts_with(KINDS.token)
        && let Ok(token) = serde_json::from_slice::<Token>(content)
    {
        let without = Token { digest: secret::digest_of_nothing(), ..token };
        return part(takes(&without.tenant), "tokens", &without);
    }
    if name.starts_with(KINDS.user)
        && let Ok(user) = serde_json::from_slice::<User>(content)
    {
        let without = User { password: PasswordDigest::of_nobody(), ..user };
        return part(takes(&without.tenant), "passwords", &without);
    }
    // An unknown record may hold a secret of any tenant.
    if only.is_none() { RecordPart::secret("unknown credentials", None) } else { RecordPart::absent() }
}

fn part(taken: bool, kind: &'static str, without: &impl Serialize) -> RecordPart {
    if taken { RecordPart::secret(kind, serde_json::to_vec(without).ok()) } else { RecordPart::absent() }
}
