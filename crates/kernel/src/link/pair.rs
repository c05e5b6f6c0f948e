//! Two ends of one link with nothing behind them: what a link sustains, and whether it loses anything.
//!
//! One end sends requests of CXL.mem, the other answers that belong to no request: the link knows no difference. This
//! is what the comparison `flits` measures.

use serde::{Deserialize, Serialize};

use super::config::LinkConfig;
use super::transmitter::Transmitter;
use crate::component::{Context, Wires};
use crate::event::Event;
use crate::id::{ComponentId, PortId};
use crate::line::{ByteMask, LINE_BYTES, LineAddress, Version};
use crate::message::{Cause, Message, MessageClass, Opcode, Tag, mem};
use crate::queue::EventQueue;
use crate::stats::StatsNode;
use crate::time::{Duration, Time};

const PORT: PortId = PortId(0);
/// Turns in which nothing was sent or received, after which an end gives up: something it waits for is lost.
const PATIENCE: u32 = 100_000;

/// How many of each kind of message a saturated link carries, in turn and as evenly mixed as can be.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mix {
    /// M2S Req.
    pub mem_rd: u32,
    /// M2S RwD of a whole line.
    pub mem_wr: u32,
    /// M2S RwD with byte enables.
    pub mem_wr_ptl: u32,
    /// S2M NDR.
    pub cmp: u32,
    /// S2M DRS.
    pub mem_data: u32,
}

/// What a saturated link carried.
#[derive(Clone, Debug, Serialize)]
pub struct Saturated {
    /// Messages.
    pub messages: u64,
    /// Bytes of lines.
    pub payload_bytes: u64,
    /// Flits that carried them, each counted once.
    pub flits: u64,
    /// Bytes of those flits.
    pub wire_bytes: u64,
    /// How long it took, in ns.
    pub time_ns: f64,
    /// How long a flit takes, in ns.
    pub flit_ns: f64,
    /// Flits that arrived wrong.
    pub crc_errors: u64,
    /// Flits that were sent in vain the first time.
    pub replayed_flits: u64,
}

/// What random traffic in both directions came to.
#[derive(Clone, Debug, Serialize)]
pub struct Soaked {
    /// Messages that arrived, by class.
    pub arrived: [u64; mem::CLASSES.len()],
    /// Messages that arrived out of the order of their class.
    pub disordered: u64,
    /// Messages that never arrived.
    pub lost: u64,
    /// Credits that are not where they began, of both ends.
    pub missing_credits: u64,
    /// Messages that found no credit.
    pub credit_stalls: u64,
    /// Flits that carried nothing but credits, both ways.
    pub control_flits: u64,
    /// Flits that arrived wrong, both ways.
    pub crc_errors: u64,
    /// Flits that were sent in vain the first time, both ways.
    pub replayed_flits: u64,
}

/// Sends `messages` of `mix` over a link like `link`, the next as soon as there is a credit; the receiver gives places
/// back at once.
pub fn saturate(link: &LinkConfig, mix: &Mix, messages: u64) -> Saturated {
    let mut queue = EventQueue::default();
    let wires = wired();
    let mut ends = [Transmitter::new(PORT, link), Transmitter::new(PORT, link)];
    let mut source = Evenly::new(mix);
    let (mut now, mut left, mut last, mut payload_bytes) = (Time::ZERO, messages, Time::ZERO, 0);
    loop {
        let mut context = Context::new(now, ComponentId(0), &mut queue, &wires);
        while left > 0 && ends[0].has_credit(source.next.class(), &mut context) {
            ends[0].offer(message(source.next, 0, now), &mut context);
            payload_bytes += if source.next.class().carries_data() { LINE_BYTES } else { 0 };
            source.advance();
            left -= 1;
        }
        let Some((time, target, event)) = queue.pop() else { break };
        now = time;
        let mut context = Context::new(now, target, &mut queue, &wires);
        match event {
            Event::Arrival { message, .. } => {
                last = now;
                ends[1].return_credit(message.class(), &mut context);
            }
            Event::Credit { class, .. } => ends[target.0 as usize].credit_returned(class, &mut context),
            Event::Wake { .. } => unreachable!("nobody asks for one"),
        }
    }
    let stats = ends[0].stats(Time::NEVER);
    Saturated {
        messages: messages - left,
        payload_bytes,
        flits: ends[0].flits(),
        wire_bytes: ends[0].flits() * u64::from(link.flit_format.bytes()),
        time_ns: last.as_ns() - link.latency_ns,
        flit_ns: link.flit_time().as_ns(),
        crc_errors: stats.counter("crc_errors"),
        replayed_flits: stats.counter("replayed_flits"),
    }
}

