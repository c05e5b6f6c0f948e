//! A state as a few words, one for all states that only differ in which device, core or line is which.
//!
//! Each device, each core and the host's side of each line have a number of a fixed width. A copy that is invalid has
//! no data. Sorting the numbers of devices and those of cores, for every
//! order of the lines, and taking the least gives the representative; nothing refers to a device or core by its place,
//! because who is served is marked at its own.

use fencepost_sim::device::type2::dcoh::{self, Transaction, Waits};
use fencepost_sim::device::type2::host_side::{
    Access, Awaited, Core, Device as Seen, Holds, LastLevel, Phase, Requester, Service,
};
use fencepost_sim::device::type2::messages::{CacheState, Pulled, Request, Response, Snoop, SnoopResponse};

use super::bounds::{CORES_MAX, DEVICES_MAX, LINES_MAX};
use super::world::{Channels, Device, Fresh, Line, World};
use crate::exploration::Words;

const DEVICE_BITS: u32 = 33;
const CORE_BITS: u32 = 7;
const HOST_BITS: u32 = 14;

/// Nothing, or an access that waits or is served.
const ACCESSES: u64 = 1 + 2 * Access::ALL.len() as u64;

/// How many bits the states of so many devices, cores and lines take.
pub fn bits([devices, cores, lines]: [usize; 3]) -> u32 {
    lines as u32 * (devices as u32 * DEVICE_BITS + cores as u32 * CORE_BITS + HOST_BITS)
}

/// Writes fields into a number: each is a digit with a base of its own.
struct Writer {
    number: u64,
    scale: u64,
}

impl Writer {
    fn new() -> Writer {
        Writer { number: 0, scale: 1 }
    }

    #[inline(always)]
    fn put(&mut self, value: usize, base: u64) {
        debug_assert!((value as u64) < base);
        self.number += value as u64 * self.scale;
        self.scale *= base;
    }

    fn finish(self, bits: u32) -> u64 {
        debug_assert!(self.scale <= 1 << bits);
        self.number
    }
}

/// Reads them back.
struct Reader(u64);

impl Reader {
    #[inline(always)]
    fn get(&mut self, base: u64) -> usize {
        let value = self.0 % base;
        self.0 /= base;
        value as usize
    }
}

/// One of `all`, or nothing for 0.
fn one_of<T: Copy>(all: &[T], number: usize) -> Option<T> {
    number.checked_sub(1).map(|index| all[index])
}

/// 0 stands for nothing.
fn data_number(data: Option<Fresh>) -> usize {
    data.map_or(0, |data| usize::from(data.0) + 1)
}

fn data_of(number: usize) -> Option<Fresh> {
    number.checked_sub(1).map(|data| Fresh(data as u8))
}

/// A copy: 0 is an invalid one.
fn copy_number(state: CacheState, data: Fresh) -> usize {
    match state {
        CacheState::Invalid => 0,
        _ => 1 + (state as usize - 1) * 4 + usize::from(data.0),
    }
}

fn copy_of(number: usize) -> (CacheState, Fresh) {
    number
        .checked_sub(1)
        .map_or((CacheState::Invalid, Fresh(0)), |copy| (CacheState::ALL[1 + copy / 4], Fresh((copy % 4) as u8)))
}

fn waits_number(waits: Waits<Fresh>) -> usize {
    match waits {
        Waits::All => 0,
        Waits::Completion => 1,
        Waits::Data { granted } => 2 + granted as usize,
        Waits::Go { data } => 6 + usize::from(data.0),
    }
}

fn waits_of(number: usize) -> Waits<Fresh> {
    match number {
        0 => Waits::All,
        1 => Waits::Completion,
        2..6 => Waits::Data { granted: CacheState::ALL[number - 2] },
        _ => Waits::Go { data: Fresh(number as u8 - 6) },
    }
}

