//! The fallback for a scan that found no scan server within its profile's wait.
//!
//! If all such scans went to the owners at once, they could bring them down. Owners hold one copy of the data and
//! also write it (Accumulo's issues 4532 and 4814). So each owner takes only a limited number of them a second.

use super::tokens::Tokens;
use crate::Invalid;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// Max owners whose allowance is remembered.
const OWNERS_MAX: usize = 4_096;
/// Max time after which a scan is told to retry: a rate near zero would yield years.
const LATER_MAX_MS: f64 = 3_600_000.0;

/// The configured fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoServerRule {
    /// Keep waiting until the scan's own deadline.
    #[default]
    Wait,
    /// Refuse the scan.
    Fail,
    /// Use the tablet's owner, within its allowance.
    Fallback,
}

impl FromStr for NoServerRule {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<NoServerRule, Invalid> {
        match text {
            "wait" => Ok(NoServerRule::Wait),
            "fail" => Ok(NoServerRule::Fail),
            "fallback" => Ok(NoServerRule::Fallback),
            _ => Err(Invalid::new(format_args!("{text:?}: expected wait, fail or fallback"))),
        }
    }
}

/// The next step of a scan without a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It keeps waiting.
    Wait,
    /// It is refused: there is no scan server.
    Fail,
    /// It asks the owner.
    Owner,
    /// It is refused: the owner takes no more for now. It may retry after this time.
    Later(Duration),
}

/// The fallback, with the allowance of each owner.
#[derive(Debug, Clone)]
pub struct Fallback {
    rule: NoServerRule,
    per_second: f64,
    burst: f64,
    /// Allowance and time of its last update, by owner. An owner not listed has its full allowance.
    owners: BTreeMap<String, (Tokens, Duration)>,
}

impl Fallback {
    /// A fallback under which an owner takes `per_second` scans a second, and up to `burst` at once after a pause.
    ///
    /// # Errors
    /// A rate that is not finite and above 0, or a burst below 1, with which no scan could ever go to an owner.
    pub fn new(rule: NoServerRule, per_second: f64, burst: f64) -> Result<Fallback, Invalid> {
        if !(per_second.is_finite() && per_second > 0.0) {
            let detail = format!("{per_second}: expected scans a second above 0");
            return Err(Invalid::field("fallback_per_second", detail));
        }
        if !(burst.is_finite() && burst >= 1.0) {
            return Err(Invalid::field("fallback_burst", format_args!("{burst}: expected at least 1")));
        }
        Ok(Fallback { rule, per_second, burst, owners: BTreeMap::new() })
    }

    /// The step of a scan of this owner's tablet. `now` is the time of any monotonic clock.
    pub fn ask(&mut self, owner: &str, now: Duration) -> Verdict {
        match self.rule {
            NoServerRule::Wait => return Verdict::Wait,
            NoServerRule::Fail => return Verdict::Fail,
            NoServerRule::Fallback => {}
        }
        let (per_second, full) = (self.per_second, Tokens::full(self.burst));
        let settle = |(tokens, at): &mut (Tokens, Duration)| {
            tokens.add(now.saturating_sub(*at).as_secs_f64() * per_second);
            *at = now.max(*at);
        };
        if !self.owners.contains_key(owner) && self.owners.len() >= OWNERS_MAX {
            self.owners.values_mut().for_each(settle);
            self.owners.retain(|_, (tokens, _)| !tokens.is_full());
            if self.owners.len() >= OWNERS_MAX {
                return Verdict::Later(Duration::from_secs(1));
            }
        }
        let state = self.owners.entry(owner.to_owned()).or_insert((full, now));
        settle(state);
        match state.0.take() {
            true => Verdict::Owner,
            false => {
                let ms = (state.0.missing() / per_second * 1e3).ceil().min(LATER_MAX_MS);
                Verdict::Later(Duration::from_millis(ms as u64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_owner_takes_its_burst_then_its_rate_and_others_have_theirs() {
        let mut fallback = Fallback::new(NoServerRule::Fallback, 2.0, 3.0).unwrap();
        let at = Duration::from_millis;
        for _ in 0..3 {
            assert_eq!(fallback.ask("a", at(1_000)), Verdict::Owner);
        }
        let Verdict::Later(wait) = fallback.ask("a", at(1_000)) else { panic!("the burst is used up") };
        assert_eq!(wait, at(500));
        assert_eq!(fallback.ask("b", at(1_000)), Verdict::Owner);
        assert_eq!(fallback.ask("a", at(1_000) + wait), Verdict::Owner);
        assert!(matches!(fallback.ask("a", at(0)), Verdict::Later(_)), "a clock that goes back pays nothing");
    }

    #[test]
    fn other_rules_ask_no_owner_and_mistakes_name_their_setting() {
        let ask = |rule: &str| Fallback::new(rule.parse().unwrap(), 1.0, 1.0).unwrap().ask("a", Duration::ZERO);
        assert_eq!((ask("wait"), ask("fail")), (Verdict::Wait, Verdict::Fail));
        assert_eq!(
            "Wait".parse::<NoServerRule>().unwrap_err().to_string(),
            "\"Wait\": expected wait, fail or fallback"
        );
        let wrong = |rate, burst| Fallback::new(NoServerRule::Fallback, rate, burst).unwrap_err().to_string();
        assert_eq!(wrong(0.0, 1.0), "fallback_per_second: 0: expected scans a second above 0");
        assert_eq!(wrong(1.0, 0.5), "fallback_burst: 0.5: expected at least 1");
    }

    #[test]
    fn names_of_owners_do_not_use_memory_without_limit() {
        let mut fallback = Fallback::new(NoServerRule::Fallback, 1.0, 1.0).unwrap();
        for n in 0..OWNERS_MAX {
            assert_eq!(fallback.ask(&n.to_string(), Duration::ZERO), Verdict::Owner);
        }
        assert!(matches!(fallback.ask("one more", Duration::ZERO), Verdict::Later(_)));
        assert_eq!(fallback.ask("one more", Duration::from_secs(2)), Verdict::Owner);
        assert_eq!(fallback.owners.len(), 1, "owners with their whole allowance are forgotten");
    }

    proptest! {
        /// In no stretch of time does an owner take more than its burst and its rate.
        #[test]
        fn no_stretch_has_more_than_the_allowance(
            steps in prop::collection::vec(0..400u64, 1..200), per_second in 1..20u32, burst in 1..9u32,
        ) {
            let (per_second, burst) = (f64::from(per_second), f64::from(burst));
            let mut fallback = Fallback::new(NoServerRule::Fallback, per_second, burst).unwrap();
            let (mut now, mut taken) = (Duration::ZERO, Vec::new());
            for step in steps {
                now += Duration::from_millis(step);
                if fallback.ask("a", now) == Verdict::Owner {
                    taken.push(now);
                }
            }
            for (first, from) in taken.iter().enumerate() {
                for (last, to) in taken.iter().enumerate().skip(first) {
                    let most = burst + per_second * (*to - *from).as_secs_f64();
                    prop_assert!((last - first + 1) as f64 <= most + 1e-6);
                }
            }
        }
    }
}
