//! Images of results: fetched, labelled, and bounded in time.

use super::*;
use crate::pipeline::images::Images;
use meridian_labels::samples::{colours, png, settings as with_model};
use meridian_labels::{Classifier, ImageSettings, Labels};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A provider that sends a result without an image, and one for each of these.
fn pictures(images: Vec<String>, allows_private: bool) -> ScriptedProvider {
    let does = move |sink: Sink| -> ProviderFuture<'static> {
        let plain = SearchResult { id: "plain".to_owned(), title: Some("good".to_owned()), ..SearchResult::default() };
        let with =
            |(n, url): (usize, &String)| SearchResult { id: n.to_string(), images: vec![url.clone()], ..plain.clone() };
        let found = images.iter().enumerate().map(with).chain([plain.clone()]).collect();
        Box::pin(async move { sink.found(found).await })
    };
    ScriptedProvider { allows_private, ..ScriptedProvider::new("pictures", does) }
}

/// A host of images.
struct Host {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
    /// Max concurrent calls.
    most: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl Host {
    async fn start() -> Host {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (calls, most, now) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let (counted, at_once) = (calls.clone(), most.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (counted, at_once, now) = (counted.clone(), at_once.clone(), now.clone());
                tokio::spawn(async move {
                    counted.fetch_add(1, Ordering::Relaxed);
                    at_once.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    answer(stream, &now).await;
                });
            }
        });
        Host { address, calls, most, _serving: serving }
    }

    fn urls(&self, paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| format!("http://{}/{path}", self.address)).collect()
    }
}

