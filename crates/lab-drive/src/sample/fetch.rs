//! Fetches a page of metrics with a plain request: one connection each time, never interfering with the load.

use crate::protocol::address::Address;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Max wait for a connection, and for each piece of the response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Max size of a page.
const MAX: u64 = 16 << 20;

/// Returns the body of a page; errors are sentences.
pub(super) fn page(address: &Address) -> Result<String, String> {
    let wrong = |e: std::io::Error| format!("{}: {e}", address.authority());
    let mut stream = TcpStream::connect_timeout(&address.socket, PATIENCE).map_err(wrong)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(wrong)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(wrong)?;
    let path = if address.base.is_empty() { "/" } else { &address.base };
    // HTTP/1.0: the response arrives without chunks and ends with the connection.
    let head = format!("GET {path} HTTP/1.0\r\nhost: {}\r\nconnection: close\r\n\r\n", address.authority());
    stream.write_all(head.as_bytes()).map_err(wrong)?;
    let mut answer = Vec::new();
    stream.take(MAX).read_to_end(&mut answer).map_err(wrong)?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) =
        text.split_once("\r\n\r\n").ok_or_else(|| format!("{}: the answer is not HTTP", address.authority()))?;
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        status => Err(format!("{}{path}: status {}", address.authority(), status.unwrap_or("missing"))),
    }
}

/// Returns the sum over all series of a metric in the Prometheus text form; `wanted` may carry labels, all of which a
/// series must have.
pub(super) fn metric(page: &str, wanted: &str) -> Option<f64> {
    let (name, labels) =
        wanted.split_once('{').map_or((wanted, ""), |(name, labels)| (name, labels.trim_end_matches('}')));
    let mut sum = None;
    for line in page.lines() {
        let Some(rest) = line.strip_prefix(name) else { continue };
        let (own, value) = match rest.strip_prefix('{') {
            Some(inner) => match inner.split_once('}') {
                Some((own, value)) => (own, value),
                None => continue,
            },
            None if rest.starts_with(' ') => ("", rest),
            None => continue,
        };
        let matches =
            labels.split(',').filter(|label| !label.is_empty()).all(|label| own.split(',').any(|o| o == label.trim()));
        // A timestamp may follow the value.
        if let Some(value) = value.split_ascii_whitespace().next().and_then(|word| word.parse::<f64>().ok())
            && matches
        {
            sum = Some(sum.unwrap_or(0.0) + value);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::metric;
    use proptest::prelude::*;

    #[test]
    fn series_of_one_name_are_summed_and_labels_choose_among_them() {
        let page = "# HELP x y\nx{a=\"1\",b=\"2\"} 3\nx{a=\"2\"} 4 1700000000\nx_total 9\ny 1e3\n";
        assert_eq!(metric(page, "x"), Some(7.0));
        assert_eq!(metric(page, "x{a=\"1\"}"), Some(3.0));
        assert_eq!(metric(page, "y"), Some(1000.0));
        assert_eq!(metric(page, "z"), None);
    }

    proptest! {
        /// The sum over the series that have every wanted label, whatever else is on the page.
        #[test]
        fn the_sum_is_that_of_the_matching_series(
            series in proptest::collection::vec(("[xy]", 0_u8..3, 0_u8..3, -1e6..1e6_f64), 0..20),
            wanted in 0_u8..3,
        ) {
            let page: String = series.iter().map(|(name, a, b, value)| format!("{name}{{a=\"{a}\",b=\"{b}\"}} {value}\n")).collect();
            let due: Vec<f64> = series.iter().filter(|s| s.0 == "x" && s.1 == wanted).map(|s| s.3).collect();
            let found = metric(&page, &format!("x{{a=\"{wanted}\"}}"));
            prop_assert_eq!(found.is_some(), !due.is_empty());
            prop_assert!((found.unwrap_or_default() - due.iter().sum::<f64>()).abs() < 1e-6);
        }

        #[test]
        fn any_page_has_a_sum_or_none(page in "\\PC*(\n\\PC*){0,5}", wanted in "[a-z{},=\"]{0,12}") {
            let _ = metric(&page, &wanted);
        }
    }
}
