//! Signing in at an issuer, in a build without the feature `openid`: 404, with a message that names the feature.

use crate::protocol::problem::{Problem, Result};
use axum::response::Response;

/// `GET /login/{issuer}`
pub async fn begin() -> Result<Response> {
    Err(Problem::not_found("this program was built without sign-in at issuers: it needs the feature `openid`"))
}

/// `GET /login/{issuer}/callback`
pub async fn callback() -> Result<Response> {
    begin().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_routes_name_the_feature() {
        for refused in [begin().await, callback().await] {
            assert!(refused.unwrap_err().detail().contains("feature `openid`"));
        }
    }
}
