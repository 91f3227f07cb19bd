//! One trial of a pipeline, event by event.

use super::{JobUnit, Pipeline};
use crate::simulate::draw::Times;
use crate::simulate::events::{EventQueue, Micros, micros};
use meridian_lab_results::random::SeededRng;
use meridian_model::policy::queue::{Class, Dequeued, JobTimeout, Queues};
use std::time::Duration;

/// The outcome of each request, and its work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimulatedTrial {
    /// Start of each request.
    pub starts: Vec<Micros>,
    /// Delivery times of its result packets, ascending; empty if none.
    pub packets: Vec<Vec<Micros>>,
    /// Number of jobs done.
    pub jobs: u64,
    /// Number of jobs dropped for their age.
    pub dropped: u64,
    /// Number of calls of outside sources.
    pub calls: u64,
    /// Number of workers that died.
    pub deaths: u64,
    /// Number of jobs lost in a worker crash.
    pub lost: u64,
    /// Time for which workers were held, summed over them.
    pub held: Micros,
    /// End of the last job.
    pub end: Micros,
}

#[derive(Debug, Clone, Copy)]
struct Job {
    request: u32,
    stage: u8,
    source: u16,
    packets: u32,
}

#[derive(Debug, Clone, Copy)]
enum Worker {
    Idle,
    /// Calls of the source still to follow the running one.
    Busy {
        job: Job,
        calls_left: u32,
    },
    Dead,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Arrive(u32),
    Poll(WorkerLife),
    Done(WorkerLife),
    Crash(WorkerLife),
    Restart(u32),
}

/// A worker's life between two crashes. Events due in an earlier life do not happen in the next.
#[derive(Debug, Clone, Copy, PartialEq)]
struct WorkerLife {
    worker: u32,
    number: u32,
}

struct Step {
    class: Class,
    each: JobUnit,
    service: Times,
    calls_source: bool,
    timeout: Option<Duration>,
    deadline: Option<Micros>,
}

struct Supplier {
    calls: u32,
    call: Times,
    packets: u32,
}

struct Simulator {
    events: EventQueue<Event>,
    rng: SeededRng,
    steps: Vec<Step>,
    suppliers: Vec<Supplier>,
    queues: Queues<Job>,
    workers: Vec<Worker>,
    /// Number of earlier lives of each worker.
    lives: Vec<u32>,
    poll: Micros,
    drop: Micros,
    death: Option<super::Death>,
    crash: Option<super::Crash>,
    outstanding: u64,
    to_come: u64,
    trial: SimulatedTrial,
}

/// Runs a checked pipeline until all requests have arrived and no job (or no worker) is left.
pub fn run(pipeline: &Pipeline) -> SimulatedTrial {
    let mut simulator = Simulator::new(pipeline);
    while let Some(event) = simulator.events.take() {
        simulator.happen(event);
        // Idle workers poll for ever, so the event queue never becomes empty.
        if simulator.to_come == 0 && simulator.outstanding == 0 {
            break;
        }
    }
    simulator.trial.end = simulator.events.now();
    simulator.trial
}

