//! A service, its allowance, and machines whose clocks are stepped and started anew; replies that lie
//! about the time, that are late, that are lost; clients that are killed. The service's own count
//! never passes the limit. The replies of token requests have a date here, right or wrong; a service
//! without any is asked, which `count` tests.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;

use super::count::{Count, Terms};
use super::outcome::{Outcome, Permit, Reservation};
use super::text;
use crate::clock::{BootTime, Moment, Reading};

const LIMIT: u64 = 12;
const TERMS: Terms = Terms { limit: Some(LIMIT), resets: None };
const DAY: i64 = 86_400;

struct Machine {
    boot: BootTime,
    /// Its wall clock less the true time, in seconds.
    off: i64,
}

struct World {
    random: Rng,
    /// The true time, in seconds, by which all clocks pass.
    time: i64,
    /// The service's clock less the true time.
    service_off: i64,
    machines: Vec<Machine>,
    count: Count,
    served: BTreeMap<i64, u64>,
    /// Requests under way, by the start of their machine: another start kills their clients.
    under_way: Vec<(u128, Reservation, Outcome)>,
    starts: u128,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            random: Rng::with_seed(seed),
            time: 20_000 * DAY,
            service_off: 0,
            machines: Vec::new(),
            count: Count::default(),
            served: BTreeMap::new(),
            under_way: Vec::new(),
            starts: 0,
        };
        world.time += world.random.i64(0..DAY);
        for _ in 0..2 {
            let machine = world.started();
            world.machines.push(machine);
        }
        world
    }

    /// A machine that was just started, with a wall clock that is right or not.
    fn started(&mut self) -> Machine {
        self.starts += 1;
        let elapsed = Duration::from_secs(self.random.u64(..100));
        Machine { boot: BootTime { start: self.starts, elapsed }, off: self.offset() }
    }

    fn offset(&mut self) -> i64 {
        match self.random.u8(..6) {
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

    fn pass(&mut self, seconds: i64) {
        self.time += seconds;
        for machine in &mut self.machines {
            machine.boot.elapsed += Duration::from_secs(seconds.unsigned_abs());
        }
    }

    /// The date of a reply: the truth, or what no other reply confirms.
    fn reading(&mut self, machine: usize) -> Reading {
        let lie = self.random.i64(-3 * DAY..3 * DAY);
        let lie = self.service() + lie;
        let mut right = self.machines.iter().map(|machine| self.time + machine.off);
        let agrees = |time: i64| (time - lie).abs() < 60;
        let lies = !agrees(self.service()) && !right.any(agrees) && self.random.u8(..8) == 0;
        let service = second(if lies { lie } else { self.service() });
        Reading { service, boot: self.machines[machine].boot }
    }

    /// Reads and writes the file, as each operation does.
    fn update<T>(&mut self, change: impl FnOnce(&mut Count) -> T) -> T {
        let text = text::write(&self.count, "plant");
        let mut count = text::read(text.as_bytes()).expect("a ledger").count;
        assert_eq!(count, self.count);
        let outcome = change(&mut count);
        self.count = count;
        outcome
    }

    fn token(&mut self, machine: usize) {
        let (reading, now) = (self.reading(machine), self.now(machine));
        self.update(|count| count.observe(TERMS, reading, now));
    }

    /// A data request as the client sends it: where nothing is known, tokens are requested first.
    fn request(&mut self, machine: usize) {
        for _ in 0..2 {
            let now = self.now(machine);
            if matches!(self.count.permit(TERMS, now, 0), Permit::Unknown { .. }) {
                self.token(machine);
            }
        }
        let now = self.now(machine);
        let Ok(reservation) = self.update(|count| count.reserve(TERMS, now, 0)) else { return };
        // It may reach the service on the next day.
        if self.random.u8(..4) == 0 {
            let by = self.random.i64(0..40);
            self.pass(by);
        }
        let (day, now) = (self.service().div_euclid(DAY), self.now(machine));
        let fate = self.random.u8(..12);
        if fate == 0 {
            self.update(|count| count.settle(TERMS, &reservation, Outcome::Unsent, now));
            return;
        }
        assert!(!reservation.asks);
        if fate != 1 {
            *self.served.entry(day).or_default() += 1;
        }
        let start = now.boot.start;
        match fate {
            // Killed: before it left, or after.
            1 | 2 => {}
            3 => self.under_way.push((start, reservation, Outcome::Lost)),
            _ => {
                let reading = Some(self.reading(machine)).filter(|_| self.random.u8(..8) > 0);
                let outcome = Outcome::Replied { reading, granted: true };
                self.under_way.push((start, reservation, outcome));
            }
        }
    }

    /// Replies arrive, in any order.
    fn arrive(&mut self) {
        while !self.under_way.is_empty() {
            let next = self.random.usize(..self.under_way.len());
            let (start, reservation, outcome) = self.under_way.swap_remove(next);
            let machine = self.machines.iter().position(|machine| machine.boot.start == start);
            let Some(machine) = machine else { continue };
            let now = self.now(machine);
            self.update(|count| count.settle(TERMS, &reservation, outcome, now));
        }
    }
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

#[test]
fn b14_b15_b16_b17_b19_the_services_count_never_passes_the_limit() {
    let mut most = 0;
    for seed in 0..800 {
        let mut world = World::new(seed);
        for step in 0..300 {
            let machine = world.random.usize(..2);
            match world.random.u8(..20) {
                0 => {
                    // Often to the minute before midnight.
                    let left = DAY - world.service().rem_euclid(DAY);
                    let near = (left - world.random.i64(0..60)).max(0);
                    let far = world.random.i64(0..5 * 3_600);
                    let by = if world.random.bool() { near } else { far };
                    world.pass(by);
                }
                1 => world.machines[machine].off = world.offset(),
                2 if world.random.bool() => world.machines[machine] = world.started(),
                3 if world.random.u8(..8) == 0 => {
                    world.service_off += world.random.i64(0..2 * DAY);
                }
                4 => world.token(machine),
                _ => world.request(machine),
            }
            if world.random.u8(..4) > 0 {
                world.arrive();
            } else if world.random.bool() {
                let by = world.random.i64(0..20);
                world.pass(by);
            }
            for (day, served) in &world.served {
                most = most.max(*served);
                assert!(*served <= LIMIT, "seed {seed}, step {step}, day {day}: {served}");
            }
        }
    }
    assert!(most >= LIMIT, "the limit is reached");
}
