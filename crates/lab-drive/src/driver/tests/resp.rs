//! RESP, against a server of three commands.

use super::*;

/// A server with the commands `PING` and `KEYS *`.
pub(super) fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut piece = [0; 4096];
                // A command fits into one piece, and the client waits for its reply.
                while let Ok(n @ 1..) = stream.read(&mut piece) {
                    let reply = match &piece[..n] {
                        b"*1\r\n$4\r\nPING\r\n" => "+PONG\r\n",
                        b"*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n" => "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
                        _ => "-ERR unknown command\r\n",
                    };
                    if !say(&mut stream, reply) {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_redis_is_asked_by_commands_and_its_errors_are_named() {
    let address = server();
    let request =
        |name: &str, body: &str| format!("[[request]]\nname = \"{name}\"\nbody = \"{body}\"\nresult = \"line\"\n");
    let text = format!(
        "[target]\nurl = \"redis://{address}\"\n[arrival]\nkind = \"burst\"\ncount = 60\ninterval_s = 0.002\n{}{}{}",
        request("ping", "PING"),
        request("keys", "KEYS *"),
        request("wrong", "WHAT")
    );
    let ran = drive(&text);
    assert_eq!(ran.records.len(), 60);
    for record in ran.records {
        let due = [
            (Came::Sound, 0, None),
            (Came::Sound, 3, None),
            (Came::Failed, 0, Some("the server answered ERR".to_owned())),
        ];
        assert_eq!(
            (record.outcome, record.results, record.detail.clone()),
            due[usize::from(record.request)],
            "{record:?}"
        );
    }
}
