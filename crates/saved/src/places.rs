//! A bounded number of places for calls, given to tenants in turn.

use super::turns::Turns;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot::{self, Sender};

/// The places. While all are taken, callers wait in a line for each tenant.
#[derive(Debug)]
pub(crate) struct Places(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    waiting: Turns<Sender<Place>>,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Mutex<State>>);

impl Places {
    /// So many places; at least one.
    pub(crate) fn new(count: usize) -> Places {
        Places(Arc::new(Mutex::new(State { free: count.max(1), waiting: Turns::default() })))
    }

    /// Waits for a place. An error says that there will be none.
    pub(crate) async fn take(&self, tenant: &Arc<str>) -> Result<Place, String> {
        let given = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= 1;
                return Ok(Place(self.0.clone()));
            }
            let (give, given) = oneshot::channel();
            state.waiting.push(tenant, 1, give);
            given
        };
        given.await.map_err(|_| "the server is stopping".to_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // Callers that no longer wait are passed over here, not by their own drop: there may be very many.
        let next = std::iter::from_fn(|| state.waiting.pop()).find(|next| !next.is_closed());
        let Some(next) = next else {
            state.free += 1;
            return;
        };
        // Unlocked, since the place comes back at once where the caller has just gone.
        drop(state);
        let _ = next.send(Place(self.0.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::pin::pin;
    use tokio::task::yield_now;

    #[tokio::test]
    async fn tenants_take_turns_and_no_place_is_lost() {
        let places = Arc::new(Places::new(2));
        let (many, few): (Arc<str>, Arc<str>) = ("many".into(), "few".into());
        let mut held = VecDeque::from([places.take(&many).await.unwrap(), places.take(&many).await.unwrap()]);
        let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
        let mut waiting = Vec::new();
        for tenant in [vec![&many; 20], vec![&few; 3]].concat() {
            let (places, say, tenant) = (places.clone(), say.clone(), tenant.clone());
            waiting.push(tokio::spawn(async move {
                let place = places.take(&tenant).await.unwrap();
                say.send((tenant, place)).unwrap();
            }));
            yield_now().await;
        }
        // Some give up while they wait.
        waiting.drain(..5).for_each(|task| task.abort());
        yield_now().await;
        let mut order = Vec::new();
        for _ in 0..18 {
            held.pop_front();
            let (tenant, place) = said.recv().await.unwrap();
            order.push(tenant);
            held.push_back(place);
        }
        assert_eq!(order[..6].iter().filter(|tenant| **tenant == few).count(), 3, "{order:?}");
        assert!(places.0.lock().free == 0);
        // One that goes after it was given a place gives it back.
        {
            let mut last = pin!(places.take(&few));
            assert!(tokio::time::timeout(std::time::Duration::ZERO, &mut last).await.is_err());
            held.clear();
        }
        assert_eq!(places.0.lock().free, 2);
    }
}
