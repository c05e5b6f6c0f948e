//! Reads of memory: requests that missed the last level, and what waits for room to do so.

use super::writes::free_slot;
use super::{Departure, Hierarchy, Outcome, Request, Served, Side, Source, Want};
use crate::cache::array::State;
use crate::cache::between::Blocked;
use crate::cache::mshr::Room;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Flow, Message, Opcode, RequestName, Stage, Tag};

/// A request that missed the last level and waits for an MSHR, or for a write buffer for what it would evict.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockedRead {
    pub request: Request,
    /// The cycle in which it missed.
    pub missed: u64,
}

impl Hierarchy {
    /// Handles the answer of memory to a read, at cycle `now`: adds every request that it serves to `served`, in order.
    pub fn data_arrived(&mut self, message: &Message, now: u64, served: &mut Vec<Served>) {
        let line = self.reads[message.tag.0 as usize].take().expect("an answer belongs to a request");
        self.stats.read_completed(message, line);
        let in_last = if self.is_one_of_several {
            // The request is complete: what follows is no part of its time.
            let request = RequestName::NONE;
            let acknowledge = Message { opcode: Opcode::Acknowledge, request, ..message.clone() };
            self.departures.push(Departure { cycle: now, message: acknowledge });
            self.granted(message, line, now)
        } else {
            Some(self.arrived(message, line, now))
        };
        let source = source_of(message.opcode);
        for request in self.mshrs.resolve(line, now) {
            // A walker before it may have left the line to the last level alone.
            let in_last = if self.exclusive.is_some() { in_last.and_then(|_| self.find_held(line)) } else { in_last };
            match in_last {
                Some(in_last) if self.suffices(&request, in_last) => {
                    served.extend(told(self.serve_from_last(request, in_last, now, source)));
                }
                _ => self.ask_memory(BlockedRead { request, missed: now }, now),
            }
        }
        if !self.writes_behind_reads.is_empty() {
            for write in std::mem::take(&mut self.writes_behind_reads) {
                self.write_around_since(write, now);
            }
        }
        self.admit(now, served);
    }

    /// Enters a line that memory has sent.
    fn arrived(&mut self, message: &Message, line: LineAddress, now: u64) -> usize {
        let newest = match self.written.get(line.0) {
            Version(0) => message.version,
            written => written,
        };
        // What was written while only warming up has not been sent to memory yet.
        if message.version != newest && !self.warm_writes.contains_key(&line) {
            debug_assert!(false, "a read of {line:?} got {:?} and not {newest:?}, which left last", message.version);
            self.stats.stale_reads += 1;
        }
        self.enter(line, State::Exclusive, newest, now)
    }

    /// Enters a line into the shared levels, and writes back what has to leave them; gives where it lies in the last.
    pub(super) fn enter(&mut self, line: LineAddress, state: State, version: Version, now: u64) -> usize {
        let (in_last, victim) = self.fill_shared(line, state, version, now);
        if let Some(victim) = victim {
            self.write_back(victim, now);
        }
        self.write_left(now);
        in_last
    }

    /// Serves a request whose line lies at `in_last` in the last level, and in none above it.
    fn serve_from_last(&mut self, request: Request, in_last: usize, cycle: u64, source: Source) -> Served {
        let last = self.shared.len() - 1;
        let ready = self.grant(&request, last, in_last, cycle) + self.way_back(last) + self.to_core(request.side);
        let version = self.fill_first_level(&request, in_last, ready);
        self.between.release(&request, ready);
        self.write_left(cycle);
        Served { request, ready, version, source }
    }

    /// Asks memory at `cycle` for a line that may have been missed earlier: its latency runs from there.
    pub(super) fn ask_memory(&mut self, read: BlockedRead, cycle: u64) {
        let BlockedRead { request, missed } = read;
        if let Some(mshr) = self.mshrs.find(request.line) {
            self.stats.merged += 1;
            mshr.add(request);
            return;
        }
        if self.mshrs.room(cycle) != Room::Now || self.writes_under_way >= self.write_buffers {
            self.stats.mshr_full += 1;
            self.blocked.push_back(read);
            return;
        }
        self.mshrs.allocate(request.line, request, cycle);
        self.note_moved(request.core, request.line, false);
        let cycle = self.behind_writes(request.line, cycle);
        let tag = free_slot(&mut self.reads, request.line);
        let mut message = Message::read(request.line, Tag(tag as u32), request.cause, self.time_of(request.issued));
        message.flow = Flow(request.core as u32);
        if self.is_one_of_several {
            message.opcode = match request.want {
                Want::Read => Opcode::ReadLine,
                Want::Own if self.held(request.line).is_some() => Opcode::UpgradeLine,
                Want::Own => Opcode::OwnLine,
            };
        }
        message.stack.charge(Stage::Core, self.time_of(missed));
        message.stack.charge(Stage::Cache, self.time_of(cycle));
        self.departures.push(Departure { cycle, message });
    }

    /// Requests that found no MSHR go on as far as there is room now.
    fn admit_blocked(&mut self, now: u64, served: &mut Vec<Served>) {
        while let Some(&read) = self.blocked.front() {
            let request = read.request;
            // Room may come before it has even missed.
            let cycle = read.missed.max(now);
            let fits = self.mshrs.find(request.line).is_some()
                || (self.mshrs.room(now) == Room::Now && self.writes_under_way < self.write_buffers);
            if !fits {
                return;
            }
            self.blocked.pop_front();
            match self.find_sufficient(&request) {
                // Another core's request has brought it meanwhile.
                Some(in_last) => {
                    served.extend(told(self.serve_from_last(request, in_last, cycle, Source::Caches)));
                }
                None => self.ask_memory(read, cycle),
            }
        }
    }

    /// Requests that found no room go on as far as there is some now.
    pub(super) fn admit(&mut self, now: u64, served: &mut Vec<Served>) {
        self.admit_blocked(now, served);
        if self.between.is_idle() {
            return;
        }
        for Blocked { request, level, missed } in self.between.take_blocked() {
            if let Outcome::Ready(ready, version) = self.descend(request, level, false, missed.max(now)) {
                served.extend(told(Served { request, ready, version, source: Source::Caches }));
            }
        }
        self.prefetch();
    }
}

/// What has sent an answer. The home agent of a line, which may be at another socket, says only what it had to ask.
fn source_of(answer: Opcode) -> Source {
    match answer {
        Opcode::GrantForwarded | Opcode::GrantModified | Opcode::GrantUpgrade => Source::OtherCaches,
        _ => Source::Memory,
    }
}

/// What a core has to be told: not of what a level has fetched for itself.
fn told(served: Served) -> Option<Served> {
    (!matches!(served.request.side, Side::Level(_))).then_some(served)
}
