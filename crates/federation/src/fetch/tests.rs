use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Starts a source that always sends this response.
async fn source(answer: String) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, server)
}

#[tokio::test]
async fn answers_take_room_until_they_are_read() {
    let body = "x".repeat(40_000);
    let (known, first) =
        source(format!("HTTP/1.1 200 OK\r\ncontent-length: 40000\r\nconnection: close\r\n\r\n{body}")).await;
    let (grows, second) = source(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")).await;
    let (client, room, most) =
        (build(true, Redirects::Anywhere, false).expect("a client"), ByteBudget::new(64 << 10), 1 << 20);
    let ask = |url: &str, ms: u64, most: usize| {
        let (request, room) = (client.get(url), room.clone());
        async move { call(request, Duration::from_millis(ms), most, &room).await }
    };
    let one = ask(&known, 60_000, most).await.expect("an answer");
    assert_eq!((one.bytes.len(), room.held()), (40_000, 40_000));
    for url in [&known, &grows] {
        let failure = ask(url, 300, most).await.expect_err("no room");
        let said = failure.why.contains("search.answer_bytes_total");
        assert!(said && failure.refused && !failure.late && !failure.source_is_broken, "{failure:?}");
        assert_eq!(room.held(), 40_000, "what was refused holds nothing");
    }
    let waits = tokio::spawn(ask(&known, 60_000, most));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waits.is_finished());
    drop(one);
    assert_eq!(waits.await.expect("a task").expect("an answer").bytes.len(), 40_000);
    assert_eq!(ask(&grows, 60_000, most).await.expect("an answer").bytes.len(), 40_000);
    let failure = ask(&grows, 60_000, 30_000).await.expect_err("too long");
    assert!(failure.why.contains("longer than 30000"), "{failure:?}");
    assert_eq!(room.held(), 0);
    first.abort();
    second.abort();
}

#[tokio::test]
async fn keys_do_not_follow_a_redirect_to_another_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let other = listener.local_addr().expect("an address");
    let heads = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let noted = heads.clone();
    let second = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let n = stream.read(&mut head).await.unwrap_or_default();
            noted.lock().push(String::from_utf8_lossy(&head[..n]).into_owned());
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
        }
    });
    let (url, first) = source(format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{other}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    ))
    .await;
    let (http, room) = (Http::new(1 << 20), ByteBudget::new(1 << 20));
    let ask = |redirects: Redirects| {
        let client = http.client(true, redirects).expect("a client");
        let request = client.get(format!("{url}?key=secret")).header("x-api-key", "secret");
        call(request, Duration::from_secs(20), 1 << 20, &room)
    };
    let failure = ask(Redirects::SameAddress).await.expect_err("refused");
    assert!(failure.why.contains("it redirects to 127.0.0.1") && heads.lock().is_empty(), "{}", failure.why);
    // Without keys in its headers a request may be redirected; its address stays unknown to the next host.
    ask(Redirects::Anywhere).await.expect("a response");
    assert!(!heads.lock()[0].to_lowercase().contains("referer"), "{:?}", heads.lock());
    for (from, to, same) in [
        ("http://a.example/x", "https://a.example/y", true),
        ("https://a.example/x", "http://a.example/y", false),
        ("https://a.example/x", "https://a.example:8443/y", false),
        ("http://a.example:80/x", "http://a.example/y", true),
        ("https://a.example/x", "https://b.example/y", false),
    ] {
        let parse = |url: &str| Url::parse(url).expect("a URL");
        assert_eq!(is_same_address(&parse(from), &parse(to)), same, "{from} {to}");
    }
    first.abort();
    second.abort();
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = format!(
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{}/inside\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                address.port()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    // A name mapped to this machine, as a source's own name would resolve.
    let client = builder(false, Redirects::Anywhere).resolve("source.example", address).build().expect("a client");
    let url = format!("http://source.example:{}/", address.port());
    let room = ByteBudget::new(1 << 20);
    let failure = call(client.get(&url), Duration::from_secs(20), 1 << 20, &room).await.expect_err("refused");
    assert!(failure.why.contains("private address") && failure.again.is_none(), "{}", failure.why);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    // A name that resolves to a private address is never called.
    let client = build(false, Redirects::Anywhere, false).expect("a client");
    let failure =
        call(client.get(format!("http://localhost:{}/", address.port())), Duration::from_secs(20), 1 << 20, &room)
            .await;
    assert!(failure.expect_err("refused").why.contains("private address"));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    server.abort();
}
