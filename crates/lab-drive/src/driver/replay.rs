//! An access log as a plan of requests.

use meridian_lab_results::record::Micros;
use std::path::Path;

/// One request of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Microseconds after the log's first request.
    pub at: Micros,
    /// Its method.
    pub method: String,
    /// Its path and query.
    pub path: String,
}

/// Reads a log in the common or combined form. Its times are in seconds: requests of one second are spread evenly over
/// it, in their order. Lines without a request (a scanner's garbage) are skipped; a file of only such lines is
/// refused.
pub fn read(path: &Path) -> Result<Vec<Line>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("arrival.file {}: {e}", path.display()))?;
    let mut found: Vec<(i64, String, String)> = text.lines().filter_map(line).collect();
    if found.is_empty() {
        return Err(format!(
            "arrival.file {}: no request found: expected lines such as 127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5",
            path.display()
        ));
    }
    // Servers write a line when a response ends, so neighbours may be out of order.
    found.sort_by_key(|(second, ..)| *second);
    let start = found[0].0;
    let mut lines = Vec::with_capacity(found.len());
    for together in found.chunk_by(|a, b| a.0 == b.0) {
        let count = i64::try_from(together.len()).unwrap_or(i64::MAX);
        for (k, (second, method, path)) in (0..).zip(together) {
            let at = (second - start) * 1_000_000 + k * 1_000_000 / count;
            lines.push(Line { at, method: method.clone(), path: path.clone() });
        }
    }
    Ok(lines)
}

fn line(text: &str) -> Option<(i64, String, String)> {
    let (time, rest) = text.split_once('[')?.1.split_once(']')?;
    let second = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", time).ok()?.to_timestamp().ok()?.as_second();
    let request = rest.split_once('"')?.1.split_once('"')?.0;
    let mut words = request.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    // A request with a body cannot be replayed: the log does not have the body.
    let plain = matches!(method, "GET" | "HEAD") && path.starts_with('/') && path.bytes().all(|b| b > b' ' && b < 127);
    plain.then(|| (second, method.to_owned(), path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_of_one_second_are_spread_over_it_in_order() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("access.log");
        let at = |second: u32, request: &str| {
            format!("1.2.3.4 - - [10/Oct/2000:13:55:{second:02} -0700] \"{request}\" 200 5 \"-\" \"x\"\n")
        };
        let text = at(38, "GET /c HTTP/1.1")
            + "garbage\n"
            + &at(36, "GET /a?x=1 HTTP/1.1")
            + &at(36, "HEAD /b HTTP/1.0")
            + &at(37, "POST /no HTTP/1.1");
        std::fs::write(&path, text).expect("written");
        let lines = read(&path).expect("reads");
        let plain: Vec<_> = lines.iter().map(|line| (line.at, line.method.as_str(), line.path.as_str())).collect();
        assert_eq!(plain, [(0, "GET", "/a?x=1"), (500_000, "HEAD", "/b"), (2_000_000, "GET", "/c")]);
        std::fs::write(&path, "nothing\n").expect("written");
        assert!(read(&path).expect_err("refused").contains("no request found"));
    }

    proptest! {
        /// Every request occurs once, in the second of its line, and those of one second keep their order.
        #[test]
        fn requests_keep_their_seconds_and_their_order(seconds in proptest::collection::vec(0_i64..200_000, 1..40)) {
            let dir = tempfile::tempdir().expect("a folder");
            let path = dir.path().join("access.log");
            let base = jiff::Timestamp::from_second(971_211_336).expect("a time");
            let write = |(n, second): (usize, &i64)| {
                let time = (base + jiff::SignedDuration::from_secs(*second)).strftime("%d/%b/%Y:%H:%M:%S +0000");
                format!("::1 - - [{time}] \"GET /{n} HTTP/1.1\" 200 5\n")
            };
            std::fs::write(&path, seconds.iter().enumerate().map(write).collect::<String>()).expect("written");
            let first = seconds.iter().min().copied().unwrap_or_default();
            let mut due: Vec<(i64, usize)> = seconds.iter().enumerate().map(|(n, second)| (second - first, n)).collect();
            due.sort_unstable();
            let lines = read(&path).expect("reads");
            let found: Vec<(i64, usize)> =
                lines.iter().map(|line| (line.at / 1_000_000, line.path[1..].parse().expect("a number"))).collect();
            prop_assert_eq!(found, due);
            prop_assert!(lines.is_sorted_by_key(|line| line.at));
        }

        #[test]
        fn any_text_is_a_request_or_none(text in "\\PC{0,20}[\\[\\]\" ]\\PC{0,40}") {
            if let Some((_, method, path)) = line(&text) {
                prop_assert!(["GET", "HEAD"].contains(&method.as_str()) && path.starts_with('/'));
            }
        }
    }
}
