//! Writes to memory: flushes, non-temporal stores and write-backs, through the write buffers of the last level.

use super::coherence::Victim;
use super::{Acknowledged, Departure, Hierarchy, Requester, Served};
use crate::cache::mshr::Waiters;
use crate::cache::persist_sites;
use fencepost_isa::micro_op::Flush;
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Message, Opcode, Stage, Tag};

/// A flush or non-temporal store that waits for room among the write buffers.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockedWrite {
    Flush { by: Requester, line: LineAddress, flush: Flush, arrived: u64 },
    NonTemporal(WriteAround),
}

/// A non-temporal store that has to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteAround {
    pub by: Requester,
    pub line: LineAddress,
    pub mask: ByteMask,
    /// The cycle in which it came.
    pub arrived: u64,
}

/// When a request came to where its time is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatencyOrigin {
    /// The cycle in which its core issued it; for what no core asked for, that in which it came to be.
    pub begun: u64,
    /// The cycle in which the last level had been looked up for it.
    pub looked_up: u64,
}

/// A write that has left and is not complete.
#[derive(Clone, Debug)]
pub(super) struct PendingWrite {
    pub line: LineAddress,
    pub version: Version,
    /// Its place among all writes.
    pub sequence: u64,
    /// The cycle in which it leaves.
    pub departs: u64,
    pub acknowledge: Waiters<Requester>,
    pub carries: Carries,
}

/// What a write that is under way carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carries {
    /// The line as it was in the caches: a snoop has to be told so until the write is complete.
    Line,
    /// What a non-temporal store has written.
    Store,
    /// Nothing: a home agent is to write what another socket has.
    Nothing,
}

impl Hierarchy {
    /// A write is complete: adds the cores whose flush or non-temporal store this ends to `acknowledged`, and requests
    /// that had waited for room to `served`.
    pub fn write_completed(
        &mut self,
        message: &Message,
        now: u64,
        acknowledged: &mut Vec<Acknowledged>,
        served: &mut Vec<Served>,
    ) {
        let write = self.writes[message.tag.0 as usize].take().expect("a completion belongs to a write");
        self.writes_under_way -= 1;
        // Where no other socket had the line dirty, nothing was written.
        let is_written = write.carries != Carries::Nothing || message.version != Version(0);
        if is_written {
            self.stats.write_completed(message, write.line);
            self.stats.pm_writes += u64::from(is_pm(write.line) && write.carries == Carries::Nothing);
        }
        self.log_completed(&write, now);
        if let Some(sites) = &mut self.persist_sites {
            sites.completed(message.tag.0 as usize, is_written.then_some(&message.stack));
        }
        let cycle = now + self.acknowledge_latency();
        acknowledged.extend(write.acknowledge.into_iter().map(|by| Acknowledged { by, cycle }));
        while self.writes_under_way < self.write_buffers
            && let Some(blocked) = self.blocked_writes.pop_front()
        {
            let done = match blocked {
                BlockedWrite::Flush { by, line, flush, arrived } => {
                    self.flush_since(by, line, flush, arrived, now).map(|cycle| (by, cycle))
                }
                BlockedWrite::NonTemporal(write) => {
                    self.write_around_since(write, now);
                    None
                }
            };
            acknowledged.extend(done.map(|(by, cycle)| Acknowledged { by, cycle }));
        }
        self.admit(now, served);
    }

    /// Whether what a completion completes has carried data, and so held back all else of its line.
    pub fn has_carried_data(&self, completion: &Message) -> bool {
        let write = self.writes[completion.tag.0 as usize].as_ref();
        write.expect("a completion belongs to a write").carries != Carries::Nothing
    }

    /// Flushes `line` out of every cache: gives the cycle at which it is complete if that is known, else
    /// [`Hierarchy::write_completed`] will tell.
    pub fn flush(&mut self, by: Requester, line: LineAddress, flush: Flush, now: u64) -> Option<u64> {
        self.flush_since(by, line, flush, now, now)
    }

