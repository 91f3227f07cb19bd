//! Positions of moving objects that arrive in any order.

use super::world::{World, everything, stop, titles};
use serde_json::{Value, json};

/// Longitude of each second of a track: out, in, in, out. The fence is 0 to 1.
const TRACK: [f64; 4] = [-1.0, 0.4, 0.6, 2.0];

/// All orders of the positions of the track.
fn orders() -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for _ in TRACK {
        let longer = |order: &Vec<usize>| {
            let rest = (0..TRACK.len()).filter(|second| !order.contains(second)).collect::<Vec<_>>();
            rest.into_iter().map(|second| [order.as_slice(), &[second]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders
}

/// The expected reports for a ship, by the newest position that has arrived.
fn oracle(ship: &str, order: &[usize]) -> Vec<(String, String)> {
    let inside = |second: usize| (0.0..=1.0).contains(&TRACK[second]);
    let (mut told, mut newest): (Vec<_>, Option<usize>) = (Vec::new(), None);
    for &second in order {
        if newest.is_some_and(|newest| second < newest) {
            continue;
        }
        let word = match (newest.is_some_and(inside), inside(second)) {
            (false, true) => Some("enter"),
            (true, true) => Some("inside"),
            (true, false) => Some("exit"),
            (false, false) => None,
        };
        told.extend(word.map(|word| (format!("{ship}/{second}"), word.to_owned())));
        newest = Some(second);
    }
    told
}

#[tokio::test]
async fn a_late_position_is_never_an_alarm_in_whatever_order_a_track_arrives() {
    let world = World::new("ship:String:object=true,title:String,at:Date,*geom:Point:srid=4326");
    let saved = world.open();
    let fence = json!({"question": {"bbox": [0, 0, 1, 1], "when": ["enter", "inside", "exit"]}});
    let search = saved.create(&fence, &everything(&saved), None).await.expect("made");
    let mut expected = Vec::new();
    for (n, order) in orders().into_iter().enumerate() {
        let ship = format!("s{n}");
        for &second in &order {
            let title = format!("{ship}/{second}");
            world.write(&[("ship", &ship), ("title", &title)], second as i64, (TRACK[second], 0.5));
        }
        expected.extend(oracle(&ship, &order));
    }
    stop(&saved).await;
    let (_, packets) = saved.get(&search.id).unwrap().outbox.kept();
    let mut told: Vec<(String, String)> = Vec::new();
    for packet in packets.iter().map(|packet| serde_json::from_str::<Value>(packet).unwrap()) {
        let when = packet["when"].as_str().unwrap_or_default();
        told.extend(titles(&packet).into_iter().map(|title| (title.to_owned(), when.to_owned())));
    }
    assert_eq!(told, expected);
}
