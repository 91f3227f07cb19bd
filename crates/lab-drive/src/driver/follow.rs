//! Follows a response that names a stream: the stream is requested next, and counts as the request's response.
//!
//! Searches work like this: one request starts the search, and its packets arrive at the address in the response.

use crate::check::checker::Checker;
use crate::protocol::connection::Connection;
use crate::protocol::fault::ExchangeError;
use crate::protocol::scan::Scan;
use crate::protocol::{Client, Exchange};
use crate::scenario::ResultUnit;
use meridian_lab_results::record::{Outcome, Record};

/// Sends a request and follows the response if the request specifies so. The user's wait covers both. Send time and
/// first byte are those of the first request. Results are those of the stream, and so is the status once there is one.
pub async fn ask(connection: &mut Connection, judge: &Checker, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
    let Some(pointer) = judge.follow() else { return connection.ask(of).await };
    let Exchange { question, unit, record, scan, clock } = of;
    let mut answer = Scan::default();
    answer.reset(&ResultUnit::Body, true);
    let mut first = Exchange { question, unit: &ResultUnit::Body, record, scan: &mut answer, clock };
    connection.ask(&mut first).await?;
    if !matches!(record.status, 200..=299) {
        // A refusal, shown by the status.
        scan.retry_after = answer.retry_after;
        return Ok(());
    }
    let json = serde_json::from_slice::<serde_json::Value>(answer.body.as_deref().unwrap_or_default()).ok();
    let named = json.as_ref().and_then(|json| json.pointer(pointer)?.as_str());
    let Some(path) = named.and_then(path_of) else {
        let detail = format!("the answer names no stream at {pointer}").into();
        return Err(ExchangeError { outcome: Outcome::Unsound, detail });
    };
    let (question, mut stream) = (question.get(path), Record::default());
    let followed = connection.ask(&mut Exchange { question: &question, unit, record: &mut stream, scan, clock }).await;
    record.resends = record.resends.saturating_add(stream.resends);
    if stream.status != 0 {
        record.status = stream.status;
    }
    followed
}

/// Returns path and query of an address. They are requested from the original target: load goes nowhere that the
/// scenario does not name.
fn path_of(address: &str) -> Option<&str> {
    let path = match address.split_once("://") {
        Some((_, rest)) if !address.starts_with('/') => &rest[rest.find('/')?..],
        _ => address,
    };
    (path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic())).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_its_path_and_query_are_taken() {
        for (address, path) in [
            ("http://127.0.0.1:7117/searches/7/packets?after=3", Some("/searches/7/packets?after=3")),
            ("/searches/7/packets", Some("/searches/7/packets")),
            ("/x?back=http://a/b", Some("/x?back=http://a/b")),
            ("http://host", None),
            ("searches/7", None),
            ("/a b", None),
            ("/a\r\nhost: b", None),
            ("", None),
        ] {
            assert_eq!(path_of(address), path, "{address:?}");
        }
    }
}