async fn answer(mut stream: TcpStream, now: &AtomicUsize) {
    let mut head = [0; 4_096];
    let read = stream.read(&mut head).await.unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let (status, more, body) = match path {
        "red" => ("200 OK", String::new(), png(64, 48, |_, _| [255, 0, 0])),
        "bomb" => ("200 OK", String::new(), png(2_000, 2_000, |_, _| [255, 0, 0])),
        "html" => ("200 OK", "content-type: image/png\r\n".to_owned(), b"<html>no image</html>".to_vec()),
        "long" => ("200 OK", String::new(), vec![0; 200_000]),
        "moved" => ("302 Found", "location: /red\r\n".to_owned(), Vec::new()),
        "slow" => std::future::pending().await,
        _ => ("404 Not Found", String::new(), Vec::new()),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n");
    // Counted before the response is sent, since the client may call again at once.
    now.fetch_sub(1, Ordering::Relaxed);
    let _ = stream.write_all(&[head.into_bytes(), body].concat()).await;
}

/// Searches with a model that recognises colours, and timeouts for a slow machine.
fn looking(images: ImageSettings, provider: ScriptedProvider) -> Arc<Searches> {
    let images = Classifier::load(&images).expect("it loads");
    Arc::new(bare(Settings { images, ..Settings::default() }, &[]).with(Arc::new(provider)))
}

fn patient(folder: &TempDir) -> ImageSettings {
    let settings = with_model(folder.path(), &colours(&["N", "3", "32", "32"], false));
    ImageSettings { timeout: Duration::from_secs(30), bytes_max: 100_000, pixels_max: 1 << 20, ..settings }
}

/// The results by id, in packet order, and the final state of their search.
async fn results(searches: &Arc<Searches>) -> (Vec<String>, BTreeMap<String, Value>) {
    let all = packets(searches, json!({"keywords": "good", "providers": ["pictures"], "timeout": 120_000})).await;
    let last = all.last().expect("a last packet");
    assert_eq!((last["kind"].as_str(), last["state"].as_str()), (Some("complete"), Some("complete")), "{all:?}");
    let features = all.iter().filter_map(|packet| packet["features"].as_array()).flatten();
    let named = features.map(|f| (f["id"].as_str().expect("a name").to_owned(), f["properties"].clone()));
    let order: Vec<(String, Value)> = named.collect();
    (order.iter().map(|(name, _)| name.clone()).collect(), order.into_iter().collect())
}

/// Images seen, failed, late and passed.
fn counts(searches: &Searches) -> [u64; 4] {
    let tally = searches.tally();
    [&tally.images_seen, &tally.images_failed, &tally.images_late, &tally.images_passed]
        .map(|count| count.load(Ordering::Relaxed))
}

#[tokio::test]
async fn an_image_gives_labels_and_what_goes_wrong_with_it_costs_no_result() {
    let (folder, host) = (tempfile::tempdir().expect("a folder"), Host::start().await);
    let mut images = host.urls(&["red", "moved", "bomb", "html", "long", "gone"]);
    images.extend(["no address".to_owned(), "ftp://example.org/a.png".to_owned()]);
    let searches = looking(patient(&folder), pictures(images, true));
    let (order, results) = results(&searches).await;
    assert_eq!((order.len(), results.len()), (9, 9));
    for (name, result) in &results {
        match name.as_str() {
            "0" | "1" => {
                assert_eq!(result["image_labels"][0]["label"], "red", "{name}: {result}");
                assert!(result["image_labels"][0]["score"].as_f64().expect("a number") > 0.99, "{result}");
                assert_eq!(result["image_labels_from"], "colours");
            }
            _ => assert!(result.get("image_labels").is_none(), "{name}: {result}"),
        }
    }
    assert_eq!(counts(&searches), [2, 6, 0, 0]);
}

#[tokio::test]
async fn a_slow_image_delays_its_own_result_and_that_not_for_long() {
    let (folder, host) = (tempfile::tempdir().expect("a folder"), Host::start().await);
    let settings = ImageSettings { timeout: Duration::from_secs(1), at_once: 1, ..patient(&folder) };
    let searches = looking(settings, pictures(host.urls(&["slow", "red"]), true));
    let began = Instant::now();
    let (order, results) = results(&searches).await;
    // Far less than the search's timeout: nothing waited for the host.
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!((order[0].as_str(), order.len()), ("plain", 3));
    // The slow image held the only permit, so the other result passed without labels.
    assert!(results.values().all(|result| result.get("image_labels").is_none()), "{results:?}");
    assert_eq!(counts(&searches), [0, 0, 2, 0]);
}

#[tokio::test]
async fn no_image_is_fetched_from_a_private_address_or_without_a_model() {
    let (folder, host) = (tempfile::tempdir().expect("a folder"), Host::start().await);
    let mut images = host.urls(&["red"]);
    images.push(format!("http://localhost:{}/red", host.address.port()));
    let searches = looking(patient(&folder), pictures(images.clone(), false));
    assert_eq!(results(&searches).await.0.len(), 3);
    assert_eq!((counts(&searches), host.calls.load(Ordering::Relaxed)), ([0, 2, 0, 0], 0));
    let searches = looking(ImageSettings::default(), pictures(images, true));
    assert_eq!(results(&searches).await.0.len(), 3);
    assert_eq!((counts(&searches), host.calls.load(Ordering::Relaxed)), ([0; 4], 0));
}

#[tokio::test]
async fn so_many_are_fetched_at_once_and_so_many_wait() {
    let (folder, host) = (tempfile::tempdir().expect("a folder"), Host::start().await);
    let images = host.urls(&["red"; 12]);
    let settings = ImageSettings { at_once: 2, ..patient(&folder) };
    let searches = looking(settings.clone(), pictures(images.clone(), true));
    assert_eq!(results(&searches).await.0.len(), 13);
    assert_eq!(counts(&searches), [12, 0, 0, 0]);
    assert!((1..=2).contains(&host.most.load(Ordering::Relaxed)));
    let searches = looking(ImageSettings { waiting: 3, ..settings }, pictures(images, true));
    let (order, results) = results(&searches).await;
    assert_eq!(order.len(), 13);
    assert_eq!(results.values().filter(|result| result.get("image_labels").is_some()).count(), 3);
    assert_eq!(counts(&searches), [3, 0, 0, 9]);
}

#[tokio::test]
async fn a_panic_of_the_model_costs_labels_only() {
    let host = Host::start().await;
    let searches = searches(Settings::default(), &[("hangs", hangs)]);
    let question = json!({"keywords": "x", "providers": ["hangs"], "timeout": 120_000});
    let (search, _) = searches.start(&question, &asker(""), Instant::now()).await.expect("a search");
    let (mut stages, tally) = (JoinSet::new(), Arc::new(Tally::default()));
    let next: WorkLane<Vec<SearchResult>> = Arc::new(Lane::new(4));
    let see = |_: &[u8]| -> Result<Labels, String> { panic!("on purpose") };
    let patient = ImageSettings { timeout: Duration::from_secs(30), ..ImageSettings::default() };
    let images = Images::new(patient, Arc::new(see), next.clone(), tally.clone());
    let lane = start(&mut stages, Arc::new(images), 4, 2, &tally);
    let leg = search.begin(Arc::new(pictures(Vec::new(), true)));
    let found = SearchResult { id: "0".to_owned(), images: host.urls(&["red"]), ..SearchResult::default() };
    lane.push(Work { leg, body: vec![found] }).await;
    let Dequeued::Due(work) = next.pop().await else { panic!("it came too late") };
    assert_eq!((work.body.len(), work.body[0].id.as_str(), &work.body[0].image_labels), (1, "0", &None));
    assert_eq!((counts(&searches), tally.lost.load(Ordering::Relaxed)), ([0, 1, 0, 0], 0));
}
