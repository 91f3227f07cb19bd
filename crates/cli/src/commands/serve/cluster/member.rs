//! This process as a member of its cluster. It publishes its state on the roll, and receives an operator's orders
//! there. It stops if the bucket is raised to a level it cannot read.

use super::{blocking, level, levels, name_of};
use crate::config::{Cluster, Role};
use crate::failure::Failure;
use crate::output::say;
use meridian_model::policy::groups::Group;
use meridian_model::policy::handover::{Standby, heir};
use meridian_model::policy::level::LevelRaiser;
use meridian_model::policy::placement::{LiveCandidate, places};
use meridian_store::bucket::{Condition, Levels, Node, OrderKind, OrderOutcome, Orders, Roll};
use meridian_store::seams::{Clock, Seams};
use meridian_store::{Bucket, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinSet;

/// Number of report intervals after which a silent process no longer counts.
const TTL_TURNS: u32 = 4;
/// How long all processes must support the next level before the bucket is raised to it, in multiples of that time. A
/// paused process shows up within it.
const GRACE_TTLS: u32 = 2;

/// A process of a cluster. Once dropped it reports nothing more, and counts for a few seconds.
pub(super) struct Member {
    shared: Arc<MemberState>,
    turns: Mutex<JoinSet<()>>,
}

struct MemberState {
    roll: Roll,
    orders: Orders,
    levels: Levels,
    clock: Arc<dyn Clock>,
    ttl: Duration,
    /// Its own entry.
    node: watch::Sender<Node>,
    /// Latest entries of the others. Only an owner reads them.
    others: watch::Sender<Vec<Node>>,
    /// The order being carried out, and its number.
    order: watch::Sender<Option<(u64, OrderKind)>>,
    /// Why this program cannot continue.
    outcast: watch::Sender<Option<String>>,
    /// Wakes the task for an early report.
    news: Notify,
}

/// State carried from one turn to the next.
#[derive(Default)]
struct Progress {
    raising: LevelRaiser,
    /// Number of the last order found.
    found: u64,
    /// Number of the last order removed.
    removed: u64,
}

impl Member {
    /// Joins the roll. `address`: where the process is reached; `process`: its number.
    pub(super) async fn join(
        cluster: &Cluster,
        (role, condition): (Role, Condition),
        address: String,
        process: u64,
        bucket: &Arc<dyn Bucket>,
        seams: &Seams,
    ) -> Result<Member, Failure> {
        let every = cluster.lease * 2 / 3;
        let ttl = every * TTL_TURNS;
        let node = Node {
            node: name_of(cluster, &role.to_string()),
            role: role.to_string(),
            process,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            level: level(),
            address,
            condition,
            leases: Vec::new(),
            done: None,
        };
        let shared = Arc::new(MemberState {
            roll: Roll::new(bucket.clone(), seams, process, ttl),
            orders: Orders::new(bucket.clone(), seams, process),
            levels: levels(bucket, seams),
            clock: seams.clock.clone(),
            ttl,
            node: watch::Sender::new(node),
            others: watch::Sender::new(Vec::new()),
            order: watch::Sender::new(None),
            outcast: watch::Sender::new(None),
            news: Notify::new(),
        });
        // Before anything else: a process that raises the level of the bucket waits for those it sees.
        let mut progress = turn(&shared, Progress::default()).await?;
        let (taking, mut tasks) = (shared.clone(), JoinSet::new());
        tasks.spawn(async move {
            loop {
                // Until the next turn is due, or there is something to report.
                let _ = tokio::time::timeout(every, taking.news.notified()).await;
                progress = turn(&taking, progress).await.unwrap_or_else(|failure| {
                    tracing::error!("{failure}");
                    Progress::default()
                });
            }
        });
        Ok(Member { shared, turns: Mutex::new(tasks) })
    }

    /// Reports this condition and these leases from now on.
    pub(super) fn is(&self, condition: Condition, leases: Vec<String>) {
        self.shared.node.send_modify(|node| (node.condition, node.leases) = (condition, leases));
        self.shared.news.notify_one();
    }

    /// Returns the owners that can have groups: this process, unless it is drained, and the others.
    pub(super) fn owners(&self) -> Vec<LiveCandidate> {
        let (others, me) = (self.shared.others.borrow(), self.shared.node.borrow());
        let all = others.iter().chain([&*me]).filter(|node| is_owner(node) && node.condition != Condition::Drained);
        all.map(placed).collect()
    }

    /// Returns the process that gets the lease of a group from this one. It is the one with this number if that one is
    /// ready, or the best of those ready. With several groups, the best is the first by placement among those with the
    /// newest program, without this process.
    ///
    /// # Errors
    /// Why there is none, in a sentence.
    pub(super) fn heir(&self, group: Group, wanted: Option<u64>) -> Result<Node, String> {
        let others = self.shared.others.borrow();
        // With several groups, a process that has some can take more.
        let is_ready = |node: &&Node| match node.condition {
            Condition::StandsBy => true,
            Condition::Serves => !group.is_all(),
            Condition::Drained | Condition::Other => false,
        };
        let ready = others.iter().filter(|node| is_owner(node)).filter(is_ready);
        let ready: Vec<&Node> = ready.filter(|node| wanted.is_none_or(|wanted| node.process == wanted)).collect();
        let standby = |node: &&Node| Standby { process: node.process, level: node.level, leases: node.leases.len() };
        let best = match group.is_all() {
            true => heir(ready.iter().map(standby)),
            false => {
                let newest = ready.iter().map(|node| node.level).max();
                let newest: Vec<LiveCandidate> =
                    ready.iter().filter(|node| Some(node.level) == newest).map(|node| placed(node)).collect();
                let places = places(group.groups(), &newest);
                places.get(usize::from(group.number())).and_then(|order| order.first()).copied()
            }
        };
        let found = ready.into_iter().find(|node| Some(node.process) == best);
        found.cloned().ok_or_else(|| match wanted {
            Some(_) => "the process that was named does not stand by as an owner".to_owned(),
            None => "no other owner stands by: start one first".to_owned(),
        })
    }

    /// Waits for an order that has not been carried out yet.
    pub(super) async fn ordered(&self) -> (u64, OrderKind) {
        ordered(self.shared.order.subscribe()).await
    }

    /// Reports the outcome of an order: what was done, or why it was not.
    pub(super) fn done(&self, order: u64, outcome: Result<String, String>) {
        self.shared.done(order, outcome);
    }

    /// Carries out the orders of a process that holds no lease. Reports through `drained` that it takes no new work.
    pub(super) fn obey(&self, drained: watch::Sender<bool>) -> impl Future<Output = ()> + Send + 'static {
        let shared = self.shared.clone();
        async move {
            loop {
                let (order, what) = ordered(shared.order.subscribe()).await;
                let outcome = match what {
                    OrderKind::Handover { .. } => Err("it is no owner, and holds no lease".to_owned()),
                    OrderKind::Drain => {
                        drained.send_replace(true);
                        shared.node.send_modify(|node| node.condition = Condition::Drained);
                        Ok("drained: it says that it is not ready, and serves what still comes".to_owned())
                    }
                    OrderKind::Undo => {
                        drained.send_replace(false);
                        shared.node.send_modify(|node| node.condition = Condition::Serves);
                        Ok("it takes new work again".to_owned())
                    }
                };
                shared.done(order, outcome);
            }
        }
    }

    /// Resolves with `stop`, or once this program cannot continue.
    pub(super) fn until(
        &self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let mut outcast = self.shared.outcast.subscribe();
        async move {
            let cast_out = async {
                // The sender lives as long as the turns.
                if outcast.wait_for(Option::is_some).await.map(drop).is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = stop => {}
                () = cast_out => {}
            }
        }
    }

    /// Leaves the roll.
    ///
    /// # Errors
    /// Why this program could not continue, if so.
    pub(super) async fn leave(&self) -> Result<(), Failure> {
        let shared = &self.shared;
        self.turns.lock().await.shutdown().await;
        let leaving = shared.clone();
        blocking("leaving the roll", move || leaving.roll.leave()).await?;
        let why = shared.outcast.borrow().clone();
        why.map_or(Ok(()), |why| Err(Failure::Refused(why)))
    }
}

