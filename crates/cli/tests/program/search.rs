//! `meridian search` against a real server and sources on loopback.

use crate::common::source::{Source, json};
use crate::common::{self, PATIENCE, Server, command, meridian, send};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Starts sources, by the first segment of the path: one has three results, one hangs, one has pages of forty.
fn sources() -> Source {
    Source::start(|request| {
        let path = request.split(' ').nth(1).unwrap();
        let one = |id: &str| {
            format!(
                r#"{{"id":"{id}","title":"flood {id}\u001b[2J","link":"https://example.org/{id}","time":"2026-01-05T10:00:00Z"}}"#
            )
        };
        if path.starts_with("/hang") {
            std::thread::sleep(PATIENCE);
        }
        if path.starts_with("/pages") {
            let page: usize = path.split("page=").nth(1).unwrap().split('&').next().unwrap().parse().unwrap();
            let words = |n: usize| format!("{:x}", (page * 40 + n) * 7_919_777).repeat(60);
            let items: Vec<String> = (0..40)
                .map(|n| format!(r#"{{"id":"{page}-{n}","title":"flood {page} {n}","text":"{}"}}"#, words(n)))
                .collect();
            return json(&format!(r#"{{"items":[{}]}}"#, items.join(",")));
        }
        json(&format!(r#"{{"items":[{},{},{}]}}"#, one("a"), one("b"), one("c")))
    })
}

/// Starts a server that may use these of the sources.
fn server(folder: &Path, sources: &Source, names: &[&str]) -> Server {
    let providers = folder.join("providers");
    std::fs::create_dir(&providers).unwrap();
    for name in names {
        let paging = match *name {
            "pages" => "[request.query]\npage = \"{page}\"\n[paging]\nkind = \"page\"\nsize = 40\npages_max = 5\n",
            _ => "",
        };
        let text = format!(
            "name = \"{name}\"\n[takes]\nkeywords = \"all\"\nneeds = [\"keywords\"]\n[request]\nurl = \"http://{}/{name}\"\n{paging}\
             [answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntitle = \"title\"\ntext = \"text\"\n\
             link = \"link\"\ntime = \"time\"\n[limits]\nallow_private = true\nretries = 0\n",
            sources.address
        );
        std::fs::write(providers.join(format!("{name}.toml")), text).unwrap();
    }
    let config = folder.join("meridian.toml");
    let text = format!("[search]\nproviders = {:?}\ngone = \"60s\"\nwait = \"60s\"\n", providers.to_str().unwrap());
    std::fs::write(&config, text).unwrap();
    Server::start_with(&["--ephemeral", "--config", config.to_str().unwrap()])
}

#[test]
fn results_come_as_lines_and_the_end_says_what_each_source_gave() {
    let (folder, sources) = (tempfile::tempdir().unwrap(), sources());
    let server = server(folder.path(), &sources, &["good", "hang"]);
    let url = server.url.as_str();
    let run = meridian(&["search", "flood", "--provider", "good", "--url", url])
        .ended(0)
        .says(&["3 results: the first after", "good  complete"]);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.out);
    assert_eq!(lines[0], "2026-01-05 10:00  good  flood a [2J  https://example.org/a");

    let run = meridian(&["search", "flood", "--provider", "good", "--format", "ndjson", "--server", url]).ended(0);
    let features: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(features.len(), 3);
    assert_eq!(
        (features[1]["id"].as_str(), features[1]["provider"].as_str(), features[1]["type"].as_str()),
        (Some("b"), Some("good"), Some("Feature"))
    );

    let part = ["search", "flood", "--provider", "good", "--provider", "hang", "--timeout", "2s", "--url", url];
    let run = meridian(&part).ended(1).says(&["hang  timeout", "this is not all: hang did not give all"]);
    assert_eq!(run.out.lines().count(), 3);
    let skipped = ["search", "--near", "1,2", "--provider", "good", "--url", url];
    meridian(&skipped).ended(1).says(&["good  skipped", "no source accepts such a question"]);

    meridian(&["search", "(flood", "--url", url]).ended(2).says(&["keywords", "not closed"]);
    meridian(&["search", "flood", "--provider", "bing", "--url", url])
        .ended(2)
        .says(&["providers", "\"bing\" is not enabled here"]);
    meridian(&["search", "--near", "1", "--url", url]).ended(2).says(&["--near"]);
    meridian(&["search", "flood", "--url", "http://127.0.0.1:9"]).ended(3).says(&["cannot reach"]);
}

#[test]
fn an_interrupt_ends_the_search_on_the_server_and_shows_what_came() {
    let (folder, sources) = (tempfile::tempdir().unwrap(), sources());
    let server = server(folder.path(), &sources, &["good", "hang"]);
    let mut child = command(&[
        "search",
        "flood",
        "--provider",
        "good",
        "--provider",
        "hang",
        "--timeout",
        "100s",
        "--url",
        &server.url,
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    // Results arrive while the other source is still pending.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("flood a"), "{first}");
    send(child.id(), "INT");
    let (begun, output) = (Instant::now(), child.wait_with_output().unwrap());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("hang  timeout") && said.contains("the search was stopped"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60), "it did not wait for the source");
    let stopped = || server.get("/metrics").1.contains("meridian_searches_running 0");
    while !stopped() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_connection_that_breaks_again_and_again_loses_and_repeats_nothing() {
    let (folder, sources) = (tempfile::tempdir().unwrap(), sources());
    let server = server(folder.path(), &sources, &["pages"]);
    let (proxy, broken) = cutting(server.url.strip_prefix("http://").unwrap().parse().unwrap());
    let run = meridian(&[
        "search",
        "flood",
        "--provider",
        "pages",
        "--limit",
        "200",
        "--format",
        "ndjson",
        "--url",
        &format!("http://{proxy}"),
    ])
    .ended(0);
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    let ids: Vec<String> = run.out.lines().map(id).collect();
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (200, 200));
    assert!(broken.load(std::sync::atomic::Ordering::Relaxed) > 2, "the proxy cut nothing");
}

#[test]
fn addresses_are_looked_up_in_the_places_that_ship() {
    let folder = tempfile::tempdir().unwrap();
    let (data, places) =
        (folder.path().to_str().unwrap(), common::data("geonames-postal-places/postal_places.tsv.zst"));
    meridian(&["load", "postal-places", places.to_str().unwrap(), "--data", data, "--quiet"]).ended(0);
    let server = Server::start(folder.path());
    server.create("news", "title:String,*geom:Point:srid=4326");
    let mut features = Vec::new();
    for (title, lon, lat) in [("Rhône", 4.84, 45.76), ("Sangamon", -89.65, 39.8), ("Šešupė", 23.42, 54.6)] {
        features.push(format!(
            r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{lon},{lat}]}},"properties":{{"title":"{title}, in flood"}}}}"#
        ));
    }
    let body = format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, features.join(","));
    let (status, text) = server.post("/collections/news/items", "application/geo+json", None, body.as_bytes()).unwrap();
    assert_eq!(status, 201, "{text}");
    let search = |address: &str| {
        meridian(&[
            "search",
            "flood",
            "--address",
            address,
            "--timeout",
            "100s",
            "--format",
            "ndjson",
            "--url",
            &server.url,
        ])
    };
    // By name, by code and country if others have the same code, by name and region.
    for (address, river) in
        [("Lyon", "Rhône"), ("69001, FR", "Rhône"), ("69001, lt", "Šešupė"), ("springfield, illinois", "Sangamon")]
    {
        let run = search(address).ended(0);
        let titles: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(titles.len(), 1, "{address}: {}", run.out);
        assert_eq!(titles[0]["properties"]["title"], format!("{river}, in flood"), "{address}");
    }
    search("Springfield, FR").ended(2).says(&["address", "\"Springfield, FR\" is not among the places"]);
}

