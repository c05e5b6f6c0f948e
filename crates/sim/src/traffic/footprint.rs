//! Where a stream's requests go: which lines of which memory are its own.

use std::ops::Range;

use super::config::{LAST_LEVEL, SharedBy, StreamConfig};
use crate::config::topology::{DeviceId, HostId, HostNode, MemoryRange, Topology};
use crate::config::{Machine, PmSharing};
use crate::host_bridge::Interleave;
use crate::nearest::there_is_no;
use fencepost_kernel::line::{LINE_BYTES, LineAddress};

const MIB: u64 = 1 << 20;

/// The lines of a stream, numbered from 0 without gaps: equal parts of one or several ranges.
#[derive(Clone, Debug)]
pub struct Footprint {
    parts: Vec<Part>,
    part_lines: u64,
}

/// Consecutive lines of one range, or of one device in a range that several devices share.
#[derive(Clone, Debug)]
enum Part {
    Contiguous { first: u64 },
    OneWay { interleave: Interleave, way: usize, first: u64 },
}

impl Footprint {
    /// How many lines there are.
    pub fn lines(&self) -> u64 {
        self.part_lines * self.parts.len() as u64
    }

    /// Line number `index`.
    #[inline]
    pub fn line(&self, index: u64) -> LineAddress {
        let (part, offset) = match &self.parts[..] {
            [only] => (only, index),
            several => (&several[(index / self.part_lines) as usize], index % self.part_lines),
        };
        match part {
            Part::Contiguous { first } => LineAddress(first + offset),
            Part::OneWay { interleave, way, first } => interleave.host_line(*way, first + offset),
        }
    }

    /// `lines` lines from `first` on.
    pub fn contiguous(first: LineAddress, lines: u64) -> Footprint {
        Footprint { parts: vec![Part::Contiguous { first: first.0 }], part_lines: lines }
    }
}

/// Lines of memory that a host may use, before they are dealt out to its streams.
struct Memory {
    /// The first line of each part.
    parts: Vec<Part>,
    /// Lines of the smallest part.
    part_lines: u64,
}

/// The footprint of each stream of `host`: streams to the same memory lie one behind the other; those that share their
/// lines have the same ones.
///
/// # Errors
/// If there is no such memory, or it is too small for all of them; with the reason.
pub fn of_streams(machine: &Machine, host: HostId, streams: &[StreamConfig]) -> Result<Vec<Footprint>, String> {
    let mut taken: Vec<(&str, u64)> = Vec::new();
    let mut common: Option<Footprint> = None;
    streams
        .iter()
        .map(|stream| {
            if let Some(common) = common.as_ref().filter(|_| stream.shared_by != SharedBy::Stream) {
                return Ok(common.clone());
            }
            let memory = memory(machine, host, &stream.memory, stream.shared_by == SharedBy::Hosts)?;
            let request = u64::from(stream.lines_per_request());
            let wanted = stream.footprint_bytes / LINE_BYTES / memory.parts.len() as u64;
            let part_lines = wanted / request * request;
            let before = match taken.iter_mut().find(|(name, _)| *name == stream.memory) {
                Some((_, before)) => before,
                None => {
                    taken.push((&stream.memory, 0));
                    &mut taken.last_mut().expect("it has just been added").1
                }
            };
            if part_lines == 0 || *before + part_lines > memory.part_lines {
                let name = &machine.topology().hosts[host.0 as usize].name;
                let bytes = memory.part_lines * memory.parts.len() as u64 * LINE_BYTES;
                return Err(format!(
                    "the footprints of all streams of {name} to {} do not fit into the {bytes} bytes that it has there",
                    stream.memory
                ));
            }
            let footprint = memory.section(*before, part_lines);
            *before += part_lines;
            if stream.shared_by != SharedBy::Stream {
                common = Some(footprint.clone());
            }
            Ok(footprint)
        })
        .collect()
}

