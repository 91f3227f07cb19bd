//! Failing stages, in searches without a server.

mod images;

use super::*;
use crate::provider::ProviderFuture;
use crate::provider::scripted::ScriptedProvider;
use crate::refusal::Refusal;
use crate::searches::Searches;
use crate::sink::Sink;
use crate::supervise::faults::{inject_panic, pending_panics};
use meridian_backend::Embedded;
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

/// The behaviour of a provider.
type Does = fn(Sink) -> ProviderFuture<'static>;

fn searches(settings: Settings, told: &[(&'static str, Does)]) -> Arc<Searches> {
    Arc::new(bare(settings, told))
}

fn bare(settings: Settings, told: &[(&'static str, Does)]) -> Searches {
    let seams = Seams::real();
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).expect("a store"));
    let mut searches =
        Searches::new(settings, Embedded::new(store), "default".to_owned(), seams.clock.clone(), seams.random.clone());
    for (name, does) in told {
        searches = searches.with(Arc::new(ScriptedProvider::new(name, *does)));
    }
    searches
}

/// All packets of a search, checked for gaps.
async fn packets(searches: &Arc<Searches>, question: Value) -> Vec<Value> {
    let (search, _) = searches.start(&question, "", Instant::now()).await.expect("a search");
    let mut reader = search.outbox.read(0).expect("a reader");
    let mut packets: Vec<Value> = Vec::new();
    while let Some((seq, packet)) = reader.next().await {
        assert!(packet.len() <= searches.settings().packet_bytes);
        packets.push(serde_json::from_str(&packet).expect("JSON"));
        assert_eq!(packets[packets.len() - 1]["seq"], seq);
        assert_eq!(seq, packets.len() as u64 - 1);
    }
    packets
}

fn good(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        sink.found(vec![SearchResult { id: "g".to_owned(), title: Some("good".to_owned()), ..SearchResult::default() }])
            .await
    })
}

fn panics(_: Sink) -> ProviderFuture<'static> {
    Box::pin(async { panic!("on purpose") })
}

fn hangs(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        sink.found(vec![SearchResult {
            id: "h".to_owned(),
            title: Some("good, before it hung".to_owned()),
            ..SearchResult::default()
        }])
        .await?;
        std::future::pending().await
    })
}

/// Ten packets.
fn plenty(sink: Sink) -> ProviderFuture<'static> {
    let one = |n: usize| SearchResult {
        id: format!("p{n}"),
        title: Some("good".to_owned()),
        text: Some("x".repeat(8_000)),
        ..SearchResult::default()
    };
    Box::pin(async move { sink.found((0..10).map(one).collect()).await })
}

/// More results than a queue holds, one at a time.
fn flood(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        for n in 0..1_000 {
            let one = SearchResult { id: format!("p{n}"), title: Some("good".to_owned()), ..SearchResult::default() };
            sink.found(vec![one]).await?;
        }
        Ok(())
    })
}

#[tokio::test]
async fn searches_that_ended_and_searches_that_wait_leave_room_for_those_that_come() {
    // Space for six; at most half may be read packets.
    let room = 512 << 10;
    let settings = Settings { buffer_bytes_total: room, join: Duration::ZERO, ..Settings::default() };
    let searches = searches(settings, &[("plenty", plenty), ("hangs", hangs)]);
    let mut waiting = Vec::new();
    for _ in 0..12 {
        let question = json!({"keywords": "good", "timeout": 60_000, "providers": ["plenty", "hangs"]});
        let (search, _) = searches.start(&question, "", Instant::now()).await.expect("a search");
        let mut reader = search.outbox.read(0).expect("a reader");
        let told = loop {
            let (_, packet) = reader.next().await.expect("a packet");
            let packet: Value = serde_json::from_str(&packet).expect("JSON");
            if packet["kind"] == "provider" {
                break packet;
            }
        };
        assert_eq!((&told["state"], &told["results"]), (&json!("complete"), &json!(10)), "{told}");
        waiting.push((search, reader));
        let all = packets(&searches, json!({"keywords": "good", "providers": ["plenty"]})).await;
        let last = all.last().expect("a last packet");
        assert_eq!((&last["state"], &last["result_packets"]), (&json!("complete"), &json!(10)), "{last}");
        assert!(searches.bytes() <= room, "{}", searches.bytes());
    }
    // The newest ended search can still be read.
    assert!(searches.running() == 12 && searches.bytes() > room / 4);
    waiting.iter().for_each(|(search, _)| assert!(searches.stop(&search.id)));
}