fn is_owner(node: &Node) -> bool {
    node.role == Role::Owner.to_string()
}

fn placed(node: &Node) -> LiveCandidate {
    LiveCandidate { node: node.node.clone(), process: node.process }
}

async fn ordered(mut orders: watch::Receiver<Option<(u64, OrderKind)>>) -> (u64, OrderKind) {
    loop {
        if let Some(order) = orders.borrow_and_update().clone() {
            return order;
        }
        if orders.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Runs a turn on a thread that may block. An unresponsive bucket is tried again in the next turn.
async fn turn(shared: &Arc<MemberState>, mut progress: Progress) -> Result<Progress, Failure> {
    let shared = shared.clone();
    blocking("the roll of the cluster", move || {
        if let Err(error) = shared.turn(&mut progress) {
            tracing::warn!(%error, "the roll of the cluster could not be kept: trying again");
        }
        progress
    })
    .await
}

impl MemberState {
    fn turn(&self, progress: &mut Progress) -> Result<(), StoreError> {
        let node = self.node.borrow().clone();
        let said = self.roll.say(&node)?;
        let level = match self.levels.check()? {
            Ok(level) => level,
            Err(why) => {
                self.outcast.send_replace(Some(why));
                return Ok(());
            }
        };
        if is_owner(&node) {
            self.hear(progress, level, node.level)?;
        }
        let last = node.done.as_ref().map_or(0, |done| done.order);
        if progress.removed < last {
            // Its outcome has been reported.
            self.orders.remove(last)?;
            progress.removed = last;
        }
        if progress.found > last {
            return Ok(());
        }
        match self.orders.get(last + 1, said) {
            Ok(None) => {}
            Ok(Some((order, true))) => {
                progress.found = last + 1;
                self.order.send_replace(Some((last + 1, order.what)));
            }
            Ok(Some((_, false))) => self.done(last + 1, Err("the order is too old".to_owned())),
            Err(error @ (StoreError::Corrupt { .. } | StoreError::NewerFormat { .. })) => {
                self.done(last + 1, Err(error.to_string()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads the entries of the others, and raises the level of the bucket if all can read the next one.
    fn hear(&self, progress: &mut Progress, level: u32, own: u32) -> Result<(), StoreError> {
        let others = self.roll.hear()?;
        // An unreadable entry may be of any level.
        let levels = others.iter().map(|node| node.as_ref().map_or(0, |node| node.level));
        let now = Duration::from_micros(u64::try_from(self.clock.elapsed()).unwrap_or(0));
        if let Some(next) = progress.raising.look(level, own, levels, now, self.ttl * GRACE_TTLS) {
            self.levels.raise(next)?;
            say(&format!(
                "the bucket is at level {next} from now on: all processes read it, and older programs are refused"
            ));
        }
        self.others.send_replace(others.into_iter().flatten().collect());
        Ok(())
    }

    fn done(&self, order: u64, outcome: Result<String, String>) {
        let done = outcome.is_ok();
        let (Ok(text) | Err(text)) = outcome;
        self.node.send_modify(|node| node.done = Some(OrderOutcome { order, done, text }));
        self.order.send_replace(None);
        self.news.notify_one();
    }
}
