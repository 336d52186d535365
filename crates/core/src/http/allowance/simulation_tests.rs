//! Simulates a service with an allowance, and machines that reboot and step their clocks. Requests
//! overtake one another; replies are late, lost, or show a wrong time; clients are killed. The
//! service's own count never passes the limit. The replies to token requests always have a date
//! here, right or wrong. `count` tests a service without dates.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;

use super::count::{Count, Terms};
use super::ledger::{Outcome, Permit, Reservation};
use super::tally::Tally;
use crate::clock::{BootTime, Moment, Reading};
use crate::test_kit::trials;

const LIMIT: u64 = 12;
const TERMS: Terms = Terms { limit: Some(LIMIT), resets: None };
const DAY: i64 = 86_400;
/// Maximum time in seconds that a request is under way.
const LONGEST: i64 = 500;

struct Machine {
    boot: BootTime,
    /// Its wall clock minus the true time, in seconds.
    off: i64,
}

/// A request on its way to the service.
struct Leaving {
    machine: usize,
    start: u128,
    reservation: Reservation,
    sent_at: i64,
    fate: u8,
}

struct World {
    random: Rng,
    /// Whether there is one machine, all clocks are right, and every reply has a date.
    is_calm: bool,
    /// The true time, in seconds.
    time: i64,
    /// The service's clock minus the true time.
    service_off: i64,
    stepped_at: i64,
    /// The wrong times in replies, minus the true time.
    lies: Vec<i64>,
    machines: Vec<Machine>,
    count: Count,
    served: BTreeMap<i64, u64>,
    /// Requests whose client was killed or learned nothing about the time, by day.
    undated: BTreeMap<i64, u64>,
    leaving: Vec<Leaving>,
    /// Replies under way, by the boot of their machine: a reboot kills its clients.
    under_way: Vec<(u128, Reservation, Outcome)>,
    starts: u128,
    /// Requests whose client was killed before they left.
    unsent: u64,
    /// Number of clock steps, including starts of a machine.
    steps: u64,
    /// The last count of each day.
    counted: BTreeMap<i64, u64>,
}

impl World {
    fn new(seed: u64, is_calm: bool) -> Self {
        let mut world = Self {
            random: Rng::with_seed(seed),
            is_calm,
            time: 20_000 * DAY,
            service_off: 0,
            stepped_at: 0,
            lies: Vec::new(),
            machines: Vec::new(),
            count: Count::default(),
            served: BTreeMap::new(),
            undated: BTreeMap::new(),
            leaving: Vec::new(),
            under_way: Vec::new(),
            starts: 0,
            unsent: 0,
            steps: 0,
            counted: BTreeMap::new(),
        };
        world.time += world.random.i64(0..DAY);
        for _ in 0..if is_calm { 1 } else { 2 } {
            let machine = world.started();
            world.machines.push(machine);
        }
        world
    }

    /// A machine that was just started. Its wall clock may be wrong.
    fn started(&mut self) -> Machine {
        self.starts += 1;
        let elapsed = Duration::from_secs(self.random.u64(..100));
        Machine { boot: BootTime { start: self.starts, elapsed }, off: self.offset() }
    }

    fn offset(&mut self) -> i64 {
        match self.random.u8(..6) {
            _ if self.is_calm => 0,
            0 => self.random.i64(-DAY..DAY),
            1 => -9_000 * DAY,
            2 => DAY,
            _ => 0,
        }
    }

    fn service(&self) -> i64 {
        self.time + self.service_off
    }

    fn now(&self, machine: usize) -> Moment {
        let Machine { boot, off } = self.machines[machine];
        Moment { wall: second(self.time + off), boot }
    }

    /// True one time in eight, unless the world is calm.
    fn rarely(&mut self) -> bool {
        !self.is_calm && self.random.u8(..8) == 0
    }

    fn pass(&mut self, seconds: i64) {
        self.time += seconds;
        for machine in &mut self.machines {
            machine.boot.elapsed += Duration::from_secs(seconds.unsigned_abs());
        }
    }

