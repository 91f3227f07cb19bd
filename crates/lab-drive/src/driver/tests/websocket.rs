//! WebSocket, against a library's server.

use super::*;

/// A server that takes a question and sends two packets, the second larger than any buffer. Under `/whole` it
/// announces that the results are complete; elsewhere it closes.
pub(super) fn server() -> SocketAddr {
    use tokio_tungstenite::tungstenite::{Message, accept_hdr, handshake::server};
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut path = String::new();
                #[expect(clippy::result_large_err, reason = "the library's signature")]
                let seen = |request: &server::Request, response: server::Response| {
                    path = request.uri().path().to_owned();
                    Ok(response)
                };
                // The reachability probe opens a connection and sends nothing.
                let Ok(mut socket) = accept_hdr(stream, seen) else { return };
                let packet = |features: &str| format!("{{\"kind\":\"results\",\"features\":[{features}]}}");
                let asked = socket.read().expect("the body as a message");
                assert_eq!(asked, Message::text("{\"q\":1}"));
                socket.send(Message::Ping("x".into())).expect("sends");
                socket.send(Message::text(packet("1,2"))).expect("sends");
                socket.send(Message::text(packet(&vec!["3"; 40_000].join(",")))).expect("sends");
                if path == "/whole" {
                    socket.send(Message::text("{\"kind\":\"complete\",\"state\":\"complete\"}")).expect("sends");
                    assert!(socket.read().expect("an answer to the ping").is_pong());
                    assert!(socket.read().expect("a farewell").is_close());
                } else {
                    socket.close(None).expect("closes");
                    while socket.read().is_ok() {}
                }
            });
        }
    });
    address
}

#[test]
fn a_websocket_is_listened_to_until_its_search_is_complete() {
    let address = server();
    let text = format!(
        "[target]\nurl = \"ws://{address}\"\n[arrival]\nkind = \"burst\"\ncount = 20\n[[request]]\npath = \"/whole\"\nmethod = \"POST\"\nbody = '{{\"q\":1}}'\nresult = \"packet\"\n[[request]]\npath = \"/part\"\nbody = '{{\"q\":1}}'\nresult = \"packet\"\n"
    );
    let ran = drive(&text);
    assert_eq!(ran.records.len(), 20);
    for record in ran.records {
        let due = if record.request == 0 { Came::Sound } else { Came::Partial };
        assert_eq!(
            (record.outcome, record.packets, record.results, record.status),
            (due, 2, 40_002, 101),
            "{record:?}"
        );
        assert!(
            record.sent <= record.first_result
                && record.first_result <= record.last_result
                && record.last_result <= record.done
        );
    }
}
