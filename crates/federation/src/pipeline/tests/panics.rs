//! Providers, stages and supervisors that panic or hang.

use super::{asker, good, hangs, packets, searches};
use crate::pipeline::*;
use crate::provider::scripted::ScriptedProvider;
use crate::provider::{ProviderFuture, Sink};
use crate::supervise::faults::{inject_panic, pending_panics};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

fn panics(_: Sink) -> ProviderFuture<'static> {
    Box::pin(async { panic!("on purpose") })
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_a_hang_cost_their_own_results_only() {
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
        searches.start(&question, &asker(""), Instant::now()).await.expect("a search").0
    });
    assert!(!search.outbox.is_sealed() && searches.running() == 1);
    drop(runtime);
    assert!(search.outbox.is_sealed() && searches.running() == 0);
}

/// A stage that panics at every other piece of work still does the rest.
struct PanickingStage;

impl Stage for PanickingStage {
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
    let (search, _) = searches
        .start(&json!({"keywords": "x", "providers": ["hangs"]}), &asker(""), Instant::now())
        .await
        .expect("a search");
    let (mut stages, tally) = (JoinSet::new(), Arc::new(Tally::default()));
    let lane = start(&mut stages, Arc::new(PanickingStage), 4, 2, &tally);
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
