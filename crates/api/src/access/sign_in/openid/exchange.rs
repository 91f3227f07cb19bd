//! Requests to an issuer: the URL for browsers, and the exchange of a code for an ID token.

use super::{refused, unavailable};
use crate::access::issuer_files;
use crate::protocol::problem::{Problem, Result};
use crate::request::overload;
use crate::request::scope::Scope;
use crate::state::exchanges;
use meridian_admission::identity::SignInAttempt;
use meridian_admission::identity::jwt::{DOCUMENT_BYTES_MAX, Endpoints, Issuer, SignInSettings};
use meridian_federation::fetch::{self, Failure};
use oauth2::basic::{
    BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse, BasicTokenType,
};
use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet, ExtraTokenFields,
    HttpRequest, HttpResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope as Asked,
    StandardRevocableToken, StandardTokenResponse, TokenUrl,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use tokio::time::Duration;

/// Max time for the exchange of a code.
const EXCHANGE: Duration = Duration::from_secs(10);
/// OpenID Connect's addition to the response of a token endpoint.
#[derive(Serialize, Deserialize)]
struct Extra {
    id_token: String,
}

impl ExtraTokenFields for Extra {}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ID token")
    }
}

type Client = oauth2::Client<
    BasicErrorResponse,
    StandardTokenResponse<Extra, BasicTokenType>,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

fn client(sign_in: &SignInSettings, endpoints: &Endpoints, redirect: String) -> Result<Client> {
    // The discovery parser checked only their hosts, so parsing may still fail.
    let authorization = AuthUrl::new(endpoints.authorization.clone()).map_err(Problem::internal)?;
    let token = TokenUrl::new(endpoints.token.clone()).map_err(Problem::internal)?;
    let redirect = RedirectUrl::new(redirect).map_err(Problem::internal)?;
    let client = oauth2::Client::new(ClientId::new(sign_in.client_id.clone()));
    Ok(client.set_auth_uri(authorization).set_token_uri(token).set_redirect_uri(redirect))
}

/// Returns the URL that leads a browser to an issuer, and back to `redirect`.
pub fn authorization_url(
    issuer: &Issuer,
    sign_in: &SignInSettings,
    endpoints: &Endpoints,
    attempt: &SignInAttempt,
    redirect: String,
) -> Result<String> {
    let client = client(sign_in, endpoints, redirect)?;
    let state = attempt.state(&issuer.settings().name);
    let challenge = PkceCodeChallenge::from_code_verifier_sha256(&PkceCodeVerifier::new(attempt.verifier()));
    let scopes = ["openid".to_owned()].into_iter().chain(sign_in.scopes.iter().cloned());
    let request = client.authorize_url(|| CsrfToken::new(state));
    let request = request.add_scopes(scopes.map(Asked::new)).add_extra_param("nonce", attempt.nonce());
    Ok(request.set_pkce_challenge(challenge).url().0.into())
}

/// Exchanges a code for an ID token, which is not verified yet.
///
/// # Errors
/// 401 if the issuer refuses the code, 503 if it does not respond.
pub async fn id_token(
    state: &Scope,
    (issuer, sign_in): (&Issuer, &SignInSettings),
    endpoints: &Endpoints,
    attempt: &SignInAttempt,
    (code, redirect): (String, String),
) -> Result<String> {
    let (issuer, title) = (&*issuer.settings().name, &sign_in.title);
    let busy =
        || overload::overloaded(state, "too many users sign in at once: try again".to_owned(), exchanges::RUNNING_MAX);
    let _permit = state.exchanges.begin(issuer).ok_or_else(busy)?;
    let mut client = client(sign_in, endpoints, redirect)?;
    if let Some(path) = sign_in.client_secret.clone() {
        let disk = state.disk.clone();
        // Read each time, so that it can be replaced without a restart.
        let secret = tokio::task::spawn_blocking(move || issuer_files::read_client_secret(&*disk, &path)).await;
        let secret = secret.map_err(Problem::internal)?.map_err(Problem::internal)?;
        client = client.set_client_secret(ClientSecret::new(secret));
    }
    let request = client.exchange_code(AuthorizationCode::new(code));
    let request = request.set_pkce_verifier(PkceCodeVerifier::new(attempt.verifier()));
    // Errors of the library may contain the response, and so a token: only our own are logged.
    match request.request_async(&send).await {
        Ok(answer) => Ok(answer.extra_fields().id_token.clone()),
        Err(RequestTokenError::Request(NoAnswer(Failure { why, source_is_broken: true, .. }))) => {
            tracing::warn!(issuer, why, "an issuer does not exchange a code");
            Err(unavailable(sign_in))
        }
        Err(RequestTokenError::Request(NoAnswer(Failure { why, .. }))) => {
            tracing::warn!(issuer, why, "an issuer refuses a code");
            Err(refused(format!("{title} refused to say who you are: sign in again")))
        }
        Err(_) => {
            tracing::warn!(issuer, "the answer to a code is not that of a token endpoint of OpenID Connect");
            Err(refused(format!("the answer of {title} cannot be read: sign in again")))
        }
    }
}

/// The failure of a request to the issuer.
#[derive(Debug, thiserror::Error)]
#[error("no answer of the issuer")]
struct NoAnswer(Failure);

async fn send(request: HttpRequest) -> std::result::Result<HttpResponse, NoAnswer> {
    let body = fetch::exchange(request, EXCHANGE, DOCUMENT_BYTES_MAX).await.map_err(NoAnswer)?;
    Ok(HttpResponse::new(body.into()))
}