    /// The same for a flush that came in cycle `arrived` and may have had to wait.
    fn flush_since(&mut self, by: Requester, line: LineAddress, flush: Flush, arrived: u64, now: u64) -> Option<u64> {
        let lookup: u64 = self.private.iter().map(|level| level.latency).sum::<u64>()
            + self.shared.iter().map(|level| level.latency).sum::<u64>();
        if self.writes_under_way >= self.write_buffers {
            self.stats.write_buffer_full += 1;
            self.blocked_writes.push_back(BlockedWrite::Flush { by, line, flush, arrived });
            return None;
        }
        let may_be_elsewhere = self.may_be_elsewhere(line);
        let (newest, snooped) = self.collect(line, Some(by.core), self.keeps_line(flush));
        let persists = self.point_of_coherence.persists(flush);
        self.stats.flushes_without_promise += u64::from(is_pm(line) && !persists);
        let ends_at_bus = self.flushes_end_at_bus || !persists;
        let bus = ends_at_bus.then_some(self.bus_round_trip);
        let stored = newest.map_or(0, |(_, stored)| stored);
        let cycle = stored.max(now + lookup) + if snooped { self.snoop } else { 0 };
        if bus.is_none() {
            self.log_promise(by, line, newest.map(|(version, _)| version), cycle);
        }
        match newest {
            Some((version, _)) => {
                let origin = LatencyOrigin { begun: by.issued, looked_up: arrived + lookup };
                let cause = if persists { Cause::Flush } else { Cause::FlushWithoutPromise };
                let slot = self.write(line, version, ByteMask::FULL, cause, origin, cycle);
                self.name_flush(slot, flush);
                let sent =
                    if persists { persist_sites::Served::Sent(slot) } else { persist_sites::Served::WithoutPromise };
                self.note_served(by, line, sent);
                if let Some(bus) = bus {
                    return Some(cycle + bus + self.acknowledge_latency());
                }
                self.writes[slot].as_mut().expect("just made").acknowledge.add(by);
                None
            }
            None if may_be_elsewhere => {
                self.stats.clean_flushes += 1;
                let origin = LatencyOrigin { begun: by.issued, looked_up: arrived + lookup };
                let slot = self.ask_to_flush(line, flush, origin, cycle);
                self.note_served(by, line, persist_sites::Served::Sent(slot));
                if let Some(bus) = bus {
                    return Some(cycle + bus + self.acknowledge_latency());
                }
                self.writes[slot].as_mut().expect("just made").acknowledge.add(by);
                None
            }
            None => {
                self.stats.clean_flushes += 1;
                // Writes of a line are completed in order, so the youngest stands for all.
                let same_line = self.writes.iter_mut().flatten().filter(|write| write.line == line);
                match same_line.max_by_key(|write| write.sequence) {
                    Some(write) if bus.is_none() => {
                        self.stats.flushes_behind_writes += 1;
                        write.acknowledge.add(by);
                        self.note_served(by, line, persist_sites::Served::Clean { waits: true });
                        None
                    }
                    _ => {
                        self.log_kept(by, now);
                        self.note_served(by, line, persist_sites::Served::Clean { waits: false });
                        Some(cycle + bus.unwrap_or(0) + self.acknowledge_latency())
                    }
                }
            }
        }
    }

    /// Writes the bytes `mask` of `line` around the caches (a combined non-temporal store).
    /// [`Hierarchy::write_completed`] tells when it is complete.
    pub fn write_around(&mut self, by: Requester, line: LineAddress, mask: ByteMask, now: u64) {
        self.write_around_since(WriteAround { by, line, mask, arrived: now }, now);
    }

    /// The same for one that may have had to wait.
    pub(super) fn write_around_since(&mut self, write: WriteAround, now: u64) {
        if self.mshrs.find(write.line).is_some() {
            // A read that is under way would bring back what was there before, and leave it in the caches.
            self.writes_behind_reads.push(write);
            return;
        }
        if self.writes_under_way >= self.write_buffers {
            self.stats.write_buffer_full += 1;
            self.blocked_writes.push_back(BlockedWrite::NonTemporal(write));
            return;
        }
        self.send_around(write, now);
    }

