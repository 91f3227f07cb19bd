//! The effects of each stage on results. Without any one stage, one of these tests fails.

use crate::searches::{begin, ids, of, search};
use crate::sources::{Sources, config, json as answer_of};
use crate::support::Server;
use serde_json::{Value, json};
use std::time::Duration;

/// A source whose results have everything that the stages check.
const DECLARATION: &str = "[request]\nurl = \"SOURCE\"\n[answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\n\
    text = \"text\"\nlink = \"link\"\nimages = \"image\"\nvideos = \"video\"\n[limits]";

const ENGLISH: &str = "The flood reached the old bridge before dawn, and the people who live along the quay were asked to leave \
    their houses and to take only what they could carry. The mayor said that the water would rise until the evening and that \
    nobody should go near the river without a good reason.";

const GERMAN: &str = "Nach dem schweren Unwetter stehen in der Stadt viele Keller unter Wasser, die Feuerwehr ist mit allen Wagen \
    im Einsatz. Am Fluss wurde die Brücke gesperrt, weil das Hochwasser in der Nacht über die Ufer getreten ist, und die Bewohner \
    der unteren Straßen mussten ihre Häuser verlassen. In der Schule haben Helfer Betten und warme Suppe bereitgestellt; wer kein \
    Dach über dem Kopf hat, soll sich dort melden. Der Bürgermeister sagte am Morgen, dass der Scheitel erst am Abend erwartet \
    wird und dass niemand ohne Grund an das Wasser gehen soll. Die Züge fahren bis auf weiteres nicht, und auch die Busse nehmen \
    einen anderen Weg. Wie groß der Schaden ist, kann noch keiner sagen, doch die Versicherungen rechnen mit vielen Meldungen in \
    den nächsten Tagen";

/// Starts a server with two sources that have some results in common.
fn server(sources: &Sources) -> Server {
    let answer = |items: Value| [answer_of(&json!({ "items": items }).to_string())];
    let one = json!([
        {"id": "page", "text": ENGLISH, "link": "https://example.org/flood?utm_source=one"},
        {"id": "text", "text": GERMAN},
        {"id": "image", "text": "flood", "image": "https://example.org/flood.jpg"},
        {"id": "image", "text": "flood, once more"},
    ]);
    let two = json!([
        {"id": "same page", "text": "flood, elsewhere", "link": "http://www.example.org/flood#top"},
        {"id": "same text", "text": GERMAN.replace("Tagen", "Wochen")},
        {"id": "video", "text": "flood", "video": "https://example.org/flood.mp4"},
        {"id": "no", "text": "a fire"},
    ]);
    sources.tell("one", &answer(one));
    sources.tell("two", &answer(two));
    Server::with(config(["one", "two"].map(|name| sources.declared(name, DECLARATION)).into()))
}

fn ask(server: &Server, more: Value) -> Vec<Value> {
    let mut question = json!({"keywords": "flood OR hochwasser", "providers": ["one", "two"]});
    question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let packets = search(server, &question);
    assert_eq!(packets.last().unwrap()["state"], "complete");
    packets
}

#[test]
fn the_same_of_two_sources_is_sent_once_and_said_to_be_what_it_is() {
    let sources = Sources::start();
    let server = server(&sources);
    let packets = ask(&server, json!({"language": "any"}));
    // From whichever of the two is quicker.
    let (page, text) = (["page", "same page"], ["text", "same text"]);
    let found = ids(&packets);
    let of_these = |names: [&str; 2]| found.iter().filter(|id| names.contains(&id.as_str())).count();
    assert_eq!((of_these(page), of_these(text), found.len()), (1, 1, 4), "{found:?}");
    assert!(server.get("/metrics").text().contains("meridian_search_duplicates_total 3\n"));
    let features: Vec<&Value> = packets.iter().filter_map(|p| p["features"].as_array()).flatten().collect();
    let property = |ids: &[&str], name: &str| {
        let feature = features.iter().find(|f| ids.contains(&f["id"].as_str().unwrap())).unwrap();
        feature["properties"][name].as_str().unwrap_or_default().to_owned()
    };
    let kinds = [&page[..], &text, &["image"], &["video"]].map(|ids| property(ids, "kind"));
    assert_eq!(kinds, ["text", "text", "image", "video"]);
    assert_eq!(property(&text, "language"), "de");
}

#[test]
fn what_is_not_in_the_language_or_of_the_kind_that_is_asked_for_is_left_out() {
    let sources = Sources::start();
    let server = server(&sources);
    let german = ids(&ask(&server, json!({"language": "de"})));
    assert!(german.len() == 1 && german[0].ends_with("text"), "{german:?}");
    assert_eq!(ids(&ask(&server, json!({"media": "videos"}))), ["video"]);
    assert_eq!(ids(&ask(&server, json!({"media": "images"}))), ["image"]);
}

#[test]
fn a_limit_is_that_of_each_source_whatever_it_gives() {
    let sources = Sources::start();
    let server = server(&sources);
    let items: Vec<Value> = (0..9).map(|n| json!({"id": n, "text": format!("flood {n}")})).collect();
    sources.tell("one", &[answer_of(&json!({ "items": items }).to_string())]);
    let packets = ask(&server, json!({"limit": 2}));
    assert_eq!((&of(&packets, "one")["results"], &of(&packets, "two")["results"]), (&json!(2), &json!(2)));
    assert_eq!(ids(&packets)[..2], ["0", "1"]);
    assert_eq!(ids(&packets).len(), 4);
}

#[test]
fn work_for_a_search_that_is_over_is_counted() {
    let sources = Sources::start();
    let server = Server::with(config(vec![sources.provider("hang", "")]));
    // At its deadline the source's own time ends as well; the work is discarded unfinished.
    let id = begin(&server, &json!({"keywords": "flood", "providers": ["hang"], "timeout": 60_000}));
    let asked = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        !sources.calls_of("hang").is_empty()
    });
    assert!(asked);
    assert_eq!(server.ask("DELETE", &format!("/searches/{id}"), &[], b"").status, 204);
    // It is discarded a moment after the end of the search is sent.
    let counted = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        server.get("/metrics").text().contains("meridian_search_late_total 1\n")
    });
    assert!(counted, "{}", server.get("/metrics").text());
}
