//! Metrics by tenant: those with the most processor time by name, the others combined.

use crate::state::AppState;
use meridian_admission::Ledger;
use meridian_admission::gate::Refusal;
use meridian_model::policy::quota::Quota;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Max named tenants: each is a label, and a monitoring system needs a bound on labels.
const NAMED_MAX: usize = 20;
/// The label of all other tenants.
const OTHER: &str = "other";

/// The metrics of a tenant.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Figures {
    processor_s: f64,
    refused: u64,
    running: usize,
    waiting: usize,
}

/// Writes the metrics of tenants and quotas.
pub fn write(state: &AppState, out: &mut String) {
    let ledgers = state.registry.ledgers();
    let at_work: HashMap<Arc<str>, (usize, usize)> = state.gate.by_tenant().into_iter().collect();
    let figures = |ledger: &Arc<Ledger>| {
        let (running, waiting) = at_work.get(ledger.tenant()).copied().unwrap_or_default();
        let refused = Quota::ALL.iter().map(|quota| ledger.refused(*quota)).sum();
        let figures = Figures { processor_s: ledger.processor_time().as_secs_f64(), refused, running, waiting };
        (ledger.tenant().to_string(), figures)
    };
    let tenants = named(ledgers.iter().map(figures).collect());
    family(out, "counter", "meridian_tenant_processor_seconds_total", "Processor time charged to a tenant.");
    each(out, "meridian_tenant_processor_seconds_total", &tenants, |figures| figures.processor_s);
    family(out, "counter", "meridian_tenant_refused_total", "Requests refused for a quota of a tenant.");
    each(out, "meridian_tenant_refused_total", &tenants, |figures| figures.refused as f64);
    family(out, "gauge", "meridian_tenant_requests_running", "Requests of a tenant that began and have not ended.");
    each(out, "meridian_tenant_requests_running", &tenants, |figures| figures.running as f64);
    family(out, "gauge", "meridian_tenant_requests_waiting", "Requests of a tenant that wait for a permit.");
    each(out, "meridian_tenant_requests_waiting", &tenants, |figures| figures.waiting as f64);
    family(out, "counter", "meridian_quota_refused_total", "Requests refused for a quota, by quota.");
    for quota in Quota::ALL {
        let sum: u64 = ledgers.iter().map(|ledger| ledger.refused(quota)).sum();
        let _ = writeln!(out, "meridian_quota_refused_total{{quota=\"{quota}\"}} {sum}");
    }
    family(out, "counter", "meridian_slot_refused_total", "Requests that got no slot, by reason.");
    for refusal in Refusal::ALL {
        let sum: u64 = ledgers.iter().map(|ledger| ledger.turned_away(refusal)).sum();
        let _ = writeln!(out, "meridian_slot_refused_total{{reason=\"{}\"}} {sum}", refusal.name());
    }
}

/// Returns the tenants with the most processor time by name, and the sum of the others.
fn named(mut tenants: Vec<(String, Figures)>) -> Vec<(String, Figures)> {
    // A tenant that has this label as its name is counted among the others: two series with one label would be invalid.
    tenants.sort_by(|(a, one), (b, other)| {
        let by_time = other.processor_s.total_cmp(&one.processor_s);
        (a == OTHER).cmp(&(b == OTHER)).then(by_time).then(a.cmp(b))
    });
    let plain = tenants.iter().filter(|(name, _)| name != OTHER).count();
    let others = tenants.split_off(NAMED_MAX.min(plain));
    if !others.is_empty() {
        let sum = others.iter().fold(Figures::default(), |sum, (_, one)| Figures {
            processor_s: sum.processor_s + one.processor_s,
            refused: sum.refused + one.refused,
            running: sum.running + one.running,
            waiting: sum.waiting + one.waiting,
        });
        tenants.push((OTHER.to_owned(), sum));
    }
    tenants
}

fn family(out: &mut String, kind: &str, name: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Writes a line for each tenant. Tenant names contain no character that would need escaping in a label.
fn each(out: &mut String, name: &str, tenants: &[(String, Figures)], of: impl Fn(&Figures) -> f64) {
    for (tenant, figures) in tenants {
        let _ = writeln!(out, "{name}{{tenant=\"{tenant}\"}} {}", of(figures));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_are_named_and_the_sums_stay() {
        let figures = |n: usize| Figures { processor_s: n as f64, refused: n as u64, running: 1, waiting: n };
        let all: Vec<(String, Figures)> = (0..50).map(|n| (format!("t{n}"), figures(n))).collect();
        let shown = named([all.clone(), vec![(OTHER.to_owned(), figures(100))]].concat());
        assert_eq!(shown.len(), NAMED_MAX + 1);
        assert_eq!((shown[0].0.as_str(), shown[NAMED_MAX].0.as_str()), ("t49", OTHER));
        let refused: u64 = shown.iter().map(|(_, figures)| figures.refused).sum();
        assert_eq!((refused, shown[NAMED_MAX].1.running), ((0..50).sum::<u64>() + 100, 31));
        assert_eq!(named(all[..2].to_vec()).len(), 2, "nothing is left for others");
    }
}
