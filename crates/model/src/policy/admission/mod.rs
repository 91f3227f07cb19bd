//! Processor slots, shared fairly by tenants: decides which query runs next and which is refused.
//!
//! A running query holds a slot. There are about as many slots as processors ([`Capacity`]). A query that finds no
//! free slot waits or is refused. While it runs, its processor time is charged in slices. After each slice it may be
//! preempted by a query with more right to the slot.
//!
//! Right is decided at two levels: among tenants by their weights, and within a tenant among classes. Both use
//! start-time fair queueing (Goyal, Vin and Cheng 1996, [`super::share`]). A query sinks to the next class once it has
//! used much processor time. So short queries pass long ones, and long ones keep a share.
//!
//! A query that waits for another process is *away*, and releases its slot. When the response has arrived, it queues
//! for a slot like a preempted query. It keeps its thread, so threads bound the number of queries away. A tenant starts
//! no further query once it has as many queries away as there are threads left (a dynamic threshold: Choudhury and
//! Hahne 1998). So however many tenants wait for a stalled process, threads remain for the queries of others.
//!
//! Waits are bounded by time. A queue that has been non-empty for long, or holds too much, is overloaded. Its newest
//! query runs first, and queries that waited longer than [`Settings::target`] are refused. So running queries have
//! waited briefly, and their clients still want the result. The newest already runs first once more queries have
//! arrived than chance explains. This is adaptive LIFO and CoDel for requests (Maurer, "Fail
//! at Scale", ACM Queue 2015).
//!
//! Everything here is a state machine over time that the caller passes in: the server and the simulator run the same
//! code.

mod away;
mod capacity;
mod line;
mod questions;
mod tenant;
mod terms;
#[cfg(test)]
mod tests;
mod views;

pub use capacity::{Capacity, Load};
pub use terms::{Class, ClassLoad, Counts, Entry, Refusal, Settings, SlotRequest, Ticket, Verdict, WaitOutcome};

use super::retry_times::RetryTimes;
use super::share::Share;
use line::QueuedQuery;
use questions::{Question, Questions, State};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;
use tenant::Tenant;

/// Time since an origin that the caller chooses, the same for all calls.
pub type At = Duration;

/// The scheduler.
#[derive(Debug, Clone)]
pub struct Admission<T> {
    settings: Settings,
    slots: usize,
    tenants: Vec<Tenant<T>>,
    by_name: HashMap<T, usize>,
    questions: Questions,
    /// Virtual time among tenants: the largest tag of a tenant that was given a slot.
    virtual_time: u64,
    running: usize,
    paused: usize,
    waiting: usize,
    away: usize,
}

