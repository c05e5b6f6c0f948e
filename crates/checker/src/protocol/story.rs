//! A counterexample in words: who does what, what the persist buffers and PM hold then, and what breaks.

use fencepost_sim::switch::persist_buffer::packet::{Action as Done, Output, RequestId, Write};
use fencepost_sim::switch::persist_buffer::state::{EntryState, Operation, Slot, SlotIndex};
use fencepost_sim::switch::persist_buffer::{Packet, State};

use super::action::{Action, SubStep, Way, Ways};
use super::canonical::permute_addresses;
use super::model::Model;
use super::packing::Packer;
use super::world::{ADDRESSES_MAX, Halves, ReadPlace, Requester, WHOLE, World, WritePlace, halves_of};
use crate::exploration::{Counterexample, Words};

/// The steps of a counterexample, in words.
pub fn tell<const B: usize, const S: usize, const I: usize, const K: usize>(
    model: &Model<S, I>,
    counterexample: &Counterexample<K>,
) -> Vec<String> {
    let mut world: World<B, S, I> = model.initial();
    let packer = Packer::new(model);
    let mut steps = Vec::new();
    for state in &counterexample.states[1..] {
        let (action, next) = follow(model, &packer, &world, state);
        let before = contents(&world, model.bounds.addresses);
        let after = contents(&next, model.bounds.addresses);
        let mut step = words_of(model, &world, action, &next);
        if before != after {
            step = format!("{step}\n{after}");
        }
        steps.push(step);
        world = next;
    }
    steps
}

/// The action that leads from `world` to something that behaves like `state`, and where it leads. Names stay: hosts,
/// addresses and slots keep the numbers that they have in `world`.
fn follow<const B: usize, const S: usize, const I: usize, const K: usize>(
    model: &Model<S, I>,
    packer: &Packer<B, S, I>,
    world: &World<B, S, I>,
    state: &Words<K>,
) -> (Action, World<B, S, I>) {
    let orders = address_orders(usize::from(model.bounds.addresses));
    let leads_there = |way: &&Way<B, S, I>| {
        orders.iter().any(|order| {
            let mut canonical = way.next;
            permute_addresses(&mut canonical, order);
            model.make_canonical(&mut canonical);
            packer.pack(&mut canonical).as_ref() == Some(state)
        })
    };
    let mut ways = Ways::default();
    model.each_next(world, &mut ways);
    let found = ways.iter().find(leads_there);
    found
        .map(|way| (way.action, way.next))
        .expect("some action leads there: states that behave alike have the same ways on")
}

/// All orders of so many addresses; the others keep their place.
fn address_orders(addresses: usize) -> Vec<[usize; ADDRESSES_MAX]> {
    let mut orders = vec![std::array::from_fn(|line| line)];
    for last in 1..addresses {
        let shorter = std::mem::take(&mut orders);
        for order in shorter {
            orders.extend((0..=last).map(|with| {
                let mut order: [usize; ADDRESSES_MAX] = order;
                order.swap(last, with);
                order
            }));
        }
    }
    orders
}

/// An address by its letter.
fn line_name(line: u64) -> char {
    (b'A' + line as u8) as char
}

fn halves_name(halves: u8) -> &'static str {
    match halves {
        WHOLE => "",
        1 => " (low half)",
        2 => " (high half)",
        _ => " (nothing)",
    }
}

fn versions_name(versions: Halves) -> String {
    match versions {
        [low, high] if low == high => format!("v{low}"),
        [low, high] => format!("v{low}/v{high}"),
    }
}

/// What the persist buffers and PM hold, on a line each.
fn contents<const B: usize, const S: usize, const I: usize>(world: &World<B, S, I>, addresses: u8) -> String {
    let mut lines: Vec<String> = world
        .buffers
        .iter()
        .enumerate()
        .map(|(buffer, state)| format!("{}: {}", buffer_name(buffer, B), entries(state)))
        .collect();
    let held = (0..addresses)
        .map(|line| format!("{} {}", line_name(line.into()), versions_name(world.memory[usize::from(line)])));
    let pm = if world.pm_has_failed { "PM (failed)" } else { "PM" };
    lines.push(format!("{pm}: {}", held.collect::<Vec<_>>().join(", ")));
    lines.join("; ")
}

fn buffer_name(buffer: usize, buffers: usize) -> String {
    match (buffers, buffer) {
        (1, _) => "persist buffer".into(),
        (_, 0) => "persist buffer next to PM".into(),
        _ => "persist buffer next to the hosts".into(),
    }
}

