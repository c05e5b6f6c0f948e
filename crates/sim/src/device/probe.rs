//! A medium alone under a script of requests: when each one enters and is answered, and which commands a DRAM channel
//! issues when.
//!
//! Measurements of a medium are made here, without hosts, links and controller pipeline around it, so that what is
//! measured can be compared with the parameters one by one. Requests enter as they do from a controller: reads and
//! writes apart, each kind in the order of the script, and a read not before an earlier write to its line.

use super::dram::Command;
use super::medium::{Completion, Medium};
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Message, MessageClass, Tag};
use fencepost_kernel::time::Time;

/// A request of a script.
#[derive(Clone, Copy, Debug)]
pub struct ProbeRequest {
    /// When it is there; it enters then, or as soon as the medium has room.
    pub at: Time,
    /// Whether it writes; it reads otherwise.
    pub is_write: bool,
    /// Its line.
    pub line: LineAddress,
    /// Of a write, the bytes.
    pub mask: ByteMask,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// When the medium took it.
    pub entered: Time,
    /// When its answer was ready.
    pub answered: Time,
    /// Whether a queue answered, and not the memory cells.
    pub is_from_queue: bool,
}

/// What a script showed.
#[derive(Clone, Debug)]
pub struct ProbeOutcome {
    /// Parallel to the script.
    pub requests: Vec<Probed>,
    /// The commands of a DRAM channel with their times; those of refreshing are there while something is queued.
    pub commands: Vec<(Time, Command)>,
    /// When the medium had nothing more to do.
    pub rested: Time,
}

/// Runs `script` on `medium`, until nothing is left to do.
///
/// # Panics
/// If the medium never answers a request.
pub fn probe(medium: &mut Medium, script: &[ProbeRequest]) -> ProbeOutcome {
    if let Medium::Dram(dram) = medium {
        dram.record_commands();
    }
    let mut probe = Probe {
        medium,
        script,
        waiting: [false, true].map(|is_write| kind(script, is_write)),
        requests: vec![Probed { entered: Time::NEVER, answered: Time::NEVER, is_from_queue: false }; script.len()],
        completions: Vec::new(),
    };
    let rested = probe.run();
    let Probe { requests, .. } = probe;
    assert!(requests.iter().all(|probed| probed.answered < Time::NEVER), "every request is answered");
    let commands = match medium {
        Medium::Dram(dram) => dram.take_commands(),
        _ => Vec::new(),
    };
    ProbeOutcome { requests, commands, rested }
}

struct Probe<'a> {
    medium: &'a mut Medium,
    script: &'a [ProbeRequest],
    /// Indices of the reads and of the writes that have not entered, the next one last.
    waiting: [Vec<usize>; 2],
    requests: Vec<Probed>,
    completions: Vec<Completion>,
}

impl Probe<'_> {
    /// Lets time pass from one change to the next; gives the time of the last one.
    fn run(&mut self) -> Time {
        let mut now = Time::ZERO;
        loop {
            self.admit(now);
            let next = loop {
                let next = self.medium.advance(now, &mut self.completions);
                if !self.admit(now) {
                    break next;
                }
            };
            self.note_answers();
            let heads = self.waiting.iter().filter_map(|waiting| waiting.last());
            let arrivals = heads.map(|&index| self.medium.entry_time(self.script[index].at)).filter(|at| *at > now);
            let next = arrivals.chain([next]).min().expect("there is one at least");
            if next == Time::NEVER {
                return now;
            }
            assert!(next > now, "the medium asks for the time it was asked at");
            now = next;
        }
    }

    /// Lets requests in that are there and find room; whether there was one.
    fn admit(&mut self, now: Time) -> bool {
        let mut has_admitted = false;
        for is_write in [false, true] {
            while let Some(&index) = self.waiting[usize::from(is_write)].last() {
                let request = &self.script[index];
                let message = message(index, request, now);
                let waits = self.medium.entry_time(request.at) > now || self.follows_waiting_write(index);
                if waits || !self.medium.has_room(&message) {
                    break;
                }
                self.waiting[usize::from(is_write)].pop();
                self.requests[index].entered = now;
                self.medium.accept(message, now, &mut self.completions);
                has_admitted = true;
            }
        }
        has_admitted
    }

    /// Whether the request at `index` reads a line that an earlier write, which has not entered yet, is to write.
    fn follows_waiting_write(&self, index: usize) -> bool {
        let writes = self.waiting[1].iter().rev().take_while(|write| **write < index);
        !self.script[index].is_write
            && writes.into_iter().any(|&write| self.script[write].line == self.script[index].line)
    }

    fn note_answers(&mut self) {
        for Completion { answer, at, is_from_queue } in self.completions.drain(..) {
            debug_assert!(matches!(answer.class(), MessageClass::S2mDrs | MessageClass::S2mNdr));
            let probed = &mut self.requests[answer.tag.0 as usize];
            probed.answered = at;
            probed.is_from_queue = is_from_queue;
        }
    }
}