    /// The date of a reply: the truth, or a time that no other reply confirms.
    fn reading(&mut self, machine: usize) -> Reading {
        let lie = self.random.i64(-3 * DAY..3 * DAY);
        let lie = self.service() + lie;
        let mut shown =
            self.machines.iter().map(|machine| machine.off).chain(self.lies.iter().copied());
        let agrees = |off: i64| (self.time + off - lie).abs() < 60;
        let lies = !agrees(self.service_off) && !shown.any(agrees) && self.rarely();
        if lies {
            self.lies.push(lie - self.time);
        }
        let service = second(if lies { lie } else { self.service() });
        Reading { service, boot: self.machines[machine].boot }
    }

    /// Reads and writes the file, as each operation does.
    fn update<T>(&mut self, change: impl FnOnce(&mut Count) -> T) -> T {
        let text = serde_json::to_vec(&self.count).expect("a text");
        let mut count = serde_json::from_slice::<Count>(&text).expect("a count");
        assert_eq!(count, self.count);
        let outcome = change(&mut count);
        self.count = count;
        outcome
    }

    fn token(&mut self, machine: usize) {
        let (reading, now) = (self.reading(machine), self.now(machine));
        self.update(|count| count.observe(TERMS, reading, now));
    }

    /// Sends a data request as a client does: tokens are requested first if the time is unknown.
    fn request(&mut self, machine: usize) {
        for _ in 0..2 {
            let now = self.now(machine);
            if matches!(self.count.permit(TERMS, now, 0), Permit::Unknown { .. }) {
                self.token(machine);
            }
        }
        let now = self.now(machine);
        let Ok(reservation) = self.update(|count| count.reserve(TERMS, now, 0)) else { return };
        assert!(!reservation.asks);
        let fate = self.random.u8(..12);
        if fate == 0 {
            let now = self.now(machine);
            self.update(|count| count.settle(TERMS, &reservation, Outcome::Unsent, now));
            return;
        }
        // It may reach the service on the next day.
        if self.random.u8(..4) == 0 {
            let by = self.random.i64(0..40);
            self.pass(by);
        }
        let (start, sent_at) = (now.boot.start, self.time);
        self.leaving.push(Leaving { machine, start, reservation, sent_at, fate });
        if self.random.u8(..4) > 0 {
            self.reach(self.leaving.len() - 1);
        }
    }

    /// A request reaches the service, even if its client has ended.
    fn reach(&mut self, index: usize) {
        let Leaving { machine, start, reservation, fate, .. } = self.leaving.swap_remove(index);
        let day = self.service().div_euclid(DAY);
        if fate == 1 {
            self.unsent += 1;
        } else {
            *self.served.entry(day).or_default() += 1;
        }
        match fate {
            3 if !self.is_calm => self.under_way.push((start, reservation, Outcome::Lost)),
            4.. if self.machines[machine].boot.start == start => {
                let reading = Some(self.reading(machine)).filter(|_| !self.rarely());
                let outcome = Outcome::Replied { reading, granted: true };
                self.under_way.push((start, reservation, outcome));
            }
            // Killed: before it left, or after.
            _ => *self.undated.entry(day).or_default() += 1,
        }
    }

    /// Requests reach the service in any order, before this many seconds have passed.
    fn reach_before(&mut self, seconds: i64) {
        while let Some(late) =
            self.leaving.iter().position(|leaving| self.time - leaving.sent_at + seconds >= LONGEST)
        {
            self.reach(late);
        }
        if !self.leaving.is_empty() && self.random.bool() {
            let next = self.random.usize(..self.leaving.len());
            self.reach(next);
        }
    }

