//! The state of a line of device memory everywhere, packed into a word.

use fencepost_sim::device::type2::device_memory::host::{Serving, Transaction};
use fencepost_sim::device::type2::device_memory::{Ask, Completion, MemRequest, Meta, device, host};
use fencepost_sim::device::type2::messages::CacheState;

use super::super::predicates::{DATA_VALUE, Looks, NO_LOST_WRITE, SINGLE_WRITER};
use super::super::world::Fresh;

const STALE: Fresh = Fresh(0);

/// Everything about the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// The device's engine.
    pub device: device::Line<Fresh>,
    /// The host's side.
    pub host: host::Line<Fresh>,
    /// M2S requests, in order.
    pub requests: [Option<MemRequest>; 2],
    /// M2S request with data.
    pub write: Option<(Fresh, Meta)>,
    /// Whether it comes past the host's caches: then it is what the line holds once it is in memory.
    pub is_around: bool,
    /// `BIConflict`.
    pub conflict: bool,
    /// M2S answer to a snoop.
    pub bi_rsp: Option<Meta>,
    /// What the device asks, by CXL.cache or a snoop.
    pub ask: Option<Ask>,
    /// S2M answers without data, in order.
    pub completions: [Option<Completion>; 2],
    /// S2M answer with data.
    pub data: Option<Fresh>,
}

const REQUESTS: [MemRequest; 6] = [
    MemRequest::Read,
    MemRequest::ReadOwn,
    MemRequest::Invalidate,
    MemRequest::Forward(Meta::Invalid),
    MemRequest::Forward(Meta::Shared),
    MemRequest::Forward(Meta::Any),
];

const TRANSACTIONS: [Transaction; 4] = [
    Transaction::Request(MemRequest::Read),
    Transaction::Request(MemRequest::ReadOwn),
    Transaction::Request(MemRequest::Invalidate),
    Transaction::Write,
];

const SERVINGS: [Serving; 6] = [
    Serving::Writing(Ask::Share),
    Serving::Writing(Ask::Own),
    Serving::Resolving(Ask::Share),
    Serving::Resolving(Ask::Own),
    Serving::AfterData(Ask::Share),
    Serving::AfterData(Ask::Own),
];

const DATA: [Fresh; 2] = [STALE, Fresh::NEWEST];

/// Digits of a number, each with a base of its own: written, or read.
struct Digits {
    number: u64,
    scale: u64,
}

impl Digits {
    fn put<T: PartialEq>(&mut self, all: &[T], value: &T) {
        let index = all.iter().position(|one| one == value).expect("it is one of all");
        self.number += index as u64 * self.scale;
        self.scale = self.scale.checked_mul(all.len() as u64).expect("a state fits into a word");
    }

    fn put_option<T: PartialEq + Copy>(&mut self, all: &[T], value: Option<T>) {
        let index = value.map_or(0, |value| 1 + all.iter().position(|one| *one == value).expect("it is one of all"));
        self.number += index as u64 * self.scale;
        self.scale = self.scale.checked_mul(all.len() as u64 + 1).expect("a state fits into a word");
    }

    fn get<T: Copy>(&mut self, all: &[T]) -> T {
        let index = self.number % all.len() as u64;
        self.number /= all.len() as u64;
        all[index as usize]
    }

    fn get_option<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let index = self.number % (all.len() as u64 + 1);
        self.number /= all.len() as u64 + 1;
        index.checked_sub(1).map(|index| all[index as usize])
    }
}

fn writes() -> [(Fresh, Meta); 6] {
    let mut all = [(STALE, Meta::Invalid); 6];
    for (index, write) in all.iter_mut().enumerate() {
        *write = (DATA[index % 2], Meta::ALL[index / 2]);
    }
    all
}

impl World {
    /// Only memory holds anything.
    pub fn initial() -> World {
        World {
            device: device::Line { data: STALE, ..device::Line::new(Fresh::NEWEST) },
            host: host::Line::new(STALE),
            requests: [None; 2],
            write: None,
            is_around: false,
            conflict: false,
            bi_rsp: None,
            ask: None,
            completions: [None; 2],
            data: None,
        }
    }

    /// As a number.
    pub fn pack(&self) -> u64 {
        let mut digits = Digits { number: 0, scale: 1 };
        let World { device, host, .. } = self;
        digits.put(&DATA, &device.memory);
        digits.put(&Meta::ALL, &device.host);
        digits.put(&CacheState::ALL, &device.cache);
        digits.put(&DATA, &device.data);
        digits.put_option(&Ask::ALL, device.asked);
        digits.put(&CacheState::ALL, &host.state);
        digits.put(&DATA, &host.data);
        digits.put_option(&TRANSACTIONS, host.transaction);
        digits.put_option(&CacheState::ALL, host.granted);
        digits.put_option(&DATA, host.arrived);
        digits.put_option(&SERVINGS, host.serving);
        self.requests.iter().for_each(|request| digits.put_option(&REQUESTS, *request));
        digits.put_option(&writes(), self.write);
        digits.put(&[false, true], &self.is_around);
        digits.put(&[false, true], &self.conflict);
        digits.put_option(&Meta::ALL, self.bi_rsp);
        digits.put_option(&Ask::ALL, self.ask);
        self.completions.iter().for_each(|completion| digits.put_option(&Completion::ALL, *completion));
        digits.put_option(&DATA, self.data);
        digits.number
    }

