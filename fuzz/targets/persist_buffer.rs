//! The persist buffer's logic, driven by bytes: its invariants hold after every step, and nothing acknowledged is ever
//! lost.
#![no_main]

use std::collections::BTreeMap;

use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_sim::switch::persist_buffer::packet::{Acknowledgement, OutputRoom, Read, RequestId, Write};
use fencepost_sim::switch::persist_buffer::state::{LineData, Phase, Slot};
use fencepost_sim::switch::persist_buffer::{
    DrainPolicy, Input, Output, Packet, Parameters, Sound, State, invariants, transition,
};
use libfuzzer_sys::fuzz_target;

const LINES: u8 = 4;
/// Each line has so many parts, which partial writes (`MemWrPtl`) carry in any combination.
const PARTS: usize = 4;

/// Of each part of a line, a version of the line.
type Parts = [Version; PARTS];

type Buffer = State<6, 6>;

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.iter().copied();
    let mut next = move || bytes.next();
    let (Some(entries), Some(places), Some(policy)) = (next(), next(), next()) else { return };
    let entries = 1 + u16::from(entries % 5);
    let above = u16::from(policy / 2) % (entries + 1);
    let policy = match policy % 3 {
        0 => DrainPolicy::AtOnce,
        1 => DrainPolicy::Adaptive { hold: above },
        _ => DrainPolicy::Threshold { above, down_to: above / 2 },
    };
    let (input_places, acknowledgement_places) = (1 + u16::from(places % 4), 1 + u16::from(places / 4 % 2));
    let reads_bypass = places / 8 % 2 == 0;
    let mut world = World::new(Parameters { entries, input_places, acknowledgement_places, reads_bypass, policy });
    while let (Some(deed), Some(choice)) = (next(), next()) {
        world.act(deed, choice);
        assert_eq!(invariants::violated(&world.parameters, &world.buffer), None);
        world.check_durable();
    }
});

/// The buffer with the memory device behind it and the hosts before it.
struct World {
    parameters: Parameters,
    buffer: Buffer,
    requests: u32,
    /// Writes that have no acknowledgement.
    pending: BTreeMap<RequestId, (u8, Version, ByteMask)>,
    /// Reads that have no answer, each with what was acknowledged before it.
    reads: BTreeMap<RequestId, (u8, Parts)>,
    issued: [u64; LINES as usize],
    acknowledged: [Parts; LINES as usize],
    memory: [Parts; LINES as usize],
    drains: Vec<(Acknowledgement, LineData)>,
    done: Vec<Acknowledgement>,
}

impl World {
    fn new(parameters: Parameters) -> World {
        World {
            buffer: State::new(&parameters),
            parameters,
            requests: 0,
            pending: BTreeMap::new(),
            reads: BTreeMap::new(),
            issued: Default::default(),
            acknowledged: Default::default(),
            memory: Default::default(),
            drains: Vec::new(),
            done: Vec::new(),
        }
    }

    fn act(&mut self, deed: u8, choice: u8) {
        let line = choice % LINES;
        match deed % 16 {
            0 | 1 => self.write(line, ByteMask::FULL),
            2 => self.write(line, mask_of(choice / LINES)),
            3 => self.read(line),
            4..10 => {
                // Any classes may be without room in the output; what has been taken up goes on all the same.
                let room = std::array::from_fn(|class| choice >> (class % 8) & 1 == 0);
                self.apply(Input::Step(OutputRoom(room)));
            }
            10..12 if !self.drains.is_empty() => {
                let (drain, data) = self.drains.swap_remove(usize::from(choice) % self.drains.len());
                for part in parts_of(data.mask) {
                    let held = &mut self.memory[drain.line.0 as usize][part];
                    *held = data.version.max(*held);
                }
                self.done.push(drain);
                if choice >= 240 {
                    self.done.push(drain);
                }
            }
            12..14 if !self.done.is_empty() => {
                let acknowledgement = self.done.remove(0);
                self.apply(Input::Arrive(Packet::Acknowledgement(acknowledgement)));
            }
            14 if choice.is_multiple_of(4) && self.buffer.phase != Phase::Off => self.cut_power(),
            15 if self.buffer.phase == Phase::Off => self.apply(Input::PowerOn),
            _ => {}
        }
    }

