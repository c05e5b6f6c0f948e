//! A second opinion of what a power cut can leave: a machine whose memory takes one piece of a store at a time, in
//! every order that nothing forbids. All images that it can leave of small random programs are those that are explored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fencepost_isa::micro_op::{Fence, Flush, Operation};
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::time::{Duration, Time};

use super::Exploration;
use super::content_hash::LINE;
use super::pool_file::PoolFile;
use super::recorded_stores::{Act, RecordedStores, StoreId};
use super::replay::{Change, LineHistory, LineId, MadeVersion, Replayed};

const PAGE: u64 = 0x7000;
const POOL: u64 = PAGE << 12;
const LINES: usize = 2;
const THREADS: u32 = 2;

/// What a thread of a program does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Store {
        thread: u32,
        at: usize,
        size: usize,
    },
    NonTemporal {
        thread: u32,
        at: usize,
        size: usize,
    },
    /// The combining buffer of a line leaves its core.
    Send {
        thread: u32,
        line: usize,
    },
    Flush {
        thread: u32,
        line: usize,
    },
    Fence {
        thread: u32,
    },
}

/// SplitMix64, as in `choices.rs`.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % bound
    }
}

fn program(seed: u64) -> Vec<Step> {
    let mut random = Random(seed);
    let steps = 2 + random.below(5);
    let mut step = || {
        let thread = random.below(THREADS.into()) as u32;
        let size = [8, 8, 16, 4][random.below(4) as usize];
        let line = random.below(LINES as u64) as usize;
        // Some lie across two lines, some across two aligned pieces.
        let at = line * LINE + [0, 4, 8, 16, 56][random.below(5) as usize];
        let at = at.min(LINES * LINE - size);
        match random.below(6) {
            0 | 1 => Step::Store { thread, at, size },
            2 if at % LINE + size <= LINE => Step::NonTemporal { thread, at, size },
            2 => Step::Store { thread, at, size },
            3 => Step::Flush { thread, line },
            4 => Step::Fence { thread },
            _ => Step::Send { thread, line },
        }
    };
    (0..steps).map(|_| step()).collect()
}

/// A part of a store that is durable or not, with its bytes of memory.
#[derive(Clone, Debug)]
struct Part {
    at: usize,
    bytes: Vec<u8>,
    store: usize,
    thread: u32,
    is_non_temporal: bool,
    /// How many fences its thread had come to.
    fences: u32,
}

impl Part {
    fn line(&self) -> usize {
        self.at / LINE
    }

    /// Whether this one has to be durable before the later one.
    fn is_before(&self, later: &Part, atomicity: usize) -> bool {
        if self.line() != later.line() {
            return false;
        }
        let is_free = self.thread == later.thread
            && (self.is_non_temporal || later.is_non_temporal)
            && self.fences == later.fences;
        let is_same_piece = self.at / atomicity == later.at / atomicity;
        is_same_piece || self.store != later.store && !is_free
    }
}

/// The memory's side: what is visible, and all sets of it that may be durable.
struct Machine {
    atomicity: usize,
    visible: Vec<Part>,
    durable: BTreeSet<u64>,
    images: BTreeSet<Vec<u8>>,
    fences: [u32; THREADS as usize],
    buffered: BTreeMap<(u32, usize), Vec<Part>>,
    /// By thread: what its next fence waits for.
    awaited: [u64; THREADS as usize],
    stores: usize,
}

impl Machine {
    fn images_of(steps: &[Step], atomicity: usize) -> BTreeSet<Vec<u8>> {
        let mut machine = Machine {
            atomicity,
            visible: Vec::new(),
            durable: [0].into(),
            images: BTreeSet::new(),
            fences: [0; THREADS as usize],
            buffered: BTreeMap::new(),
            awaited: [0; THREADS as usize],
            stores: 0,
        };
        machine.persist();
        for step in steps {
            machine.step(*step);
            machine.persist();
        }
        for key in machine.buffered.keys().copied().collect::<Vec<_>>() {
            machine.send(key);
        }
        machine.persist();
        machine.images
    }