fn device_number(line: &Line, number: usize) -> u64 {
    let Device { line: own, channels } = &line.devices[number];
    let seen = line.host.devices[number];
    let served = line.host.service.map(|service| service.requester);
    let is_served = matches!(served, Some(Requester::Device(of, _)) if of == number);
    let pulled = |pulled: Pulled<Fresh>| 1 + usize::from(pulled.data.0) + 4 * usize::from(pulled.is_bogus);
    let mut writer = Writer::new();
    writer.put(copy_number(own.state, own.data), 13);
    writer.put(own.transaction.map_or(0, |transaction| transaction.request as usize + 1), 16);
    writer.put(own.transaction.map_or(0, |transaction| waits_number(transaction.waits)), 10);
    writer.put(channels.request.into(), 2);
    writer.put(channels.snoop.map_or(0, |snoop| snoop as usize + 1), 4);
    writer.put(channels.response.map_or(0, |response| response.number() + 1), 10);
    writer.put(data_number(channels.data), 5);
    writer.put(channels.snoop_response.map_or(0, |response| response as usize + 1), 8);
    writer.put(data_number(channels.snooped), 5);
    writer.put(channels.pulled.map_or(0, pulled), 9);
    writer.put(seen.holds as usize, 3);
    writer.put(seen.awaited as usize, 4);
    writer.put(is_served.into(), 2);
    writer.finish(DEVICE_BITS)
}

/// Puts a device in its place. Whether it is served.
fn read_device(line: &mut Line, place: usize, number: u64) -> bool {
    let mut reader = Reader(number);
    let (state, data) = copy_of(reader.get(13));
    let request = one_of(&Request::ALL, reader.get(16));
    let waits = waits_of(reader.get(10));
    let transaction = request.map(|request| Transaction { request, waits });
    let channels = Channels {
        request: reader.get(2) == 1,
        snoop: one_of(&Snoop::ALL, reader.get(4)),
        response: one_of(&Response::ALL, reader.get(10)),
        data: data_of(reader.get(5)),
        snoop_response: one_of(&SnoopResponse::ALL, reader.get(8)),
        snooped: data_of(reader.get(5)),
        pulled: reader
            .get(9)
            .checked_sub(1)
            .map(|pulled| Pulled { data: Fresh((pulled % 4) as u8), is_bogus: pulled / 4 == 1 }),
    };
    line.devices[place] = Device { line: dcoh::Line { state, data, transaction }, channels };
    let holds = [Holds::Nothing, Holds::Shared, Holds::Owner][reader.get(3)];
    let awaited = [Awaited::Nothing, Awaited::Response, Awaited::ResponseAfterData, Awaited::Data][reader.get(4)];
    line.host.devices[place] = Seen { holds, awaited };
    reader.get(2) == 1
}

fn core_number(line: &Line, number: usize) -> u64 {
    let Core { state, data, access } = line.host.cores[number];
    let served = line.host.service.map(|service| service.requester);
    let is_served = matches!(served, Some(Requester::Core(of, _)) if of == number);
    let access = access.map_or(0, |access| 1 + access as usize + Access::ALL.len() * usize::from(is_served));
    let mut writer = Writer::new();
    writer.put(copy_number(state, data), 13);
    writer.put(access, ACCESSES);
    writer.finish(CORE_BITS)
}

/// Puts a core in its place. Whether it is served.
fn read_core(line: &mut Line, place: usize, number: u64) -> bool {
    let mut reader = Reader(number);
    let (state, data) = copy_of(reader.get(13));
    let access = reader.get(ACCESSES);
    line.host.cores[place] =
        Core { state, data, access: access.checked_sub(1).map(|access| Access::ALL[access % Access::ALL.len()]) };
    access > Access::ALL.len()
}

fn host_number(line: &Line) -> u64 {
    let host = &line.host;
    let service = host.service.map_or(0, |service| match service.requester {
        Requester::Device(_, request) => 1 + request as usize,
        Requester::Core(..) => 16,
    });
    let phase = host.service.map_or(0, |service| match service.phase {
        Phase::Snooping => usize::from(service.takes_second_answer),
        Phase::Pulling => 2,
        Phase::PullingBeforeCompletion => 3,
    });
    let last_level = match host.last_level {
        LastLevel::Nothing => 0,
        LastLevel::Clean(data) => 1 + usize::from(data.0),
        LastLevel::Dirty(data) => 5 + usize::from(data.0),
    };
    let mut writer = Writer::new();
    writer.put(service, 17);
    writer.put(phase, 4);
    writer.put(data_number(host.service.and_then(|service| service.current)), 5);
    writer.put(last_level, 9);
    writer.put(host.memory.0.into(), 4);
    writer.finish(HOST_BITS)
}

