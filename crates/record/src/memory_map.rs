//! What lay where in the program's address space, and when: made from the mapping events of all threads.

use std::collections::BTreeMap;

use serde::Serialize;

use super::address_ranges::{AddressRange, AddressRanges};
use super::error::Problem;
use super::event::{Clock, Event, MappingKind, Protection};
use super::pm_selector::PmSelector;
use super::text::Text;

/// Most mapping events that a record may have: they are kept together in memory.
const MAPPING_EVENTS_MAX: usize = 1 << 22;

/// A mapping, or the part of one that lived and ended together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mapping {
    /// Its addresses.
    pub range: AddressRange,
    /// What could be done in it.
    pub protection: Protection,
    /// What lay behind it.
    pub kind: MappingKind,
    /// Offset of its first byte in its file.
    pub offset: u64,
    /// Path of its file, or the kernel's name for it.
    pub name: Text,
    /// When it was mapped.
    pub mapped: Clock,
    /// When it was unmapped, if it was.
    pub unmapped: Option<Clock>,
}

/// An executable or library that was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadedModule {
    /// Its addresses.
    pub range: AddressRange,
    /// Its build id, as hexadecimal digits; empty if it has none.
    pub build_id: String,
    /// Its path.
    pub path: Text,
    /// When it was loaded.
    pub loaded: Clock,
}

/// All mappings of a record over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryMap {
    mappings: Vec<Mapping>,
    modules: Vec<LoadedModule>,
    stacks: Vec<AddressRange>,
}

impl MemoryMap {
    /// The code that the kernel maps into every process.
    #[must_use]
    pub fn vdso(&self) -> AddressRanges {
        let is_vdso = |mapping: &&Mapping| mapping.kind == MappingKind::Special && &*mapping.name == "[vdso]";
        AddressRanges::union(self.mappings.iter().filter(is_vdso).map(|mapping| mapping.range))
    }

    /// The mappings, by the time of their mapping, then by address.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// The modules, in the order of their loading.
    #[must_use]
    pub fn modules(&self) -> &[LoadedModule] {
        &self.modules
    }

    /// All addresses that the selector means at any time. What was a stack at any time is no heap.
    #[must_use]
    pub fn select(&self, selector: &PmSelector) -> AddressRanges {
        match selector {
            PmSelector::Heap => {
                let heap = self.ranges(|mapping| matches!(mapping.kind, MappingKind::Anonymous | MappingKind::Break));
                heap.without(&self.stacks())
            }
            PmSelector::File(pattern) => self.ranges(|mapping| {
                mapping.kind == MappingKind::File && PmSelector::matches_file(pattern, &mapping.name)
            }),
            PmSelector::Range(range) => AddressRanges::union([*range]),
        }
    }

    /// All addresses that were a thread's stack at any time.
    #[must_use]
    pub fn stacks(&self) -> AddressRanges {
        let mapped = self.mappings.iter().filter(|mapping| mapping.kind == MappingKind::Stack);
        AddressRanges::union(mapped.map(|mapping| mapping.range).chain(self.stacks.iter().copied()))
    }

    /// All addresses inside of executables and libraries that could ever be written to.
    #[must_use]
    pub fn data(&self) -> AddressRanges {
        let is_inside = |mapping: &Mapping| {
            let module = |module: &LoadedModule| {
                module.range.start <= mapping.range.start && mapping.range.end <= module.range.end
            };
            mapping.protection.0 & Protection::WRITE != 0 && self.modules.iter().any(module)
        };
        self.ranges(is_inside)
    }

    /// Takes in that of another process, whose addresses lie where `place` says.
    pub(super) fn add(&mut self, other: &Self, place: impl Fn(AddressRange, Clock) -> AddressRange) {
        let placed = |mapping: &Mapping| Mapping { range: place(mapping.range, mapping.mapped), ..mapping.clone() };
        self.mappings.extend(other.mappings.iter().map(placed));
        self.mappings.sort_by_key(|mapping| (mapping.mapped, mapping.range));
        let module = |of: &LoadedModule| LoadedModule { range: place(of.range, of.loaded), ..of.clone() };
        self.modules.extend(other.modules.iter().map(module));
        self.modules.sort_by_key(|module| module.loaded);
        self.stacks.extend(other.stacks.iter().map(|stack| place(*stack, Clock(0))));
    }

    fn ranges(&self, is_meant: impl Fn(&Mapping) -> bool) -> AddressRanges {
        AddressRanges::union(self.mappings.iter().filter(|mapping| is_meant(mapping)).map(|mapping| mapping.range))
    }
}

/// The mapping events of all threads, on their way into the order of the process clock.
#[derive(Default)]
pub(super) struct MappingEvents {
    changes: Vec<(Clock, Change)>,
    modules: Vec<LoadedModule>,
    stacks: Vec<AddressRange>,
}

enum Change {
    Map(Mapping),
    Unmap(AddressRange),
    /// The process replaced its image.
    Exec,
}

fn range_of(start: u64, length: u64) -> Result<AddressRange, Problem> {
    let end = start.checked_add(length).ok_or(Problem::Malformed("a mapping reaches beyond 64-bit addresses"))?;
    Ok(AddressRange { start, end })
}

impl MappingEvents {
    /// Keeps those of one frame.
    pub(super) fn take_in(&mut self, events: &[Event]) -> Result<(), Problem> {
        for event in events {
            self.take_in_one(event)?;
        }
        let kept = self.changes.len() + self.modules.len() + self.stacks.len();
        Problem::check_limit("the number of mapping events so far", kept as u64, MAPPING_EVENTS_MAX as u64)
    }

