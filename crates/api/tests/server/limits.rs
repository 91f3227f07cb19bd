//! The meaning of "complete, up to the limit": the limit counts results that match the query.

use crate::searches::{ids, of, search};
use crate::sources::{Sources, config};
use crate::support::{Server, point};
use meridian_federation::SourceDeclaration;
use serde_json::{Value, json};
use std::sync::Arc;

const GERMAN: &str =
    "Nach dem schweren Unwetter stehen in der Stadt viele Keller unter Wasser, die Feuerwehr ist im Einsatz.";

/// Returns the titles of the results, in order.
fn titles(packets: &[Value]) -> Vec<&str> {
    let features = packets.iter().filter_map(|p| p["features"].as_array()).flatten();
    features.map(|f| f["properties"]["title"].as_str().unwrap()).collect()
}

#[test]
fn own_collections_are_read_until_enough_answers_the_question() {
    let server = Server::start();
    server.create("posts", "title:String,text:String,author:String,link:String,images:String,*geom:Point:srid=4326");
    let posts = (0..300).map(|n| {
        let mut post = json!({"title": format!("flood {n}"), "author": "Bob"});
        if n < 100 {
            post["link"] = "https://example.org/the-same".into();
        }
        if n >= 295 {
            post["author"] = "Ann".into();
            post["images"] = format!("https://example.org/{n}.jpg").into();
        }
        if n == 299 {
            post["text"] = GERMAN.into();
        }
        point("", 4.8, 45.7, post)
    });
    server.load("posts", &posts.collect::<Vec<_>>());
    let last = ["flood 295", "flood 296", "flood 297", "flood 298", "flood 299"];
    for (more, limit, expected) in [
        (json!({"author": "@ann"}), 3, last[..3].to_vec()),
        (json!({"author": "@ann"}), 100, last.to_vec()),
        (json!({"media": "images"}), 4, last[..4].to_vec()),
        (json!({"language": "de"}), 1, last[4..].to_vec()),
        (json!({"author": "Carol"}), 5, Vec::new()),
        // The second comes after a hundred that lead to the same page.
        (json!({}), 2, vec!["flood 0", "flood 100"]),
    ] {
        let mut question = json!({"keywords": "flood", "providers": ["meridian"], "limit": limit});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let packets = search(&server, &question);
        assert_eq!(titles(&packets), expected, "{question}");
        assert_eq!(packets.last().unwrap()["state"], "complete", "{question}");
    }
}

/// Creates a provider with endless pages of 40 results each.
fn pages(sources: &Sources, name: &str, query: &str, paging: &str) -> Arc<SourceDeclaration> {
    let text = format!(
        "name = \"{name}\"\n[takes]\nkeywords = \"all\"\n[request]\nurl = \"http://{}/pages\"\n[request.query]\n{query}\n\
         [paging]\nsize = 40\n{paging}\n[answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntext = \"text\"\n\
         [limits]\nallow_private = true",
        sources.address
    );
    Arc::new(SourceDeclaration::parse(&text, &|_| None).unwrap())
}

#[test]
fn sources_are_asked_for_pages_until_enough_answers_the_question_and_say_where_there_may_be_more() {
    let sources = Sources::start();
    let server = Server::with(config(vec![
        pages(&sources, "many", "page = \"{page}\"", "kind = \"page\"\npages_max = 5"),
        pages(&sources, "one", "page = \"1\"\nn = \"{limit}\"", ""),
        pages(&sources, "feed", "page = \"1\"", ""),
    ]));
    // In each page of 40, one has the number 33.
    for (provider, limit, expected, calls, more) in [
        ("many", 3, &["1-33", "2-33", "3-33"][..], 3, None),
        ("many", 20, &["1-33", "2-33", "3-33", "4-33", "5-33"], 5, Some("at most 5 pages")),
        ("one", 1, &["1-33"], 1, None),
        ("one", 40, &["1-33"], 1, Some("the 40 results requested")),
        // It was given no number, so it returned what it has.
        ("feed", 40, &["1-33"], 1, None),
    ] {
        sources.calls.lock().unwrap().clear();
        let packets = search(&server, &json!({"keywords": "flood 33", "providers": [provider], "limit": limit}));
        let (told, last) = (of(&packets, provider), packets.last().unwrap());
        assert_eq!((ids(&packets), sources.calls.lock().unwrap().len()), (named(expected), calls), "{told}");
        assert_eq!((&told["state"], &last["state"]), (&json!("complete"), &json!("complete")), "{told}");
        let detail = told["detail"].as_str().unwrap();
        match more {
            Some(part) => {
                assert!(detail.contains("there may be more") && detail.contains(part), "{told}");
                assert_eq!((&told["more"], &last["more"]), (&json!(true), &json!([provider])));
            }
            None => assert_eq!((detail, told.get("more"), last.get("more")), ("", None, None), "{told}"),
        }
    }
}

fn named(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn a_field_that_a_source_renamed_is_not_reported_as_no_results() {
    let sources = Sources::start();
    let server = Server::with(config(vec![sources.provider("switch", "")]));
    let near = json!({"near": [4.8, 45.7], "radius": 5000});
    for (n, (items, more, state, parts)) in [
        (
            json!([{"id": 1, "body": "flood"}, {"id": 2, "body": "flood"}]),
            json!({}),
            "error",
            &["none of 2", "answer.map.text"][..],
        ),
        (json!([{"id": 1, "text": "fire"}, {"id": 2}]), json!({}), "complete", &[]),
        (
            json!([{"id": 1, "text": "flood"}, {"id": 2, "text": "flood"}]),
            near.clone(),
            "complete",
            &["all of 2", "answer.map.lon"],
        ),
        (json!([{"id": 1, "text": "flood", "lon": 9, "lat": 9}, {"id": 2, "text": "flood"}]), near, "complete", &[]),
        (json!([]), json!({}), "complete", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        *sources.switch.lock().unwrap() = crate::sources::json(&json!({"items": items}).to_string());
        let mut question = json!({"keywords": format!("flood -x{n}"), "providers": ["switch"]});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let packets = search(&server, &question);
        let told = of(&packets, "switch");
        assert_eq!((told["state"].as_str(), told["results"].as_u64()), (Some(state), Some(0)), "{told}");
        let detail = told["detail"].as_str().unwrap();
        assert!(parts.iter().all(|part| detail.contains(part)) && detail.is_empty() == parts.is_empty(), "{told}");
    }
}