    /// A host has one request under way for a line at most.
    fn is_free(&self, line: u8) -> bool {
        let mut others = self.pending.values().map(|write| write.0).chain(self.reads.values().map(|read| read.0));
        self.buffer.phase == Phase::Running && others.all(|other| other != line)
    }

    fn write(&mut self, line: u8, mask: ByteMask) {
        if !self.is_free(line) {
            return;
        }
        let version = Version(self.issued[usize::from(line)] + 1);
        let request = self.name();
        let write = Write { request, line: LineAddress(line.into()), version, mask };
        let before = self.buffer.input.packets().len();
        self.apply(Input::Arrive(Packet::Write(write)));
        if self.buffer.input.packets().len() > before {
            self.issued[usize::from(line)] += 1;
            self.pending.insert(request, (line, version, mask));
        }
    }

    fn read(&mut self, line: u8) {
        if !self.is_free(line) {
            return;
        }
        let request = self.name();
        let before = self.buffer.input.packets().len();
        self.apply(Input::Arrive(Packet::Read(Read { request, line: LineAddress(line.into()), seen: None })));
        if self.buffer.input.packets().len() > before {
            self.reads.insert(request, (line, self.acknowledged[usize::from(line)]));
        }
    }

    fn name(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    /// Power goes, at any step. What was on its way to the device has arrived, or is lost.
    fn cut_power(&mut self) {
        self.apply(Input::PowerFail);
        self.pending.clear();
        self.reads.clear();
        self.drains.clear();
        self.done.clear();
    }

    fn apply(&mut self, input: Input) {
        let reaction = transition::<Sound, 6, 6>(&self.parameters, &mut self.buffer, input);
        let Some(output) = reaction.output else { return };
        assert!(invariants::is_whole(&output));
        match output {
            Output::Completed(request) => {
                let (line, version, mask) =
                    self.pending.remove(&request).expect("only what was written is acknowledged");
                for part in parts_of(mask) {
                    self.acknowledged[usize::from(line)][part] = version;
                }
            }
            Output::Answered(request, data) => self.answered(request, [data.version; PARTS]),
            Output::Forwarded(request) => {
                let line = self.reads.get(&request).expect("somebody reads").0;
                self.answered(request, self.memory[usize::from(line)]);
            }
            Output::Drain(drain, data) => self.drains.push((drain, data)),
        }
    }

    fn answered(&mut self, request: RequestId, parts: Parts) {
        let (line, at_least) = self.reads.remove(&request).expect("only what was read is answered");
        let is_latest = parts.iter().zip(&at_least).all(|(read, acknowledged)| read >= acknowledged);
        assert!(is_latest, "line {line}: {parts:?} was read, {at_least:?} had been acknowledged");
    }

    /// A power cut now, and a recovery after it, would leave every acknowledged write.
    fn check_durable(&self) {
        for line in 0..LINES {
            let place = usize::from(line);
            for part in 0..PARTS {
                let holds = |slot: &&Slot| slot.holds(LineAddress(line.into())) && covers(slot.data.mask, part);
                let entries = self.buffer.slots().iter().filter(holds).map(|slot| slot.data.version);
                let durable = entries.max().unwrap_or_default().max(self.memory[place][part]);
                assert!(durable >= self.acknowledged[place][part], "part {part} of line {line} is lost");
                assert!(durable.0 <= self.issued[place], "line {line} was never written so");
            }
        }
    }
}

/// The mask of the parts whose bits are set in `parts`; of all where none is.
fn mask_of(parts: u8) -> ByteMask {
    let bytes = 64 / PARTS;
    let of_part = |part: usize| if parts >> part & 1 == 1 { ((1 << bytes) - 1) << (part * bytes) } else { 0 };
    match (0..PARTS).map(of_part).fold(0, std::ops::BitOr::bitor) {
        0 => ByteMask::FULL,
        mask => ByteMask(mask),
    }
}

fn covers(mask: ByteMask, part: usize) -> bool {
    mask.0 >> (part * (64 / PARTS)) & 1 == 1
}

fn parts_of(mask: ByteMask) -> impl Iterator<Item = usize> {
    (0..PARTS).filter(move |part| covers(mask, *part))
}
