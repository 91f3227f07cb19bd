//! What answers count as, and what cannot be asked.

use super::*;

#[test]
fn an_answer_that_differs_from_another_targets_is_unsound() {
    let body = |text: &'static str| {
        serve(move |path, _, stream| {
            let text = if path == "/same" { "{\"n\":1}" } else { text };
            say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()))
        })
    };
    let (a, b) = (body("{\"n\":2}"), body("{\"n\":3}"));
    let request =
        |path: &str| format!("[[request]]\npath = \"{path}\"\n[request.check]\nsame_as = \"b\"\ncount = \"/n\"\n");
    let text = format!(
        "[[target]]\nname = \"a\"\nurl = \"{}\"\n[[target]]\nname = \"b\"\nurl = \"{}\"\n[[population]]\nname = \"p\"\ntarget = \"a\"\narrival = {{ kind = \"burst\", count = 30 }}\n{}{}",
        a.url,
        b.url,
        request("/same"),
        request("/other")
    );
    for record in drive(&text).records {
        let due = if record.request == 0 { Came::Sound } else { Came::Unsound };
        assert_eq!(record.outcome, due, "{record:?}");
    }
}

#[test]
fn an_answer_that_differs_from_what_the_lab_counts_itself_is_unsound() {
    let places: Vec<(i32, i32)> = (0..200).map(|n| (n * 37 % 100, n * 61 % 50)).collect();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    for (lon, lat) in &places {
        let feature =
            format!("{{\"type\":\"Feature\",\"geometry\":{{\"type\":\"Point\",\"coordinates\":[{lon},{lat}]}}}}\n");
        file.write_all(feature.as_bytes()).expect("writes");
    }
    // Every fifth answer is one too many.
    let server = serve(move |path, n, stream| {
        let bbox =
            path.split("bbox=").nth(1).unwrap_or_default().replace("%2C", ",").replace("%2E", ".").replace("%2D", "-");
        let edges: Vec<f64> = bbox.split(',').map(|edge| edge.parse().expect("a number")).collect();
        let within = |&(lon, lat): &(i32, i32)| {
            let (lon, lat) = (f64::from(lon), f64::from(lat));
            edges[0] <= lon && lon <= edges[2] && edges[1] <= lat && lat <= edges[3]
        };
        let count = places.iter().filter(|place| within(place)).count() + usize::from(n % 5 == 4);
        let text = format!("{{\"numberMatched\":{count}}}");
        say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()))
    });
    let text = format!(
        "[target]\nurl = \"{}\"\n[arrival]\nkind = \"burst\"\ncount = 100\ninterval_s = 0.001\n\
         [generate.cell]\nkind = \"cells\"\nbox = [-5, -5, 105, 55]\nfrom = 1\nto = 4\n\
         [request]\npath = \"/items?bbox={{cell}}\"\n[request.check]\ncount = \"/numberMatched\"\npoints = {:?}\n",
        server.url,
        file.path()
    );
    let ran = drive(&text);
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 80), ("unsound", 20)]));
    let said = ran.records.iter().filter_map(|record| record.detail.as_deref());
    assert!(said.clone().count() == 20 && said.clone().all(|why| why == "more results than the truth"));
}

#[test]
fn what_an_answer_counts_itself_are_its_results() {
    let server = serve(|_, n, stream| {
        let text = format!("{{\"numberMatched\":{}}}", if n % 4 == 0 { 0 } else { 7 });
        say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()))
    });
    let check = "[request.check]\ncount = \"/numberMatched\"\n";
    let ran = drive(&scenario(&server.url, "kind = \"burst\"\ncount = 40", check));
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 40)]));
    let group = &ran.outcome.groups[0];
    assert_eq!((group.results, group.without_results), (30 * 7, 10));
}

#[test]
fn objectives_are_judged_over_all_who_asked() {
    let server =
        serve(
            |_, n, stream| {
                if n % 4 == 0 { say(stream, "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n") } else { ok(stream) }
            },
        );
    let rest = "[[objective]]\nmetric = \"sound_share\"\nat_least = 0.7\n[[objective]]\nmetric = \"p95_ms\"\nat_most = 60000\n[[objective]]\nmetric = \"p50_ms\"\nat_most = 60000\n";
    let ran = drive(&scenario(&server.url, "kind = \"burst\"\ncount = 100", rest));
    let holds: Vec<bool> = ran.outcome.verdicts.iter().map(|verdict| verdict.holds).collect();
    assert_eq!(holds, [true, false, true]);
    assert_eq!(ran.outcome.verdicts[1].value, None);
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_written() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let burst = "kind = \"burst\"\ncount = 1";
    let unreachable = refusal(&scenario(&format!("http://{closed}"), burst, ""));
    assert!(matches!(&unreachable, LabError::Target(text) if text.contains("cannot be reached")), "{unreachable}");
    let public = refusal(&scenario("http://9.9.9.9", burst, ""));
    assert!(matches!(&public, LabError::Scenario(text) if text.contains("--allow-public")), "{public}");
    let truth = refusal(&scenario(&format!("http://{closed}"), burst, "[request.check]\ntruth = \"/nowhere\"\n"));
    assert!(matches!(&truth, LabError::Scenario(text) if text.contains("check.truth")), "{truth}");
    let many = refusal(&scenario(&format!("http://{closed}"), "kind = \"closed\"\nusers = 100000", ""));
    assert!(matches!(&many, LabError::Scenario(text) if text.contains("ulimit") || text.contains("reached")), "{many}");
}
