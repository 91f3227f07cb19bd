//! Tokens, tenants, users and sessions.

use meridian_admission::identity;
use meridian_model::time;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A token, without its secret.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenInfo {
    /// Names the token in lists, and to revoke it.
    pub id: String,
    /// The tenant that it belongs to; absent for an operator's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// `reader`, `writer`, `admin` or `operator`.
    pub role: &'static str,
    /// The collections that it covers, as a pattern.
    pub collections: String,
    /// When it was created.
    pub created: String,
    /// When it expires; absent where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A new token. Its text is shown this once.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenAnswer {
    /// The token.
    #[serde(flatten)]
    pub info: TokenInfo,
    /// Its text, for `Authorization: Bearer`.
    pub token: String,
}

/// The tokens of a tenant; for operators who name no tenant, all of them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenList {
    /// In order of creation.
    pub tokens: Vec<TokenInfo>,
    /// For operators: tokens whose records are damaged, which admit nobody. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedToken>,
}

/// A token whose record is damaged.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DamagedToken {
    /// Names the token, to revoke it.
    pub id: String,
    /// What is wrong with its record.
    pub detail: String,
}

/// A tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TenantInfo {
    /// Its name.
    pub name: String,
    /// Its share of the server beside others.
    pub weight: u32,
    /// Whether its callers are refused.
    pub suspended: bool,
    /// The collections that callers without a credential may read, as a pattern; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<String>,
    /// Limits on what it uses, by name; what is absent has no limit.
    pub quotas: BTreeMap<&'static str, u64>,
    /// Its collections; absent here and below while the server that has them cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collections: Option<u64>,
    /// Its events; absent here and below at a server that shows what an owner has flushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Bytes of its events, in files and in memory, as the quota `stored_bytes` counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The tenants of the server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TenantList {
    /// In order of their names.
    pub tenants: Vec<TenantInfo>,
}

/// A user, without what is kept of its password.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UserInfo {
    /// Its name, unique in its tenant.
    pub name: String,
    /// The login: the name, with `TENANT/` before it in another tenant than the default one.
    pub login: String,
    /// The tenant that it belongs to; absent for an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// `reader`, `writer`, `admin` or `operator`.
    pub role: &'static str,
    /// The collections that it covers, as a pattern.
    pub collections: String,
    /// When it was created.
    pub created: String,
    /// Whether it may not sign in.
    pub disabled: bool,
}

/// The users of a tenant; for operators, all of them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UserList {
    /// In order of what they sign in with.
    pub users: Vec<UserInfo>,
}

/// The signed-in user; only `sign_in` is present if there is none.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Session {
    /// Whether there are users, who sign in at `/login`.
    pub sign_in: bool,
    /// The user's login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The tenant that it belongs to; absent for an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// `reader`, `writer`, `admin` or `operator`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// The collections that it covers, as a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collections: Option<String>,
    /// For the header `X-CSRF-Token`, which requests with the session's cookie need, apart from GET, HEAD and OPTIONS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csrf_token: Option<String>,
    /// When the session ends at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

impl From<&identity::Token> for TokenInfo {
    fn from(token: &identity::Token) -> TokenInfo {
        TokenInfo {
            id: token.id.clone(),
            tenant: (!token.tenant.is_empty()).then(|| token.tenant.clone()),
            role: token.role.name(),
            collections: token.collections.to_string(),
            created: time::format_instant(token.created),
            expires: token.expires.map(time::format_instant),
        }
    }
}

impl From<&identity::User> for UserInfo {
    fn from(user: &identity::User) -> UserInfo {
        UserInfo {
            name: user.name.clone(),
            login: user.login().to_string(),
            tenant: (!user.tenant.is_empty()).then(|| user.tenant.clone()),
            role: user.role.name(),
            collections: user.collections.to_string(),
            created: time::format_instant(user.created),
            disabled: user.disabled,
        }
    }
}
