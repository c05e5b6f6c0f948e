//! The address space of a process: which physical page each virtual one gets.
//!
//! A page gets its frame at its first touch, in the node that its placement says. The first touch of a mapping that
//! lies in one node reserves frames for all of it, so that it is contiguous as long as there is room; a mapping that
//! would take more than a quarter of its memory (a reservation that is never filled, as a rule) gets its frames page by
//! page.

use std::num::NonZeroU64;
use std::ops::Range;

use super::frames::Frames;
use super::node::MemoryNode;
use super::placement::{Place, Placement};
use fencepost_kernel::address_map::PM_BASE;
use fencepost_kernel::line::{LINE_BYTES, LineAddress};
use fencepost_kernel::sparse_table::SparseTable;
#[cfg(test)]
use {
    crate::address_space::OWN_DRAM,
    fencepost_record::{AddressRange, AddressRanges},
};

/// log2 of the size of a page.
pub const PAGE_SHIFT: u32 = 12;

/// How many lines an access of `size` bytes to `address` touches.
#[inline]
pub fn lines_of_access(address: u64, size: u16) -> u64 {
    (address + u64::from(size.max(1)) - 1) / LINE_BYTES - address / LINE_BYTES + 1
}

/// A range of virtual pages that is contiguous in physical memory once it is touched.
#[derive(Clone, Debug)]
struct Mapping {
    pages: Range<u64>,
    first_frame: Option<u64>,
}

/// A place and how far its pages have been dealt out.
#[derive(Clone, Debug)]
struct Dealing {
    place: Place,
    is_pm: bool,
    /// Pages that the first node of a preferred place still takes.
    first_left: u64,
    /// Of a place that takes turns: whose turn it is, and how many pages are left of it.
    turn: (usize, u32),
}

impl Dealing {
    fn new(place: &Place, nodes: &[MemoryNode]) -> Dealing {
        let (first_left, turn) = match place {
            Place::Filled { first_pages, .. } => (first_pages.unwrap_or(u64::MAX), (0, 0)),
            Place::InTurn { nodes } => (0, (0, nodes[0].1)),
            Place::AllPm | Place::NearToucher { .. } => (0, (0, 0)),
        };
        Dealing { place: place.clone(), is_pm: place.is_pm(nodes), first_left, turn }
    }
}

/// The page table of one process.
#[derive(Clone, Debug)]
pub struct PageTable {
    /// One more than the frame of each page that has been touched.
    frames: SparseTable<Option<NonZeroU64>>,
    /// Virtual addresses that are persistent; neighbours are one range.
    persistent: Vec<Range<u64>>,
    /// Virtual addresses with the numbers of their places.
    regions: Vec<(Range<u64>, usize)>,
    places: Vec<Dealing>,
    elsewhere: usize,
    mappings: Vec<Mapping>,
    /// Code that the kernel maps into every process: the vDSO.
    vdso: Vec<Range<u64>>,
    nodes: Vec<MemoryNode>,
    /// How many pages lie in each node.
    pages: Vec<u64>,
    /// The free frames of each node.
    free: Vec<Frames>,
    /// Those of all PM nodes, where no place names one of them alone.
    free_pm: Option<Frames>,
    /// The socket whose core is at work.
    socket: usize,
    /// The memory that has run out.
    exhausted: Option<String>,
}

