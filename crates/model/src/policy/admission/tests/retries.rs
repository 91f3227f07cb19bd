//! Clients that retry when they are told to.

use super::*;
use std::collections::BTreeMap;

/// One slot, and queries of 10 ms: ten times too many for 3 s, then none but those of clients that retry. Returns the
/// refusals and the largest wait of a query that ran, of the flood and of the time from its end plus 500 ms.
fn flood(retry: impl Fn(Duration) -> u64) -> [(usize, u64); 2] {
    let (mut admission, mut since) = (one_slot(), HashMap::new());
    let mut running: Option<(Ticket, u64)> = None;
    let mut due: BTreeMap<u64, usize> = (0..3_000).map(|at| (at, 1)).collect();
    let (mut now, mut served, mut parts) = (0, 0, [(0, 0); 2]);
    while served < 3_000 {
        let part = &mut parts[usize::from(now > 3_500)];
        let mut refused = 0;
        for _ in 0..due.remove(&now).unwrap_or(0) {
            match admission.enter(ms(now), ask(1, Class::Interactive, now + 60_000).as_ref()) {
                Ok(Entry::Run(ticket)) => running = Some((ticket, now + 10)),
                Ok(Entry::Wait(ticket)) => _ = since.insert(ticket, now),
                Err(_) => refused += 1,
            }
        }
        if let Some((ticket, _)) = running.take_if(|(_, ends)| *ends <= now) {
            admission.leave(ticket, ms(10));
            served += 1;
        }
        while let Some(outcome) = admission.next(ms(now)).or_else(|| admission.expire(ms(now))) {
            match outcome {
                WaitOutcome::Run(ticket) => {
                    running = Some((ticket, now + 10));
                    part.1 = part.1.max(now - since.remove(&ticket).unwrap());
                }
                WaitOutcome::Refuse(ticket, _) => {
                    admission.leave(ticket, Duration::ZERO);
                    refused += 1;
                }
            }
        }
        part.0 += refused;
        for _ in 0..refused {
            let wait = retry(admission.retry_after(ms(now), &1, Class::Interactive));
            *due.entry(now + wait).or_default() += 1;
        }
        now += 1;
        assert!(now < 1_000_000, "{served} of 3,000 served: {parts:?}");
    }
    parts
}

#[test]
fn clients_that_retry_when_told_to_are_served_then() {
    let [during, after] = flood(|told| told.as_millis() as u64);
    assert!((2_500..3_000).contains(&during.0), "{during:?}");
    assert!(after.0 == 0 && after.1 <= 20, "{after:?}");
    // All at once after a second: the overload continues without new clients.
    let [during, after] = flood(|_| 1_000);
    assert!(during.0 > 4_000 && after.0 > 10_000, "{during:?} {after:?}");
}
