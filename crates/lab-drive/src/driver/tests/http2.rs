//! HTTP/2, against the library's server.

use super::*;
use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use std::sync::atomic::AtomicUsize;
use tokio_rustls::TlsAcceptor;

/// A server that counts its connections that carried a stream.
struct Http2Server {
    address: SocketAddr,
    used: Arc<AtomicUsize>,
}

fn server(tls: Option<Arc<rustls::ServerConfig>>) -> Http2Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let (address, used) = (listener.local_addr().expect("an address"), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&used);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            while let Ok((stream, _)) = listener.accept().await {
                let (count, tls) = (Arc::clone(&count), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await else { return };
                            speak(stream, &count).await;
                        }
                        None => speak(stream, &count).await,
                    }
                });
            }
        });
    });
    Http2Server { address, used }
}

async fn speak(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin, count: &AtomicUsize) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let mut seen = false;
    while let Some(Ok((request, respond))) = connection.accept().await {
        if !std::mem::replace(&mut seen, true) {
            count.fetch_add(1, Ordering::SeqCst);
        }
        tokio::spawn(answer(request, respond));
    }
}

async fn answer(request: ::http::Request<h2::RecvStream>, mut respond: SendResponse<Bytes>) {
    let (head, mut body) = request.into_parts();
    let mut asked = Vec::new();
    while let Some(Ok(piece)) = body.data().await {
        let _ = body.flow_control().release_capacity(piece.len());
        asked.extend_from_slice(&piece);
    }
    let status = |status: u16| ::http::Response::builder().status(status).body(()).expect("a status");
    // The client names the host, in the address and in a header of the target.
    if head.headers.get("x-key").is_none_or(|key| key != "k") || head.uri.authority().is_none() {
        let _ = respond.send_response(status(400), true);
        return;
    }
    match head.uri.path() {
        "/busy" => drop(respond.send_response(status(503), true)),
        "/reset" => respond.send_reset(Reason::REFUSED_STREAM),
        "/broken" => {
            let Ok(mut stream) = respond.send_response(status(200), false) else { return };
            let _ = stream.send_data(Bytes::from_static(b"a\nb\n"), false);
            // Pending writes are flushed first.
            tokio::task::yield_now().await;
            stream.send_reset(Reason::INTERNAL_ERROR);
        }
        _ => {
            let Ok(mut stream) = respond.send_response(status(200), false) else { return };
            for _ in 0..1000 {
                let _ = stream.send_data(Bytes::copy_from_slice(&asked), false);
            }
            let _ = stream.send_data(Bytes::new(), true);
        }
    }
}

fn text(url: &str, rest: &str) -> String {
    let requests: String = ["/lines", "/busy", "/reset", "/broken"]
        .map(|path| {
            format!("[[request]]\npath = \"{path}\"\nmethod = \"POST\"\nbody = \"0123456789\\n\"\nresult = \"line\"\n")
        })
        .concat();
    format!(
        "[target]\nurl = \"{url}\"\nhttp2 = true\nstreams = 20\nheaders = {{ X-Key = \"k\" }}\n{rest}\n[arrival]\nkind = \"closed\"\nusers = 60\n[limits]\nrequests = 60\n{requests}"
    )
}

fn as_due(ran: &Ran) {
    assert_eq!(ran.records.len(), 60);
    for record in &ran.records {
        let detail = record.detail.as_deref().unwrap_or_default();
        let due = match record.request {
            0 => record.outcome == Came::Sound && record.results == 1000 && record.bytes == 11_000,
            1 => record.outcome == Came::Refused && record.status == 503,
            2 => record.outcome == Came::Refused && detail == "the server refused the stream",
            // How much of a response arrives before its stream is reset is up to the server.
            _ => matches!(record.outcome, Came::Partial | Came::Failed) && detail.starts_with("the stream was reset"),
        };
        assert!(due, "{record:?}");
        assert!(record.sent <= record.first_byte || record.first_byte.is_none(), "{record:?}");
    }
}

#[test]
fn streams_share_connections_and_are_measured_one_by_one() {
    let server = server(None);
    as_due(&drive(&text(&format!("http://{}", server.address), "")));
    // 60 at once, 20 per connection.
    assert_eq!(server.used.load(Ordering::SeqCst), 3);
}

#[test]
fn within_tls_it_is_agreed_to_first_and_who_does_not_agree_is_named() {
    let authority = tls::Authority::new();
    let server_of = |alpn: &[&[u8]]| server(Some(authority.server("127.0.0.1", false, alpn)));
    let good = server_of(&[b"h2", b"http/1.1"]);
    as_due(&drive(&text(&format!("https://{}", good.address), &authority.trusted())));
    let plain = serve(|_, _, stream| say(stream, "HTTP/1.1 400 What\r\ncontent-length: 0\r\n\r\n"));
    for url in [format!("https://{}", server_of(&[b"http/1.1"]).address), format!("https://{}", server_of(&[]).address)]
    {
        let error = refusal(&text(&url, &authority.trusted()));
        assert!(matches!(&error, LabError::Target(text) if text.contains("HTTP/2")), "{error}");
    }
    let error = refusal(&text(&plain.url, ""));
    assert!(matches!(&error, LabError::Target(text) if text.contains("does not speak HTTP/2")), "{error}");
    let error = refusal(&text("ws://127.0.0.1:1", ""));
    assert!(matches!(&error, LabError::Scenario(text) if text.contains("http2 is for http://")), "{error}");
}