impl<T: Clone + Eq + Hash> Admission<T> {
    /// An idle scheduler.
    pub fn new(settings: Settings) -> Admission<T> {
        Admission {
            slots: settings.slots.max(1),
            settings,
            tenants: Vec::new(),
            by_name: HashMap::new(),
            questions: Questions::default(),
            virtual_time: 0,
            running: 0,
            paused: 0,
            waiting: 0,
            away: 0,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether a running query may have to give way.
    pub fn is_contended(&self) -> bool {
        self.waiting + self.paused > 0
    }

    /// Whether a new query would run at once, unless its tenant already runs as many as it may.
    pub fn is_free(&self) -> bool {
        !self.is_contended() && self.running < self.slots
    }

    /// Changes the number of slots. Running queries in excess give way after their slice.
    pub fn set_slots(&mut self, slots: usize) {
        self.slots = slots.max(1);
        self.forget_idle();
    }

    /// Admits a query.
    ///
    /// # Errors
    /// [`Refusal::Deadline`] if it has to wait and its deadline has passed, [`Refusal::QueueFull`] if too many wait.
    pub fn enter(&mut self, now: At, ask: SlotRequest<&T>) -> Result<Entry, Refusal> {
        let used = ask.resumed.unwrap_or_default();
        let class = ask.class.after(used);
        let number = self.known(ask.tenant, ask.weight);
        self.activate(number, class);
        let question = |state| Question { tenant: number, class, state, used };
        if self.is_free() && self.may_start(&self.tenants[number]) {
            let ticket = self.questions.add(question(State::Running));
            self.begin(number, class);
            self.tenants[number].started += 1;
            return Ok(Entry::Run(ticket));
        }
        // After the free slot: a query whose deadline has passed still runs if it need not wait.
        if ask.deadline <= now {
            return Err(Refusal::Deadline);
        }
        if ask.resumed.is_some() {
            let ticket = self.questions.add(question(State::Paused));
            self.line_up(number, class, ticket);
            return Ok(Entry::Wait(ticket));
        }
        // A flood of one tenant fills the queue. Without the exception it would shut out every other tenant.
        if self.waiting >= self.settings.waiting_max && !self.is_owed_room(number) {
            return Err(Refusal::QueueFull);
        }
        let ticket = self.questions.add(question(State::Waiting));
        let waiting = QueuedQuery { ticket, since: now, deadline: ask.deadline, is_write: ask.is_write };
        let tenant = &mut self.tenants[number];
        tenant.lines[class as usize].push(waiting);
        tenant.waiting += 1;
        self.waiting += 1;
        Ok(Entry::Wait(ticket))
    }

    /// Whether this tenant and class has too many writes: a new one would wait longer than half of its patience,
    /// mostly behind other writes. Refusing it before its body is read is better than after it has waited. Behind
    /// mostly reads a write takes its turn: refusing it would shut writes out for as long as reads arrive.
    pub fn is_late(&self, now: At, tenant: &T, class: Class) -> bool {
        let Some(number) = self.by_name.get(tenant) else { return false };
        self.tenants[*number].lines[class as usize].is_late(now, self.settings.patience[class as usize] / 2)
    }

    /// Returns how long a refused client of this tenant and class is to wait before it retries.
    pub fn retry_after(&mut self, now: At, tenant: &T, class: Class) -> Duration {
        match self.by_name.get(tenant) {
            Some(number) => self.tenants[*number].lines[class as usize].retries.assign(now, Duration::ZERO),
            // Nothing of it runs or waits.
            None => RetryTimes::default().assign(now, Duration::ZERO),
        }
    }

    /// Charges a running query for processor time. After a whole slice it may have to give way.
    pub fn slice(&mut self, ticket: Ticket, used: Duration) -> Verdict {
        self.charge(ticket, used);
        let Some(question) = self.questions.get(ticket) else { return Verdict::Continue };
        let (number, class) = (question.tenant, question.class);
        // No waiting query has more right to the slot: pausing would cost a switch and help none.
        if !self.is_contended() || !self.must_give_way(number, class) {
            let tenant = &self.tenants[number];
            self.virtual_time = self.virtual_time.max(tenant.share.tag);
            return Verdict::Continue;
        }
        let tenant = &mut self.tenants[number];
        tenant.running -= 1;
        tenant.lines[class as usize].paused.push_back(ticket);
        self.running -= 1;
        self.paused += 1;
        self.questions.set(ticket, State::Paused);
        Verdict::Pause
    }

    /// Charges processor time to a query that keeps running.
    pub fn charge(&mut self, ticket: Ticket, used: Duration) {
        let Some(question) = self.questions.get_mut(ticket) else { return };
        let tenant = &mut self.tenants[question.tenant];
        tenant.share.charge(used);
        tenant.lines[question.class as usize].share.charge(used);
        question.used += used;
        let class = question.class.after(question.used);
        // Only while it runs: a waiting or paused query is in the queue of its class.
        if class == question.class || question.state != State::Running {
            return;
        }
        // An idle class must not use the share that it missed meanwhile.
        tenant.lines[class as usize].share.activate(tenant.virtual_time, Duration::ZERO);
        question.class = class;
    }

    /// Charges a tenant for work outside its queries: sending and background work.
    pub fn bill(&mut self, tenant: &T, weight: u32, used: Duration) {
        let (number, contended) = (self.known(tenant, weight), self.is_contended());
        let share = &mut self.tenants[number].share;
        if contended {
            share.charge(used);
            return;
        }
        // It delayed no query: time that would have been idle costs no right.
        share.activate(self.virtual_time, self.settings.credit);
        share.charge(used);
        self.virtual_time = self.virtual_time.max(share.tag);
    }

    /// Removes a query that has finished, is cancelled, was refused, or releases its slot. `used` is its processor
    /// time not charged yet. Returns the processor time that it has used.
    pub fn leave(&mut self, ticket: Ticket, used: Duration) -> Duration {
        self.charge(ticket, used);
        let Some(question) = self.questions.remove(ticket) else { return Duration::ZERO };
        self.release(ticket, &question);
        question.used
    }

    /// Releases what a query held.
    fn release(&mut self, ticket: Ticket, question: &Question) {
        let tenant = &mut self.tenants[question.tenant];
        let line = &mut tenant.lines[question.class as usize];
        match question.state {
            State::Running => {
                tenant.running -= 1;
                self.running -= 1;
            }
            State::Paused => {
                // The queue is searched only here. Clients that leave while waiting are rare compared with those
                // served.
                line.paused.retain(|paused| *paused != ticket);
                self.paused -= 1;
            }
            State::Waiting => {
                line.waiting.retain(|waiting| waiting.ticket != ticket);
                tenant.waiting -= 1;
                self.waiting -= 1;
                return;
            }
            State::Away => {
                tenant.away -= 1;
                self.away -= 1;
                return;
            }
            State::Refused => return,
        }
        tenant.started -= 1;
    }

    /// The next query whose wait is over. Call it after every other call, until it returns `None`.
    pub fn next(&mut self, now: At) -> Option<WaitOutcome> {
        while self.running < self.slots {
            let (number, class) = self.best()?;
            let tenant = &mut self.tenants[number];
            let line = &mut tenant.lines[class as usize];
            // Paused before waiting: a started query holds a thread and memory, which its end frees.
            if let Some(ticket) = line.paused.pop_front() {
                self.paused -= 1;
                self.questions.set(ticket, State::Running);
                self.begin(number, class);
                return Some(WaitOutcome::Run(ticket));
            }
            let patience = self.settings.patience[class as usize];
            let Some((waiting, refusal)) = line.pop(now, patience, &self.settings) else { continue };
            tenant.waiting -= 1;
            self.waiting -= 1;
            if let Some(refusal) = refusal {
                self.questions.set(waiting.ticket, State::Refused);
                return Some(WaitOutcome::Refuse(waiting.ticket, refusal));
            }
            self.questions.set(waiting.ticket, State::Running);
            self.tenants[number].started += 1;
            self.begin(number, class);
            return Some(WaitOutcome::Run(waiting.ticket));
        }
        None
    }

    /// The next query of any tenant that has waited too long. Call it periodically, until it returns `None`.
    pub fn expire(&mut self, now: At) -> Option<WaitOutcome> {
        for tenant in &mut self.tenants {
            for (line, patience) in tenant.lines.iter_mut().zip(self.settings.patience) {
                if let Some((waiting, refusal)) = line.pop_expired(now, patience, &self.settings) {
                    tenant.waiting -= 1;
                    self.waiting -= 1;
                    self.questions.set(waiting.ticket, State::Refused);
                    return Some(WaitOutcome::Refuse(waiting.ticket, refusal));
                }
            }
        }
        None
    }

    /// The tenant and class with the most right to a slot.
    fn best(&self) -> Option<(usize, Class)> {
        let classes =
            self.tenants.iter().enumerate().filter(|(_, tenant)| tenant.waiting > 0 || tenant.started > tenant.running);
        classes
            .filter_map(|(number, tenant)| Some((number, tenant.best_class(self.may_start(tenant))?)))
            // Ties go to the tenant known longest, so that simulator runs are repeatable.
            .min_by_key(|(number, _)| self.tenants[*number].share.tag)
    }

    /// Whether a running query must give way to the best waiting one.
    fn must_give_way(&self, number: usize, class: Class) -> bool {
        let Some((best, best_class)) = self.best() else { return false };
        // The number of slots was reduced: the first query to end its slice gives one back.
        if self.running > self.slots {
            return true;
        }
        let tenant = &self.tenants[number];
        let line = &tenant.lines[class as usize];
        match best == number {
            true => tenant.lines[best_class as usize].share.tag < line.share.tag,
            false => self.tenants[best].share.tag < tenant.share.tag,
        }
    }

    /// Whether a tenant may wait although the queue is full: it has less than half as many queries waiting as the
    /// longest queue.
    fn is_owed_room(&self, number: usize) -> bool {
        let longest = self.tenants.iter().map(|tenant| tenant.waiting).max().unwrap_or(0);
        // The excess is still bounded: at most half the longest queue for each tenant.
        self.tenants[number].waiting < longest / 2
    }

    /// The number of a tenant; registers it if new.
    fn known(&mut self, name: &T, weight: u32) -> usize {
        let number = match self.by_name.get(name) {
            Some(number) => *number,
            None => {
                let number = self.tenants.len();
                self.by_name.insert(name.clone(), number);
                let mut tenant = Tenant::new(name.clone(), weight);
                tenant.share.activate(self.virtual_time, self.settings.credit);
                self.tenants.push(tenant);
                number
            }
        };
        // On every query, as an operator may change a tenant's weight at any time.
        self.tenants[number].share.weight = weight.max(1);
        number
    }

    /// Activates a tenant and class that request a slot.
    fn activate(&mut self, number: usize, class: Class) {
        let tenant = &mut self.tenants[number];
        if tenant.is_idle() {
            tenant.share.activate(self.virtual_time, self.settings.credit);
        }
        let line = &mut tenant.lines[class as usize];
        if line.waiting.is_empty() && line.paused.is_empty() {
            line.share.activate(tenant.virtual_time, self.settings.credit);
        }
    }

    /// Gives a slot to a query of this tenant and class.
    fn begin(&mut self, number: usize, class: Class) {
        let tenant = &mut self.tenants[number];
        tenant.running += 1;
        self.running += 1;
        tenant.virtual_time = tenant.virtual_time.max(tenant.lines[class as usize].share.tag);
        self.virtual_time = self.virtual_time.max(tenant.share.tag);
    }

    /// Drops tenants without queries whose debt is paid: they would start again with the same right.
    fn forget_idle(&mut self) {
        let floor = |share: &Share| self.virtual_time.saturating_sub(share.cost(self.settings.credit));
        let mut last = self.tenants.len();
        while last > 0 {
            last -= 1;
            let tenant = &self.tenants[last];
            // Only from the end, so that the numbers of the other tenants, which queries hold, stay valid.
            if !tenant.is_unused() || tenant.share.tag > floor(&tenant.share) {
                break;
            }
            self.by_name.remove(&tenant.name);
            self.tenants.pop();
        }
    }
}
