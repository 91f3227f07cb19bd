//! `/admin/load`: running, waiting and refused requests with reasons, the use of tenants, and slow requests.
//!
//! It is available as a document for programs, and as a page without a script that browsers reload every two seconds.
//! The cost of both does not depend on the number of requests: only a bounded number of tenants and slow requests is
//! listed.

mod page;

use crate::contract::{self, Level, Load, MemoryLoad, QuotaLoad, RequestLoad, SlowRequest, TenantLoad};
use crate::html::live;
use crate::protocol::params::Params;
use crate::protocol::params::format::{self, Format, PAGES};
use crate::protocol::problem::Result;
use crate::request::context::Context;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::state::AppState;
use crate::state::usage_history::{self as history, Sample};
use axum::response::Response;
use meridian_admission::gate::{Class, ClassLoad};
use meridian_admission::{ByteBudget, Ledger};
use meridian_model::policy::queue;
use meridian_model::policy::quota::Quota;
use meridian_model::time;
use meridian_observe::Stage;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::{Duration, Instant};

/// Max tenants and slow requests listed.
const LISTED_MAX: usize = 20;

/// `GET /admin/load`
pub async fn get(state: Scope, context: Context) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, PAGES)?;
    let is_live = live::is_live(&mut params)?;
    params.finish()?;
    let load = of(&state);
    let response = match format {
        Format::Html => respond::page(&state, page::page(&load, is_live)),
        _ => respond::json("application/json", &load)?,
    };
    Ok(live::of_a_moment(response, format == Format::Html && is_live))
}

fn of(state: &AppState) -> Load {
    let ledgers = state.registry.ledgers();
    // Sampled on request, so that an unwatched server does no work for this page.
    let before = state.load_history.sample(Instant::now(), &ledgers);
    let mut at_work: HashMap<Arc<str>, [ClassLoad; 3]> = state.gate.load().into_iter().collect();
    let mut tenants: Vec<TenantLoad> = ledgers
        .iter()
        .map(|ledger| tenant(ledger, at_work.remove(ledger.tenant()).unwrap_or_default(), before.as_ref()))
        .filter(|tenant| !tenant.is_idle())
        .collect();
    tenants.sort_by(|a, b| b.weight_of_load().total_cmp(&a.weight_of_load()).then_with(|| a.name.cmp(&b.name)));
    // Truncated before memory is computed, which asks each pool about each listed tenant.
    tenants.truncate(LISTED_MAX);
    tenants.iter_mut().for_each(|tenant| tenant.memory = memory_of(state, &tenant.name));
    let (counts, metrics) = (state.gate.counts(), &state.metrics);
    let n = |n: usize| n as u64;
    let level = |now: usize, max: usize, refused| Level { now: n(now), max: n(max), refused };
    let refused = metrics.connections_refused.load(Ordering::Relaxed);
    Load {
        time: time::format_instant(state.now()),
        window_s: before.as_ref().map(|before| before.at.elapsed().as_secs_f64()),
        requests: RequestLoad {
            slots: n(counts.slots),
            running: n(counts.running),
            paused: n(counts.paused),
            waiting: n(counts.waiting),
            refused: state.gate.refused(),
        },
        connections: level(
            metrics.connections_open.load(Ordering::Relaxed),
            state.config.connections_max,
            Some(refused),
        ),
        streams: level(state.live.open(), state.config.streams_max, None),
        searches: level(
            state.searches.running(),
            state.config.search.searches_max,
            Some(state.searches.tally().refused.load(Ordering::Relaxed)),
        ),
        search_wait_ms: ms(state.searches.delay(queue::Class::Background)),
        memory: memory(state),
        tenants,
        tenants_in_all: n(ledgers.len()),
        slow: state.slow.slowest(state.now(), LISTED_MAX).iter().map(slow).collect(),
    }
}

