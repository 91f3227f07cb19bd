//! Queues of several tenants that take turns: chooses the tenant and job that a worker takes next.
//!
//! Start-time fair queueing over tenants by weight (Goyal, Vin and Cheng 1996), where every job counts the same.
//! However many jobs a tenant has, another of the same weight waits for one of them at a time. Class and patience
//! order only the jobs within a tenant, as in [`Queues`].

use super::queue::{Class, Dequeued, JobTimeout, Queues};
use super::share::Share;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;

/// Tag increase per job for a tenant of weight 1. How long a job takes is not known when its turn comes.
const JOB: Duration = Duration::from_millis(1);

/// A bounded queue for each class of each tenant.
#[derive(Debug, Clone)]
pub struct TenantQueues<K, T> {
    /// By tenant, so that ties go to the first name and a run is repeatable.
    lines: BTreeMap<K, Line<T>>,
    /// The tag of the tenant served last. Others start there: idle time saves no right.
    virtual_time: u64,
    capacity: usize,
}

#[derive(Debug, Clone)]
struct Line<T> {
    share: Share,
    queues: Queues<T>,
}

impl<K: Ord, T> TenantQueues<K, T> {
    /// Queues that hold `capacity` jobs of each class of each tenant.
    pub fn new(capacity: usize) -> Self {
        TenantQueues { lines: BTreeMap::new(), virtual_time: 0, capacity }
    }

    /// Appends a job to its class of a tenant with this weight; returns it if that class is full.
    pub fn push(
        &mut self,
        (tenant, weight): (K, u32),
        class: Class,
        created: Duration,
        patience: JobTimeout,
        job: T,
    ) -> Result<(), T> {
        let (capacity, virtual_time) = (self.capacity, self.virtual_time);
        let line = self.lines.entry(tenant).or_insert_with(|| {
            let mut share = Share::new(weight);
            share.activate(virtual_time, Duration::ZERO);
            Line { share, queues: Queues::new(capacity) }
        });
        // On every job, as an operator may change a tenant's weight at any time.
        line.share.weight = weight.max(1);
        line.queues.push(class, created, patience, job)
    }

    /// Takes the next job of the tenant whose turn it is.
    pub fn take(&mut self, now: Duration) -> Option<Dequeued<T>> {
        let waiting = self.lines.values_mut().filter(|line| !line.queues.is_empty());
        let line = waiting.min_by_key(|line| line.share.tag)?;
        let (taken, tag) = (line.queues.take(now), line.share.tag);
        line.share.charge(JOB);
        self.virtual_time = self.virtual_time.max(tag);
        let passed = self.virtual_time;
        // An empty queue stays until its debt is paid: otherwise a tenant with one job at a time would owe nothing.
        self.lines.retain(|_, line| !line.queues.is_empty() || line.share.tag > passed);
        taken
    }

    /// Removes the jobs that are no longer wanted, at no cost to their tenants.
    pub fn retain(&mut self, is_wanted: impl Fn(&T) -> bool) {
        let passed = self.virtual_time;
        self.lines.retain(|_, line| {
            line.queues.retain(&is_wanted);
            !line.queues.is_empty() || line.share.tag > passed
        });
    }

    /// Creation time of a tenant's oldest job that would be taken before a new one of this class.
    pub fn oldest_of<Q: Ord + ?Sized>(&self, tenant: &Q, class: Class) -> Option<Duration>
    where
        K: Borrow<Q>,
    {
        self.lines.get(tenant).and_then(|line| line.queues.oldest(class))
    }

    /// The same over all tenants.
    pub fn oldest(&self, class: Class) -> Option<Duration> {
        self.lines.values().filter_map(|line| line.queues.oldest(class)).min()
    }