impl PageTable {
    /// An address space placed on `nodes` as `placement` says, in which the virtual ranges of `mapped` (sorted and
    /// disjoint, in bytes) are contiguous where they can be.
    pub fn new(placement: &Placement, mapped: &[Range<u64>], nodes: Vec<MemoryNode>) -> PageTable {
        let regions: Vec<(Range<u64>, usize)> =
            placement.regions.iter().map(|(range, place)| (range.start..range.end, *place)).collect();
        let mut mappings = Vec::new();
        for range in mapped {
            // Where a region begins or ends inside a mapping, two begin and end.
            let borders = regions.iter().flat_map(|(region, _)| [region.start, region.end]);
            let mut cuts: Vec<u64> = borders.filter(|border| range.start < *border && *border < range.end).collect();
            cuts.dedup();
            cuts.push(range.end);
            let mut start = range.start;
            for cut in cuts {
                let pages = start >> PAGE_SHIFT..cut >> PAGE_SHIFT;
                mappings.push(Mapping { pages, first_frame: None });
                start = cut;
            }
        }
        let places: Vec<Dealing> = placement.places.iter().map(|place| Dealing::new(place, &nodes)).collect();
        let mut persistent: Vec<Range<u64>> = Vec::new();
        for (range, _) in regions.iter().filter(|(_, place)| places[*place].is_pm) {
            match persistent.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => persistent.push(range.clone()),
            }
        }
        if places[placement.elsewhere].is_pm {
            persistent.clear();
            persistent.push(0..u64::MAX);
        }
        let is_named = |dealing: &Dealing| dealing.is_pm && dealing.place != Place::AllPm;
        let in_pm: Vec<Range<u64>> = nodes.iter().filter(|node| node.is_pm).map(|node| node.frames.clone()).collect();
        PageTable {
            frames: SparseTable::default(),
            persistent,
            regions,
            elsewhere: placement.elsewhere,
            mappings,
            vdso: Vec::new(),
            pages: vec![0; nodes.len()],
            free: nodes.iter().map(|node| Frames::new(std::slice::from_ref(&node.frames))).collect(),
            free_pm: (!places.iter().any(is_named)).then(|| Frames::new(&in_pm)),
            places,
            nodes,
            socket: 0,
            exhausted: None,
        }
    }

    /// The same with the virtual ranges `persistent` in the first of these nodes of PM that has room, and all else in
    /// so many bytes of DRAM.
    #[cfg(test)]
    pub fn in_dram_and_pm(
        persistent: &[Range<u64>],
        mapped: &[Range<u64>],
        dram_bytes: u64,
        pm: &[Range<u64>],
    ) -> PageTable {
        let range = |range: &Range<u64>| AddressRange { start: range.start, end: range.end };
        let placement = Placement::in_dram_and_pm(&AddressRanges::union(persistent.iter().map(range)));
        let own = MemoryNode { name: OWN_DRAM.to_owned(), is_pm: false, frames: 0..dram_bytes };
        let of_pm = (0..).zip(pm).map(|(number, frames)| MemoryNode {
            name: format!("pm{number}"),
            is_pm: true,
            frames: frames.clone(),
        });
        PageTable::new(&placement, mapped, std::iter::once(own).chain(of_pm).collect())
    }

    /// The same with the vDSO at these virtual addresses.
    pub fn with_vdso(mut self, ranges: Vec<Range<u64>>) -> PageTable {
        self.vdso = ranges;
        self
    }

    /// What is touched from now on is touched by a core of that socket.
    #[inline]
    pub fn touched_by(&mut self, socket: usize) {
        self.socket = socket;
    }

    /// Whether the virtual `address` lies in the vDSO.
    pub fn is_vdso(&self, address: u64) -> bool {
        self.vdso.iter().any(|range| range.contains(&address))
    }

    /// The physical page number of a virtual one.
    pub fn frame(&mut self, page: u64) -> u64 {
        self.frames.get(page).map_or_else(|| self.first_touch(page), |behind| behind.get() - 1)
    }

    /// The physical address of `address`, if its page has been touched.
    pub fn physical(&self, address: u64) -> Option<u64> {
        let frame = self.frames.get(address >> PAGE_SHIFT)?.get() - 1;
        Some((frame << PAGE_SHIFT) | (address & ((1 << PAGE_SHIFT) - 1)))
    }

    /// Line number `index` of an access to the virtual `address`, which lies at `physical`. Where the access crosses
    /// into another page, its lines lie wherever that page does.
    #[inline]
    pub fn line_of_access(&mut self, address: u64, physical: u64, index: u64) -> LineAddress {
        let line = address / LINE_BYTES + index;
        if (line * LINE_BYTES) >> PAGE_SHIFT == address >> PAGE_SHIFT {
            return LineAddress(physical / LINE_BYTES + index);
        }
        let lines_of_page = (1 << PAGE_SHIFT) / LINE_BYTES;
        LineAddress(self.frame(line / lines_of_page) * lines_of_page + line % lines_of_page)
    }

    /// How many frames of DRAM and of PM are taken.
    pub fn frames_taken(&self) -> (u64, u64) {
        let of_kind = |is_pm: bool| {
            let own = self.nodes.iter().zip(&self.free).filter(move |(node, _)| node.is_pm == is_pm);
            own.map(|(_, free)| free.taken()).sum::<u64>()
        };
        (of_kind(false), of_kind(true) + self.free_pm.as_ref().map_or(0, Frames::taken))
    }

    /// The memory nodes, each with the number of pages that lie in it.
    pub fn nodes(&self) -> impl Iterator<Item = (&MemoryNode, u64)> {
        self.nodes.iter().zip(self.pages.iter().copied())
    }

    /// The memory of which the program touches more than the machine has.
    pub fn exhausted(&self) -> Option<&str> {
        self.exhausted.as_deref()
    }

    /// Whether the page of the virtual `address` lies in PM.
    pub fn is_persistent(&self, address: u64) -> bool {
        let address = address & !((1 << PAGE_SHIFT) - 1);
        let behind = self.persistent.partition_point(|range| range.start <= address);
        // A range may begin inside a page: the whole page is PM then.
        let page_end = address + (1 << PAGE_SHIFT);
        let starts_inside = self.persistent.get(behind).is_some_and(|range| range.start < page_end);
        starts_inside || behind.checked_sub(1).is_some_and(|before| self.persistent[before].end > address)
    }

    /// The page gets its frame.
    #[cold]
    fn first_touch(&mut self, page: u64) -> u64 {
        let frame = self.choose(page);
        *self.frames.get_mut(page) = NonZeroU64::new(frame + 1);
        let address = frame << PAGE_SHIFT;
        if let Some(node) = self.nodes.iter().position(|node| node.frames.contains(&address)) {
            self.pages[node] += 1;
        }
        frame
    }

    /// The number of the place that a page belongs to.
    fn place_of(&self, page: u64) -> usize {
        let address = page << PAGE_SHIFT;
        // A persistent range may begin or end inside a page: the whole page is PM then.
        let end = address + (1 << PAGE_SHIFT);
        let behind = self.regions.partition_point(|(range, _)| range.end <= address);
        let within = self.regions[behind..].iter().take_while(|(range, _)| range.start < end);
        let mut meant = within.map(|(_, place)| *place);
        let first = meant.next();
        match first {
            Some(first) if self.places[first].is_pm => first,
            _ => meant.find(|place| self.places[*place].is_pm).or(first).unwrap_or(self.elsewhere),
        }
    }

    /// Finds a frame for a page that is touched for the first time.
    fn choose(&mut self, page: u64) -> u64 {
        let place = self.place_of(page);
        let behind = self.mappings.partition_point(|mapping| mapping.pages.start <= page);
        let mapping = self.mappings[..behind].last_mut().filter(|mapping| mapping.pages.contains(&page));
        let Dealing { place, first_left, turn, .. } = &mut self.places[place];
        match place {
            Place::AllPm if self.free_pm.is_some() => {
                let free = self.free_pm.as_mut().expect("it is there");
                in_mapping(free, mapping, page).unwrap_or_else(|| {
                    self.exhausted = Some("PM".to_owned());
                    free.first()
                })
            }
            Place::AllPm => {
                let of_pm = self.nodes.iter().zip(&mut self.free).filter(|(node, _)| node.is_pm);
                of_pm.into_iter().find_map(|(_, free)| free.take(1)).unwrap_or_else(|| {
                    self.exhausted = Some("PM".to_owned());
                    PM_BASE >> PAGE_SHIFT
                })
            }
            Place::Filled { nodes, first_pages: None } => {
                let free = &mut self.free[nodes[0].index()];
                in_mapping(free, mapping, page).unwrap_or_else(|| {
                    self.exhausted = Some(memory_name(&self.nodes[nodes[0].index()]));
                    free.first()
                })
            }
            Place::Filled { nodes, first_pages: Some(_) } => {
                let skipped = usize::from(*first_left == 0);
                let found = nodes[skipped..].iter().find_map(|node| Some((*node, self.free[node.index()].take(1)?)));
                match found {
                    Some((node, frame)) => {
                        *first_left -= u64::from(node == nodes[0]);
                        frame
                    }
                    None => {
                        let last = nodes[nodes.len() - 1].index();
                        self.exhausted = Some(memory_name(&self.nodes[last]));
                        self.free[last].first()
                    }
                }
            }
            Place::NearToucher { nodes } => {
                let nearest_first = (0..nodes.len()).map(|step| nodes[(self.socket + step) % nodes.len()].index());
                for node in nearest_first {
                    if let Some(frame) = self.free[node].take(1) {
                        return frame;
                    }
                }
                let first = nodes[0].index();
                self.exhausted = Some(memory_name(&self.nodes[first]));
                self.free[first].first()
            }
            Place::InTurn { nodes } => {
                for _ in 0..=nodes.len() {
                    if turn.1 == 0 {
                        let next = (turn.0 + 1) % nodes.len();
                        *turn = (next, nodes[next].1);
                    }
                    if let Some(frame) = self.free[nodes[turn.0].0.index()].take(1) {
                        turn.1 -= 1;
                        return frame;
                    }
                    // A full node is left out.
                    turn.1 = 0;
                }
                let first = nodes[0].0.index();
                self.exhausted = Some(memory_name(&self.nodes[first]));
                self.free[first].first()
            }
        }
    }
}