/// The requests that write, or those that do not, the first one last.
fn kind(script: &[ProbeRequest], is_write: bool) -> Vec<usize> {
    (0..script.len()).filter(|&index| script[index].is_write == is_write).rev().collect()
}

/// The request at `index` of the script; versions of a line grow with it.
fn message(index: usize, request: &ProbeRequest, now: Time) -> Message {
    let tag = Tag(index as u32);
    match request.is_write {
        true => Message::write(request.line, tag, Cause::Flush, Version(index as u64 + 1), request.mask, now),
        false => Message::read(request.line, tag, Cause::DemandRead, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::dram::BankId;
    use crate::device::dram::tests::ddr4_2400;
    use crate::device::pm::{AckAt, tests::nvm};
    use crate::device::{MediumConfig, PmConfig};
    use crate::host_bridge::Interleave;

    fn medium(config: MediumConfig) -> Medium {
        Medium::new(&config, Interleave::none(0).unwrap())
    }

    fn request(at: u64, is_write: bool, line: u64) -> ProbeRequest {
        ProbeRequest { at: Time::from_ps(at), is_write, line: LineAddress(line), mask: ByteMask::FULL }
    }

    #[test]
    fn a_dram_channel_shows_its_commands_and_enters_requests_at_clock_edges() {
        let outcome = probe(&mut medium(MediumConfig::Dram(ddr4_2400())), &[request(1, false, 0)]);
        assert_eq!(outcome.requests[0].entered, Time::from_ps(833));
        assert_eq!(outcome.requests[0].answered, Time::from_ps(833 * (1 + 17 + 17 + 4)));
        let commands = [
            (Time::from_ps(833), Command::Activate { bank: BankId(0), row: 0 }),
            (Time::from_ps(833 * 18), Command::Read { bank: BankId(0), auto_precharge: false }),
        ];
        assert_eq!(outcome.commands, commands);
    }

    #[test]
    fn requests_wait_for_room_and_reads_for_writes_to_their_line() {
        let config = PmConfig { banks: 1, write_queue_entries: 2, write_high_watermark: 2, ..nvm(AckAt::Queue) };
        let config = PmConfig { write_low_watermark: 1, ..config };
        let script = [request(0, true, 0), request(0, true, 1), request(0, true, 2), request(0, false, 2)];
        let outcome = probe(&mut medium(MediumConfig::Pm(config)), &script);
        let entered: Vec<u64> = outcome.requests.iter().map(|probed| probed.entered.as_ps() / 1000).collect();
        assert_eq!(entered, [0, 0, 200, 200]);
        assert_eq!(outcome.requests[3].answered, Time::from_ps(200_000), "from the queue");
        assert!(outcome.requests[3].is_from_queue);
        assert_eq!(outcome.rested, Time::from_ps(600_000));
    }
}
