//! What a recorded redis-server did: its pages when the load was over, and for each request the lines it touched.
//!
//! A request is a turn of the server's event loop in which it read and wrote: from one `epoll_wait` to the next. The
//! requests that are measured are the last ones, since the client waits for each answer and sends nothing behind them.

use fencepost_record::{Event, Frame, PmSelector, Record, RecordError, SlotKind, ThreadId};
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::page::{Bytes, LINES, PAGE};

// System calls of x86-64.
const READ: u64 = 0;
const WRITE: u64 = 1;
const WRITEV: u64 = 20;
const EPOLL_WAIT: u64 = 232;
const OPENAT: u64 = 257;
const EPOLL_PWAIT: u64 = 281;

/// The thread that serves.
const SERVER: ThreadId = ThreadId(0);

/// Why a record is none of a service.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// It cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// It has fewer requests than the client sent.
    #[error("the record has {found} answered requests and not {expected}")]
    TooFew {
        /// In the record.
        found: usize,
        /// That the client counted.
        expected: usize,
    },
}

/// A line that an operation touches: its number in the upper 31 bits, and whether it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch(u32);

impl Touch {
    /// Of that line.
    #[must_use]
    pub fn new(line: u32, writes: bool) -> Self {
        Self(line << 1 | u32::from(writes))
    }

    /// Number of the page times 64, and that of the line in it.
    #[must_use]
    pub fn line(self) -> u32 {
        self.0 >> 1
    }

    /// The page.
    #[must_use]
    pub fn page(self) -> u32 {
        self.line() / LINES
    }

    /// Whether it is written.
    #[must_use]
    pub fn writes(self) -> bool {
        self.0 & 1 == 1
    }
}

/// What an operation does to memory: each line once, in the order of first touches.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// Instructions of the program.
    pub instructions: u64,
    /// Lines.
    pub touches: Vec<Touch>,
    /// Whether the server did what it does once a second too (it looks at its size in `/proc` then).
    pub has_clock_event: bool,
}

/// A page of the service.
#[derive(Clone, Debug)]
pub struct ServicePage {
    /// Its virtual address over the size of a page.
    pub address: u64,
    /// Whether it is anonymous memory, which zswap and ksm are about; others stay where they are.
    pub is_anonymous: bool,
    /// Whether the program has touched it when the measured operations begin.
    pub is_loaded: bool,
    /// What it holds when they begin, or if it is not there yet, when they end; none if it is never touched.
    pub contents: Option<Box<Bytes>>,
}

/// All of a record.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// By number.
    pub pages: Vec<ServicePage>,
    /// In order.
    pub operations: Vec<Operation>,
    /// The server's instructions before the first of them, and behind the last.
    pub instructions: (u64, u64),
}

impl Service {
    /// Reads a record; `requests` are how many each measured operation had.
    ///
    /// # Errors
    /// If the record cannot be read or is of something else.
    pub fn read(record: &Record, requests: &[u32]) -> Result<Self, ServiceError> {
        let expected = requests.iter().sum::<u32>() as usize;
        let turns = answered_turns(record)?;
        let too_few = ServiceError::TooFew { found: turns.len(), expected };
        let measured = turns.len().checked_sub(expected).map(|first| turns[first..].to_vec()).ok_or(too_few)?;
        let heap = record.memory_map()?.select(&PmSelector::Heap);
        let mut walk = Walk { measured, ..Walk::default() };
        let mut reader = record.reader(SERVER);
        let mut frame = Frame::default();
        while reader.next_frame(&mut frame)? {
            walk.frame(record, &frame);
        }
        walk.end_turn();
        let mut service = walk.service;
        let pages = walk.addresses.iter().zip(walk.contents).zip(0..);
        service.pages = pages
            .map(|((&address, contents), number)| ServicePage {
                address: address / PAGE as u64,
                is_anonymous: heap.contains(address),
                is_loaded: walk.is_loaded.get(number) == Some(&true),
                contents,
            })
            .collect();
        service.operations = joined(service.operations, requests);
        Ok(service)
    }
}

/// Operations of several requests as one.
fn joined(turns: Vec<Operation>, requests: &[u32]) -> Vec<Operation> {
    let mut turns = turns.into_iter();
    let join = |&count: &u32| {
        turns.by_ref().take(count as usize).fold(Operation::default(), |mut all, one| {
            all.instructions += one.instructions;
            all.touches.extend(one.touches);
            all.has_clock_event |= one.has_clock_event;
            all
        })
    };
    requests.iter().map(join).collect()
}

/// The turns of the event loop in which something was read and written, by number.
fn answered_turns(record: &Record) -> Result<Vec<u32>, RecordError> {
    let (mut turn, mut has_read, mut has_written) = (0, false, false);
    let mut answered = Vec::new();
    record.visit_events(|thread, event| {
        let &Event::SystemCall { number, result } = event else { return };
        if thread != SERVER {
            return;
        }
        match number {
            READ => has_read |= result > 0,
            WRITE | WRITEV => has_written |= result > 0 && has_read,
            EPOLL_WAIT | EPOLL_PWAIT => {
                if has_read && has_written {
                    answered.push(turn);
                }
                turn += 1;
                (has_read, has_written) = (false, false);
            }
            _ => {}
        }
    })?;
    Ok(answered)
}