    fn parts(&mut self, thread: u32, at: usize, size: usize, is_non_temporal: bool) -> Vec<Part> {
        self.stores += 1;
        let mut parts: Vec<Part> = Vec::new();
        for byte in at..at + size {
            let value = value_of(self.stores, byte - at);
            match parts.last_mut().filter(|part| part.at / self.atomicity == byte / self.atomicity) {
                Some(part) => part.bytes.push(value),
                None => parts.push(Part {
                    at: byte,
                    bytes: vec![value],
                    store: self.stores,
                    thread,
                    is_non_temporal,
                    fences: self.fences[thread as usize],
                }),
            }
        }
        parts
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Store { thread, at, size } => {
                let parts = self.parts(thread, at, size, false);
                self.visible.extend(parts);
            }
            Step::NonTemporal { thread, at, size } => {
                let parts = self.parts(thread, at, size, true);
                self.buffered.entry((thread, at / LINE)).or_default().extend(parts);
            }
            Step::Send { thread, line } => self.send((thread, line)),
            Step::Flush { thread, line } => {
                let of_line = (0..self.visible.len()).filter(|&part| self.visible[part].line() == line);
                self.awaited[thread as usize] |= of_line.fold(0, |mask, part| mask | 1 << part);
            }
            Step::Fence { thread } => {
                (0..LINES).for_each(|line| self.send((thread, line)));
                self.persist();
                let awaited = std::mem::take(&mut self.awaited[thread as usize]);
                self.durable.retain(|durable| durable & awaited == awaited);
                self.fences[thread as usize] += 1;
            }
        }
    }

    fn send(&mut self, (thread, line): (u32, usize)) {
        for part in self.buffered.remove(&(thread, line)).unwrap_or_default() {
            self.awaited[thread as usize] |= self.before_in_line(self.visible.len(), line);
            self.visible.push(part);
            self.awaited[thread as usize] |= 1 << (self.visible.len() - 1);
        }
    }

    /// What the memory takes for a line, it takes with what was visible in the line before.
    fn before_in_line(&self, end: usize, line: usize) -> u64 {
        (0..end).filter(|&part| self.visible[part].line() == line).fold(0, |mask, part| mask | 1 << part)
    }

    /// Everything that may become durable now does, or does not.
    fn persist(&mut self) {
        let mut open: Vec<u64> = self.durable.iter().copied().collect();
        while let Some(durable) = open.pop() {
            self.images.insert(self.image(durable));
            for (number, part) in self.visible.iter().enumerate() {
                let before = self.visible[..number].iter().enumerate();
                let mut before = before.filter(|(_, earlier)| earlier.is_before(part, self.atomicity));
                let is_next = durable >> number & 1 == 0 && before.all(|(earlier, _)| durable >> earlier & 1 == 1);
                if is_next && self.durable.insert(durable | 1 << number) {
                    open.push(durable | 1 << number);
                }
            }
        }
    }

    fn image(&self, durable: u64) -> Vec<u8> {
        let mut image = vec![0; LINES * LINE];
        for (_, part) in self.visible.iter().enumerate().filter(|(number, _)| durable >> number & 1 == 1) {
            image[part.at..part.at + part.bytes.len()].copy_from_slice(&part.bytes);
        }
        image
    }
}

/// No two bytes of a program's stores are equal by chance.
fn value_of(store: usize, byte: usize) -> u8 {
    (store * 16 + byte) as u8
}

/// The same program as a record and its replay.
#[derive(Default)]
struct Replay {
    recorded: RecordedStores,
    replayed: Replayed,
    buffered: BTreeMap<(u32, usize), Vec<StoreId>>,
    flushed: BTreeMap<(u32, usize), u32>,
}

impl Replay {
    fn images_of(steps: &[Step], atomicity: usize) -> BTreeSet<Vec<u8>> {
        let line = |number: usize| LineHistory {
            virtual_line: POOL / LINE as u64 + number as u64,
            file_line: number as u64,
            physical: LineAddress(number as u64),
            versions: Vec::new(),
        };
        let file = PoolFile::of_pages([(PAGE, 0)]);
        let replayed = Replayed { file, lines: (0..LINES).map(line).collect(), ..Replayed::default() };
        let mut replay = Replay { replayed, ..Replay::default() };
        steps.iter().for_each(|step| replay.step(*step));
        for key in replay.buffered.keys().copied().collect::<Vec<_>>() {
            replay.send(key);
        }
        let Replay { recorded, replayed, .. } = replay;
        images_of(Exploration::new(Arc::new(recorded), Arc::new(replayed), atomicity))
    }