#[tokio::test]
async fn a_search_that_ended_before_its_asker_came_keeps_its_room() {
    // Unread packets hold more than half.
    let settings = Settings {
        buffer_bytes_total: 512 << 10,
        join: Duration::ZERO,
        wait: Duration::from_secs(60),
        ..Settings::default()
    };
    let searches = searches(settings, &[("plenty", plenty)]);
    let question = json!({"keywords": "good", "providers": ["plenty"]});
    let mut unread = Vec::new();
    for _ in 0..4 {
        let (search, _) = searches.start(&question, "", Instant::now()).await.expect("a search");
        search.ended().await;
        unread.push(search.id.clone());
    }
    assert!(searches.bytes() > 256 << 10, "{}", searches.bytes());
    packets(&searches, question.clone()).await;
    for id in &unread {
        let search = searches.get(id).expect("not forgotten");
        let mut reader = search.outbox.read(0).expect("a reader");
        let mut last = None;
        while let Some((_, packet)) = reader.next().await {
            last = Some(serde_json::from_str::<Value>(&packet).expect("JSON"));
        }
        let last = last.expect("a last packet");
        assert_eq!((&last["state"], &last["result_packets"]), (&json!("complete"), &json!(10)), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_a_hang_cost_their_own_results_only_and_nobody_dies() {
    let searches = searches(Settings::default(), &[("good", good), ("panics", panics), ("hangs", hangs)]);
    for round in 0..3 {
        let all = packets(
            &searches,
            json!({"keywords": "good", "timeout": 3_000, "providers": ["good", "panics", "hangs"], "limit": round + 1}),
        )
        .await;
        let last = all.last().expect("a last packet");
        assert_eq!(last["kind"], "complete");
        assert_eq!(last["state"], "partial");
        assert_eq!(last["packets"], all.len());
        assert_eq!(last["providers"], json!({"good": "complete", "hangs": "timeout", "panics": "error"}));
        let of =
            |name: &str| all.iter().find(|p| p["kind"] == "provider" && p["provider"] == name).expect(name).clone();
        assert!(of("panics")["detail"].as_str().expect("text").contains("stage ask"), "{}", of("panics"));
        assert_eq!((&of("hangs")["results"], &of("good")["results"]), (&json!(1), &json!(1)));
        assert_eq!((&of("hangs")["ms"], &of("good")["ms"]), (&json!(3_000), &json!(0)));
    }
    assert_eq!(searches.tally().lost.load(Ordering::Relaxed), 3);
    assert_eq!(searches.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_serves_searches_for_good_begins_again_where_it_dies() {
    let searches = searches(Settings { join: Duration::ZERO, ..Settings::default() }, &[("good", good)]);
    let question = json!({"keywords": "good", "providers": ["good"]});
    for round in 0..2 {
        let all = packets(&searches, question.clone()).await;
        let last = all.last().expect("a last packet");
        assert_eq!((&last["state"], &last["result_packets"]), (&json!("complete"), &json!(1)), "{last}");
        if round == 0 {
            // They run and wait for work.
            for name in ["ask", "enrich", "filter", "classify", "deduplicate", "deliver", "search supervisor"] {
                inject_panic(name);
            }
        }
    }
    assert_eq!(pending_panics(), Vec::<&str>::new());
    assert_eq!(searches.running(), 0);
}

#[test]
fn a_search_whose_guardian_is_gone_is_over() {
    let searches = searches(Settings::default(), &[("hangs", hangs)]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let search = runtime.block_on(async {
        let question = json!({"keywords": "good", "providers": ["hangs"]});
        searches.start(&question, "", Instant::now()).await.expect("a search").0
    });
    assert!(!search.outbox.is_sealed() && searches.running() == 1);
    drop(runtime);
    assert!(search.outbox.is_sealed() && searches.running() == 0);
}

/// A stage that panics at every other piece of work still does the rest.
struct Moody;

impl Stage for Moody {
    type Body = usize;
    const NAME: &'static str = "moody";
    async fn run(self: Arc<Self>, work: Work<usize>) {
        assert!(work.body.is_multiple_of(2), "odd");
        work.leg.search.send(work.leg.provider.name(), &[work.body.to_string()]);
    }
}

#[tokio::test]
async fn a_stage_that_panics_does_the_rest_of_its_work() {
    let searches = searches(Settings::default(), &[("hangs", hangs)]);
    let (search, _) =
        searches.start(&json!({"keywords": "x", "providers": ["hangs"]}), "", Instant::now()).await.expect("a search");
    let (mut stages, tally) = (JoinSet::new(), Arc::new(Tally::default()));
    let lane = start(&mut stages, Arc::new(Moody), 4, 2, &tally);
    let leg = search.begin(Arc::new(ScriptedProvider::new("moody", good)));
    for body in 0..100 {
        lane.push(Work { leg: leg.clone(), body }).await;
    }
    leg.end(Ok(()));
    drop(leg);
    let mut reader = search.outbox.read(0).expect("a reader");
    let mut results = 0;
    loop {
        let packet: Value = serde_json::from_str(&reader.next().await.expect("a packet").1).expect("JSON");
        match packet["kind"].as_str() {
            Some("results") => results += 1,
            _ => {
                assert_eq!((packet["provider"].as_str(), packet["state"].as_str()), (Some("moody"), Some("error")));
                break;
            }
        }
    }
    assert_eq!((results, tally.lost.load(Ordering::Relaxed)), (50, 50));
    assert!(searches.stop(&search.id));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_stops_the_work_and_nobody_waits_past_the_limit() {
    let settings = Settings {
        gone: Duration::from_millis(50),
        wait: Duration::from_millis(50),
        searches_max: 1,
        ..Settings::default()
    };
    let searches = searches(settings, &[("hangs", hangs)]);
    let question = json!({"keywords": "x", "providers": ["hangs"]});
    let (search, joined) = searches.start(&question, "me", Instant::now()).await.expect("a search");
    assert!(!joined);
    let (same, joined) = searches.start(&question, "me", Instant::now()).await.expect("the same");
    assert!(joined && same.id == search.id);
    match searches.start(&question, "another", Instant::now()).await {
        Err(Refusal::TooMany { running: 1, retry }) => assert!(retry <= Duration::from_secs(20)),
        other => panic!("{:?}", other.map(|(search, _)| search.id.clone())),
    }
    // Without a reader, the work ends long before the deadline and releases its slot.
    search.ended().await;
    assert_eq!(search.arrived.elapsed(), Duration::from_millis(50));
    while searches.running() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(json!(search.status())["state"], "absent");
    assert!(searches.start(&question, "another", Instant::now()).await.is_ok());
    // The retry time follows the duration of past searches, not the deadline.
    match searches.start(&question, "a third", Instant::now()).await {
        Err(Refusal::TooMany { running: 1, retry }) => {
            assert!((Duration::from_secs(1)..Duration::from_secs(15)).contains(&retry), "{retry:?}");
        }
        other => panic!("{:?}", other.map(|(search, _)| search.id.clone())),
    }
}

#[tokio::test]
async fn who_comes_while_work_waits_too_long_is_refused_until_it_does_not() {
    let settings = Settings { delay_max: Duration::ZERO, at_once: 1, ..Settings::default() };
    let searches = searches(settings, &[("flood", flood)]);
    let question = |n: usize| json!({"keywords": format!("good OR n{n}"), "providers": ["flood"]});
    let mut begun = Vec::new();
    let refusal = loop {
        match searches.start(&question(begun.len()), "", Instant::now()).await {
            Ok((search, _)) => begun.push(search),
            Err(refusal) => break refusal,
        }
        assert!(begun.len() < 200, "work never waits");
        tokio::task::yield_now().await;
    };
    assert!(matches!(refusal, Refusal::Busy { retry, .. } if retry == Duration::from_secs(1)), "{refusal:?}");
    begun.iter().for_each(|search| assert!(searches.stop(&search.id)));
    // The packets waiting for them are discarded.
    let again = async {
        while let Err(refusal) = searches.start(&question(begun.len()), "", Instant::now()).await {
            assert!(matches!(refusal, Refusal::Busy { .. } | Refusal::Early { .. }), "{refusal:?}");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again).await.expect("a place");
}

#[tokio::test]
async fn who_comes_before_his_turn_does_not_take_the_place_of_one_who_comes_for_the_first_time() {
    let searches = searches(Settings { searches_max: 4, ..Settings::default() }, &[("hangs", hangs)]);
    let ask = async |who: &str| {
        let question = json!({"keywords": "x", "providers": ["hangs"]});
        searches.start(&question, who, Instant::now()).await.map(|(search, _)| search)
    };
    let fewer = async |search: &crate::Search, running: usize| {
        assert!(searches.stop(&search.id));
        while searches.running() > running {
            tokio::task::yield_now().await;
        }
    };
    let mut begun = Vec::new();
    for who in ["a", "b", "c", "d"] {
        begun.push(ask(who).await.expect("a search"));
    }
    let Err(Refusal::TooMany { retry: told, .. }) = ask("e").await else { panic!("a fifth of four") };
    fewer(&begun[0], 3).await;
    // There is a slot, but not for this client yet. Early retries do not change its turn.
    for _ in 0..3 {
        let Err(Refusal::Early { retry }) = ask("e").await else { panic!("let in before his turn") };
        assert!(retry <= told);
    }
    begun.push(ask("f").await.expect("a first question"));
    // A lightly loaded server admits early retries.
    for (n, running) in [(1, 3), (2, 2), (3, 1)] {
        fewer(&begun[n], running).await;
    }
    ask("e").await.expect("a search");
}

fn many(sink: Sink) -> ProviderFuture<'static> {
    Box::pin(async move {
        let found = |n: usize| SearchResult {
            id: n.to_string(),
            title: Some(format!("x {}", n).repeat(300)),
            ..SearchResult::default()
        };
        sink.found((0..200).map(found).collect()).await
    })
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_reading_hears_at_the_deadline_that_it_is_not_all() {
    let searches = searches(Settings { buffer_bytes: 40_000, ..Settings::default() }, &[("many", many)]);
    let question = json!({"keywords": "x", "providers": ["many"], "limit": 200, "timeout": 2_000});
    let (search, _) = searches.start(&question, "", Instant::now()).await.expect("a search");
    let mut reader = search.outbox.read(0).expect("a reader");
    search.ended().await;
    assert_eq!(search.arrived.elapsed(), Duration::from_secs(2));
    let told = json!(search.status())["providers"]["many"].clone();
    assert_eq!(told["state"], "timeout", "{told}");
    assert!(told["detail"].as_str().expect("text").contains("too slowly"), "{told}");
    assert!(searches.bytes() <= 41_000);
    let mut packets = 0;
    while reader.next().await.is_some() {
        packets += 1;
    }
    assert!(packets > 2);
}

#[tokio::test]
async fn a_reader_that_does_not_come_gets_what_fits_and_hears_that_it_is_not_all() {
    let searches = searches(Settings { buffer_bytes: 40_000, ..Settings::default() }, &[("many", many)]);
    let question = json!({"keywords": "x", "providers": ["many"], "limit": 200});
    let (search, _) = searches.start(&question, "", Instant::now()).await.expect("a search");
    search.ended().await;
    let status = json!(search.status());
    assert_eq!(
        (status["state"].as_str(), status["providers"]["many"]["state"].as_str()),
        (Some("partial"), Some("error"))
    );
    assert!(status["providers"]["many"]["detail"].as_str().expect("text").contains("too slowly"), "{status}");
    assert!(searches.bytes() <= 41_000);
}

#[tokio::test]
async fn no_provider_that_can_take_it_is_said_at_once() {
    let searches = searches(Settings::default(), &[]);
    // There is no collection, so the only provider has nothing to search.
    let all = packets(&searches, json!({"keywords": "x"})).await;
    assert_eq!((all.len(), all[0]["state"].as_str(), all[1]["state"].as_str()), (2, Some("skipped"), Some("absent")));
}

/// A store whose disk is full.
struct Full;

impl ResultStore for Full {
    fn prepare(&self, _: &crate::result_store::KeepOptions) -> Result<(), Refusal> {
        Ok(())
    }
    fn write(
        &self,
        _: &crate::result_store::KeepOptions,
        _: &str,
        _: &str,
        found: &[SearchResult],
    ) -> Result<(), String> {
        Err(format!("{} results: the disk is full", found.len()))
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_said_once_and_delivered_all_the_same() {
    fn twice(sink: Sink) -> ProviderFuture<'static> {
        Box::pin(async move {
            for id in ["a", "b"] {
                sink.found(vec![SearchResult {
                    id: id.to_owned(),
                    title: Some(format!("good {id}")),
                    ..SearchResult::default()
                }])
                .await?;
            }
            Ok(())
        })
    }
    let question = json!({"keywords": "good", "providers": ["twice"], "keep": {"collection": "found"}});
    let searches = Arc::new(bare(Settings::default(), &[("twice", twice)]).keeping(Arc::new(Full)));
    let all = packets(&searches, question.clone()).await;
    let told: Vec<&Value> = all.iter().filter(|packet| packet["kind"] == "keep").collect();
    assert_eq!(told.len(), 1, "{all:?}");
    assert_eq!((told[0]["provider"].as_str(), told[0]["state"].as_str()), (Some("twice"), Some("error")));
    assert!(told[0]["detail"].as_str().expect("text").contains("the disk is full"));
    let last = all.last().expect("a last packet");
    assert_eq!((last["state"].as_str(), last["kept"].as_u64()), (Some("complete"), Some(0)));
    assert_eq!(all.iter().filter(|packet| packet["kind"] == "results").count(), 2);
    // Without a result store, `keep` is refused at once.
    let searches = self::searches(Settings::default(), &[("twice", twice)]);
    match searches.start(&question, "", Instant::now()).await {
        Err(Refusal::Invalid(mistake)) => assert_eq!(mistake.field.as_deref(), Some("keep")),
        other => panic!("{:?}", other.map(|(search, _)| search.id.clone())),
    }
}
