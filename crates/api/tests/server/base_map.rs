//! The operator's base map: the page that names it, and the tile file in parts.

use crate::support::Server;
use meridian_api::ServerConfig;

fn with(base_map: &str) -> Server {
    Server::with(ServerConfig { base_map: Some(base_map.parse().unwrap()), ..ServerConfig::default() })
}

#[test]
fn the_file_of_tiles_is_served_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiles.pmtiles");
    let content: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let server = with(path.to_str().unwrap());
    let part = |range: &str| server.ask("GET", "/base-map.pmtiles", &[("range", range)], b"");
    let first = part("bytes=100-199");
    assert_eq!((first.status, first.header("content-range")), (206, "bytes 100-199/9000000"));
    assert_eq!(first.body, &content[100..200]);
    let last = part("bytes=-10");
    assert_eq!((last.status, &last.body[..]), (206, &content[content.len() - 10..]));
    // A part is bounded, whatever is requested.
    let all = part("bytes=0-");
    assert_eq!((all.status, all.header("content-range")), (206, "bytes 0-8388607/9000000"));
    assert_eq!(part("bytes=9000000-").status, 416);
    // All parts have the tag of their file, and those of its successor another one: no client mixes them.
    let tag = first.header("etag").to_owned();
    assert!(tag.starts_with('"') && [last.header("etag"), all.header("etag")] == [&*tag, &*tag], "{tag}");
    std::fs::write(&path, [&content[..], b"more"].concat()).unwrap();
    let changed = part("bytes=100-199").header("etag").to_owned();
    assert_ne!(changed, tag);
    // A range of another file does not count, also one beyond the end of this one.
    for (range, state, status) in
        [("bytes=0-9", &changed, 206), ("bytes=0-9", &tag, 400), ("bytes=99000000-", &tag, 400)]
    {
        let asked = [("range", range), ("if-range", state.as_str())];
        assert_eq!(server.ask("GET", "/base-map.pmtiles", &asked, b"").status, status, "{range} {state}");
    }
    std::fs::write(&path, [&b"other"[..], &content[5..]].concat()).unwrap();
    assert_ne!(part("bytes=100-199").header("etag"), tag);
    assert_eq!(server.ask("GET", "/base-map.pmtiles", &[], b"").status, 400);
    // A missing file is the server's fault.
    drop(folder);
    assert_eq!(part("bytes=0-9").status, 500);
    assert_eq!(Server::start().ask("GET", "/base-map.pmtiles", &[("range", "bytes=0-9")], b"").status, 404);
}

#[test]
fn the_map_page_names_the_base_map_and_may_load_from_its_origin_only() {
    let plain = Server::start().ask("GET", "/map", &[], b"");
    let Ok(text) = String::from_utf8(plain.body.clone()) else { panic!("the page is not text") };
    assert!(text.contains("<meta name=\"meridian-base-map\" content=\"\">"));
    assert!(!plain.header("content-security-policy").contains("http"));
    let over = with("https://tiles.example/style.json?a=1&b=2").ask("GET", "/map", &[], b"");
    let text = String::from_utf8(over.body.clone()).unwrap();
    assert!(
        text.contains("<meta name=\"meridian-base-map\" content=\"https://tiles.example/style.json?a=1&amp;b=2\">")
    );
    let policy = over.header("content-security-policy");
    assert!(policy.contains("connect-src 'self' https://tiles.example;"), "{policy}");
    // The page repeats its header's policy, since browsers apply the stricter of both.
    assert!(text.contains("connect-src 'self' https://tiles.example;"));
}
