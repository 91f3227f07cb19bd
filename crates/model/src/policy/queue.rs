//! The next job of a worker: by class, then FIFO. Jobs that waited too long are dropped.

use std::collections::VecDeque;
use std::time::Duration;

/// Urgency of a job. A worker takes the most urgent class that has a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Short interactive work.
    Quick,
    /// All other work with a waiting client.
    Default,
    /// Work without a waiting client.
    Background,
}

impl Class {
    /// Every class, most urgent first.
    pub const ALL: [Class; 3] = [Class::Quick, Class::Default, Class::Background];

    /// Parses the class name used in files: `quick`, `default` or `background`.
    pub fn from_name(name: &str) -> Option<Class> {
        match name {
            "quick" => Some(Class::Quick),
            "default" => Some(Class::Default),
            "background" => Some(Class::Background),
            _ => None,
        }
    }
}

/// When a job is no longer worth doing. Times count from an origin that the caller chooses, the same for all jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobTimeout {
    /// Never: it is done however late.
    Endless,
    /// Once it has waited this long since its own creation. Each stage of a request restarts the clock, so a request
    /// may wait many times as long. Systems with this rule fail in that way; it is kept to simulate them.
    SinceCreation(Duration),
    /// At this time, which the request carries through every stage.
    Deadline(Duration),
}

/// A job that left the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dequeued<T> {
    /// To be done.
    Due(T),
    /// To be dropped: its patience had ended before its turn.
    Expired(T),
}

#[derive(Debug, Clone)]
struct QueuedJob<T> {
    created: Duration,
    patience: JobTimeout,
    job: T,
}

/// A bounded queue per class. Patience is tested when a job's turn comes, so that a drop costs one step and order is
/// never disturbed.
#[derive(Debug, Clone)]
pub struct Queues<T> {
    classes: [VecDeque<QueuedJob<T>>; 3],
    capacity: usize,
}

impl<T> Queues<T> {
    /// Queues that hold `capacity` jobs of each class.
    pub fn new(capacity: usize) -> Self {
        Queues { classes: Default::default(), capacity }
    }

    /// Appends a job to its class; returns it if that class is full.
    pub fn push(&mut self, class: Class, created: Duration, patience: JobTimeout, job: T) -> Result<(), T> {
        let queue = &mut self.classes[class as usize];
        if queue.len() >= self.capacity {
            return Err(job);
        }
        queue.push_back(QueuedJob { created, patience, job });
        Ok(())
    }

    /// Takes the oldest job of the most urgent class that has one.
    pub fn take(&mut self, now: Duration) -> Option<Dequeued<T>> {
        let waiting = self.classes.iter_mut().find_map(VecDeque::pop_front)?;
        let over = match waiting.patience {
            JobTimeout::Endless => false,
            JobTimeout::SinceCreation(limit) => now.saturating_sub(waiting.created) > limit,
            JobTimeout::Deadline(at) => now >= at,
        };
        Some(if over { Dequeued::Expired(waiting.job) } else { Dequeued::Due(waiting.job) })
    }

    /// Removes the jobs that are no longer wanted.
    pub fn retain(&mut self, is_wanted: impl Fn(&T) -> bool) {
        self.classes.iter_mut().for_each(|queue| queue.retain(|waiting| is_wanted(&waiting.job)));
    }

    /// Creation time of the oldest job that would be taken before a new one of this class.
    pub fn oldest(&self, class: Class) -> Option<Duration> {
        let ahead = &self.classes[..=class as usize];
        ahead.iter().filter_map(|queue| queue.front()).map(|waiting| waiting.created).min()
    }

    /// Waiting jobs of every class.
    pub fn len(&self) -> usize {
        self.classes.iter().map(VecDeque::len).sum()
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.classes.iter().all(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    struct Job {
        class: Class,
        created: u64,
        patience: JobTimeout,
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn job() -> impl Strategy<Value = Job> {
        let patience = prop_oneof![
            Just(JobTimeout::Endless),
            (0..50u64).prop_map(|n| JobTimeout::SinceCreation(ms(n))),
            (0..100u64).prop_map(|n| JobTimeout::Deadline(ms(n))),
        ];
        (prop::sample::select(Class::ALL.to_vec()), 0..100u64, patience).prop_map(|(class, created, patience)| Job {
            class,
            created,
            patience,
        })
    }

    proptest! {
        /// Checks against a plain list. The next job is the first of the most urgent class in order of arrival, and
        /// it is dropped exactly when its rule requires.
        #[test]
        fn jobs_leave_by_class_then_by_arrival(jobs in prop::collection::vec(job(), 0..60), capacity in 1usize..40) {
            let mut queues = Queues::new(capacity);
            let mut list: Vec<(usize, Job)> = Vec::new();
            for (n, job) in jobs.into_iter().enumerate() {
                let room = list.iter().filter(|(_, j)| j.class == job.class).count() < capacity;
                let pushed = queues.push(job.class, ms(job.created), job.patience, n);
                prop_assert_eq!(pushed.is_ok(), room);
                if room {
                    list.push((n, job));
                }
            }
            list.sort_by_key(|(n, job)| (job.class, *n));
            prop_assert_eq!(queues.len(), list.len());
            for (clock, (n, job)) in list.into_iter().enumerate() {
                let now = clock as u64 * 3;
                let dead = match job.patience {
                    JobTimeout::Endless => false,
                    JobTimeout::SinceCreation(limit) => now as i64 - job.created as i64 > limit.as_millis() as i64,
                    JobTimeout::Deadline(at) => ms(now) >= at,
                };
                let expected = if dead { Dequeued::Expired(n) } else { Dequeued::Due(n) };
                prop_assert_eq!(queues.take(ms(now)), Some(expected));
            }
            prop_assert!(queues.is_empty());
            prop_assert_eq!(queues.take(ms(0)), None);
        }
    }
}
