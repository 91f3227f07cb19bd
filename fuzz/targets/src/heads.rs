//! Request heads: cookies, proxy headers, conditions, preferences, hosts and origins.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use meridian_api::fuzzed::{admitted, client_of, coding_of, file_under, preferences, session_of};
use meridian_api::{Network, ServerConfig};
use meridian_observe::Parent;
use std::net::IpAddr;

/// Header fields, `NAME: VALUE`, one per line.
fn fields(bytes: &[u8]) -> HeaderMap {
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?);
        Some((HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value.trim_ascii()).ok()?))
    });
    let mut headers = HeaderMap::new();
    lines.for_each(|(name, value)| _ = headers.append(name, value));
    headers
}

/// `Cookie` fields, one per line. The first occurrence counts, whatever follows.
pub fn cookie(bytes: &[u8]) {
    let values = bytes.split(|byte| *byte == b'\n').filter_map(|line| HeaderValue::from_bytes(line).ok());
    let mut headers: HeaderMap = values.map(|value| (header::COOKIE, value)).collect();
    if let Some(text) = session_of(&headers) {
        assert!(!text.contains(';'), "{text}");
    }
    let planted: Vec<HeaderValue> = headers.get_all(header::COOKIE).iter().cloned().collect();
    headers.insert(header::COOKIE, HeaderValue::from_static("a=b; meridian-session=own"));
    planted.into_iter().for_each(|value| _ = headers.append(header::COOKIE, value));
    assert_eq!(session_of(&headers), Some("own"));
}

/// Header fields that proxies write, `NAME: VALUE`, one per line. A client can write them too: only what the proxy
/// appends counts.
pub fn forwarded(bytes: &[u8]) {
    let headers = fields(bytes);
    let proxies: Vec<Network> = vec!["10.0.0.0/8".parse().unwrap()];
    let [proxy, client] = ["10.0.0.1", "192.0.2.7"].map(|text| text.parse::<IpAddr>().unwrap());
    assert_eq!(client_of(client, &proxies, &headers), Some(client), "nobody else is believed");
    client_of(proxy, &proxies, &headers);
    let common = HeaderName::from_static("x-forwarded-for");
    for (name, other, added) in
        [(&common, &header::FORWARDED, "192.0.2.7"), (&header::FORWARDED, &common, "for=192.0.2.7")]
    {
        let mut headers = headers.clone();
        headers.remove(other);
        let mut values: Vec<Vec<u8>> = headers.get_all(name).iter().map(|value| value.as_bytes().to_vec()).collect();
        match values.last_mut() {
            Some(last) => last.extend_from_slice(format!(", {added}").as_bytes()),
            None => values.push(added.into()),
        }
        headers.remove(name);
        values.iter().for_each(|value| _ = headers.append(name, HeaderValue::from_bytes(value).unwrap()));
        let found = client_of(proxy, &proxies, &headers);
        assert!(found.is_none() || found == Some(client), "{found:?} of {headers:?}");
        assert!(found.is_some() || name == header::FORWARDED, "{headers:?}");
    }
}

/// The served file.
const FILE: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// Its entity tag and modification time.
const STATE: (&str, &str) = ("\"3f\"", "Tue, 15 Nov 1994 12:45:26 GMT");

/// Conditions, a range and preferences of a read. The body is the file, the part named by the response, or empty.
pub fn conditions(bytes: &[u8]) {
    let asked = fields(bytes);
    let of_file = [(header::ETAG, STATE.0), (header::LAST_MODIFIED, STATE.1), (header::ACCEPT_RANGES, "bytes")];
    let of_file: HeaderMap = of_file.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
    for method in [Method::GET, Method::HEAD] {
        let (status, headers, content) = file_under(&method, &asked, of_file.clone(), FILE).unwrap();
        match status {
            StatusCode::OK => assert_eq!(content, FILE),
            StatusCode::PARTIAL_CONTENT => {
                let range = headers[header::CONTENT_RANGE].to_str().unwrap();
                let range = range.strip_prefix("bytes ").and_then(|range| range.strip_suffix("/36")).unwrap();
                let (first, last) = range.split_once('-').unwrap();
                let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
                assert_eq!(content, &FILE[first..=last]);
                assert_eq!(method, Method::GET, "parts are of GET alone");
            }
            StatusCode::NOT_MODIFIED => {
                assert!(content.is_empty());
                assert!(asked.contains_key(header::IF_NONE_MATCH) || asked.contains_key(header::IF_MODIFIED_SINCE));
            }
            StatusCode::PRECONDITION_FAILED => assert!(asked.contains_key(header::IF_MATCH)),
            StatusCode::RANGE_NOT_SATISFIABLE => assert!(asked.contains_key(header::RANGE)),
            other => panic!("{other}"),
        }
    }
    if let (Some(coding), _) = coding_of(&asked) {
        let accepted = asked.get_all(header::ACCEPT_ENCODING).iter();
        let accepted: String = accepted.filter_map(|value| value.to_str().ok()).collect();
        let accepted = accepted.to_ascii_lowercase();
        assert!(accepted.contains(coding) || accepted.contains('*'), "{coding} of {accepted:?}");
    }
    if let Some(parent) = asked.get("traceparent") {
        let _ = Parent::parse(parent.as_bytes(), asked.get("tracestate").map(HeaderValue::as_bytes));
    }
    let (_, timeout, format) = preferences(&asked);
    assert!(timeout != Some(0) && format.is_none_or(|word| ["json", "html"].contains(&&*word)));
}

/// The head of a request that may come from a page: method, target and fields. A page of a foreign origin must not
/// change anything.
pub fn origin(bytes: &[u8]) {
    let config = ServerConfig {
        origins: vec!["https://app.example".parse().unwrap()],
        public_url: Some("https://meridian.example".to_owned()),
        ..ServerConfig::default()
    };
    let listen = "127.0.0.1:7117".parse().unwrap();
    let (line, rest) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len()));
    let Some((method, target)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' ')) else { return };
    let (Ok(method), Ok(uri)) = (method.parse::<Method>(), target.parse::<Uri>()) else { return };
    let mut headers = fields(rest);
    let (_, page) = admitted(&config, listen, (&method, &uri, &headers));
    assert!(page.is_none_or(|page| page.as_bytes().eq_ignore_ascii_case(b"https://app.example")));
    // Added by the browser, and not under the page's control.
    headers.remove("sec-fetch-site");
    let evil = HeaderValue::from_static("https://evil.example");
    headers.append(header::ORIGIN, evil.clone());
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let (admits, page) = admitted(&config, listen, (&method, &uri, &headers));
        assert!(!admits && page.is_none_or(|page| page != evil), "{method} {uri} {headers:?}");
    }
    // A name that resolves to this machine, but is not one of its names.
    headers.remove(header::ORIGIN);
    headers.insert(header::HOST, HeaderValue::from_static("evil.example"));
    assert!(!admitted(&config, listen, (&method, &uri, &headers)).0, "{method} {uri} {headers:?}");
}