    /// From a number.
    pub fn unpack(number: u64) -> World {
        let mut digits = Digits { number, scale: 1 };
        let digits = &mut digits;
        World {
            device: device::Line {
                memory: digits.get(&DATA),
                host: digits.get(&Meta::ALL),
                cache: digits.get(&CacheState::ALL),
                data: digits.get(&DATA),
                asked: digits.get_option(&Ask::ALL),
            },
            host: host::Line {
                state: digits.get(&CacheState::ALL),
                data: digits.get(&DATA),
                transaction: digits.get_option(&TRANSACTIONS),
                granted: digits.get_option(&CacheState::ALL),
                arrived: digits.get_option(&DATA),
                serving: digits.get_option(&SERVINGS),
            },
            requests: [digits.get_option(&REQUESTS), digits.get_option(&REQUESTS)],
            write: digits.get_option(&writes()),
            is_around: digits.get(&[false, true]),
            conflict: digits.get(&[false, true]),
            bi_rsp: digits.get_option(&Meta::ALL),
            ask: digits.get_option(&Ask::ALL),
            completions: [digits.get_option(&Completion::ALL), digits.get_option(&Completion::ALL)],
            data: digits.get_option(&DATA),
        }
    }

    /// The line is written somewhere: all else that there is of it is stale.
    pub fn outdate(&mut self) {
        for data in [&mut self.device.memory, &mut self.device.data, &mut self.host.data] {
            *data = STALE;
        }
        self.host.arrived.iter_mut().for_each(|data| *data = STALE);
        self.write.iter_mut().for_each(|(data, _)| *data = STALE);
        self.data.iter_mut().for_each(|data| *data = STALE);
    }

    /// What an invalid copy holds is taken to be stale.
    pub fn forget_invalid(&mut self) {
        if self.device.cache == CacheState::Invalid {
            self.device.data = STALE;
        }
        if self.host.state == CacheState::Invalid {
            self.host.data = STALE;
        }
    }

    /// Whether no message is on its way, and nothing waits for one.
    pub fn is_at_rest(&self) -> bool {
        let nothing = World { device: self.device, host: self.host, ..World::initial() };
        *self == nothing
            && self.device.asked.is_none()
            && self.host.transaction.is_none()
            && self.host.serving.is_none()
    }

    /// The first predicate that the state breaks.
    pub fn broken(&self, looks: Looks) -> Option<&'static str> {
        let copies = [(self.device.cache, self.device.data), (self.host.state, self.host.data)];
        let valid = || copies.iter().filter(|(state, _)| *state != CacheState::Invalid);
        if looks.at(&SINGLE_WRITER) && valid().any(|(state, _)| state.is_owner()) && valid().count() > 1 {
            return Some(SINGLE_WRITER.name);
        }
        if looks.at(&DATA_VALUE) && valid().any(|(_, data)| *data != Fresh::NEWEST) {
            return Some(DATA_VALUE.name);
        }
        let is_modified = copies.iter().any(|(state, _)| *state == CacheState::Modified);
        if looks.at(&NO_LOST_WRITE) && self.is_at_rest() && !is_modified && self.device.memory != Fresh::NEWEST {
            return Some(NO_LOST_WRITE.name);
        }
        None
    }

    /// What both have of the line.
    pub fn shown(&self) -> String {
        let copy = |state: CacheState, data: Fresh| match (state, data) {
            (CacheState::Invalid, _) => "I".to_owned(),
            (_, Fresh::NEWEST) => state.letter().to_string(),
            _ => format!("{} stale", state.letter()),
        };
        let memory = if self.device.memory == Fresh::NEWEST { "newest" } else { "stale" };
        let asked = self.device.asked.map_or_else(String::new, |ask| format!(", has asked to {ask:?}"));
        let waits = self.host.transaction.map_or_else(String::new, |transaction| format!(", waits: {transaction:?}"));
        let serving = self.host.serving.map_or_else(String::new, |serving| format!(", serving: {serving:?}"));
        format!(
            "[device {}{asked}, knows the host as {:?}; memory {memory}; host {}{waits}{serving}]",
            copy(self.device.cache, self.device.data),
            self.device.host,
            copy(self.host.state, self.host.data),
        )
    }
}