/// Whether streams can share what they say they share.
///
/// # Errors
/// The reason why not.
pub fn check_sharing(machine: &Machine, hosts: &[&[StreamConfig]]) -> Result<(), String> {
    let is_common = |stream: &&StreamConfig| stream.shared_by != SharedBy::Stream;
    for streams in hosts {
        let mut common = streams.iter().filter(is_common);
        if let Some(first) = common.next()
            && common.any(|other| !are_alike(first, other))
        {
            return Err(
                "streams that share their lines have the same memory, footprint and size of requests".to_owned()
            );
        }
    }
    let all = || hosts.iter().flat_map(|streams| streams.iter());
    let Some(first) = all().find(|stream| stream.shared_by == SharedBy::Hosts) else { return Ok(()) };
    if all().any(|other| !are_alike(first, other)) {
        return Err("where hosts share lines all streams do, and have the same memory, footprint and size of requests"
            .to_owned());
    }
    let topology = machine.topology();
    let is_of_kind = |range: &&MemoryRange| match first.memory.as_str() {
        "pm" => range.is_pm(),
        "expander" => !range.is_pm(),
        name => range.targets.iter().any(|device| topology.devices[device.0 as usize].name == name),
    };
    let ranges = || topology.ranges.iter().filter(is_of_kind);
    let is_own = |host: &HostNode| host.drams.iter().any(|dram| dram.name == first.memory);
    if first.memory == "dram" || topology.hosts.iter().any(is_own) {
        return Err("hosts share no DRAM: each has its own".to_owned());
    }
    if topology.pm_sharing == PmSharing::Private && ranges().any(MemoryRange::is_pm) {
        return Err("on this machine each host keeps to its own PM (fabric.pm_sharing is \"private\")".to_owned());
    }
    for (host, node) in topology.hosts.iter().enumerate() {
        let reaches = |range: &MemoryRange| topology.route(HostId(host as u32), range.targets[0]).is_some();
        if !ranges().all(reaches) {
            return Err(format!(
                "hosts share what all of them reach, and {} does not reach all {}",
                node.name, first.memory
            ));
        }
    }
    Ok(())
}

fn are_alike(one: &StreamConfig, other: &StreamConfig) -> bool {
    let shared = |stream: &StreamConfig| (stream.shared_by, stream.footprint_bytes, stream.request_bytes);
    shared(one) == shared(other) && one.memory == other.memory
}

/// How many bytes the streams of `host` have in that memory, all together.
///
/// # Errors
/// If there is no such memory.
pub fn bytes_of(machine: &Machine, host: HostId, name: &str) -> Result<u64, String> {
    let memory = memory(machine, host, name, false)?;
    Ok(memory.part_lines * memory.parts.len() as u64 * LINE_BYTES)
}

impl Memory {
    /// `lines` lines of each part, from number `first` on.
    fn section(self, first: u64, lines: u64) -> Footprint {
        let parts = self.parts.into_iter().map(|part| match part {
            Part::Contiguous { first: start } => Part::Contiguous { first: start + first },
            Part::OneWay { interleave, way, first: start } => Part::OneWay { interleave, way, first: start + first },
        });
        Footprint { parts: parts.collect(), part_lines: lines }
    }
}