/// Sends about `messages` in all, of all classes, at random times in both directions of a link like `link`; what
/// arrives keeps its place for a random time.
pub fn soak(link: &LinkConfig, messages: u64, seed: u64) -> Soaked {
    soak_with(EventQueue::holding_credits(), link, messages, seed)
}

fn soak_with(mut queue: EventQueue, link: &LinkConfig, messages: u64, seed: u64) -> Soaked {
    let wires = wired();
    let opcodes = [[Opcode::MemRd, Opcode::MemWr], [Opcode::Cmp, Opcode::MemData]];
    let mut ends = [0, 1].map(|end| End::new(link, opcodes[end], messages / 2, seed.wrapping_add(end as u64)));
    for end in 0..2 {
        Context::new(Time::ZERO, ComponentId(end), &mut queue, &wires).wake_at(Time::ZERO, 0);
    }
    while let Some((now, target, event)) = queue.pop() {
        let mut context = Context::new(now, target, &mut queue, &wires);
        let end = &mut ends[target.0 as usize];
        match event {
            Event::Arrival { message, .. } => end.arrived(&message, &mut context),
            Event::Credit { class, .. } => end.transmitter.credit_returned(class, &mut context),
            Event::Wake { .. } => end.turn(&mut context),
        }
    }
    let stats = ends.each_ref().map(|end| end.transmitter.stats(Time::NEVER));
    let sum = |name: &str| stats.iter().filter_map(|end| end.get(name)).map(StatsNode::total).sum();
    let sent: u64 = ends.iter().flat_map(|end| end.sent).sum();
    let arrived = mem::CLASSES.map(|class| ends.iter().map(|end| end.expected[class.index()]).sum());
    Soaked {
        arrived,
        disordered: ends.iter().map(|end| end.disordered).sum(),
        lost: sent - arrived.iter().sum::<u64>(),
        missing_credits: ends.iter().map(|end| end.transmitter.missing_credits()).sum(),
        credit_stalls: sum("credit_stalls"),
        control_flits: sum("control_flits"),
        crc_errors: sum("crc_errors"),
        replayed_flits: sum("replayed_flits"),
    }
}

/// One end of the link under random traffic.
struct End {
    transmitter: Transmitter,
    /// What it sends; of whole writes some are partial ones.
    opcodes: [Opcode; 2],
    unsent: u64,
    /// Messages sent, by class; a message's version is its number.
    sent: [u64; MessageClass::COUNT],
    /// The number of the next message that comes, by class.
    expected: [u64; MessageClass::COUNT],
    disordered: u64,
    /// Messages that arrived and still have their places.
    held: Vec<MessageClass>,
    is_awake: bool,
    turns_in_vain: u32,
    random: u64,
}

impl End {
    fn new(link: &LinkConfig, opcodes: [Opcode; 2], messages: u64, seed: u64) -> End {
        End {
            transmitter: Transmitter::new(PORT, link),
            opcodes,
            unsent: messages,
            sent: Default::default(),
            expected: Default::default(),
            disordered: 0,
            held: Vec::new(),
            is_awake: true,
            turns_in_vain: 0,
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        }
    }

    fn arrived(&mut self, message: &Message, context: &mut Context<'_>) {
        let class = message.class();
        let expected = &mut self.expected[class.index()];
        self.disordered += u64::from(message.version.0 != *expected);
        *expected += 1;
        self.held.push(class);
        self.turns_in_vain = 0;
        if !self.is_awake {
            self.sleep(context);
        }
    }

    /// Gives back some places, sends some messages, and sleeps for a while.
    fn turn(&mut self, context: &mut Context<'_>) {
        self.is_awake = false;
        self.turns_in_vain += 1;
        for _ in 0..self.below(8) {
            let Some(last) = self.held.len().checked_sub(1) else { break };
            let one = self.below(last as u64 + 1) as usize;
            let class = self.held.swap_remove(one);
            self.transmitter.return_credit(class, context);
        }
        for _ in 0..self.below(8).min(self.unsent) {
            let mut opcode = self.opcodes[self.below(2) as usize];
            if self.transmitter.waiting(opcode.class()) > 2 {
                continue;
            }
            if opcode == Opcode::MemWr && self.below(4) == 0 {
                opcode = Opcode::MemWrPtl;
            }
            let number = &mut self.sent[opcode.class().index()];
            let message = message(opcode, *number, context.now());
            *number += 1;
            self.unsent -= 1;
            self.turns_in_vain = 0;
            self.transmitter.offer(message, context);
        }
        if (self.unsent > 0 || !self.held.is_empty()) && self.turns_in_vain < PATIENCE {
            self.sleep(context);
        }
    }

