//! `meridian provider test`: declarations, recorded responses, and real queries to sources on loopback.

use crate::common::source::{Source, json, typed};
use crate::common::{self, command, meridian, root};
use std::path::PathBuf;

const SMALL: &str = "name = \"small\"\n[request]\nurl = \"https://example.org/\"\n[answer]\nformat = \"json\"\nitems = \"list\"\n\
    [answer.map]\nid = \"id\"\ntitle = \"name\"\nauthor = \"who\"\n";

fn fixture(name: &str) -> PathBuf {
    let json = root().join(format!("crates/federation/fixtures/{name}.json"));
    if json.exists() { json } else { json.with_extension("xml") }
}

#[test]
fn a_declaration_is_checked_and_what_finds_nothing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let small = file("small.toml", SMALL);
    let run = meridian(&["provider", "test", &small]).ended(0);
    assert!(run.out.contains("small: small"), "{}", run.out);
    let answer = file("answer.json", "{\"list\":[{\"id\":1,\"name\":\"One\"},{\"id\":2,\"name\":\"Two\"}]}");
    let run = meridian(&["provider", "test", &small, "--answer", &answer]).ended(1);
    assert!(run.err.contains("answer.map.author finds nothing in any of 2 items"), "{}", run.err);
    for words in ["2 items, 2 results", "answer.map.title", "One", "\"title\": \"One\""] {
        assert!(run.out.contains(words), "{words:?} in:\n{}", run.out);
    }
    let whole = file("whole.json", "{\"list\":[{\"id\":1,\"name\":\"One\",\"who\":\"Ann\"}]}");
    meridian(&["provider", "test", &small, "--answer", &whole]).ended(0);
    let other = file("other.json", "{\"items\":[]}");
    meridian(&["provider", "test", &small, "--answer", &other]).ended(1).says(&["its shape has changed"]);
    let page = file("page.html", "<!doctype html><html></html>");
    meridian(&["provider", "test", &small, "--answer", &page]).ended(1).says(&["expected JSON, received an HTML page"]);

    for (from, to, words) in [
        ("title", "titel", "titel"),
        ("id = \"id\"", "id = \"a..b\"", "answer.map.id: \"a..b\""),
        ("id = \"id\"\ntitle = \"name\"\n", "", "expected at least one of id, link, title and text"),
        ("https", "ftp", "request.url"),
    ] {
        let bad = file("bad.toml", &SMALL.replacen(from, to, 1));
        meridian(&["provider", "test", &bad]).ended(2).says(&["bad.toml", words]);
    }
    meridian(&["provider", "test", "no-such"]).ended(2).says(&["no-such", "wikipedia"]);
    meridian(&["provider", "test", "rss"]).ended(2).says(&["set.feed"]);
    let wrong = ["provider", "test", &small, "--question", "{\"keyword\":\"a\"}"];
    meridian(&wrong).ended(2).says(&["--question", "expected one of keywords"]);
    let near = ["provider", "test", "wikipedia", "--question", "{\"near\":[4.83,45.76]}"];
    let run = meridian(&near).ended(0);
    assert!(
        run.out.contains("it does not accept the question: it accepts only questions with keywords"),
        "{}",
        run.out
    );
}

#[test]
fn a_server_names_a_mapping_that_can_find_nothing_when_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let providers = folder.path().join("providers");
    std::fs::create_dir(&providers).unwrap();
    std::fs::write(providers.join("small.toml"), SMALL.replace("\"who\"", "\"who.[name]\"")).unwrap();
    let config = folder.path().join("meridian.toml");
    std::fs::write(&config, format!("[search]\nproviders = {:?}\n", providers.to_str().unwrap())).unwrap();
    meridian(&["serve", "--ephemeral", "--config", config.to_str().unwrap()]).ended(2).says(&[
        "small.toml",
        "answer.map.author",
        "who.[name]",
    ]);
}