impl Simulator {
    fn new(pipeline: &Pipeline) -> Simulator {
        let step = |stage: &super::Stage| Step {
            class: Class::from_name(&stage.queue).unwrap_or(Class::Default),
            each: stage.each,
            service: stage.service,
            calls_source: stage.calls_source,
            timeout: stage.timeout_s.map(|s| Duration::from_micros(micros(s))),
            deadline: stage.deadline_s.map(micros),
        };
        let mut simulator = Simulator {
            events: EventQueue::default(),
            rng: SeededRng::new(pipeline.seed),
            steps: pipeline.stage.iter().map(step).collect(),
            suppliers: suppliers(pipeline),
            // A simulated queue is bounded by the requests of its scenario, which has a limit.
            queues: Queues::new(usize::MAX),
            workers: vec![Worker::Idle; pipeline.workers as usize],
            lives: vec![0; pipeline.workers as usize],
            poll: micros(pipeline.poll_s).max(1),
            drop: micros(pipeline.drop_s),
            death: pipeline.worker_death.then_some(pipeline.death),
            crash: pipeline.crash,
            outstanding: 0,
            to_come: pipeline.arrival.requests(),
            trial: SimulatedTrial::default(),
        };
        let submit = micros(pipeline.arrival.submit_s);
        for (n, start) in pipeline.arrival.starts().map(micros).enumerate() {
            simulator.trial.starts.push(start);
            simulator.events.at(start + submit, Event::Arrive(n as u32));
        }
        simulator.trial.packets.resize(simulator.trial.starts.len(), Vec::new());
        for worker in 0..pipeline.workers {
            let phase = micros(simulator.rng.fraction() * pipeline.poll_s);
            // Random phases: workers that all poll at the same time would take jobs in bursts, which no real pool
            // does.
            simulator.events.at(phase, Event::Poll(simulator.life(worker)));
            simulator.plan_crash(worker);
        }
        simulator
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(request) => {
                self.to_come -= 1;
                self.make(0, Job { request, stage: 0, source: 0, packets: 0 });
            }
            // Events of an earlier life of a worker are still in the queue after it died, and must not act on its
            // successor.
            Event::Poll(life) if self.is_now(life) => self.look(life.worker),
            Event::Done(life) if self.is_now(life) => self.done(life.worker),
            Event::Crash(life) if self.is_now(life) => self.crash(life.worker),
            Event::Poll(_) | Event::Done(_) | Event::Crash(_) => {}
            Event::Restart(worker) => {
                self.workers[worker as usize] = Worker::Idle;
                self.plan_crash(worker);
                self.look(worker);
            }
        }
    }

    fn life(&self, worker: u32) -> WorkerLife {
        WorkerLife { worker, number: self.lives[worker as usize] }
    }

    fn is_now(&self, life: WorkerLife) -> bool {
        self.life(life.worker) == life
    }

    fn plan_crash(&mut self, worker: u32) {
        if let Some(crash) = self.crash {
            let after = micros(self.rng.exponential(crash.every_s));
            self.events.after(after, Event::Crash(self.life(worker)));
        }
    }

    /// Ends a worker together with its current job.
    fn crash(&mut self, worker: u32) {
        let Some(crash) = self.crash else { return };
        self.trial.deaths += 1;
        // The queue has handed the job out already, so that no other worker takes it.
        if matches!(self.workers[worker as usize], Worker::Busy { .. }) {
            self.outstanding -= 1;
            self.trial.lost += 1;
        }
        self.die(worker);
        self.events.after(micros(crash.restart_s), Event::Restart(worker));
    }

    fn die(&mut self, worker: u32) {
        self.workers[worker as usize] = Worker::Dead;
        // All events planned for this life are void from now on, and are skipped when due.
        self.lives[worker as usize] += 1;
    }

    /// Creates the jobs of a stage from the previous job.
    fn make(&mut self, stage: usize, before: Job) {
        let Some(step) = self.steps.get(stage) else {
            // After the last stage a job's packets reach the user.
            let now = self.events.now();
            let packets = &mut self.trial.packets[before.request as usize];
            packets.extend(std::iter::repeat_n(now, before.packets as usize));
            return;
        };
        let patience = match (step.timeout, step.deadline) {
            // `check` refuses a stage with both limits, so the order of these two does not matter.
            (Some(limit), _) => JobTimeout::SinceCreation(limit),
            (None, Some(limit)) => {
                let begun = self.trial.starts[before.request as usize];
                JobTimeout::Deadline(Duration::from_micros(begun + limit))
            }
            (None, None) => JobTimeout::Endless,
        };
        let copies = match step.each {
            JobUnit::Job => 1,
            JobUnit::Source => self.suppliers.len() as u32,
            JobUnit::Packet => before.packets,
        };
        let (each, class, created) = (step.each, step.class, Duration::from_micros(self.events.now()));
        for copy in 0..copies {
            let mut job = Job { stage: stage as u8, ..before };
            match each {
                JobUnit::Job => {}
                JobUnit::Source => job.source = copy as u16,
                JobUnit::Packet => job.packets = 1,
            }
            if self.queues.push(class, created, patience, job).is_ok() {
                self.outstanding += 1;
            }
        }
    }

    /// Lets a free worker take a job.
    fn look(&mut self, worker: u32) {
        match self.queues.take(Duration::from_micros(self.events.now())) {
            None => {
                self.workers[worker as usize] = Worker::Idle;
                self.events.after(self.poll, Event::Poll(self.life(worker)));
            }
            Some(Dequeued::Due(job)) => self.begin(worker, job),
            Some(Dequeued::Expired(_)) => self.drop(worker),
        }
    }

    fn begin(&mut self, worker: u32, job: Job) {
        let step = &self.steps[job.stage as usize];
        let mut time = step.service.draw(&mut self.rng);
        let mut calls_left = 0;
        if step.calls_source {
            let supplier = &self.suppliers[job.source as usize];
            if supplier.calls > 0 {
                self.trial.calls += 1;
                time += supplier.call.draw(&mut self.rng);
                calls_left = supplier.calls - 1;
            }
        }
        self.trial.held += time;
        self.workers[worker as usize] = Worker::Busy { job, calls_left };
        self.events.after(time, Event::Done(self.life(worker)));
    }

    fn done(&mut self, worker: u32) {
        let Worker::Busy { mut job, calls_left } = self.workers[worker as usize] else { return };
        let stage = job.stage as usize;
        let mut goes_on = true;
        if self.steps[stage].calls_source {
            let supplier = &self.suppliers[job.source as usize];
            // Jobs that result from one call: each call of a source creates its own jobs of the next stage.
            job.packets = supplier.packets;
            goes_on = supplier.calls > 0;
        }
        if goes_on {
            self.make(stage + 1, job);
        }
        if calls_left > 0 {
            let time = self.suppliers[job.source as usize].call.draw(&mut self.rng);
            self.trial.calls += 1;
            self.trial.held += time;
            // The worker keeps the job for all calls of a source, while the results of each call continue at once.
            self.workers[worker as usize] = Worker::Busy { job, calls_left: calls_left - 1 };
            self.events.after(time, Event::Done(self.life(worker)));
            return;
        }
        self.outstanding -= 1;
        self.trial.jobs += 1;
        self.look(worker);
    }

    /// Drops a job whose patience ended; its worker may die of it.
    fn drop(&mut self, worker: u32) {
        self.outstanding -= 1;
        self.trial.dropped += 1;
        if let Some(death) = self.death.filter(|death| self.rng.chance(death.probability)) {
            self.trial.deaths += 1;
            self.die(worker);
            if !self.rng.chance(death.for_good) {
                self.events.after(micros(death.restart_s), Event::Restart(worker));
            }
            return;
        }
        self.workers[worker as usize] = Worker::Idle;
        self.events.after(self.drop, Event::Poll(self.life(worker)));
    }
}

fn suppliers(pipeline: &Pipeline) -> Vec<Supplier> {
    let mut out = Vec::new();
    for source in &pipeline.source {
        for i in 0..source.count {
            let place = if source.count > 1 { f64::from(i) / f64::from(source.count - 1) * 2.0 - 1.0 } else { 0.0 };
            let mean_s = source.call.mean_s * (1.0 + source.call.spread * place);
            let call = Times { mean_s, cv: source.call.cv };
            out.push(Supplier { calls: source.calls, call, packets: source.packets });
        }
    }
    out
}