    fn store(&mut self, thread: u32, at: usize, size: usize, is_non_temporal: bool) -> StoreId {
        let number = self.recorded.stores.len() + 1;
        let bytes: Vec<u8> = (0..size).map(|byte| value_of(number, byte)).collect();
        let store = self.recorded.add_store(thread, POOL + at as u64, &bytes);
        self.recorded.stores[store as usize].is_non_temporal = is_non_temporal;
        store
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Store { thread, at, size } => {
                let store = self.store(thread, at, size, false);
                (at / LINE..=(at + size - 1) / LINE).for_each(|line| self.visible(line, vec![store]));
            }
            Step::NonTemporal { thread, at, size } => {
                let store = self.store(thread, at, size, true);
                self.buffered.entry((thread, at / LINE)).or_default().push(store);
            }
            Step::Send { thread, line } => self.send((thread, line)),
            Step::Flush { thread, line } => {
                let address = POOL + (line * LINE) as u64;
                self.recorded.add_act(thread, Act::Flush { address, operation: Operation::Flush(Flush::CLWB) });
                let visible = self.replayed.lines[line].versions.len() as u32;
                self.flushed.insert((thread, line), visible);
            }
            Step::Fence { thread } => {
                (0..LINES).for_each(|line| self.send((thread, line)));
                for line in 0..LINES {
                    if let Some(versions) = self.flushed.remove(&(thread, line)) {
                        self.happens(Change::Durable(line as LineId, versions));
                    }
                }
                self.recorded.add_act(thread, Act::Fence { operation: Operation::Fence(Fence::SFENCE) });
            }
        }
    }

    fn send(&mut self, (thread, line): (u32, usize)) {
        if let Some(stores) = self.buffered.remove(&(thread, line)) {
            self.visible(line, stores);
            self.flushed.insert((thread, line), self.replayed.lines[line].versions.len() as u32);
        }
    }

    fn visible(&mut self, line: usize, stores: Vec<StoreId>) {
        let change = self.replayed.changes.len();
        let versions = &mut self.replayed.lines[line].versions;
        versions.push(MadeVersion { version: versions.len() as u64 + 1, stores, change });
        self.happens(Change::Visible(line as LineId));
    }

    fn happens(&mut self, change: Change) {
        let now = Time::ZERO + Duration::from_ps(self.replayed.changes.len() as u64);
        self.replayed.changes.push((now, change));
    }
}

fn images_of(mut exploration: Exploration) -> BTreeSet<Vec<u8>> {
    let mut base = vec![0; LINES * LINE];
    let lay = |image: &mut Vec<u8>, patches: Vec<(u64, [u8; LINE])>| {
        for (line, bytes) in patches {
            image[line as usize * LINE..][..LINE].copy_from_slice(&bytes);
        }
    };
    let mut found = BTreeSet::new();
    while exploration.advance() {
        lay(&mut base, exploration.take_changes());
        let images = exploration.images(1 << 20, 0, None);
        assert!(images.is_all);
        for made in images.images {
            let mut image = base.clone();
            lay(&mut image, exploration.patches(&made.choice));
            found.insert(image);
        }
    }
    found
}

fn compare(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let (steps, atomicity) = (program(seed), [8, 16, 64][seed as usize % 3]);
        let (explored, modelled) = (Replay::images_of(&steps, atomicity), Machine::images_of(&steps, atomicity));
        assert!(
            explored == modelled,
            "seed {seed}, {atomicity} bytes: {} images are explored, {} possible, of {steps:?}",
            explored.len(),
            modelled.len()
        );
    }
}

#[test]
fn all_images_of_small_programs_are_those_that_an_exhaustive_model_leaves() {
    compare(0..600);
}

#[test]
#[ignore = "ten thousand programs: make slow-tests"]
fn all_images_of_ten_thousand_small_programs_are_those_that_an_exhaustive_model_leaves() {
    compare(600..10_600);
}
