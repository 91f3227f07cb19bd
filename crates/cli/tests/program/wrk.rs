//! The load tool associated with the places profile, with its kind of Lua script: random points, no errors.

use crate::common::{Server, need};
use std::process::Command;

/// Random points around the places, drawn as in the published scripts; `done` reports errors.
const SCRIPT: &str = r#"
math.randomseed(7117)
request = function()
    local lat = 37 + math.random() * 6
    local lon = -124 + math.random() * 6
    local radius = ({"", "/0.5", "/5", "/25", "/50", "/500"})[math.random(6)]
    return wrk.format("GET", string.format("/api/v0/places/near/%.6f/%.6f%s", lat, lon, radius))
end
done = function(summary, latency, requests)
    local e = summary.errors
    io.write(string.format("requests %d connect %d read %d write %d status %d timeout %d\n",
        summary.requests, e.connect, e.read, e.write, e.status, e.timeout))
end
"#;

#[test]
fn wrk_sees_no_error_with_the_places_profile() {
    need("wrk", "wrk");
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let mut first = String::new();
    for n in 0..200 {
        let (lat, lon) = (37.0 + f64::from(n * 7 % 200) * 0.03, -124.0 + f64::from(n * 13 % 200) * 0.03);
        let place = format!(r#"{{"name":"place {n}","city":"Town","latitude":{lat},"longitude":{lon}}}"#);
        let (status, body) = server.post("/api/v0/places", "application/json", None, place.as_bytes()).unwrap();
        // The response is a redirect to the place, which the client follows.
        assert_eq!(status, 200, "{body}");
        first = body;
    }
    assert!(first.contains("place 199"), "{first}");

    let script = folder.path().join("near.lua");
    std::fs::write(&script, SCRIPT).unwrap();
    let run = Command::new("wrk")
        .args(["-t2", "-c20", "-d3s", "--timeout", "20s", "-s", script.to_str().unwrap(), &server.url])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    let line = text.lines().find(|l| l.starts_with("requests ")).unwrap_or_else(|| panic!("{text}"));
    let numbers: Vec<u64> = line.split(' ').filter_map(|w| w.parse().ok()).collect();
    assert!(numbers[0] > 20, "{line}");
    assert_eq!(numbers[1..], [0; 5], "{line}");
}
