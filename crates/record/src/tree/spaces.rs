//! Where the addresses of a process lie in the address space of its tree.

use rustc_hash::FxHashMap;

use crate::address_ranges::AddressRange;
use crate::event::{Clock, Event, Protection};

/// Addresses of programs are below; what lies above is the kernel's, and the same for all.
const PROGRAM_ADDRESSES: u64 = 1 << 47;
/// Bits of an address in its part.
const PART_SHIFT: u32 = 48;
/// The part of the first object that processes share.
const FIRST_OBJECT: u64 = 1 << 14;

/// What was mapped shared, while it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    start: u64,
    end: u64,
    from: Clock,
    to: Clock,
    /// Where its first byte lies.
    place: u64,
}

/// Addresses between two neighbouring borders of shared mappings, and what was there.
#[derive(Clone, Debug)]
struct Cell {
    start: u64,
    end: u64,
    mapped: Vec<Shared>,
}

/// One process's.
#[derive(Clone, Debug, Default)]
pub(super) struct Spaces {
    /// Where its own memory lies.
    base: u64,
    /// Ascending.
    cells: Vec<Cell>,
    /// What it has mapped shared, and whether to store there.
    objects: Vec<(u64, bool)>,
}

fn range_of(event: &Event) -> Option<(Clock, u64, u64)> {
    match *event {
        Event::Map { clock, start, length, .. } | Event::Unmap { clock, start, length } => {
            Some((clock, start, start.saturating_add(length)))
        }
        Event::Exec { clock, .. } => Some((clock, 0, u64::MAX)),
        _ => None,
    }
}

impl Spaces {
    /// What the mapping events of a process say, which come in any order.
    pub(super) fn of(mut events: Vec<Event>) -> Self {
        events.sort_by_key(Event::clock);
        let (mut live, mut ended): (Vec<Shared>, Vec<Shared>) = (Vec::new(), Vec::new());
        let mut objects = Vec::new();
        let mut mapped_at: FxHashMap<u64, (Clock, bool)> = FxHashMap::default();
        for event in &events {
            if let Event::SharedMapping { clock, start, length, object, offset } = *event {
                let (from, is_written) = mapped_at.get(&start).copied().unwrap_or((clock, true));
                objects.push((object, is_written));
                let place = ((FIRST_OBJECT + object) << PART_SHIFT) + offset;
                live.push(Shared { start, end: start.saturating_add(length), from, to: Clock(u64::MAX), place });
            } else if let Some((clock, start, end)) = range_of(event) {
                let is_written =
                    matches!(event, Event::Map { protection, .. } if protection.0 & Protection::WRITE != 0);
                mapped_at.insert(start, (clock, is_written));
                replace(&mut live, &mut ended, clock, start, end);
            }
        }
        ended.append(&mut live);
        Self { base: 0, cells: cells_of(&ended), objects }
    }

    /// Its own memory lies in the part with this number.
    pub(super) fn set_part(&mut self, part: u64) {
        self.base = part << PART_SHIFT;
    }

    /// Whether it shares memory at any time.
    pub(super) fn has_shared(&self) -> bool {
        !self.cells.is_empty()
    }

    /// What it has mapped shared, and whether to store there.
    pub(super) fn objects(&self) -> &[(u64, bool)] {
        &self.objects
    }

    /// Where an address lay at a time.
    #[inline]
    pub(super) fn place(&self, address: u64, clock: Clock) -> u64 {
        if address >= PROGRAM_ADDRESSES {
            return address;
        }
        if let Some(shared) = self.shared_at(address, clock) {
            return shared.place + (address - shared.start);
        }
        address + self.base
    }

    /// Whether it lay in shared memory.
    pub(super) fn is_shared(&self, address: u64, clock: Clock) -> bool {
        self.shared_at(address, clock).is_some()
    }

    #[inline]
    fn shared_at(&self, address: u64, clock: Clock) -> Option<&Shared> {
        if self.cells.is_empty() {
            return None;
        }
        let after = self.cells.partition_point(|cell| cell.start <= address);
        let cell = self.cells[..after].last().filter(|cell| address < cell.end)?;
        cell.mapped.iter().find(|shared| shared.from <= clock && clock < shared.to)
    }

    /// Where a range lay: all of it lies where its first byte does.
    pub(super) fn place_of(&self, range: AddressRange, clock: Clock) -> AddressRange {
        let start = self.place(range.start, clock);
        AddressRange { start, end: start + range.bytes() }
    }
}

