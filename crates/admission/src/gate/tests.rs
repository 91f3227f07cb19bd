use super::*;
use std::sync::mpsc;
use std::thread;

fn settings(slots: usize) -> Settings {
    Settings { slots, slots_max: slots, ..Settings::default() }
}

fn account(tenant: &str) -> Account {
    Account { ledger: Arc::new(Ledger::new(tenant)), class: Class::Interactive, is_write: false }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Spins until the meter has ticked for the given processor time.
fn work(meter: &Meter, time: Duration) {
    let began = processors::thread_time();
    while processors::thread_time() - began < time {
        meter.tick(&|| false);
    }
}

async fn waiting(gate: &Gate, n: usize) {
    while gate.counts().waiting != n {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_request_that_neither_runs_nor_waits_is_refused() {
    let gate = Gate::new(Settings { waiting_max: 1, ..settings(1) });
    let running = gate.enter(&account("a"), soon()).await.unwrap();
    assert!(gate.try_enter(account("a")).is_none());
    let second = tokio::spawn({
        let gate = gate.clone();
        async move { gate.enter(&account("a"), soon()).await.map(drop) }
    });
    waiting(&gate, 1).await;
    assert_eq!(gate.enter(&account("a"), soon()).await.unwrap_err().refusal, Refusal::QueueFull);
    assert_eq!((gate.counts().running, gate.refused()), (1, 1));
    drop(running);
    second.await.unwrap().unwrap();
    assert_eq!((gate.counts().running, gate.counts().waiting), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn clients_refused_together_are_told_different_times() {
    let gate = Gate::new(Settings { waiting_max: 2, ..settings(1) });
    let queue = |gate: &Gate| {
        let gate = gate.clone();
        tokio::spawn(async move { gate.enter(&account("a"), soon()).await })
    };
    let running = gate.enter(&account("a"), soon()).await.unwrap();
    let queued = [queue(&gate), queue(&gate)];
    waiting(&gate, 2).await;
    // Two queries start 100 ms apart.
    let mut permits = vec![running];
    for (n, next) in queued.into_iter().enumerate() {
        tokio::time::advance(Duration::from_millis(100)).await;
        permits.pop();
        permits.push(next.await.unwrap().unwrap());
        assert_eq!(gate.counts().waiting, 1 - n);
    }
    let _more = [queue(&gate), queue(&gate)];
    waiting(&gate, 2).await;
    let mut waits = Vec::new();
    for _ in 0..3 {
        waits.push(gate.enter(&account("a"), soon()).await.unwrap_err().retry_after);
    }
    assert_eq!(waits, [1_000, 1_400, 1_800].map(Duration::from_millis));
}

#[tokio::test]
async fn a_wait_that_is_dropped_leaves_the_queue() {
    let gate = Gate::new(settings(1));
    let running = gate.enter(&account("a"), soon()).await.unwrap();
    let wait = tokio::spawn({
        let gate = gate.clone();
        async move { gate.enter(&account("a"), soon()).await.map(drop) }
    });
    waiting(&gate, 1).await;
    wait.abort();
    waiting(&gate, 0).await;
    drop(running);
    assert!(gate.try_enter(account("a")).is_some(), "the slot is free");
}

#[tokio::test]
async fn the_deadline_ends_a_wait() {
    let gate = Gate::new(settings(1));
    let _running = gate.enter(&account("a"), soon()).await.unwrap();
    let mut tending = tokio::task::JoinSet::new();
    tending.spawn({
        let gate = gate.clone();
        async move { gate.tend().await }
    });
    let deadline = Instant::now() + Duration::from_millis(30);
    assert_eq!(gate.enter(&account("a"), deadline).await.unwrap_err().refusal, Refusal::Deadline);
    let deadline = Instant::now() + Duration::from_millis(30);
    assert_eq!(gate.resume(&account("a"), Duration::ZERO, deadline).await.unwrap_err().refusal, Refusal::Deadline);
    assert_eq!((gate.counts().waiting, gate.counts().paused), (0, 0));
}

/// Two threads of two tenants share one slot: they never run at the same time, and both finish.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_take_turns_on_one_slot() {
    let gate = Gate::new(settings(1));
    let (tell, turns) = mpsc::channel();
    let mut threads = Vec::new();
    for name in ["a", "b"] {
        let (gate, tell) = (gate.clone(), tell.clone());
        let permit = tokio::spawn(async move { gate.enter(&account(name), soon()).await.unwrap() });
        threads.push(tokio::spawn(async move {
            let permit = permit.await.unwrap();
            tokio::task::spawn_blocking(move || {
                permit.meter().begin();
                for _ in 0..60 {
                    tell.send((name, true)).unwrap();
                    let began = processors::thread_time();
                    while processors::thread_time() - began < Duration::from_millis(3) {}
                    tell.send((name, false)).unwrap();
                    permit.meter().tick(&|| false);
                }
            })
            .await
            .unwrap();
        }));
    }
    drop(tell);
    for thread in threads {
        thread.await.unwrap();
    }
    let (mut running, mut changes, mut last) = (None, 0, "");
    for (name, begins) in turns {
        match begins {
            true => assert_eq!(running.replace(name), None, "both run"),
            false => assert_eq!(running.take(), Some(name)),
        }
        changes += usize::from(std::mem::replace(&mut last, name) != name);
    }
    // After the 50 ms credit they alternate with each slice.
    assert!(changes > 20, "{changes}");
    assert_eq!(gate.counts().running + gate.counts().paused, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_question_ends_when_it_is_no_longer_wanted() {
    let gate = Gate::new(settings(1));
    let heavy = gate.enter(&account("a"), soon()).await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (paused, wanted) = (gate.clone(), over.clone());
    let thread = thread::spawn(move || {
        heavy.meter().begin();
        // Far beyond the other's credit, so that it is paused as soon as the other asks.
        while !wanted.load(Ordering::Relaxed) {
            heavy.meter().tick(&|| wanted.load(Ordering::Relaxed));
        }
        drop(heavy);
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let light = paused.enter(&account("b"), soon()).await.unwrap();
    assert_eq!((paused.counts().running, paused.counts().paused), (1, 1));
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    assert_eq!((paused.counts().running, paused.counts().paused), (1, 0));
    drop(light);
    assert_eq!(paused.counts().running, 0);
}

#[tokio::test]
async fn work_without_a_permit_is_charged_to_its_tenant() {
    let gate = Gate::new(settings(1));
    let running = gate.enter(&account("c"), soon()).await.unwrap();
    let (order, queue) = (Arc::new(Mutex::new(Vec::new())), gate.clone());
    let mut tasks = Vec::new();
    for (n, name) in ["a", "b"].into_iter().enumerate() {
        let (gate, order) = (gate.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let _permit = gate.enter(&account(name), soon()).await.unwrap();
            order.lock().push(name);
        }));
        waiting(&queue, n + 1).await;
    }
    let began = processors::thread_time();
    gate.run_for(&Ledger::new("a"), &mut || while processors::thread_time() - began < Duration::from_millis(5) {});
    drop(running);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock(), ["b", "a"], "what a had done for it in the background counts");
}

#[tokio::test]
async fn work_is_charged_to_its_tenant() {
    let gate = Gate::new(settings(1));
    let permit = gate.enter(&account("a"), soon()).await.unwrap();
    let meter = permit.meter().clone();
    meter.begin();
    work(&meter, Duration::from_millis(30));
    meter.charge(Duration::from_millis(100));
    drop(permit);
    // "a" is 130 ms ahead, so "b" goes first although it asks later, and keeps going first until it has caught up.
    let running = gate.enter(&account("c"), soon()).await.unwrap();
    let (order, queue) = (Arc::new(Mutex::new(Vec::new())), gate.clone());
    let mut tasks = Vec::new();
    for (n, name) in ["a", "b", "b"].into_iter().enumerate() {
        let (gate, order) = (gate.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let permit = gate.enter(&account(name), soon()).await.unwrap();
            order.lock().push(name);
            permit.meter().charge(Duration::from_millis(40));
        }));
        waiting(&queue, n + 1).await;
    }
    drop(running);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock(), ["b", "b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn slots_that_a_queue_got_go_with_it() {
    let gate = Gate::new(Settings { slots: 1, slots_max: 4, ..Settings::default() });
    {
        // As with a slow disk: queries wait while processors are idle.
        let mut state = gate.0.state.lock();
        for _ in 0..3 {
            let slots = state.capacity.observe(Load { busy: 0.0, delayed: 0.0, contended: true });
            state.admission.set_slots(slots);
        }
    }
    assert_eq!(gate.counts().slots, 4);
    let tended = tokio::time::timeout(Duration::from_secs(5), gate.tend()).await;
    assert!(tended.is_err(), "it goes on");
    assert_eq!(gate.counts().slots, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_waits_elsewhere_leaves_its_slot_and_takes_one_in_its_turn() {
    let gate = Gate::new(settings(1));
    let away = gate.enter(&account("a"), soon()).await.unwrap();
    away.meter().begin();
    let began = processors::thread_time();
    // No tick here: the wait itself charges the time.
    while processors::thread_time() - began < Duration::from_millis(5) {}
    away.meter().rest();
    away.meter().rest();
    assert_eq!((gate.counts().running, gate.counts().away), (0, 1));
    assert!(away.account().ledger.processor_time() >= Duration::from_millis(5), "charged before the wait");
    let other = gate.try_enter(account("b")).expect("the slot is free");
    let (tell, woken) = mpsc::channel();
    let thread = thread::spawn(move || {
        away.meter().wake(&|| false);
        tell.send(away.is_closed()).unwrap();
    });
    while gate.counts().paused != 1 {
        tokio::task::yield_now().await;
    }
    assert!(woken.try_recv().is_err(), "the slot is taken");
    drop(other);
    assert!(!woken.recv_timeout(Duration::from_secs(60)).unwrap(), "it has a slot");
    thread.join().unwrap();
    assert_eq!(gate.counts(), Counts { slots: 1, ..Counts::default() });
}

#[tokio::test]
async fn work_that_is_no_longer_wanted_does_not_wait_for_its_turn() {
    let gate = Gate::new(settings(1));
    let away = gate.enter(&account("a"), soon()).await.unwrap();
    away.meter().rest();
    let _other = gate.try_enter(account("b")).unwrap();
    away.meter().wake(&|| true);
    assert!(away.is_closed());
    drop(away);
    assert_eq!((gate.counts().running, gate.counts().paused, gate.counts().away), (1, 0, 0));
}

#[tokio::test]
async fn a_permit_that_is_dropped_while_its_work_waits_elsewhere_is_gone() {
    let gate = Gate::new(settings(1));
    let away = gate.enter(&account("a"), soon()).await.unwrap();
    away.meter().rest();
    drop(away);
    assert_eq!(gate.counts(), Counts { slots: 1, ..Counts::default() });
    assert!(gate.try_enter(account("b")).is_some());
}