/// What `host` has in that memory for itself, or all of it.
fn memory(machine: &Machine, host: HostId, name: &str, whole: bool) -> Result<Memory, String> {
    let topology = machine.topology();
    let host_node = &topology.hosts[host.0 as usize];
    let own: Vec<_> = host_node.drams.iter().filter(|dram| name == "dram" || name == dram.name).collect();
    if !own.is_empty() {
        let parts = own.iter().map(|dram| Part::Contiguous { first: dram.addresses.start / LINE_BYTES });
        return Ok(Memory { parts: parts.collect(), part_lines: machine.dram.capacity_mib * MIB / LINE_BYTES });
    } else if name == "dram" {
        return Err(format!("{} has no DRAM of its own", host_node.name));
    }
    if name == LAST_LEVEL {
        let levels = machine.cache_levels();
        let (_, last) = levels.lower.last().ok_or("the host has one level of caches, and no last one beside it")?;
        let part_lines = u64::from(last.size_kib) * 1024 / LINE_BYTES;
        return Ok(Memory { parts: vec![Part::Contiguous { first: 0 }], part_lines });
    }
    let frames = match name {
        "expander" => without(frames(topology, host, false, whole), |frame| is_of_accelerator(topology, frame)),
        "accelerator" => {
            let all = [true, false].map(|of_pm| frames(topology, host, of_pm, whole)).concat();
            without(all, |frame| !is_of_accelerator(topology, frame))
        }
        "pm" => without(frames(topology, host, true, whole), |frame| is_of_accelerator(topology, frame)),
        device => return named_device(topology, host, device, whole),
    };
    let lines = |frame: &Range<u64>| (frame.end - frame.start) / LINE_BYTES;
    let Some(part_lines) = frames.iter().map(lines).min() else {
        let kind = match name {
            "pm" => "PM device",
            "accelerator" => "accelerator",
            _ => "memory expander",
        };
        return Err(format!("{} reaches no {kind}", host_node.name));
    };
    let parts = frames.iter().map(|frame| Part::Contiguous { first: frame.start / LINE_BYTES }).collect();
    Ok(Memory { parts, part_lines })
}

/// The frames that are not such.
fn without(mut frames: Vec<Range<u64>>, such: impl Fn(&Range<u64>) -> bool) -> Vec<Range<u64>> {
    frames.retain(|frame| !such(frame));
    frames
}

fn is_of_accelerator(topology: &Topology, frame: &Range<u64>) -> bool {
    let of_accelerators = topology.ranges.iter().filter(|range| topology.is_accelerator(range.targets[0]));
    of_accelerators.map(|range| range.base..range.base + range.bytes).any(|range| range.contains(&frame.start))
}

/// The addresses of PM, or of expanders and accelerators, that are the host's own, or of all that it reaches.
fn frames(topology: &Topology, host: HostId, of_pm: bool, whole: bool) -> Vec<Range<u64>> {
    match (whole, of_pm) {
        (false, true) => topology.frames_of(host),
        (false, false) => topology.expander_frames_of(host),
        (true, _) => {
            let reached =
                |range: &&MemoryRange| range.is_pm() == of_pm && topology.route(host, range.targets[0]).is_some();
            topology.ranges.iter().filter(reached).map(|range| range.base..range.base + range.bytes).collect()
        }
    }
}

fn named_device(topology: &Topology, host: HostId, name: &str, whole: bool) -> Result<Memory, String> {
    let Some(index) = topology.devices.iter().position(|device| device.name == name) else {
        let devices = topology.devices.iter().map(|device| device.name.as_str());
        let names: Vec<&str> = ["dram", "pm", "expander", "accelerator"].into_iter().chain(devices).collect();
        return Err(there_is_no("memory", name, &names));
    };
    let device = DeviceId(index as u32);
    let frames = frames(topology, host, topology.is_pm(device), whole);
    let host_name = &topology.hosts[host.0 as usize].name;
    one_device(topology, &frames, device).ok_or_else(|| format!("{host_name} does not reach {name}"))
}

/// The lines of one device within the frames of memory like it that are the host's own.
fn one_device(topology: &Topology, frames: &[Range<u64>], device: DeviceId) -> Option<Memory> {
    let range = topology.ranges.iter().find(|range| range.targets.contains(&device))?;
    let frame = frames.iter().find(|frame| (range.base..range.base + range.bytes).contains(&frame.start))?;
    let way = range.targets.iter().position(|target| *target == device)?;
    let ways = range.interleave.ways();
    // A host's share of a range may begin within a block; only blocks that are wholly its own count.
    let stride = range.interleave.block_bytes() * ways;
    let first = (frame.start - range.base).div_ceil(stride) * stride / ways;
    let end = (frame.end - range.base) / stride * stride / ways;
    let part = Part::OneWay { interleave: range.interleave, way, first: first / LINE_BYTES };
    Some(Memory { parts: vec![part], part_lines: end.saturating_sub(first) / LINE_BYTES })
}
