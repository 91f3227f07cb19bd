//! Heads of requests: cookies, and what proxies say of a client.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use meridian_api::Network;
use meridian_api::fuzzed::{client_of, session_of};
use std::net::IpAddr;

/// Fields `Cookie`, one a line. What stands first counts, whatever follows.
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

/// Fields of a head that proxies write, `NAME: VALUE`, one a line. A client can write them too: what the proxy adds at the end counts.
pub fn forwarded(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?);
        Some((HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value.trim_ascii()).ok()?))
    });
    let mut headers = HeaderMap::new();
    lines.for_each(|(name, value)| _ = headers.append(name, value));
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