    /// Replies arrive, in any order.
    fn arrive(&mut self) {
        while !self.under_way.is_empty() {
            let next = self.random.usize(..self.under_way.len());
            let (start, reservation, outcome) = self.under_way.swap_remove(next);
            let machine = self.machines.iter().position(|machine| machine.boot.start == start);
            let Some(machine) = machine else {
                *self.undated.entry(self.service().div_euclid(DAY)).or_default() += 1;
                continue;
            };
            let now = self.now(machine);
            self.update(|count| count.settle(TERMS, &reservation, outcome, now));
            // A reply to the other machine overtook the first one after a boot.
            let doubtful = self.count.clock.doubtful;
            if matches!(outcome, Outcome::Replied { reading, .. } if reading == doubtful) {
                *self.undated.entry(self.service().div_euclid(DAY)).or_default() += 1;
            }
        }
    }
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

impl World {
    fn step(&mut self) {
        let machine = self.random.usize(..self.machines.len());
        match self.random.u8(..20) {
            0 => {
                // Often jump to the minute before midnight.
                let left = DAY - self.service().rem_euclid(DAY);
                let near = (left - self.random.i64(0..60)).max(0);
                let far = self.random.i64(0..5 * 3_600);
                let by = if self.random.bool() { near } else { far };
                self.reach_before(by);
                if self.is_calm {
                    self.arrive();
                }
                self.pass(by);
            }
            1 => {
                self.machines[machine].off = self.offset();
                self.steps += 1;
            }
            2 if self.random.bool() => {
                self.machines[machine] = self.started();
                self.steps += 1;
            }
            // Not while requests from before the last step are under way.
            3 if self.time - self.stepped_at > LONGEST && self.rarely() => {
                self.stepped_at = self.time;
                self.steps += 1;
                self.service_off += self.random.i64(0..2 * DAY);
            }
            4 => self.token(machine),
            _ => self.request(machine),
        }
        self.reach_before(100);
        if self.random.u8(..4) > 0 {
            self.arrive();
        } else if self.random.bool() {
            let by = self.random.i64(0..20);
            self.pass(by);
        }
    }
}

#[test]
fn b14_b15_b16_b17_b19_the_services_count_never_passes_the_limit() {
    let (mut most, mut twice, mut steps) = (0, 0, 0);
    for seed in 0..u64::from(trials(1_500)) {
        let mut world = World::new(seed, false);
        for step in 0..300 {
            world.step();
            if let Tally { since: Some(since), count } = world.count.requests {
                world.counted.insert(since.as_second().div_euclid(DAY), count);
            }
            for (day, served) in &world.served {
                most = most.max(*served);
                assert!(*served <= LIMIT, "seed {seed}, step {step}, day {day}: {served}");
            }
        }
        let served = |day| world.served.get(day).copied().unwrap_or(0);
        let counted = world.counted.iter();
        let too_many: u64 = counted.map(|(day, count)| count.saturating_sub(served(day))).sum();
        twice += too_many.saturating_sub(world.unsent + world.leaving.len() as u64);
        steps += world.steps;
    }
    assert!(twice < 2 * steps, "{twice} were counted twice at {steps} clock steps");
    assert!(most >= LIMIT, "the limit is reached");
}

#[test]
fn b6_b7_the_ledger_of_a_machine_counts_what_the_service_counts_and_no_more_than_those_killed() {
    let mut most = 0;
    for seed in 0..u64::from(trials(500)) {
        let mut world = World::new(seed, true);
        for step in 0..300 {
            world.step();
            let Some(since) = world.count.requests.since else { continue };
            let day = since.as_second().div_euclid(DAY);
            let of = |counts: &BTreeMap<i64, u64>, day| counts.get(&day).copied().unwrap_or(0);
            let (served, counted) = (of(&world.served, day), world.count.requests.count);
            let under_way = (world.leaving.len() + world.under_way.len()) as u64;
            // Requests killed around midnight may belong to either day, and to the next one too if
            // the machine was rebooted.
            let undated: u64 = (day - 3..=day + 1).map(|day| of(&world.undated, day)).sum();
            let most_counted = served + undated + under_way;
            let context = format!("seed {seed}, step {step}: {served} {counted} {undated}");
            assert!((served..=most_counted).contains(&counted), "{context}");
            most = most.max(counted - served);
        }
    }
    assert!(most > 3, "clients are killed");
}
