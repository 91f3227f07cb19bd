//! Messages between the roles of a cluster: calls, responses, and events.

use crate::runtime::{finish, runtime};
use crate::world;
use meridian_backend::Embedded;
use meridian_query::{CancelFlag, Control};
use meridian_remote::ServeOptions;
use meridian_remote::fuzzed::{self, Message, Server};
use meridian_store::Settings;
use meridian_store::seams::{MemoryDisk, SeededRandom, SystemClock};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A call of any kind: a parsed one is written back unchanged.
pub fn wire_call(bytes: &[u8]) {
    for written in fuzzed::calls(bytes) {
        assert!(fuzzed::calls(&written).contains(&written), "{}", String::from_utf8_lossy(&written));
    }
}

/// A response of any kind, without its columns.
pub fn wire_answer(bytes: &[u8]) {
    for written in fuzzed::answers(bytes) {
        assert!(fuzzed::answers(&written).contains(&written), "{}", String::from_utf8_lossy(&written));
    }
}

/// Messages of an event stream. Each has three parts, prefixed with their lengths.
pub fn wire_events(bytes: &[u8]) {
    let (mut rest, mut messages) = (bytes, Vec::<Message>::new());
    while let Some((head, after)) = rest.split_first_chunk::<12>() {
        let mut after = after;
        let mut part = |at: usize| {
            let length = u32::from_le_bytes(head[at..at + 4].try_into().unwrap()) as usize;
            let (part, left) = after.split_at(length.min(after.len()));
            after = left;
            part.to_vec()
        };
        messages.push([part(0), part(4), part(8)]);
        rest = after;
    }
    fuzzed::events(messages, world::batch().schema());
}

fn put_together(messages: &[Message]) -> Vec<u8> {
    let one = |message: &Message| {
        let lengths = message.iter().flat_map(|part| (part.len() as u32).to_le_bytes());
        lengths.chain(message.iter().flatten().copied()).collect::<Vec<u8>>()
    };
    messages.iter().flat_map(one).collect()
}

/// A server over its own store, with the small collection.
fn server() -> Server {
    let store = Arc::new(world::open(&MemoryDisk::new()).unwrap());
    world::fill(&store);
    let clock = Arc::new(SystemClock::new());
    let control = Arc::new(move |left: Duration, cancel: CancelFlag| Control::new(clock.clone(), left, cancel));
    let _entered = runtime().enter();
    let random = Arc::new(SeededRandom::new(5));
    Server::new(Embedded::new(store), ServeOptions::new(1, control, random))
}

/// The server used only for reads.
static READ: LazyLock<Server> = LazyLock::new(server);

/// Executes a call: every response ends, either completely or with a fault.
pub fn owner_call(bytes: &[u8]) {
    // That response ends only at its deadline.
    let asks = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    if asks["ask"] == "positions" {
        return;
    }
    if let Ok(messages) = finish(READ.get(bytes)) {
        let last = messages.last().map(|[.., meta]| serde_json::from_slice::<Value>(meta).unwrap_or_default());
        let last = last.unwrap_or_default();
        assert!(last["done"] == true || last["fault"] != Value::Null, "it ends with {last}");
    }
    if fuzzed::calls(bytes).is_empty() {
        return;
    }
    // Acts modify the store. An empty list has no message.
    assert!(finish(server().act(bytes)).is_ok(), "an act without a result");
}

/// Inputs for the targets of this module: a wire fixture's contents, addressed to the small collection.
pub fn seeds(fixture: &Value) -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let made = world::open(&MemoryDisk::new()).unwrap();
    let made = made.create("t", "c", world::schema(), Settings::default()).unwrap().created();
    let place = json!({"tenant": "t", "name": "c", "made": made});
    for kind in ["get", "do", "put"] {
        for (n, call) in fixture[kind].as_array().unwrap().iter().enumerate() {
            seeds.push(("wire_call", format!("{kind}-{n:02}"), call.to_string().into_bytes()));
            let mut own = call.clone();
            if let Some(asked) = own["ask"].as_object_mut().and_then(|ask| ask.values_mut().next()) {
                // Calls name their collection in a `place` member, or directly.
                let has_place = asked.get("place").is_some();
                let named = if has_place { &mut asked["place"] } else { &mut *asked };
                for (name, value) in place.as_object().unwrap() {
                    if named.get(name).is_some() {
                        named[name] = value.clone();
                    }
                }
                if let Some(at) = asked.get_mut("at").filter(|_| kind == "get") {
                    at["seq"] = Value::Null;
                }
                if asked.get("after").is_some_and(Value::is_array) {
                    asked["after"] = json!([0]);
                }
            }
            if kind != "put" {
                seeds.push(("owner_call", format!("{kind}-{n:02}"), own.to_string().into_bytes()));
            }
        }
    }
    for kind in ["meta", "written"] {
        for (n, answer) in fixture[kind].as_array().unwrap().iter().enumerate() {
            seeds.push(("wire_answer", format!("{kind}-{n:02}"), answer.to_string().into_bytes()));
        }
    }
    let ask = |ask: Value| json!({"version": 1, "left_us": 10_000_000, "trace": null, "ask": ask}).to_string();
    let describe = finish(READ.act(ask(json!({"describe": {"tenant": "t", "name": "c"}})).as_bytes())).unwrap();
    seeds.push(("wire_answer", "described".to_owned(), describe.concat()));
    let page = ask(json!({"page": {"place": place, "skip": 0, "limit": 20}}));
    seeds.push(("wire_events", "page".to_owned(), put_together(&finish(READ.get(page.as_bytes())).unwrap())));
    let near = json!({"lon": 1.0, "lat": 2.0, "radius_m": 5e6, "skip": 0, "limit": 5});
    let near = ask(json!({"near": {"place": place, "near": near}}));
    seeds.push(("wire_events", "near".to_owned(), put_together(&finish(READ.get(near.as_bytes())).unwrap())));
    seeds
}