fn entries<const S: usize, const I: usize>(state: &State<S, I>) -> String {
    let of_slot = |(index, slot): (usize, &Slot)| {
        let sent = if slot.is_sent { ", sent" } else { "" };
        let torn = if slot.data.is_torn { ", torn" } else { "" };
        let halves = halves_name(halves_of(slot.data.mask));
        let (line, version) = (line_name(slot.line.0), slot.data.version.0);
        format!("[{index}] {:?}{sent} {line} v{version}{halves}{torn}", slot.state)
    };
    let valid = state.slots().iter().enumerate().filter(|(_, slot)| slot.is_valid());
    let entries: Vec<String> = valid.map(of_slot).collect();
    if entries.is_empty() { "empty".into() } else { entries.join(", ") }
}

fn words_of<const B: usize, const S: usize, const I: usize>(
    model: &Model<S, I>,
    world: &World<B, S, I>,
    action: Action,
    next: &World<B, S, I>,
) -> String {
    match action {
        Action::IssueWrite { host, line, halves } => {
            let (name, part) = (line_name(line.into()), halves_name(halves));
            let place = write_place(next, model.buffers_of(host), host, line);
            format!("host {host} writes {name}{part}; {place}")
        }
        Action::IssueRead { host, line } => {
            format!("host {host} reads {}; {}", line_name(line.into()), read_place(world, next, host))
        }
        Action::WriteHops { host, line } => {
            let place = write_place(next, model.buffers_of(host), host, line);
            format!("host {host}'s write of {} goes on; {place}", line_name(line.into()))
        }
        Action::ReadHops { host } | Action::ReadGoesDown { host } => {
            let line = line_name(world.hosts[host].read_line.into());
            format!("host {host}'s read of {line} goes on; {}", read_place(world, next, host))
        }
        Action::Acknowledge { host, line } => {
            format!("PM acknowledges host {host}'s write of {}", line_name(line.into()))
        }
        Action::Step { buffer, has_room, drains_ahead, exchange } => {
            let mut copy = *world;
            if let Some((one, other)) = exchange {
                super::canonical::exchange_slots(&mut copy, buffer, one.into(), other.into());
            }
            let mut pieces = Vec::new();
            model.step(&mut copy, buffer, has_room, drains_ahead, &mut model.watch(), Some(&mut pieces));
            let told: Vec<String> =
                pieces.iter().map(|(before, after, piece)| piece_in_words(before, after, piece)).collect();
            format!("{}: {}", buffer_name(buffer, B), told.join(", "))
        }
        Action::TakeDrain { buffer, index } => {
            let drain = world.links[buffer].drains.messages()[index];
            let (line, version) = (line_name(drain.line.into()), drain.version);
            match buffer {
                0 => {
                    let acknowledged = next.links[0].acknowledgements.len() > world.links[0].acknowledgements.len();
                    let word = if acknowledged { " and acknowledges it" } else { "" };
                    format!("PM takes {line} v{version} (from slot {}){word}", drain.entry)
                }
                _ => format!("{line} v{version} (from slot {}) reaches the switch next to PM", drain.entry),
            }
        }
        Action::AcknowledgeEarly { index } => {
            let drain = world.links[0].drains.messages()[index];
            format!("PM acknowledges {} v{} before it holds it", line_name(drain.line.into()), drain.version)
        }
        Action::DeliverAcknowledgement { buffer, index } => {
            let entry = world.links[buffer].acknowledgements.messages()[index].entry;
            format!("the acknowledgement for slot {entry} reaches the {}", buffer_name(buffer, B))
        }
        Action::Repeat { index } => {
            format!("PM acknowledges slot {} a second time", world.links[0].acknowledgements.messages()[index].entry)
        }
        Action::DeclareFailure { .. } => "PM declares its failure: it takes and answers nothing more".into(),
        Action::Drop { index } => {
            let drain = world.links[0].drains.messages()[index];
            let (line, version) = (line_name(drain.line.into()), drain.version);
            let acknowledged = next.links[0].acknowledgements.len() > world.links[0].acknowledgements.len();
            let word = if acknowledged { ", and it is acknowledged all the same" } else { "" };
            format!("PM, which has failed, drops {line} v{version} (from slot {}){word}", drain.entry)
        }
        Action::PowerCut { .. } => {
            let under_way = next.links.first().map_or(0, |link| link.drains.len());
            match under_way {
                0 => "power is cut; what was on its way is lost; power comes back".into(),
                count => format!("power is cut and comes back; {count} drains from before are still on their way"),
            }
        }
    }
}

fn write_place<const B: usize, const S: usize, const I: usize>(
    next: &World<B, S, I>,
    buffers: usize,
    host: usize,
    line: u8,
) -> String {
    match next.hosts[host].writes[usize::from(line)] {
        WritePlace::Travelling { hops, .. } => format!("it has {hops} hops to go"),
        WritePlace::Written { version, .. } => format!("PM holds it as v{version}"),
        WritePlace::None => "it is done".into(),
        WritePlace::Inside => {
            let request = Requester::Host { host, line }.id();
            let input = next.buffers[buffers - 1].input.packets();
            let version = input.iter().find_map(|packet| match packet {
                Packet::Write(write) if write.request == request => Some(write.version.0),
                _ => None,
            });
            format!("it is in the input of the {} as v{}", buffer_name(buffers - 1, B), version.unwrap_or_default())
        }
    }
}