/// Checks the request to each source against its documentation; the server's tests cover the other shipped providers.
#[test]
fn sources_that_want_credentials_are_asked_as_they_document() {
    const FLOOD: &str = r#"{"keywords":"flood"}"#;
    const NEAR: &str = r#"{"keywords":"flood","near":[4.83,45.76],"radius":5000}"#;
    const EITHER: &str = r#"{"keywords":"flood OR storm","limit":3}"#;
    const JANUARY: &str = r#"{"keywords":"flood","start":"2026-01-01","end":"2026-01-31"}"#;
    let cases: [(&str, &str, &[&str]); 18] = [
        ("reddit", EITHER, &["q=%28flood+OR+storm%29", "limit=3", "authorization: bearer short-lived"]),
        (
            "foursquare",
            NEAR,
            &["ll=45.76%2C4.83", "radius=5000", "limit=50", "authorization: Bearer of FOURSQUARE_API_KEY"],
        ),
        (
            "flickr",
            NEAR,
            &[
                "/services/rest/?",
                "method=flickr.photos.search&",
                "text=flood",
                "lat=45.76&",
                "lon=4.83&",
                "radius=5&",
                "per_page=100",
                "api_key=of+FLICKR_API_KEY&",
            ],
        ),
        ("flickr", JANUARY, &["min_taken_date=2026-01-01+00%3A00%3A00", "max_taken_date=2026-01-31+23%3A59%3A59"]),
        ("youtube", NEAR, &["location=45.76%2C4.83", "locationRadius=5000m", "key=of+YOUTUBE_API_KEY"]),
        ("vimeo", FLOOD, &["query=flood", "page=1", "authorization: bearer of VIMEO_ACCESS_TOKEN"]),
        ("tumblr", FLOOD, &["tag=flood", "limit=20", "api_key=of+TUMBLR_API_KEY"]),
        ("pinterest", FLOOD, &["term=flood", "country_code=US", "limit=50"]),
        ("medium", FLOOD, &["/medium/feed/tag/flood "]),
        ("vk", JANUARY, &["q=flood", "start_time=1767225600", "v=5.199", "access_token=of+VK_SERVICE_TOKEN"]),
        ("ok", FLOOD, &["query=flood", "&sig=22e4b7b46cf57a593637e7af91975b4e", "access_token=of+OK_ACCESS_TOKEN"]),
        ("4chan", FLOOD, &["/4chan/news/catalog.json "]),
        ("x", EITHER, &["query=%28flood+OR+storm%29", "max_results=10", "authorization: Bearer of X_BEARER_TOKEN"]),
        ("bing-news", FLOOD, &["q=flood", "count=100", "offset=0", "ocp-apim-subscription-key: of NEWS_SEARCH_KEY"]),
        ("lemmy", FLOOD, &["q=flood", "type_=Posts", "limit=50", "page=1"]),
        ("peertube", JANUARY, &["search=flood", "startDate=2026-01-01T00%3A00%3A00Z", "start=0"]),
        (
            "openalex",
            JANUARY,
            &["search=flood", "filter=from_publication_date%3A2026-01-01%2Cto_publication_date%3A2026-01-31"],
        ),
        ("gbif", NEAR, &["geoDistance=45.76%2C4.83%2C5km", "offset=0"]),
    ];
    let source = Source::start(|request| {
        let name = request.split(['/', ' ']).nth(2).unwrap();
        if request.starts_with("POST /reddit/api/v1/access_token") {
            return json(r#"{"access_token":"short-lived","token_type":"bearer","expires_in":3600}"#);
        }
        let body = std::fs::read_to_string(fixture(name)).unwrap();
        typed(if name == "medium" { "application/rss+xml" } else { "application/json" }, &body)
    });
    let folder = tempfile::tempdir().unwrap();
    for (name, question, parts) in cases {
        let base = format!("http://{}/{name}", source.address);
        let tokens = if name == "reddit" { format!("tokens = \"{base}\"\n") } else { String::new() };
        let path = folder.path().join(format!("{name}.toml"));
        let text = format!(
            "name = \"{name}\"\nextends = \"{name}\"\n[set]\nbase = \"{base}\"\n{tokens}[limits]\nallow_private = true\n"
        );
        std::fs::write(&path, text).unwrap();
        let mut program = command(&["provider", "test", path.to_str().unwrap(), "--ask", "--question", question]);
        for key in [
            "REDDIT_CLIENT_ID",
            "REDDIT_CLIENT_SECRET",
            "FLICKR_API_KEY",
            "FOURSQUARE_API_KEY",
            "YOUTUBE_API_KEY",
            "VIMEO_ACCESS_TOKEN",
            "TUMBLR_API_KEY",
            "PINTEREST_ACCESS_TOKEN",
            "VK_SERVICE_TOKEN",
            "OK_APPLICATION_KEY",
            "OK_SESSION_SECRET",
            "OK_ACCESS_TOKEN",
            "X_BEARER_TOKEN",
            "NEWS_SEARCH_KEY",
        ] {
            program.env(key, format!("of {key}"));
        }
        let run = common::Run::from(program.output().unwrap()).ended(0);
        assert!(run.out.contains("it accepts the question") && run.out.contains("the first result"), "{}", run.out);
        let calls = source.calls();
        let call = calls.last().unwrap();
        for part in parts {
            assert!(call.contains(part), "{name}: no {part} in\n{call}");
        }
    }
    let calls = source.calls();
    let token = calls.iter().find(|call| call.starts_with("POST /reddit")).unwrap();
    // "of REDDIT_CLIENT_ID:of REDDIT_CLIENT_SECRET" in base64 (RFC 7617).
    assert!(
        token.contains("authorization: Basic b2YgUkVERElUX0NMSUVOVF9JRDpvZiBSRURESVRfQ0xJRU5UX1NFQ1JFVA=="),
        "{token}"
    );
    assert!(token.ends_with("grant_type=client_credentials"), "{token}");
}