fn tenant(ledger: &Arc<Ledger>, classes: [ClassLoad; 3], before: Option<&Sample>) -> TenantLoad {
    let refused = history::refused(ledger);
    let of_late = before.map(|before| before.since(ledger, &refused));
    let some = |refused: [u64; history::REASONS]| history::reasons().zip(refused).filter(|(_, n)| *n > 0).collect();
    TenantLoad {
        name: ledger.tenant().to_string(),
        weight: ledger.weight(),
        classes: Class::ALL.into_iter().zip(classes).filter_map(|(class, load)| class_load(class, load)).collect(),
        processor_s: ledger.processor_time().as_secs_f64(),
        processors: of_late.as_ref().map(|(processors, _)| *processors),
        refused: some(refused),
        refused_of_late: of_late.map(|(_, refused)| some(refused)),
        quotas: ledger
            .used()
            .into_iter()
            .map(|(quota, limit, used)| QuotaLoad { quota: quota.name(), limit, used })
            .collect(),
        memory: BTreeMap::new(),
        streams: ledger.held(Quota::Streams),
        searches: ledger.held(Quota::Searches),
    }
}

fn class_load(class: Class, load: ClassLoad) -> Option<contract::ClassLoad> {
    (load != ClassLoad::default()).then(|| contract::ClassLoad {
        class: class.name(),
        running: load.running as u64,
        paused: load.paused as u64,
        waiting: load.waiting as u64,
        oldest_wait_ms: load.oldest.map(ms),
    })
}

impl TenantLoad {
    fn is_idle(&self) -> bool {
        self.classes.is_empty()
            && self.processor_s == 0.0
            && self.refused.is_empty()
            && self.streams + self.searches == 0
    }

    /// Returns a sort key: a tenant's current use, or its past use until that is known.
    fn weight_of_load(&self) -> f64 {
        let requests: u64 = self.classes.iter().map(|class| class.running + class.paused + class.waiting).sum();
        let refused: u64 = self.refused_of_late.iter().flat_map(BTreeMap::values).sum();
        // A waiting request counts as much as a processor; refusals break ties.
        self.processors.unwrap_or_default() + requests as f64 + refused as f64 * 1e-6 + self.processor_s * 1e-12
    }
}

/// Returns the memory of all tenants by purpose, in this process: another process that has the collections is not asked,
/// since one that is paused would delay the page.
fn memory(state: &AppState) -> Vec<MemoryLoad> {
    let pools = pools(state).map(|(purpose, pool)| (purpose, pool.held() as u64, Some(pool.limit() as u64)));
    let packets = ("packets", state.searches.bytes() as u64, Some(state.config.search.buffer_bytes_total as u64));
    let writes = state.backend.write_memory(None).map(|held| ("writes", held, None));
    let all = pools.into_iter().chain([packets]).chain(writes);
    all.map(|(purpose, held, limit)| MemoryLoad { purpose, held, limit }).collect()
}

/// Returns the memory pools shared by tenants, by purpose.
fn pools(state: &AppState) -> [(&'static str, &ByteBudget); 6] {
    [
        ("bodies", &state.bodies),
        ("batches", &state.batches),
        ("answers", &state.answers),
        ("conditions", &state.conditions),
        ("queries", &state.memory),
        ("administration", &state.administration),
    ]
}

/// Returns the memory of one tenant by purpose; omits purposes for which it holds nothing.
fn memory_of(state: &AppState, tenant: &str) -> BTreeMap<&'static str, u64> {
    let name: Arc<str> = tenant.into();
    let writes = state.backend.write_memory(Some(tenant)).map(|held| ("writes", held));
    let pools = pools(state).map(|(purpose, pool)| (purpose, pool.of(&name).held_here() as u64));
    pools.into_iter().chain(writes).filter(|(_, held)| *held > 0).collect()
}

fn slow(request: &crate::state::slow::SlowRequest) -> SlowRequest {
    let stages = Stage::ALL.into_iter().zip(request.stages);
    SlowRequest {
        time: time::format_instant(request.at),
        tenant: request.tenant.to_string(),
        method: request.method.to_string(),
        route: request.route,
        status: request.status,
        request_id: request.request.clone(),
        ms: ms(request.took),
        stages: stages.filter_map(|(stage, took)| Some((stage.name(), ms(took?)))).collect(),
        bytes_read: request.bytes_read,
        nodes_visited: request.nodes_visited,
    }
}

fn ms(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}