    /// For up to 16 ns, and once in a while up to 256 ns.
    fn sleep(&mut self, context: &mut Context<'_>) {
        self.is_awake = true;
        let longest = if self.below(16) == 0 { 256_000 } else { 16_000 };
        let pause = Duration::from_ps(self.below(longest));
        context.wake_at(context.now() + pause, 0);
    }

    /// A random number below `bound`, which is small against 2^32 (xorshift64*).
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        ((self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) * bound) >> 32
    }
}

/// Kinds of messages in turn, in the proportions of a mix.
struct Evenly {
    kinds: Vec<(Opcode, i64)>,
    all: i64,
    due: Vec<i64>,
    next: Opcode,
}

impl Evenly {
    fn new(mix: &Mix) -> Evenly {
        let kinds = [
            (Opcode::MemRd, mix.mem_rd),
            (Opcode::MemWr, mix.mem_wr),
            (Opcode::MemWrPtl, mix.mem_wr_ptl),
            (Opcode::Cmp, mix.cmp),
            (Opcode::MemData, mix.mem_data),
        ];
        let kinds: Vec<(Opcode, i64)> = kinds.map(|(opcode, count)| (opcode, i64::from(count))).into();
        let all = kinds.iter().map(|(_, count)| count).sum();
        let mut evenly = Evenly { due: vec![0; kinds.len()], kinds, all, next: Opcode::MemRd };
        evenly.advance();
        evenly
    }

    /// The kind that is most in arrears comes next.
    fn advance(&mut self) {
        for (due, (_, count)) in self.due.iter_mut().zip(&self.kinds) {
            *due += count;
        }
        let most = (0..self.due.len()).max_by_key(|&kind| (self.due[kind], kind)).expect("there are kinds");
        self.due[most] -= self.all;
        self.next = self.kinds[most].0;
    }
}

fn wired() -> Wires {
    let mut wires = Wires::default();
    wires.connect((ComponentId(0), PORT), (ComponentId(1), PORT));
    wires
}

fn message(opcode: Opcode, number: u64, now: Time) -> Message {
    let read = Message::read(LineAddress(0), Tag(0), Cause::DemandRead, now);
    Message { opcode, version: Version(number), mask: ByteMask::FULL, ..read }
}

#[cfg(test)]
mod tests {
    use super::super::flit::FlitFormat;
    use super::*;

    #[test]
    fn no_credit_is_lost_with_or_without_errors() {
        for format in FlitFormat::ALL {
            for bit_error_rate in [0.0, 2e-4] {
                let link = LinkConfig { bit_error_rate, ..LinkConfig::new(format, 63.0, 25.0, 8) };
                let soaked = soak(&link, 20_000, 3);
                assert_eq!(soaked.arrived.iter().sum::<u64>(), 20_000);
                assert_eq!((soaked.lost, soaked.missing_credits, soaked.disordered), (0, 0, 0), "{format:?}");
                assert!(soaked.credit_stalls > 0 && soaked.control_flits > 0);
                assert_eq!(soaked.crc_errors > 0, bit_error_rate > 0.0);
            }
        }
    }

    #[test]
    fn credits_that_are_no_events_change_nothing_on_a_link_with_errors() {
        for format in FlitFormat::ALL {
            for (bit_error_rate, credits) in [(0.0, 2), (2e-4, 8), (2e-3, 3)] {
                let link = LinkConfig { bit_error_rate, ..LinkConfig::new(format, 63.0, 25.0, credits) };
                let [held, as_events] = [EventQueue::holding_credits(), EventQueue::default()]
                    .map(|queue| serde_json::to_value(soak_with(queue, &link, 20_000, 5)).expect("it is plain data"));
                assert_eq!(held, as_events, "{format:?}, {bit_error_rate}");
            }
        }
    }

    #[test]
    fn a_saturated_link_is_never_idle() {
        for format in FlitFormat::ALL {
            let mix = Mix { mem_data: 2, cmp: 1, ..Mix::default() };
            let saturated = saturate(&LinkConfig::new(format, 64.0, 25.0, 4096), &mix, 30_000);
            assert_eq!((saturated.messages, saturated.payload_bytes), (30_000, 20_000 * 64));
            let idle = saturated.time_ns - saturated.flits as f64 * saturated.flit_ns;
            assert!(idle.abs() < saturated.flit_ns, "{format:?} {idle}");
        }
    }
}
