//! Signing in and out, and changing the own password. Forms have the same members as documents.

use schemars::JsonSchema;
use serde::Deserialize;

/// Name and password of a user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The user's login: the name, with `TENANT/` before it in another tenant than the default one.
    pub name: String,
    /// The user's password.
    #[schemars(extend("format" = "password"))]
    pub password: String,
    /// Path on this server to go to; forms only.
    pub next: Option<String>,
}

/// The current password, and the new one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// That of now.
    #[schemars(extend("format" = "password"))]
    pub password: String,
    /// At least 12 characters.
    #[schemars(length(min = 12, max = 1024), extend("format" = "password"))]
    pub new: String,
}

/// The current password, and the new one.
// The token of a form is taken before the rest is parsed.
#[derive(JsonSchema)]
#[schemars(rename = "PasswordChange")]
#[expect(dead_code, reason = "it only describes")]
pub struct PasswordForm {
    #[serde(flatten)]
    change: PasswordChange,
    /// In forms, which cannot send the header `X-CSRF-Token`.
    csrf_token: Option<String>,
}

/// A form that ends the session.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes")]
pub struct SignOut {
    /// Instead of the header `X-CSRF-Token`, which a form cannot send.
    csrf_token: Option<String>,
}
