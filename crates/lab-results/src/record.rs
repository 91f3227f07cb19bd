//! The record of each request: the row that drivers and the simulator write and that all analysis reads.
//!
//! Times are microseconds from the start of the trial, as an `i64`. So a record of a warm-up may lie before the zero
//! of another's measured phase. Latency is always counted from [`Record::intended`], the time at which the arrival
//! process wanted the request sent (Tene, "How not to measure latency"). A retry counts from the time of its first
//! attempt. A naive client would have measured `done - sent`.

/// Microseconds from the start of the trial.
pub type Micros = i64;

/// One request: its user, when it was due, sent and ended, and its outcome.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// Repeat of the workload, from 0.
    pub trial: u16,
    /// Phase of the trial.
    pub phase: Phase,
    /// Index into the run's targets.
    pub target: u16,
    /// Index into the run's populations.
    pub population: u16,
    /// Index into the run's requests (the entries of the mix).
    pub request: u16,
    /// The user within the population.
    pub user: u32,
    /// Number of the request in its trial and population, from 1, in order of `intended`.
    pub n: u32,
    /// Attempt of the same question, from 0.
    pub attempt: u8,
    /// Number of resends within this attempt, because a reused connection was lost before any response.
    pub resends: u8,
    /// Requests of the trial in flight when this one was sent, excluding itself.
    pub in_flight: u32,
    /// Time at which the arrival process wanted it sent.
    pub intended: Micros,
    /// Intended time of the first attempt of the same question; `None` if this is the first.
    pub first_intended: Option<Micros>,
    /// Time at which its first byte was passed to the socket; `None` if it never was.
    pub sent: Option<Micros>,
    /// Time at which the first byte of the response arrived.
    pub first_byte: Option<Micros>,
    /// Time at which the first result (feature, row, result packet) arrived.
    pub first_result: Option<Micros>,
    /// Time at which the last result arrived.
    pub last_result: Option<Micros>,
    /// Time at which the response ended, or was given up.
    pub done: Option<Micros>,
    /// Result packets (messages of a stream that carry results; 1 for a plain response with results).
    pub packets: u32,
    /// Results (features, rows) in the response; its own count if a check relies on that (`check.count`).
    pub results: u64,
    /// Bytes of the response's body.
    pub bytes: u64,
    /// Status code of the protocol (HTTP's; 0 if there is none).
    pub status: u16,
    /// Its outcome.
    pub outcome: Outcome,
    /// Reason, if the outcome is not [`Outcome::Sound`], or the skipped check: one of few sentences, for counting.
    pub detail: Option<String>,
}

impl Record {
    /// Records that the request was passed to a socket. The first time is kept; each further one is a resend.
    pub fn was_sent(&mut self, now: Micros) {
        if self.sent.is_some() {
            self.resends = self.resends.saturating_add(1);
        }
        // The first send counts: waiting for the lost connection was part of what the user waited for.
        self.sent.get_or_insert(now);
    }

    /// Returns the start of its user's wait: the intended time of the question's first attempt.
    pub fn wanted(&self) -> Micros {
        self.first_intended.unwrap_or(self.intended)
    }

    /// Returns the time a user waited for the first byte of the response; `None` if none arrived.
    pub fn to_first_byte(&self) -> Option<Micros> {
        Some(self.first_byte? - self.wanted())
    }

    /// Returns the time a user waited for the first result; `None` if none arrived.
    pub fn to_first_result(&self) -> Option<Micros> {
        Some(self.first_result? - self.wanted())
    }

    /// Returns the time a user waited until the first result, or until the end of a sound response without one. `None`
    /// if there was neither.
    pub fn to_something(&self) -> Option<Micros> {
        self.to_first_result().or_else(|| self.latency().filter(|_| self.outcome == Outcome::Sound))
    }

    /// Returns the time a user waited for the last result.
    pub fn to_last_result(&self) -> Option<Micros> {
        Some(self.last_result? - self.wanted())
    }

    /// Returns the duration a user felt: to the end of the response.
    pub fn latency(&self) -> Option<Micros> {
        Some(self.done? - self.wanted())
    }

    /// Returns the duration that a client without an arrival schedule would report: from the real send.
    pub fn naive_latency(&self) -> Option<Micros> {
        Some(self.done? - self.sent?)
    }
}

/// The part of a trial in which a request was intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Phase {
    /// Before measurement: connections and caches warm up; shown, never counted.
    WarmUp,
    /// The measured part.
    #[default]
    Measured,
    /// Load continues while the last measured requests end; never counted.
    CoolDown,
    /// The first measurement again, minutes after the load ("did it stay degraded?").
    Again,
}

impl Phase {
    /// Returns whether requests intended in it count.
    pub fn is_counted(self) -> bool {
        matches!(self, Phase::Measured | Phase::Again)
    }
}

/// The outcome of a request. Only [`Outcome::Sound`] may ever count as fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Outcome {
    /// A whole response that passed every check.
    #[default]
    Sound,
    /// A response that failed a check (schema, count, ground truth).
    Unsound,
    /// Part of the results arrived, and the response reported that or ended early.
    Partial,
    /// The response ended without any of the expected results.
    Absent,
    /// Refused by the server on purpose (429, 503, or a stream's `refused`).
    Refused,
    /// The user's patience or the deadline ended first; `done` holds the time.
    TimedOut,
    /// Transport or protocol failed, or the status is an error other than a refusal.
    Failed,
    /// The load generator could not send it; the arrival is counted, but the server is not at fault.
    NotSent,
}

macro_rules! names {
    ($kind:ty { $($variant:ident = $code:literal $name:literal),+ $(,)? }) => {
        impl $kind {
            /// Every value, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns its code in `requests.parquet`.
            pub fn code(self) -> u8 {
                match self { $(Self::$variant => $code),+ }
            }

            /// Returns the value of a code in `requests.parquet`.
            pub fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }

            /// Returns its word in summaries and reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

names!(Phase { WarmUp = 0 "warm-up", Measured = 1 "measured", CoolDown = 2 "cool-down", Again = 3 "again" });
names!(Outcome {
    Sound = 0 "sound", Unsound = 1 "unsound", Partial = 2 "partial", Absent = 3 "absent", Refused = 4 "refused",
    TimedOut = 5 "timed out", Failed = 6 "failed", NotSent = 7 "not sent",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_name_one_value_each() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_code(outcome.code()), Some(*outcome));
        }
        for phase in Phase::ALL {
            assert_eq!(Phase::from_code(phase.code()), Some(*phase));
        }
        let words: std::collections::BTreeSet<_> = Outcome::ALL.iter().map(|outcome| outcome.name()).collect();
        assert_eq!(words.len(), Outcome::ALL.len());
        assert_eq!(Outcome::from_code(8), None);
    }

    #[test]
    fn latency_is_counted_from_the_intended_time() {
        let record = Record { intended: 1_000, sent: Some(5_000), done: Some(6_000), ..Record::default() };
        assert_eq!(record.latency(), Some(5_000));
        assert_eq!(record.naive_latency(), Some(1_000));
        assert_eq!(record.to_first_result(), None);
        let again = Record { intended: 4_000, first_intended: Some(1_000), first_result: Some(5_500), ..record };
        assert_eq!((again.latency(), again.to_first_result()), (Some(5_000), Some(4_500)));
        assert_eq!(again.naive_latency(), Some(1_000));
    }
}
