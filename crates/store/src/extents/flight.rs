//! Single flight: when several callers miss a value at once, one of them makes it and the others wait.
//!
//! A key is in flight from its claim until it lands, fails or its claim is dropped. The lock of the map makes a claim
//! atomic, so each key has at most one maker.

use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// Max wait for another caller. Calls of the bucket have shorter deadlines, so only a bug exceeds it.
const WAIT_MAX: Duration = Duration::from_secs(180);

/// Values being made, by key.
#[derive(Debug)]
pub(super) struct Flights<K, V>(Mutex<HashMap<K, Arc<Flight<V>>>>);

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        Flights(Mutex::default())
    }
}

/// A value being made. Waiters block until it has landed.
#[derive(Debug)]
pub(super) struct Flight<V> {
    landed: Mutex<Option<Result<V, (ErrorKind, String)>>>,
    wake: Condvar,
}

impl<V: Clone> Flight<V> {
    fn end(&self, with: Result<V, (ErrorKind, String)>) {
        *self.landed.lock() = Some(with);
        self.wake.notify_all();
    }

    /// Waits until it has landed.
    pub(super) fn wait(&self) -> io::Result<V> {
        let mut landed = self.landed.lock();
        if landed.is_none() {
            self.wake.wait_while_for(&mut landed, |landed| landed.is_none(), WAIT_MAX);
        }
        match &*landed {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err((kind, detail))) => Err(io::Error::new(*kind, detail.clone())),
            None => Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// For each key, the flight to wait for; `None` if the caller makes the value.
pub(super) type AwaitedFlights<V> = Vec<Option<Arc<Flight<V>>>>;

impl<K: Copy + Eq + Hash, V: Clone> Flights<K, V> {
    /// Claims the keys that have no flight, and returns the flights of the others, in the order of `keys`.
    pub(super) fn join(&self, keys: &[K]) -> (Claims<'_, K, V>, AwaitedFlights<V>) {
        let (mut claims, mut awaited) =
            (Claims { flights: self, open: HashMap::new() }, Vec::with_capacity(keys.len()));
        let mut flights = self.0.lock();
        for key in keys {
            awaited.push(flights.get(key).cloned());
            if !flights.contains_key(key) {
                let flight = Arc::new(Flight { landed: Mutex::new(None), wake: Condvar::new() });
                flights.insert(*key, flight.clone());
                claims.open.insert(*key, flight);
            }
        }
        (claims, awaited)
    }
}

/// Values that the holder makes. Dropping it fails the missing values for every waiting caller.
#[derive(Debug)]
pub(super) struct Claims<'a, K: Copy + Eq + Hash, V: Clone> {
    flights: &'a Flights<K, V>,
    open: HashMap<K, Arc<Flight<V>>>,
}

impl<K: Copy + Eq + Hash, V: Clone> Claims<'_, K, V> {
    /// Returns true if a value is still to be made.
    pub(super) fn has(&self, key: &K) -> bool {
        self.open.contains_key(key)
    }

    /// Delivers a value. The caller first stores it where later callers find it: the flight ends here.
    pub(super) fn land(&mut self, key: &K, value: V) {
        self.end(key, Ok(value));
    }

    /// Reports that the value could not be made.
    pub(super) fn fail(&mut self, key: &K, error: &io::Error) {
        self.end(key, Err((error.kind(), error.to_string())));
    }

    fn end(&mut self, key: &K, with: Result<V, (ErrorKind, String)>) {
        if let Some(flight) = self.open.remove(key) {
            // Out of the map before the waiters wake: a later caller finds the stored value, or makes it again after an
            // error.
            self.flights.0.lock().remove(key);
            flight.end(with);
        }
    }
}

impl<K: Copy + Eq + Hash, V: Clone> Drop for Claims<'_, K, V> {
    fn drop(&mut self) {
        let left: Vec<K> = self.open.keys().copied().collect();
        left.iter().for_each(|key| self.end(key, Err((ErrorKind::Interrupted, "a read was given up".to_owned()))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_makes_it_and_the_others_get_it() {
        let flights = Flights::<u32, u32>::default();
        let (mut claims, none) = flights.join(&[1, 2]);
        assert!(claims.has(&1) && claims.has(&2) && none.iter().all(Option::is_none));
        let (mut others, awaited) = flights.join(&[1, 2, 3]);
        assert!(!others.has(&1) && !others.has(&2) && others.has(&3));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| (awaited[0].as_ref().unwrap().wait(), awaited[1].as_ref().unwrap().wait()));
            claims.land(&1, 10);
            // The second value is abandoned.
            drop(claims);
            let (one, two) = waiting.join().unwrap();
            assert_eq!(one.unwrap(), 10);
            assert_eq!(two.unwrap_err().kind(), ErrorKind::Interrupted);
        });
        others.fail(&3, &ErrorKind::NotFound.into());
        assert!(flights.0.lock().is_empty());
    }
}
