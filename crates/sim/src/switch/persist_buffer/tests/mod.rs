//! The logic alone: no time, a memory device that takes what it is sent.

mod clean;
mod crash;
mod logic;
mod mutants;
mod random;

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;

use super::drain_policy::DrainPolicy;
use super::packet::{Acknowledgement, Action, Input, Output, OutputRoom, Packet, Reaction, Read, RequestId, Write};
use super::parameters::Parameters;
use super::rules::{Rules, Sound};
use super::state::{EntryState, LineData, Operation, Phase, SlotIndex, State};
use super::transition::transition;
use super::{invariants, selector};
use fencepost_kernel::line::{ByteMask, LineAddress, Version};

type SmallState = State<9, 12>;

const LOW_HALF: ByteMask = ByteMask(0xFFFF_FFFF);
const HIGH_HALF: ByteMask = ByteMask(0xFFFF_FFFF << 32);

fn parameters(entries: u16, policy: DrainPolicy) -> Parameters {
    Parameters { entries, input_places: 4, acknowledgement_places: 1, reads_bypass: true, policy }
}

/// `pb_rf` with threshold and preset as counts.
fn threshold(above: u16, down_to: u16) -> DrainPolicy {
    DrainPolicy::Threshold { above, down_to }
}

/// `pb_adaptive` as it is when so many entries are held back.
fn adaptive(hold: u16) -> DrainPolicy {
    DrainPolicy::Adaptive { hold }
}

/// What a memory device holds of its lines, by halves, so that partial writes show.
#[derive(Clone, Debug, Default)]
struct Memory(BTreeMap<LineAddress, [Version; 2]>);

impl Memory {
    fn write(&mut self, line: LineAddress, data: &LineData) {
        assert!(!data.is_torn, "a part of a line is written");
        let halves = self.0.entry(line).or_default();
        for (half, mask) in [LOW_HALF, HIGH_HALF].into_iter().enumerate() {
            if data.mask.0 & mask.0 != 0 {
                halves[half] = data.version;
            }
        }
    }

    fn halves(&self, line: u64) -> [u64; 2] {
        self.0.get(&LineAddress(line)).copied().unwrap_or_default().map(|version| version.0)
    }
}

/// A persist buffer under the rules `R`, the drains on their way, and the memory behind.
struct Bench<R = Sound> {
    parameters: Parameters,
    state: SmallState,
    /// Sent and not written yet, oldest first.
    drains: VecDeque<(Acknowledgement, LineData)>,
    memory: Memory,
    /// What was sent besides drains.
    sent: Vec<Output>,
    next_request: u32,
    room: OutputRoom,
    rules: PhantomData<R>,
}

impl<R> Clone for Bench<R> {
    fn clone(&self) -> Self {
        Bench {
            parameters: self.parameters,
            state: self.state,
            drains: self.drains.clone(),
            memory: self.memory.clone(),
            sent: self.sent.clone(),
            next_request: self.next_request,
            room: self.room,
            rules: PhantomData,
        }
    }
}

impl Bench<Sound> {
    fn new(entries: u16, policy: DrainPolicy) -> Bench<Sound> {
        Bench::with_rules(parameters(entries, policy))
    }
}

impl<R: Rules> Bench<R> {
    fn with_rules(parameters: Parameters) -> Bench<R> {
        Bench {
            parameters,
            state: State::new(&parameters),
            drains: VecDeque::new(),
            memory: Memory::default(),
            sent: Vec::new(),
            next_request: 0,
            room: OutputRoom::ALL,
            rules: PhantomData,
        }
    }

    fn apply(&mut self, input: Input) -> Reaction {
        let reaction = transition::<R, _, _>(&self.parameters, &mut self.state, input);
        match reaction.output {
            Some(Output::Drain(drain, data)) => self.drains.push_back((drain, data)),
            Some(output) => self.sent.push(output),
            None => {}
        }
        reaction
    }

    fn check(&self) {
        assert_eq!(invariants::violated(&self.parameters, &self.state), None, "{:#?}", self.state);
    }

    fn offer_write(&mut self, line: u64, version: u64, mask: ByteMask) -> (Action, RequestId) {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        let write = Write { request, line: LineAddress(line), version: Version(version), mask };
        (self.apply(Input::Arrive(Packet::Write(write))).action, request)
    }

    fn offer_read(&mut self, line: u64) -> (Action, RequestId) {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        let read = Read { request, line: LineAddress(line), seen: None };
        (self.apply(Input::Arrive(Packet::Read(read))).action, request)
    }

    fn acknowledge(&mut self, acknowledgement: Acknowledgement) -> Action {
        self.apply(Input::Arrive(Packet::Acknowledgement(acknowledgement))).action
    }

    fn step(&mut self) -> Reaction {
        self.apply(Input::Step(self.room))
    }

    /// Steps until the controller finds nothing to do; gives what it took up, in order.
    fn settle(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        loop {
            match self.step().action {
                Action::Nothing => return actions,
                Action::Continued => {}
                action => actions.push(action),
            }
            assert!(actions.len() < 1000, "the controller never rests");
        }
    }

    /// Steps until the present piece of work is done.
    fn one_work(&mut self) -> Action {
        let action = self.step().action;
        while self.state.operation != Operation::Idle {
            self.step();
        }
        action
    }

    /// A whole-line write, handled to the end.
    fn write(&mut self, line: u64, version: u64) {
        assert_eq!(self.offer_write(line, version, ByteMask::FULL).0, Action::Admitted);
        self.settle();
    }

    /// The device writes the oldest drain under way; gives its acknowledgement.
    fn device_writes(&mut self) -> Acknowledgement {
        let (acknowledgement, data) = self.drains.pop_front().expect("a drain is under way");
        self.memory.write(acknowledgement.line, &data);
        acknowledgement
    }

    /// The device writes and acknowledges all drains, until none comes any more.
    fn device_takes_all(&mut self) {
        self.settle();
        while !self.drains.is_empty() {
            let acknowledgement = self.device_writes();
            assert_eq!(self.acknowledge(acknowledgement), Action::Admitted);
            self.settle();
        }
    }

    fn cut_power(&mut self) {
        self.apply(Input::PowerFail);
        self.drains.clear();
    }

    fn recover(&mut self) {
        self.apply(Input::PowerOn);
        self.device_takes_all();
    }

    fn is_completed(&self, request: RequestId) -> bool {
        self.sent.contains(&Output::Completed(request))
    }

    fn entry(&self, line: u64) -> (EntryState, u64) {
        let slot = self.state.slot(self.state.youngest(LineAddress(line)).expect("the line is held"));
        (slot.state, slot.data.version.0)
    }

    fn lines_in(&self, state: EntryState) -> Vec<u64> {
        let mut lines: Vec<u64> =
            self.state.slots_where(|slot| slot.state == state).map(|(_, slot)| slot.line.0).collect();
        lines.sort_unstable();
        lines
    }
}