#[derive(Default)]
struct Walk {
    service: Service,
    /// Turns that are measured, ascending.
    measured: Vec<u32>,
    turn: u32,
    instructions: u64,
    /// The operation of the present turn, where that is measured.
    current: Option<Operation>,
    numbers: FxHashMap<u64, u32>,
    addresses: Vec<u64>,
    contents: Vec<Option<Box<Bytes>>>,
    /// By page, of those that are known when the measured operations begin: whether it is there then.
    is_loaded: Vec<bool>,
    /// By line: one more than its place in the present operation, and that operation's turn.
    places: Vec<(u32, u32)>,
}

impl Walk {
    fn frame(&mut self, record: &Record, frame: &Frame) {
        let mut events = frame.events.iter();
        let mut written = frame.written.iter().peekable();
        let mut first = 0;
        for &step in &frame.steps {
            if step == 0 {
                events.next().into_iter().for_each(|event| self.event(event));
                continue;
            }
            let block = record.program().block(step);
            self.instructions += block.instruction_count() as u64;
            if let Some(current) = &mut self.current {
                current.instructions += block.instruction_count() as u64;
            }
            let mut is_second = false;
            for (index, slot) in block.slots.iter().enumerate() {
                let value = frame.slots[first + index];
                let is_first_of_pair = slot.kind.is_string() && !is_second;
                if is_second {
                    is_second = false;
                    continue;
                }
                is_second = is_first_of_pair;
                let (address, bytes) = if is_first_of_pair {
                    let end = frame.slots[first + index + 1];
                    (value.min(end), value.abs_diff(end))
                } else {
                    (value, u64::from(slot.size))
                };
                let writes = slot.kind.writes();
                if !matches!(slot.kind, SlotKind::Flush | SlotKind::Prefetch) && address != 0 && bytes != 0 {
                    self.touch(address, bytes, writes);
                }
                if let Some(value) = written.next_if(|value| value.slot as usize == first + index) {
                    self.store(address, &frame.values[value.start as usize..][..value.length as usize]);
                }
            }
            first += block.slots.len();
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::InitialBytes { address, bytes } => self.store(*address, bytes),
            Event::KernelWrite { address, bytes } => {
                self.touch(*address, bytes.len() as u64, true);
                self.store(*address, bytes);
            }
            Event::Unmap { start, length, .. } => self.forget(*start, *length),
            Event::SystemCall { number: OPENAT, .. } => {
                self.current.iter_mut().for_each(|current| current.has_clock_event = true);
            }
            Event::SystemCall { number: EPOLL_WAIT | EPOLL_PWAIT, .. } => {
                self.end_turn();
                self.turn += 1;
                if self.measured.binary_search(&self.turn).is_ok() {
                    if self.service.operations.is_empty() {
                        self.service.instructions.0 = self.instructions;
                        self.is_loaded = self.contents.iter().map(Option::is_some).collect();
                    }
                    self.current = Some(Operation::default());
                }
            }
            _ => {}
        }
    }

    fn end_turn(&mut self) {
        if let Some(operation) = self.current.take() {
            self.service.operations.push(operation);
            self.service.instructions.1 = self.instructions;
        }
    }

    fn number(&mut self, address: u64) -> u32 {
        let page = address / PAGE as u64;
        *self.numbers.entry(page).or_insert_with(|| {
            self.addresses.push(page * PAGE as u64);
            self.contents.push(None);
            self.places.resize(self.addresses.len() * LINES as usize, (0, 0));
            self.addresses.len() as u32 - 1
        })
    }

    fn is_before(&self) -> bool {
        self.current.is_none() && self.service.operations.is_empty()
    }

    /// Whether it is there when the measured operations begin, which have begun.
    fn is_loaded(&self, page: u32) -> bool {
        self.is_loaded.get(page as usize) == Some(&true)
    }

    fn touch(&mut self, address: u64, bytes: u64, writes: bool) {
        let last = address.saturating_add(bytes - 1) / 64;
        for line in address / 64..=last {
            let page = self.number(line * 64);
            if !self.is_loaded(page) {
                self.contents[page as usize].get_or_insert_with(|| Box::new([0; PAGE]));
            }
            let Some(current) = &mut self.current else { continue };
            let number = page * LINES + (line % u64::from(LINES)) as u32;
            let (turn, place) = &mut self.places[number as usize];
            if *turn == self.turn && *place > 0 {
                let known = &mut current.touches[*place as usize - 1];
                *known = Touch::new(number, known.writes() || writes);
            } else {
                current.touches.push(Touch::new(number, writes));
                (*turn, *place) = (self.turn, current.touches.len() as u32);
            }
        }
    }

    /// Bytes that come to lie in memory: before the measured operations, or in a page that these bring about.
    fn store(&mut self, address: u64, bytes: &[u8]) {
        let mut address = address;
        let mut rest = bytes;
        while !rest.is_empty() {
            let place = (address % PAGE as u64) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE - place));
            let page = self.number(address);
            if !self.is_loaded(page) {
                let contents = self.contents[page as usize].get_or_insert_with(|| Box::new([0; PAGE]));
                contents[place..place + now.len()].copy_from_slice(now);
            }
            address += now.len() as u64;
            rest = later;
        }
    }

    fn forget(&mut self, start: u64, length: u64) {
        for page in start / PAGE as u64..(start + length).div_ceil(PAGE as u64) {
            if let Some(&number) = self.numbers.get(&page)
                && self.is_before()
            {
                self.contents[number as usize] = None;
            }
        }
    }
}