/// Reads the host's side; `device` and `core` are those that are served.
fn read_host(line: &mut Line, number: u64, device: Option<usize>, core: Option<usize>) {
    let mut reader = Reader(number);
    let service = reader.get(17);
    let phase = reader.get(4);
    let current = data_of(reader.get(5));
    let requester = match (device, core, one_of(&Request::ALL, service % 16)) {
        (Some(device), _, Some(request)) => Some(Requester::Device(device, request)),
        (_, Some(core), _) => line.host.cores[core].access.map(|access| Requester::Core(core, access)),
        _ => None,
    };
    line.host.service = requester.map(|requester| Service {
        requester,
        phase: [Phase::Snooping, Phase::Snooping, Phase::Pulling, Phase::PullingBeforeCompletion][phase],
        current,
        takes_second_answer: phase == 1,
    });
    line.host.last_level = match reader.get(9) {
        0 => LastLevel::Nothing,
        data @ 1..5 => LastLevel::Clean(Fresh(data as u8 - 1)),
        data => LastLevel::Dirty(Fresh(data as u8 - 5)),
    };
    line.host.memory = Fresh(reader.get(4) as u8);
}

/// Packs and unpacks states of so many devices, cores and lines.
#[derive(Clone, Copy, Debug)]
pub struct Packer {
    sizes: [usize; 3],
    has_symmetry: bool,
}

impl Packer {
    /// For these sizes; with `has_symmetry`, one representative stands for all states that behave alike.
    pub fn new(sizes: [usize; 3], has_symmetry: bool) -> Packer {
        Packer { sizes, has_symmetry }
    }

    /// The words of a state.
    pub fn pack<const K: usize>(&self, world: &World) -> Words<K> {
        let [devices, cores, lines] = self.sizes;
        let mut hosts = [0; LINES_MAX];
        let mut of_devices = [[0; LINES_MAX]; DEVICES_MAX];
        let mut of_cores = [[0; LINES_MAX]; CORES_MAX];
        for (number, line) in world.lines[..lines].iter().enumerate() {
            hosts[number] = host_number(line);
            (0..devices).for_each(|device| of_devices[device][number] = device_number(line, device));
            (0..cores).for_each(|core| of_cores[core][number] = core_number(line, core));
        }
        let words = self.arranged(hosts, of_devices, of_cores);
        if !self.has_symmetry || lines == 1 {
            return words;
        }
        hosts.reverse();
        of_devices.iter_mut().for_each(|lines| lines.reverse());
        of_cores.iter_mut().for_each(|lines| lines.reverse());
        words.min(self.arranged(hosts, of_devices, of_cores))
    }

    fn arranged<const K: usize>(
        &self,
        hosts: [u64; LINES_MAX],
        mut of_devices: [[u64; LINES_MAX]; DEVICES_MAX],
        mut of_cores: [[u64; LINES_MAX]; CORES_MAX],
    ) -> Words<K> {
        let [devices, cores, lines] = self.sizes;
        if self.has_symmetry {
            of_devices[..devices].sort_unstable();
            of_cores[..cores].sort_unstable();
        }
        let mut words = [0; K];
        let mut at = 0;
        let mut put = |number: u64, bits: u32| {
            let (word, shift) = (at as usize / 64, at % 64);
            words[word] |= number << shift;
            if shift + bits > 64 {
                words[word + 1] |= number >> (64 - shift);
            }
            at += bits;
        };
        for (line, host) in hosts.iter().enumerate().take(lines) {
            put(*host, HOST_BITS);
            of_devices[..devices].iter().for_each(|device| put(device[line], DEVICE_BITS));
            of_cores[..cores].iter().for_each(|core| put(core[line], CORE_BITS));
        }
        words
    }

    /// The state of these words.
    pub fn unpack<const K: usize>(&self, words: &Words<K>) -> World {
        let [devices, cores, lines] = self.sizes;
        let mut world = World::initial();
        let mut at = 0;
        let mut get = |bits: u32| {
            let (word, shift) = (at as usize / 64, at % 64);
            let mut number = words[word] >> shift;
            if shift + bits > 64 {
                number |= words[word + 1] << (64 - shift);
            }
            at += bits;
            number & ((1 << bits) - 1)
        };
        for line in &mut world.lines[..lines] {
            let host = get(HOST_BITS);
            let (mut device, mut core) = (None, None);
            for place in 0..devices {
                if read_device(line, place, get(DEVICE_BITS)) {
                    device = Some(place);
                }
            }
            for place in 0..cores {
                if read_core(line, place, get(CORE_BITS)) {
                    core = Some(place);
                }
            }
            read_host(line, host, device, core);
        }
        world
    }
}

const _: () = assert!(LINES_MAX == 2, "two lines have two orders");