    /// Sends one for which there is room.
    pub(super) fn send_around(&mut self, write: WriteAround, now: u64) {
        let WriteAround { by, line, mask, arrived } = write;
        self.note_moved(by.core, line, true);
        let (newest, _) = self.collect(line, Some(by.core), false);
        let (before, stored) = newest.unwrap_or_else(|| (self.written.get(line.0), now));
        let mask = match newest {
            // Another socket may write the line before this store comes to its home agent.
            Some((version, stored)) if self.is_one_of_several => {
                self.write_back(Victim { line, version, stored }, now);
                mask
            }
            Some(_) => ByteMask::FULL,
            None => mask,
        };
        let version = Version(before.0 + 1);
        self.log_promise(by, line, Some(version), stored.max(now));
        let origin = LatencyOrigin { begun: by.issued, looked_up: arrived };
        let slot = self.write(line, version, mask, Cause::NonTemporalStore, origin, stored.max(now));
        self.note_served(by, line, persist_sites::Served::Sent(slot));
        self.writes[slot].as_mut().expect("just made").acknowledge.add(by);
    }

    pub(super) fn write_back(&mut self, victim: Victim, now: u64) {
        let origin = LatencyOrigin { begun: now, looked_up: now };
        self.write(victim.line, victim.version, ByteMask::FULL, Cause::Writeback, origin, victim.stored.max(now));
    }

    /// The first cycle from `cycle` on in which a request for `line` leaves behind the writes of it: a look at other
    /// caches takes longer for some requests than for others.
    pub(super) fn behind_writes(&self, line: LineAddress, cycle: u64) -> u64 {
        if self.writes_under_way == 0 {
            return cycle;
        }
        let same_line = self.writes.iter().flatten().filter(|write| write.line == line);
        same_line.map(|write| write.departs).fold(cycle, u64::max)
    }

    /// Sends a write and gives its slot.
    pub(super) fn write(
        &mut self,
        line: LineAddress,
        version: Version,
        mask: ByteMask,
        cause: Cause,
        origin: LatencyOrigin,
        cycle: u64,
    ) -> usize {
        let departs = self.behind_writes(line, cycle);
        let time = self.time_of(departs);
        if is_pm(line) {
            self.stats.pm_writes += 1;
            self.leave_for_pm(line, version, departs);
        }
        self.writes_sent += 1;
        let pending = PendingWrite {
            line,
            version,
            sequence: self.writes_sent,
            departs,
            acknowledge: Waiters::default(),
            carries: if cause == Cause::NonTemporalStore { Carries::Store } else { Carries::Line },
        };
        let slot = free_slot(&mut self.writes, pending);
        self.writes_under_way += 1;
        let begun = self.time_of(origin.begun);
        let mut message = Message::write(line, Tag(slot as u32), cause, version, mask, begun);
        if self.is_one_of_several {
            message.opcode = match cause {
                Cause::NonTemporalStore if mask.is_full() => Opcode::WriteAround,
                Cause::NonTemporalStore => Opcode::WriteAroundPtl,
                _ => Opcode::WriteEvicted,
            };
        }
        message.stack.charge(Stage::Core, self.time_of(origin.looked_up));
        message.stack.charge(Stage::Cache, time);
        self.departures.push(Departure { cycle: departs, message });
        slot
    }

    /// Records that a PM line leaves in `cycle`.
    pub(super) fn leave_for_pm(&mut self, line: LineAddress, version: Version, cycle: u64) {
        debug_assert_ne!(version, Version(0), "what is written has been stored");
        *self.written.get_mut(line.0) = version;
        if let Some(log) = &mut self.written_back {
            log.push((line, version));
        }
        let time = self.time_of(cycle);
        if let Some(log) = &mut self.persist_log {
            log.issue(time, line, version);
        }
    }
}

/// Puts `content` into the first free slot.
pub(super) fn free_slot<T>(slots: &mut Vec<Option<T>>, content: T) -> usize {
    match slots.iter().position(Option::is_none) {
        Some(slot) => {
            slots[slot] = Some(content);
            slot
        }
        None => {
            slots.push(Some(content));
            slots.len() - 1
        }
    }
}
