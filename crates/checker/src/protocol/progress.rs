//! Why nothing goes on for ever: every action but a power cut lowers the work that is left.
//!
//! The work left is a number that [`Model::work_left`] reads off a state. The exploration checks of every action that
//! it gets smaller (a power cut takes one from those that may come). So every run ends, and it ends in a state without
//! a way on. If all of those are at rest, then from every reachable state every run, whatever is chosen in it, serves
//! every request that waits: more than that some run does. When PM has declared a failure every run still ends, and
//! need not end at rest.

use fencepost_sim::switch::persist_buffer::state::{EntryState, Operation, Phase};
use fencepost_sim::switch::persist_buffer::{Packet, State};

use super::model::Model;
use super::world::{ReadPlace, World, WritePlace};

/// What lies between an entry and its being freed, one below the other: acknowledgement taken, at the switch, on the
/// link.
const FREE: i64 = 1;
const ACKNOWLEDGEMENT_INSIDE: i64 = 2;
const ACKNOWLEDGEMENT: i64 = 3;
/// A drain that PM has not taken.
const DRAIN_TO_PM: i64 = 5;
/// The rest of a write once its entry is valid: acknowledging it, and retiring the entry that it replaces.
const WRITE_REST: i64 = 8;
/// The steps of a write before.
const WRITE_STEPS: i64 = 8;
/// A read that was taken, parked, waits in the input, and is on the way to another buffer.
const READ: i64 = 8;

/// Weights of one persist buffer.
#[derive(Clone, Copy)]
struct Weights {
    drain: i64,
    dirty: i64,
    write: i64,
}

impl Weights {
    /// Those of persist buffer number `buffer`; a drain of the one above is a write to the one below.
    const fn of(buffer: usize) -> Weights {
        let drain = if buffer == 0 { DRAIN_TO_PM } else { Weights::of(buffer - 1).write + 1 };
        let dirty = drain + 6;
        Weights { drain, dirty, write: dirty + WRITE_REST + WRITE_STEPS + ACKNOWLEDGEMENT + 4 }
    }

    /// That of all writes at a host: it may enter at any buffer or, without one, at PM.
    const fn of_issue(buffers: usize) -> i64 {
        8 + if buffers == 0 { 2 } else { Weights::of(buffers - 1).write }
    }
}

/// Of the first persist buffer and the one above it.
const WEIGHTS: [Weights; 2] = [Weights::of(0), Weights::of(1)];

impl<const S: usize, const I: usize> Model<S, I> {
    /// The work left: what every action but a power cut makes smaller.
    pub fn work_left<const B: usize>(&self, world: &World<B, S, I>) -> i64 {
        let addresses = usize::from(self.bounds.addresses);
        let mut work = i64::from(world.duplicates_left) * (ACKNOWLEDGEMENT + 1) + i64::from(!world.pm_has_failed);
        for host in &world.hosts[..usize::from(self.bounds.hosts)] {
            work += i64::from(host.writes_left) * Weights::of_issue(B);
            work += i64::from(host.reads_left) * (READ * (B as i64 + 2));
            work += host.writes[..addresses].iter().map(|write| write_work(*write, B)).sum::<i64>();
            work += match host.read {
                ReadPlace::None | ReadPlace::Inside { .. } => 0,
                ReadPlace::Travelling { hops } => READ * (B as i64 + 1) + i64::from(hops),
                ReadPlace::Below { buffer } => READ * i64::from(buffer) + 1,
            };
        }
        for (buffer, (state, link)) in world.buffers.iter().zip(&world.links).enumerate() {
            let weights = WEIGHTS[buffer];
            let early = link.drains.messages().iter().filter(|drain| drain.is_acknowledged).count() as i64;
            work += link.drains.len() as i64 * weights.drain - early * (ACKNOWLEDGEMENT + 1);
            work += link.acknowledgements.len() as i64 * ACKNOWLEDGEMENT;
            work += buffer_work(state, buffer, weights);
        }
        work
    }

    /// Whether nothing is under way: no request, no message, no piece of work. Dirty entries may be there.
    pub fn is_at_rest<const B: usize>(&self, world: &World<B, S, I>) -> bool {
        !waits(world) && !is_under_way(world)
    }

    /// Whether a run may end here: at rest, or with a PM that has failed, for which requests may wait for ever.
    pub fn may_end_in<const B: usize>(&self, world: &World<B, S, I>) -> bool {
        world.pm_has_failed || self.is_at_rest(world)
    }

    /// Whether some message or piece of work is under way, besides requests that wait inside a persist buffer.
    pub fn has_anything_under_way<const B: usize>(&self, world: &World<B, S, I>) -> bool {
        is_under_way(world)
    }
}

fn write_work(write: WritePlace, buffers: usize) -> i64 {
    match write {
        WritePlace::None | WritePlace::Inside => 0,
        WritePlace::Travelling { hops, .. } => Weights::of_issue(buffers) - 8 + i64::from(hops),
        WritePlace::Written { .. } => 1,
    }
}

fn buffer_work<const S: usize, const I: usize>(state: &State<S, I>, buffer: usize, weights: Weights) -> i64 {
    let read = READ * (buffer as i64 + 1);
    let request = |packet: &Packet| match packet {
        Packet::Write(_) => weights.write,
        Packet::Read(_) => read,
        Packet::Acknowledgement(_) => ACKNOWLEDGEMENT_INSIDE,
    };
    let entries: i64 = state
        .slots()
        .iter()
        .map(|slot| match slot.state {
            EntryState::Empty | EntryState::Clean => 0,
            EntryState::Dirty => weights.dirty,
            EntryState::Drain if slot.is_sent => 1,
            EntryState::Drain => weights.dirty - 1,
        })
        .sum();
    let operation = match state.operation {
        Operation::Idle => 0,
        Operation::Write { target, steps_done, .. } if !state.slot(target).is_occupied() => {
            weights.write - 2 - i64::from(steps_done)
        }
        Operation::Write { steps_done, .. } => WRITE_REST + ACKNOWLEDGEMENT - i64::from(steps_done),
        Operation::Retire { .. } | Operation::Free { .. } => FREE,
        Operation::Answer { .. } => read - 2,
        Operation::Drain { is_marked, .. } => -1 - i64::from(is_marked),
    };
    let parked = state.parked.as_ref().map_or(0, |packet| request(packet) - 1);
    entries + operation + parked + state.input.packets().iter().map(request).sum::<i64>()
}

/// Whether some request of a host has no answer.
fn waits<const B: usize, const S: usize, const I: usize>(world: &World<B, S, I>) -> bool {
    let waits = |host: &super::world::Host| {
        host.read != ReadPlace::None || host.writes.iter().any(|write| *write != WritePlace::None)
    };
    world.hosts.iter().any(waits)
}

fn is_under_way<const B: usize, const S: usize, const I: usize>(world: &World<B, S, I>) -> bool {
    world.links.iter().any(|link| !link.drains.is_empty() || !link.acknowledgements.is_empty())
        || world.buffers.iter().any(|state| {
            state.phase != Phase::Running
                || state.operation != Operation::Idle
                || state.input.acknowledgements() > 0
                || state.slots().iter().any(|slot| slot.is_sent)
        })
}