/// Writes the settings of a server whose only source returns a result with a red image and one without, and that labels
/// images with `model`.
fn looking(folder: &Path, sources: &Source, model: &Path) -> std::path::PathBuf {
    let provider = format!(
        "name = \"red\"\n[takes]\nkeywords = \"all\"\n[request]\nurl = \"http://{}/items\"\n[answer]\nformat = \"json\"\n\
         items = \"items\"\n[answer.map]\nid = \"id\"\ntitle = \"title\"\nimages = \"image\"\n[limits]\nallow_private = true\n",
        sources.address
    );
    std::fs::write(folder.join("red.toml"), provider).unwrap();
    std::fs::write(folder.join("labels.txt"), "red\ngreen\nblue\n").unwrap();
    let config = folder.join("config");
    let text = format!(
        "[search]\nproviders = {folder:?}\ngone = \"60s\"\nwait = \"60s\"\n[search.images]\nmodel = {model:?}\nlabels = {:?}\ntimeout = \"60s\"\n",
        folder.join("labels.txt")
    );
    std::fs::write(&config, text).unwrap();
    config
}

#[test]
fn results_say_what_their_image_shows_where_a_model_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_pixel(80, 60, image::Rgb([255, 0, 0])).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let png = png.into_inner();
    let sources = Source::start(move |request| match request.split(' ').nth(1).unwrap() {
        "/red.png" => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", png.len());
            [head.as_bytes(), &png].concat()
        }
        _ => {
            let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
            json(&format!(
                r#"{{"items":[{{"id":"a","title":"flood a","image":"http://{host}/red.png"}},{{"id":"b","title":"flood b"}}]}}"#
            ))
        }
    });
    let model = common::root().join("crates/labels/fixtures/colours.onnx");
    let config = looking(folder.path(), &sources, &model);
    let server = Server::start_with(&["--ephemeral", "--config", config.to_str().unwrap()]);
    let run = meridian(&["search", "flood", "--timeout", "100s", "--format", "ndjson", "--url", &server.url]).ended(0);
    let features: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let labels = |id: &str| features.iter().find(|f| f["id"] == id).unwrap()["properties"]["image_labels"].clone();
    assert_eq!(
        (labels("a")[0]["label"].as_str(), labels("a").as_array().unwrap().len()),
        (Some("red"), 1),
        "{}",
        run.out
    );
    assert!(labels("b").is_null());
    assert!(server.get("/metrics").1.contains("meridian_search_images_seen_total 1\n"));

    // An invalid model is reported before anything listens.
    let broken = folder.path().join("broken.onnx");
    std::fs::write(&broken, "<html>no model</html>").unwrap();
    let config = looking(folder.path(), &sources, &broken);
    meridian(&["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap()])
        .ended(2)
        .says(&["search.images.model", "broken.onnx", "not an ONNX model"]);
}

/// Starts a proxy that passes 20,000 bytes of each response and then breaks the connection; returns its address, and
/// the number of breaks.
fn cutting(to: SocketAddr) -> (SocketAddr, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    const BYTES: usize = 20_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let cut = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = cut.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let counted = counted.clone();
            let upstream = TcpStream::connect(to).unwrap();
            let (mut asked, mut told) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut asked, &mut told));
            std::thread::spawn(move || {
                let (mut upstream, mut client, mut left) = (upstream, client, BYTES);
                let mut buffer = vec![0; 4_096];
                while let Ok(n @ 1..) = upstream.read(&mut buffer) {
                    if client.write_all(&buffer[..n.min(left)]).is_err() {
                        break;
                    }
                    left -= n.min(left);
                    if left == 0 {
                        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        break;
                    }
                }
                let _ = client.shutdown(std::net::Shutdown::Both);
                let _ = upstream.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    (address, cut)
}