/// A frame for `page` in the stretch that its mapping has, or gets, or any other.
fn in_mapping(free: &mut Frames, mapping: Option<&mut Mapping>, page: u64) -> Option<u64> {
    if let Some(mapping) = mapping {
        let pages = mapping.pages.end - mapping.pages.start;
        if mapping.first_frame.is_none() && free.may_reserve(pages) {
            mapping.first_frame = free.take(pages);
        }
        if let Some(first) = mapping.first_frame {
            return Some(first + (page - mapping.pages.start));
        }
    }
    free.take(1)
}

/// What messages call a node's memory.
fn memory_name(node: &MemoryNode) -> String {
    if node.frames.start == 0 { "DRAM".to_owned() } else { node.name.clone() }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges, some of them with one")]
mod tests {
    use super::*;
    use crate::address_space::Rule;
    use fencepost_kernel::address_map::EXPANDER_BASE;
    use fencepost_record::MemoryMap;

    const PAGE: u64 = 1 << PAGE_SHIFT;

    #[test]
    fn a_mapping_is_contiguous_whatever_is_touched_between() {
        let mut table = PageTable::in_dram_and_pm(&[], &[10 * PAGE..14 * PAGE, 20 * PAGE..22 * PAGE], 1 << 20, &[]);
        assert_eq!([12, 20, 13, 10, 21].map(|page| table.frame(page)), [2, 4, 3, 0, 5]);
        assert_eq!(table.frame(99), 6, "a page of no mapping gets the next frame");
    }

    #[test]
    fn the_part_of_a_mapping_that_is_pm_lies_in_pm() {
        let mut table = PageTable::in_dram_and_pm(
            &[12 * PAGE..13 * PAGE],
            &[10 * PAGE..14 * PAGE],
            1 << 20,
            &[PM_BASE..PM_BASE + (1 << 20)],
        );
        assert_eq!([10, 11, 12, 13].map(|page| table.frame(page)), [0, 1, PM_BASE >> PAGE_SHIFT, 2]);
    }

    #[test]
    fn a_reservation_larger_than_a_quarter_of_memory_is_filled_page_by_page() {
        let mut table = PageTable::in_dram_and_pm(&[], &[0..1 << 40], 16 * PAGE, &[]);
        assert_eq!([7, 3, 9].map(|page| table.frame(page)), [0, 1, 2]);
    }

    #[test]
    fn an_access_over_the_end_of_a_page_goes_on_where_the_next_page_lies() {
        let mut table = PageTable::in_dram_and_pm(&[], &[], 1 << 20, &[]);
        let [_, _, page] = [11, 99, 10].map(|page| table.frame(page) * PAGE);
        let address = 10 * PAGE + PAGE - 4;
        assert_eq!(lines_of_access(address, 8), 2);
        let lines = [0, 1].map(|index| table.line_of_access(address, page + PAGE - 4, index).byte());
        assert_eq!(lines, [page + PAGE - 64, 0], "page 11 was touched first");
    }

    #[test]
    fn a_mapping_lies_in_one_stretch_of_pm_and_single_pages_wherever_there_is_room() {
        let stretches = [0..2 * PAGE, 8 * PAGE..11 * PAGE, 11 * PAGE..20 * PAGE]
            .map(|range| PM_BASE + range.start..PM_BASE + range.end);
        let mut table = PageTable::in_dram_and_pm(&[0..1 << 30], &[50 * PAGE..53 * PAGE], 0, &stretches);
        let frames = [9, 51, 10, 11, 50, 52].map(|page| table.frame(page) - (PM_BASE >> PAGE_SHIFT));
        assert_eq!(frames, [0, 9, 1, 11, 8, 10], "stretches without a gap between them are one");
        assert_eq!(table.frames_taken(), (0, 6));
    }

    #[test]
    fn memory_that_runs_out_is_named() {
        let mut table = PageTable::in_dram_and_pm(&[0..1 << 30], &[], 1 << 20, &[PM_BASE..PM_BASE + 2 * PAGE]);
        (0..2).for_each(|page| _ = table.frame(page));
        assert_eq!(table.exhausted(), None);
        table.frame(2);
        assert_eq!(table.exhausted(), Some("PM"));
    }

    /// Own DRAM, PM, and two expanders of so many pages each.
    fn nodes(pages: u64) -> Vec<MemoryNode> {
        let names = [("dram0", false, 0), ("pm0", true, PM_BASE), ("far0", false, EXPANDER_BASE)];
        let node = |(name, is_pm, base): (&str, bool, u64)| MemoryNode {
            name: name.to_owned(),
            is_pm,
            frames: base..base + pages * PAGE,
        };
        let mut nodes: Vec<MemoryNode> = names.into_iter().map(node).collect();
        nodes.push(node(("far1", false, EXPANDER_BASE + (1 << 40))));
        nodes
    }

    /// In which node each of the pages 0, 1, 2 and so on lies, touched in that order, under rules for `range:`s and
    /// `all`.
    fn placed(rules: &[&str], node_pages: u64, touched: u64) -> (Vec<String>, PageTable) {
        let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().expect("it is a rule")).collect();
        let nodes = nodes(node_pages);
        let (placement, _) = Placement::resolve(&rules, &MemoryMap::default(), &nodes).expect("nothing contradicts");
        let mut table = PageTable::new(&placement, &[], nodes.clone());
        let node_of = |page| {
            let address = table.frame(page) * PAGE;
            nodes.iter().find(|node| node.frames.contains(&address)).expect("it lies in a node").name.clone()
        };
        ((0..touched).map(node_of).collect(), table)
    }

    #[test]
    fn pages_lie_where_rules_place_them_the_more_exact_one_first() {
        let (found, table) = placed(&["all=far0", "range:0x1000-0x3000=pm0"], 100, 4);
        assert_eq!(found, ["far0", "pm0", "pm0", "far0"]);
        assert_eq!(table.nodes().map(|(_, pages)| pages).collect::<Vec<_>>(), [0, 2, 2, 0]);
        assert_eq!([0, 1, 2, 3].map(|page| table.is_persistent(page * PAGE)), [false, true, true, false]);
    }

    #[test]
    fn pages_are_dealt_out_by_weight_and_a_full_node_is_left_out() {
        assert_eq!(
            placed(&["all=dram0/far1:interleave=2/1"], 100, 6).0,
            ["dram0", "dram0", "far1", "dram0", "dram0", "far1"]
        );
        assert_eq!(
            placed(&["all=dram0/far1:interleave=2/1"], 3, 6).0,
            ["dram0", "dram0", "far1", "dram0", "far1", "far1"]
        );
        assert_eq!(placed(&["all=far0:interleave=1/1"], 100, 3).0, ["far0", "far1", "far0"], "the nodes behind it");
    }

    #[test]
    fn a_preferred_node_takes_its_share_and_the_next_one_the_rest() {
        assert_eq!(placed(&["all=dram0/far1:preferred=8K"], 100, 4).0, ["dram0", "dram0", "far1", "far1"]);
        assert_eq!(placed(&["all=dram0/far1:preferred=1G"], 2, 4).0, ["dram0", "dram0", "far1", "far1"]);
    }

    #[test]
    fn a_page_lies_with_the_socket_that_touches_it_first_as_long_as_there_is_room() {
        let node = |number: u64| MemoryNode {
            name: format!("dram{number}"),
            is_pm: false,
            frames: number << 30..(number << 30) + 3 * PAGE,
        };
        let nodes = vec![node(0), node(1)];
        let rule = "all=dram0:first_touch".parse().expect("it is a rule");
        let (placement, _) = Placement::resolve(&[rule], &MemoryMap::default(), &nodes).expect("nothing contradicts");
        let mut table = PageTable::new(&placement, &[], nodes);
        let touches = [(1, 7), (0, 8), (0, 7), (1, 9), (1, 10), (1, 11)];
        let found = touches.map(|(socket, page)| {
            table.touched_by(socket);
            table.frame(page) >> (30 - PAGE_SHIFT)
        });
        assert_eq!(found, [1, 0, 1, 1, 1, 0], "page 7 stays where it is, and the last one finds no room");
    }

    #[test]
    fn a_bound_part_that_is_too_large_names_its_node() {
        let (_, table) = placed(&["all=far0"], 2, 3);
        assert_eq!(table.exhausted(), Some("far0"));
    }
}