fn read_place<const B: usize, const S: usize, const I: usize>(
    world: &World<B, S, I>,
    next: &World<B, S, I>,
    host: usize,
) -> String {
    match next.hosts[host].read {
        ReadPlace::None => {
            let line = usize::from(world.hosts[host].read_line);
            format!("PM answers with {}", versions_name(next.memory[line]))
        }
        ReadPlace::Travelling { hops } => format!("it has {hops} hops to go"),
        ReadPlace::Inside { buffer } => format!("it is in the input of the {}", buffer_name(buffer.into(), B)),
        ReadPlace::Below { buffer } => {
            let line = line_name(next.hosts[host].read_line.into());
            format!("the {} has no {line} and passes it on", buffer_name(buffer.into(), B))
        }
    }
}

fn requester(request: RequestId) -> String {
    match Requester::of(request) {
        Requester::Host { host, .. } => format!("host {host}"),
        Requester::Drain { entry, .. } => format!("slot {entry} of the other buffer"),
    }
}

fn write_name(write: &Write) -> String {
    let part = halves_name(halves_of(write.mask));
    format!("{}'s write of {} v{}{part}", requester(write.request), line_name(write.line.0), write.version.0)
}

fn piece_in_words<const S: usize, const I: usize>(
    before: &State<S, I>,
    after: &State<S, I>,
    piece: &SubStep,
) -> String {
    match (piece.done, after.operation) {
        (Done::Allocating | Done::Renewing, Operation::Write { write, target, .. }) => {
            format!("takes {}; slot {} is to hold it", write_name(&write), target.0)
        }
        (Done::Coalescing, Operation::Write { write, target, replaced, .. }) => match replaced {
            Some(old) => format!("takes {}, to be merged with slot {} in slot {}", write_name(&write), old.0, target.0),
            None => format!("takes {}, to be merged into slot {}", write_name(&write), target.0),
        },
        (Done::Hit, Operation::Answer { request, slot }) => {
            format!("takes {}'s read; slot {} is to answer it", requester(request), slot.0)
        }
        (Done::Missed, _) => "takes a read that no entry answers and passes it on".into(),
        (Done::Parked, _) => match after.parked {
            Some(Packet::Write(write)) => format!("parks {}: no entry is free", write_name(&write)),
            _ => "parks a read until its line is drained".into(),
        },
        (Done::Freeing, Operation::Free { slot }) => {
            format!("takes an acknowledgement that is to free slot {}", slot.0)
        }
        (Done::Ignored, _) => "takes an acknowledgement of something that is over, and ignores it".into(),
        (Done::Draining, Operation::Drain { slot, .. }) => format!("is to drain slot {}", slot.0),
        _ => continued_in_words(before, after, piece),
    }
}

fn continued_in_words<const S: usize, const I: usize>(
    before: &State<S, I>,
    after: &State<S, I>,
    piece: &SubStep,
) -> String {
    match (piece.operation, piece.output) {
        (Operation::Write { write, .. }, Some(Output::Completed(_))) => format!("acknowledges {}", write_name(&write)),
        (Operation::Write { target, .. }, _) => slot_in_words(before, after, target),
        (Operation::Retire { slot }, _) => format!("makes slot {}, whose content is replaced, Empty", slot.0),
        (Operation::Answer { request, slot }, Some(Output::Answered(_, data))) => {
            let part = if data.mask.is_full() { "" } else { ", a part of a line," };
            format!("answers {} from slot {} with v{}{part}", requester(request), slot.0, data.version.0)
        }
        (Operation::Free { slot }, _) => format!("makes slot {} {:?}", slot.0, after.slot(slot).state),
        (Operation::Drain { slot, is_marked: false }, _) => format!("marks slot {} Drain", slot.0),
        (Operation::Drain { slot, is_marked: true }, _) => {
            let freed = match after.slot(slot) {
                still if still.is_occupied() => String::new(),
                freed => format!(", and makes it {:?}", freed.state),
            };
            format!("sends slot {}{freed}", slot.0)
        }
        _ => "goes on".into(),
    }
}

/// What a step of a write does to its slot.
fn slot_in_words<const S: usize, const I: usize>(
    before: &State<S, I>,
    after: &State<S, I>,
    target: SlotIndex,
) -> String {
    let (old, new) = (before.slot(target), after.slot(target));
    let what = if old.state != new.state && new.state == EntryState::Dirty {
        "is marked Dirty: it is an entry"
    } else if old.generation != new.generation {
        "gets its tag"
    } else if new.data.is_torn {
        "gets the first part of the data"
    } else {
        "gets the rest of the data"
    };
    format!("slot {} {what}", target.0)
}