    fn take_in_one(&mut self, event: &Event) -> Result<(), Problem> {
        match *event {
            Event::Map { clock, start, length, protection, kind, offset, ref name } => {
                let (range, name) = (range_of(start, length)?, name.clone());
                let mapping = Mapping { range, protection, kind, offset, name, mapped: clock, unmapped: None };
                self.changes.push((clock, Change::Map(mapping)));
            }
            Event::Unmap { clock, start, length } => {
                self.changes.push((clock, Change::Unmap(range_of(start, length)?)));
            }
            Event::Exec { clock, .. } => self.changes.push((clock, Change::Exec)),
            Event::Module { clock, base, length, ref build_id, ref path } => self.modules.push(LoadedModule {
                range: range_of(base, length)?,
                build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
                path: path.clone(),
                loaded: clock,
            }),
            Event::ThreadStart { stack_low, stack_high, .. } if stack_low < stack_high => {
                self.stacks.push(AddressRange { start: stack_low, end: stack_high });
            }
            _ => {}
        }
        Ok(())
    }

    /// Plays the events in their order.
    pub(super) fn into_map(mut self) -> MemoryMap {
        self.changes.sort_by_key(|change| change.0);
        self.modules.sort_by_key(|module| module.loaded);
        let mut space = AddressSpace::default();
        for (clock, change) in self.changes {
            match change {
                Change::Map(mapping) => space.map(mapping),
                Change::Unmap(range) => space.unmap(range, clock),
                Change::Exec => space.unmap(AddressRange { start: 0, end: u64::MAX }, clock),
            }
        }
        let mut mappings = space.ended;
        mappings.extend(space.live.into_values());
        mappings.sort_by_key(|mapping| (mapping.mapped, mapping.range));
        MemoryMap { mappings, modules: self.modules, stacks: self.stacks }
    }
}

/// The mappings at one moment, by start, and those that ended before.
#[derive(Default)]
struct AddressSpace {
    live: BTreeMap<u64, Mapping>,
    ended: Vec<Mapping>,
}

impl AddressSpace {
    /// A new mapping replaces what it covers. One that continues what is there, as a growing heap does, joins it.
    fn map(&mut self, mut mapping: Mapping) {
        if mapping.range.bytes() == 0 {
            return;
        }
        for replaced in self.take(mapping.range) {
            if replaced.continues(&mapping) {
                mapping.mapped = mapping.mapped.min(replaced.mapped);
            } else {
                self.end(replaced, mapping.mapped);
            }
        }
        let before = self.live.range(..mapping.range.start).next_back().map(|(&start, _)| start);
        let after = self.live.range(mapping.range.end..).next().map(|(&start, _)| start);
        for start in before.into_iter().chain(after) {
            let neighbour = &self.live[&start];
            let touches = neighbour.range.end == mapping.range.start || mapping.range.end == neighbour.range.start;
            if touches && neighbour.continues(&mapping) {
                mapping.absorb(neighbour);
                self.live.remove(&start);
            }
        }
        self.live.insert(mapping.range.start, mapping);
    }

    fn unmap(&mut self, range: AddressRange, clock: Clock) {
        for mapping in self.take(range) {
            self.end(mapping, clock);
        }
    }

    fn end(&mut self, mut mapping: Mapping, clock: Clock) {
        mapping.unmapped = Some(clock);
        self.ended.push(mapping);
    }

    /// Takes out what lies in `range`; mappings that reach over its ends are split there.
    fn take(&mut self, range: AddressRange) -> Vec<Mapping> {
        let first = self.live.range(..range.start).next_back().map(|(&start, _)| start);
        let inside = self.live.range(range.start..range.end).map(|(&start, _)| start);
        let starts: Vec<u64> = first.into_iter().chain(inside).collect();
        let mut taken = Vec::new();
        for start in starts {
            if self.live[&start].range.end <= range.start {
                continue;
            }
            let Some(mut mapping) = self.live.remove(&start) else { continue };
            if mapping.range.end > range.end {
                let rest = mapping.part(AddressRange { start: range.end, ..mapping.range });
                self.live.insert(rest.range.start, rest);
                mapping.range.end = range.end;
            }
            if mapping.range.start < range.start {
                let head = mapping.part(AddressRange { end: range.start, ..mapping.range });
                self.live.insert(head.range.start, head);
                mapping = mapping.part(AddressRange { start: range.start, ..mapping.range });
            }
            taken.push(mapping);
        }
        taken
    }
}

impl Mapping {
    /// Whether both are the same but for their extent.
    fn continues(&self, other: &Self) -> bool {
        let same_place = self.kind != MappingKind::File
            || self.offset.wrapping_sub(self.range.start) == other.offset.wrapping_sub(other.range.start);
        self.kind == other.kind && self.protection == other.protection && self.name == other.name && same_place
    }

    fn absorb(&mut self, neighbour: &Self) {
        if neighbour.range.start < self.range.start {
            self.offset = neighbour.offset;
        }
        self.range.start = self.range.start.min(neighbour.range.start);
        self.range.end = self.range.end.max(neighbour.range.end);
        self.mapped = self.mapped.min(neighbour.mapped);
    }

    fn part(&self, range: AddressRange) -> Self {
        let offset = self.offset.wrapping_add(range.start - self.range.start);
        Self { range, offset, ..self.clone() }
    }
}
