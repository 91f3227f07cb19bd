//! What "complete, up to the limit" means: the limit counts what answers the question.

use crate::searches::search;
use crate::support::{Server, point};
use serde_json::{Value, json};

const GERMAN: &str =
    "Nach dem schweren Unwetter stehen in der Stadt viele Keller unter Wasser, die Feuerwehr ist im Einsatz.";

/// The titles of what was found, in order.
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
        // The second is behind a hundred that lead to the same.
        (json!({}), 2, vec!["flood 0", "flood 100"]),
    ] {
        let mut question = json!({"keywords": "flood", "providers": ["meridian"], "limit": limit});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let packets = search(&server, &question);
        assert_eq!(titles(&packets), expected, "{question}");
        assert_eq!(packets.last().unwrap()["state"], "complete", "{question}");
    }
}
