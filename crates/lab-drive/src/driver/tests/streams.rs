//! Many streams at once, against mock sources.

use super::*;
use crate::mock::{Mock, MockFile};

/// Starts mock sources on a thread of their own, and returns their address.
fn mock(text: &str) -> SocketAddr {
    let file = MockFile::parse(text, "mock.toml").expect("a file");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            Arc::new(Mock::new(&file, None).expect("ready")).serve(listener).await;
        });
    });
    address
}

#[test]
fn hundreds_of_streams_bring_every_packet_in_its_time() {
    let source = "[[source]]\nname = \"s\"\nitems = 2\nitem_bytes = 100\nstream = { packets = 5, every_ms = 100 }\n";
    let address = mock(source);
    for scheme in ["ws", "http"] {
        let text = format!(
            "[target]\nurl = \"{scheme}://{address}\"\n[arrival]\nkind = \"burst\"\ncount = 200\n[request]\npath = \"/s\"\nresult = \"packet\"\n"
        );
        let ran = drive(&text);
        assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 200)]), "{scheme}");
        for record in &ran.records {
            assert_eq!((record.packets, record.results), (5, 10), "{record:?}");
            // Four gaps of a tenth of a second precede the last packet; a timer never fires early.
            let waited = record.last_result.zip(record.sent).map(|(last, sent)| last - sent);
            assert!(waited.is_some_and(|us| us >= 399_000), "{record:?}");
        }
    }
}

#[test]
fn a_stream_that_breaks_leaves_what_had_come() {
    let fault = |kind: &str| {
        format!(
            "[[source]]\nname = \"{kind}\"\nstream = {{ packets = 6, every_ms = 1 }}\n[[source.fault]]\nkind = \"{kind}\"\n"
        )
    };
    let kinds = ["truncated", "half-open", "down", "garbage"];
    let address = mock(&kinds.map(fault).concat());
    let requests: String = kinds.map(|kind| format!("[[request]]\npath = \"/{kind}\"\nresult = \"packet\"\n")).concat();
    let text = format!(
        "[target]\nurl = \"ws://{address}\"\n[[population]]\nname = \"users\"\npatience_s = 5\narrival = {{ kind = \"burst\", count = 60 }}\n{requests}"
    );
    for record in drive(&text).records {
        let (outcome, packets) = match record.request {
            0 => (Came::Partial, 3),
            1 => (Came::TimedOut, 3),
            _ => (Came::Failed, 0),
        };
        assert_eq!((record.outcome, record.packets), (outcome, packets), "{record:?}");
    }
}
