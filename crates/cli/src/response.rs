//! Responses of a server: whole bodies, and the sentence of a refusal.

use crate::failure::Failure;
use serde_json::Value;
use ureq::Body;
use ureq::http::Response;

/// Max bytes of a body kept in memory; whole results are streamed instead.
const BODY_BYTES_MAX: u64 = 256 << 20;
/// Max characters of a refusal in plain text.
const TEXT_MAX: usize = 200;

/// Passes on a successful response, and turns a refusal into its sentence.
pub fn accept(response: Response<Body>) -> Result<Response<Body>, Failure> {
    match response.status().is_success() {
        true => Ok(response),
        false => Err(refused(response).0),
    }
}

/// Returns the sentence of a refusal, and its problem document (RFC 9457); `null` without one.
pub fn refused(response: Response<Body>) -> (Failure, Value) {
    let status = response.status();
    let is_text = response.body().mime_type() == Some("text/plain");
    let body = response.into_body().into_with_config().limit(1 << 20).read_to_vec().unwrap_or_default();
    let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
    let failure = Failure::Refused(match reason(&problem).or_else(|| is_text.then(|| first_line(&body))) {
        Some(reason) => format!("refused ({}): {reason}", status.as_u16()),
        None => format!("refused ({status})"),
    });
    (failure, problem)
}

/// Returns the first line of a refusal in plain text, as sent by a TLS port or a proxy. Omits control characters, which
/// a terminal would obey.
fn first_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect()
}

/// Returns the sentence of a problem document.
fn reason(problem: &Value) -> Option<String> {
    let text = |key: &str| problem.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
    let detail = text("detail").or(text("title"))?;
    if problem.get("errors").is_some() {
        // For errors in a body, the detail names line and field of the first one.
        return Some(detail.to_owned());
    }
    let line = problem.get("line").and_then(Value::as_u64).map(|n| format!("line {n}: ")).unwrap_or_default();
    let field = text("field").map(|f| format!("{f}: ")).unwrap_or_default();
    Some(format!("{line}{field}{detail}"))
}

/// Reads the whole body of a response.
pub fn read(response: Response<Body>) -> Result<Vec<u8>, Failure> {
    response
        .into_body()
        .into_with_config()
        .limit(BODY_BYTES_MAX)
        .read_to_vec()
        .map_err(|e| Failure::Refused(format!("the answer broke off: {e}")))
}
