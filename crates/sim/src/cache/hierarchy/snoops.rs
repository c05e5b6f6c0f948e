//! What home agents and the caches of a socket say to each other, where a host has several.

use super::writes::{Carries, LatencyOrigin, PendingWrite, free_slot};
use super::{Departure, Hierarchy};
use crate::cache::array::State;
use crate::cache::mshr::Waiters;
use fencepost_isa::micro_op::Flush;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Cause, Message, Opcode, Stage, Tag};

impl Hierarchy {
    /// Whether other sockets may have a line in a newer version, or in the same: they have not if it is owned here.
    pub(super) fn may_be_elsewhere(&self, line: LineAddress) -> bool {
        self.is_one_of_several && self.held(line).is_none_or(|entry| entry.state == State::Shared)
    }

    /// Does what a home agent's grant says; gives where the line lies in the last level. None if the right to write a
    /// copy came when it had been dropped.
    pub(super) fn granted(&mut self, message: &Message, line: LineAddress, now: u64) -> Option<usize> {
        let last = self.shared.len() - 1;
        let state = match message.opcode {
            Opcode::GrantShared | Opcode::GrantForwarded => State::Shared,
            Opcode::GrantModified => State::Modified,
            _ => State::Exclusive,
        };
        let comes_modified = message.opcode == Opcode::GrantModified;
        if let Some(in_last) = self.find_held(line) {
            let entry = self.shared[last].array.line_mut(in_last);
            entry.state = entry.state.max(state);
            entry.is_contended |= comes_modified;
            if message.opcode != Opcode::GrantUpgrade {
                entry.update(message.version, now);
            }
            return Some(in_last);
        }
        if message.opcode == Opcode::GrantUpgrade {
            return None;
        }
        let in_last = self.enter(line, state, message.version, now);
        self.shared[last].array.line_mut(in_last).is_contended = comes_modified;
        Some(in_last)
    }

    /// Does what a snoop says, and answers.
    pub fn snoop(&mut self, mut message: Message, now: u64) {
        let line = message.line;
        let last = self.shared.len() - 1;
        let cached = self.held(line).map(|entry| entry.version);
        let (newest, snooped) = match message.opcode {
            Opcode::SnoopShare => self.share(line),
            _ => self.collect(line, None, false),
        };
        let lines = self.writes.iter().flatten().filter(|write| write.line == line && write.carries == Carries::Line);
        let written = lines.map(|write| (write.version, write.departs)).max();
        let (version, stored) = newest.unwrap_or((Version(0), now));
        message.opcode = match (newest, written) {
            (_, Some(_)) => Opcode::SnoopedInWriteBack,
            (Some(_), None) => Opcode::SnoopedDirty,
            (None, None) => Opcode::SnoopedNothing,
        };
        let (in_write, departs) = written.unwrap_or_default();
        message.version = version.max(cached.unwrap_or_default()).max(in_write);
        self.stats.snoops += u64::from(snooped);
        let looked_up = now + self.shared[last].latency + if snooped { self.snoop } else { 0 };
        let cycle = looked_up.max(stored).max(departs);
        message.stack.charge(Stage::Cache, self.time_of(cycle));
        self.departures.push(Departure { cycle, message });
    }

    /// Takes the right to write a line away from all cores and from this socket.
    pub(super) fn share(&mut self, line: LineAddress) -> (Option<(Version, u64)>, bool) {
        let last = self.shared.len() - 1;
        let Some(index) = self.shared[last].array.find(line) else { return (self.share_from_last(line), false) };
        let entry = *self.shared[last].array.line(index);
        let asked = if entry.is_owned { entry.sharers } else { 0 };
        for core in (0..self.l1d.len()).filter(|core| asked & (1 << core) != 0) {
            self.snoop_core(core, line, false);
        }
        let entry = *self.shared[last].array.line(index);
        for copy in self.shared.iter_mut().filter_map(|level| level.array.get_mut(line)) {
            (copy.state, copy.is_owned) = (State::Shared, false);
        }
        ((entry.state == State::Modified).then_some((entry.version, entry.ready)), asked != 0)
    }

    /// Says in a write whether the flush that made it has thrown the line out.
    pub(super) fn name_flush(&mut self, slot: usize, flush: Flush) {
        if !self.is_one_of_several {
            return;
        }
        let opcode = if self.keeps_line(flush) { Opcode::WriteCleaned } else { Opcode::WriteFlushed };
        let sent = self.departures.iter_mut().rev().find(|departure| departure.message.tag == Tag(slot as u32));
        sent.expect("it was just made").message.opcode = opcode;
    }

    /// Asks the home agent to write a line back from wherever it is dirty; gives the slot, as of a write.
    pub(super) fn ask_to_flush(&mut self, line: LineAddress, flush: Flush, origin: LatencyOrigin, cycle: u64) -> usize {
        let departs = self.behind_writes(line, cycle);
        self.writes_sent += 1;
        let pending = PendingWrite {
            line,
            version: self.written.get(line.0),
            sequence: self.writes_sent,
            departs,
            acknowledge: Waiters::default(),
            carries: Carries::Nothing,
        };
        let slot = free_slot(&mut self.writes, pending);
        self.writes_under_way += 1;
        let mut message = Message::read(line, Tag(slot as u32), Cause::Flush, self.time_of(origin.begun));
        message.opcode = if self.keeps_line(flush) { Opcode::CleanLine } else { Opcode::FlushLine };
        message.stack.charge(Stage::Core, self.time_of(origin.looked_up));
        message.stack.charge(Stage::Cache, self.time_of(departs));
        self.departures.push(Departure { cycle: departs, message });
        slot
    }
}