/// From `clock` on, something else is there.
fn replace(live: &mut Vec<Shared>, ended: &mut Vec<Shared>, clock: Clock, start: u64, end: u64) {
    for shared in std::mem::take(live) {
        if shared.end <= start || end <= shared.start {
            live.push(shared);
            continue;
        }
        let part =
            |from: u64, to: u64| Shared { start: from, end: to, place: shared.place + (from - shared.start), ..shared };
        let (from, to) = (shared.start.max(start), shared.end.min(end));
        ended.push(Shared { to: clock, ..part(from, to) });
        live.extend((shared.start < from).then(|| part(shared.start, from)));
        live.extend((to < shared.end).then(|| part(to, shared.end)));
    }
}

fn cells_of(all: &[Shared]) -> Vec<Cell> {
    let mut borders: Vec<u64> = all.iter().flat_map(|shared| [shared.start, shared.end]).collect();
    borders.sort_unstable();
    borders.dedup();
    let cell = |border: &[u64]| {
        let (start, end) = (border[0], border[1]);
        let covers = |shared: &&Shared| shared.start <= start && end <= shared.end;
        Cell { start, end, mapped: all.iter().filter(covers).copied().collect() }
    };
    borders.windows(2).map(cell).filter(|cell| !cell.mapped.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MappingKind;

    const PAGE: u64 = 4096;

    fn map(clock: u64, start: u64, pages: u64) -> Event {
        Event::Map {
            clock: Clock(clock),
            start,
            length: pages * PAGE,
            protection: Protection(3),
            kind: MappingKind::Anonymous,
            offset: 0,
            name: b""[..].into(),
        }
    }

    fn shared(clock: u64, start: u64, pages: u64, object: u64, offset: u64) -> Event {
        Event::SharedMapping { clock: Clock(clock), start, length: pages * PAGE, object, offset }
    }

    fn place_in(object: u64, offset: u64) -> u64 {
        ((FIRST_OBJECT + object) << PART_SHIFT) + offset
    }

    #[test]
    fn a_word_of_an_object_lies_at_one_place_wherever_it_is_mapped() {
        let mut one = Spaces::of(vec![map(1, 0x10000, 4), shared(2, 0x10000, 4, 1, 0)]);
        let mut other = Spaces::of(vec![map(3, 0x70000, 2), shared(4, 0x70000, 2, 1, 2 * PAGE)]);
        one.set_part(0);
        other.set_part(1);
        assert_eq!(one.place(0x10000 + 2 * PAGE + 8, Clock(9)), place_in(1, 2 * PAGE + 8));
        assert_eq!(other.place(0x70008, Clock(9)), place_in(1, 2 * PAGE + 8));
        assert_eq!((one.place(0x9000, Clock(9)), other.place(0x9000, Clock(9))), (0x9000, 0x9000 + (1 << PART_SHIFT)));
    }

    #[test]
    fn what_is_unmapped_in_the_middle_is_shared_until_then() {
        let unmap = Event::Unmap { clock: Clock(5), start: 0x11000, length: PAGE };
        let spaces = Spaces::of(vec![unmap, map(1, 0x10000, 3), shared(2, 0x10000, 3, 7, PAGE)]);
        let at = |address, clock| spaces.place(address, Clock(clock));
        assert_eq!(at(0x11000, 1), place_in(7, 2 * PAGE), "from when it was mapped");
        assert_eq!(at(0x11000, 5), 0x11000);
        assert_eq!((at(0x10000, 5), at(0x12004, 5)), (place_in(7, PAGE), place_in(7, 3 * PAGE + 4)));
        assert!(spaces.is_shared(0x10000, Clock(9)) && !spaces.is_shared(0x13000, Clock(9)));
    }

    #[test]
    fn nothing_is_left_behind_an_exec_and_the_kernels_addresses_are_everybodys() {
        let exec = Event::Exec { clock: Clock(8), path: b"x"[..].into() };
        let mut spaces = Spaces::of(vec![map(1, 0x10000, 1), shared(2, 0x10000, 1, 0, 0), exec]);
        spaces.set_part(3);
        assert_eq!(spaces.place(0x10000, Clock(8)), 0x10000 + (3 << PART_SHIFT));
        assert_eq!(spaces.place(0xffff_ffff_ff60_0000, Clock(8)), 0xffff_ffff_ff60_0000);
    }
}