    /// Whether a tenant has no waiting job.
    pub fn is_empty_of<Q: Ord + ?Sized>(&self, tenant: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.lines.get(tenant).is_none_or(|line| line.queues.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Jobs = TenantQueues<&'static str, u32>;

    fn push(jobs: &mut Jobs, tenant: (&'static str, u32), class: Class, job: u32) {
        jobs.push(tenant, class, Duration::ZERO, JobTimeout::Endless, job).unwrap();
    }

    fn take(jobs: &mut Jobs) -> u32 {
        match jobs.take(Duration::ZERO) {
            Some(Dequeued::Due(job)) => job,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_tenant_with_many_urgent_jobs_leaves_every_other_turn_to_one_with_few() {
        let mut jobs = Jobs::new(1_000);
        (0..500).for_each(|n| push(&mut jobs, ("many", 1), Class::Quick, n));
        let mut of_few = 0;
        for _ in 0..10 {
            // One at a time: its queue is empty in between. And its class is the last.
            push(&mut jobs, ("few", 1), Class::Background, 1_000);
            of_few += [take(&mut jobs), take(&mut jobs)].iter().filter(|job| **job == 1_000).count();
        }
        assert!((9..=10).contains(&of_few), "{of_few}");
    }

    #[test]
    fn turns_follow_weights_and_classes_order_one_tenant_alone() {
        let mut jobs = Jobs::new(1_000);
        for n in 0..100 {
            push(&mut jobs, ("one", 1), Class::Quick, n);
            push(&mut jobs, ("three", 3), if n % 2 == 0 { Class::Default } else { Class::Quick }, 1_000 + n);
        }
        let taken: Vec<u32> = (0..40).map(|_| take(&mut jobs)).collect();
        assert_eq!(taken.iter().filter(|job| **job >= 1_000).count(), 30, "{taken:?}");
        assert!(taken.iter().filter(|job| **job >= 1_000).all(|job| job % 2 == 1), "{taken:?}");
    }

    #[test]
    fn room_is_that_of_each_tenant_and_the_table_holds_no_more_than_wait_or_owe() {
        let mut jobs = Jobs::new(1);
        push(&mut jobs, ("a", 1), Class::Quick, 1);
        assert_eq!(jobs.push(("a", 1), Class::Quick, Duration::ZERO, JobTimeout::Endless, 2), Err(2));
        push(&mut jobs, ("b", 1), Class::Quick, 3);
        assert_eq!(
            (jobs.oldest_of("a", Class::Quick), jobs.oldest_of("c", Class::Quick)),
            (Some(Duration::ZERO), None)
        );
        assert_eq!((take(&mut jobs), take(&mut jobs)), (1, 3));
        assert!(jobs.is_empty_of("a") && jobs.take(Duration::ZERO).is_none());
        for n in 0..10 {
            push(&mut jobs, ("c", 1), Class::Quick, n);
            assert_eq!(take(&mut jobs), n);
        }
        assert_eq!(jobs.lines.len(), 1, "only the last one owes something");
    }

    #[test]
    fn what_is_no_longer_wanted_costs_no_turn() {
        let mut jobs = Jobs::new(1_000);
        for n in 0..10 {
            push(&mut jobs, ("a", 1), Class::Quick, n);
            push(&mut jobs, ("b", 1), Class::Quick, 100 + n);
        }
        jobs.retain(|job| *job >= 9);
        let taken: Vec<u32> =
            std::iter::from_fn(|| (!jobs.is_empty_of("b")).then(|| take(&mut jobs))).take(3).collect();
        assert_eq!(taken, [9, 100, 101]);
        jobs.retain(|_| false);
        assert!(jobs.take(Duration::ZERO).is_none());
    }

    proptest! {
        /// Nothing is lost or repeated, and jobs of a tenant and class keep their order. Among tenants that all wait,
        /// none is served two jobs more than another of its weight.
        #[test]
        fn turns_are_fair(list in prop::collection::vec((0..3_usize, prop::sample::select(Class::ALL.to_vec())), 1..200)) {
            let names = ["a", "b", "c"];
            let mut jobs = Jobs::new(1_000);
            let mut waiting = [0_i32; 3];
            for (n, (tenant, class)) in list.iter().enumerate() {
                push(&mut jobs, (names[*tenant], 2), *class, n as u32);
                waiting[*tenant] += 1;
            }
            let (mut served, mut last) = ([0_i32; 3], std::collections::HashMap::new());
            for _ in 0..list.len() {
                let all_wait = (0..3).all(|tenant| waiting[tenant] > served[tenant]);
                let job = take(&mut jobs);
                let (tenant, class) = list[job as usize];
                prop_assert!(last.insert((tenant, class), job).is_none_or(|before| before < job));
                served[tenant] += 1;
                if all_wait {
                    prop_assert!(served.iter().max().unwrap() - served.iter().min().unwrap() <= 1, "{:?}", served);
                }
            }
            prop_assert!(jobs.take(Duration::ZERO).is_none());
        }
    }
}
