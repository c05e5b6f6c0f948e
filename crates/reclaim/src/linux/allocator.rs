//! Where compressed pages lie: how many pages of memory a pool takes.

use super::preset::Packing;
use crate::page::PAGE;

const CHUNK: usize = 64; // mm/zbud.c: NCHUNKS_ORDER 6
const ZBUD_HEADER: usize = 64; // ZHDR_SIZE_ALIGNED
const CHUNKS: usize = (PAGE - ZBUD_HEADER) / CHUNK;
/// The largest object of zbud.
pub const ZBUD_MAX: usize = PAGE - ZBUD_HEADER - CHUNK;
const CLASS_STEP: usize = PAGE >> 8; // mm/zsmalloc.c: ZS_SIZE_CLASS_DELTA
const SMALLEST: usize = 32; // ZS_MIN_ALLOC_SIZE
const CHAIN_MAX: usize = 4; // pages of a zspage

/// Where an object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    page: u32,
    chunks: u32,
}

/// A pool.
#[derive(Clone, Debug)]
pub enum Allocator {
    /// See [`Packing::Zbud`].
    Zbud(Zbud),
    /// See [`Packing::Zsmalloc`].
    Zsmalloc(Zsmalloc),
}

impl Allocator {
    /// Empty.
    #[must_use]
    pub fn new(packing: Packing) -> Self {
        match packing {
            Packing::Zbud => Self::Zbud(Zbud { free: vec![Vec::new(); CHUNKS + 1], ..Zbud::default() }),
            Packing::Zsmalloc => {
                Self::Zsmalloc(Zsmalloc { classes: vec![SizeClass::default(); PAGE / CLASS_STEP + 1] })
            }
        }
    }

    /// A place for so many bytes; none if they are too many for any.
    pub fn allocate(&mut self, bytes: usize) -> Option<Place> {
        match self {
            Self::Zbud(zbud) => (bytes <= ZBUD_MAX).then(|| zbud.allocate(bytes.div_ceil(CHUNK))),
            Self::Zsmalloc(zsmalloc) => (bytes <= PAGE).then(|| zsmalloc.allocate(bytes)),
        }
    }

    /// Gives a place back.
    pub fn free(&mut self, place: Place) {
        match self {
            Self::Zbud(zbud) => zbud.release(place),
            Self::Zsmalloc(zsmalloc) => zsmalloc.classes[place.chunks as usize].objects -= 1,
        }
    }

    /// Pages that it takes.
    #[must_use]
    pub fn pages(&self) -> u32 {
        match self {
            Self::Zbud(zbud) => zbud.used,
            Self::Zsmalloc(zsmalloc) => zsmalloc.pages(),
        }
    }
}

/// Two objects to a page: the first page with just enough room, by size of the room.
#[derive(Clone, Debug, Default)]
pub struct Zbud {
    /// Chunks of each page's objects; a page without any is unused.
    taken: Vec<[u32; 2]>,
    /// Pages with one object, by free chunks; entries may be stale.
    free: Vec<Vec<u32>>,
    unused: Vec<u32>,
    used: u32,
}

impl Zbud {
    fn room(&self, page: u32) -> Option<usize> {
        let [one, other] = self.taken[page as usize];
        ((one == 0) != (other == 0)).then(|| CHUNKS - (one + other) as usize)
    }

    fn allocate(&mut self, chunks: usize) -> Place {
        for room in chunks..=CHUNKS {
            while let Some(page) = self.free[room].pop() {
                if self.room(page) == Some(room) {
                    let taken = &mut self.taken[page as usize];
                    taken[usize::from(taken[0] != 0)] = chunks as u32;
                    return Place { page, chunks: chunks as u32 };
                }
            }
        }
        let page = self.unused.pop().unwrap_or_else(|| {
            self.taken.push([0; 2]);
            self.taken.len() as u32 - 1
        });
        self.used += 1;
        self.taken[page as usize][0] = chunks as u32;
        self.free[CHUNKS - chunks].push(page);
        Place { page, chunks: chunks as u32 }
    }

    fn release(&mut self, place: Place) {
        let taken = &mut self.taken[place.page as usize];
        let which = usize::from(taken[0] != place.chunks);
        assert_eq!(taken[which], place.chunks, "it lies there");
        taken[which] = 0;
        match self.room(place.page) {
            Some(room) => self.free[room].push(place.page),
            None => {
                self.used -= 1;
                self.unused.push(place.page);
            }
        }
    }
}

/// Objects of like size in chains of pages; compaction is taken to have run, so a class has no chain too many.
#[derive(Clone, Debug)]
pub struct Zsmalloc {
    classes: Vec<SizeClass>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SizeClass {
    objects: u32,
}

impl Zsmalloc {
    fn allocate(&mut self, bytes: usize) -> Place {
        let class = bytes.max(SMALLEST).div_ceil(CLASS_STEP);
        self.classes[class].objects += 1;
        Place { page: 0, chunks: class as u32 }
    }

    fn pages(&self) -> u32 {
        let of = self.classes.iter().enumerate().filter(|(_, class)| class.objects > 0);
        of.map(|(class, of)| {
            let size = class * CLASS_STEP;
            let chain = chain(size);
            of.objects.div_ceil((chain * PAGE / size) as u32) * chain as u32
        })
        .sum()
    }
}

/// How many pages a chain of objects of that size has: with the least waste (`calculate_zspage_chain_size`).
fn chain(size: usize) -> usize {
    let waste = |&pages: &usize| (pages * PAGE % size * 100 / (pages * PAGE), pages);
    (1..=CHAIN_MAX).min_by_key(waste).expect("there are some")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_halves_share_a_page_of_zbud_and_three_do_not() {
        let mut pool = Allocator::new(Packing::Zbud);
        let places: Vec<_> = (0..3).map(|_| pool.allocate(1900).unwrap()).collect();
        assert_eq!(pool.pages(), 2);
        pool.free(places[0]);
        assert_eq!(pool.pages(), 2);
        pool.free(places[1]);
        assert_eq!(pool.pages(), 1);
    }

    #[test]
    fn zbud_takes_nothing_that_leaves_no_chunk() {
        let mut pool = Allocator::new(Packing::Zbud);
        assert!(pool.allocate(3968).is_some());
        assert!(pool.allocate(3969).is_none());
    }

    #[test]
    fn zsmalloc_chains_pages_with_the_least_waste() {
        // 3 x 1,360 bytes in one page leave 16; 2,720 in two pages likewise; 3,264: 5 objects in 4 pages.
        assert_eq!([chain(1360), chain(2720), chain(3264)], [1, 2, 4]);
        let mut pool = Allocator::new(Packing::Zsmalloc);
        let places: Vec<_> = (0..4).map(|_| pool.allocate(1360).unwrap()).collect();
        assert_eq!(pool.pages(), 2);
        pool.free(places[0]);
        assert_eq!(pool.pages(), 1);
    }

    proptest! {
        #[test]
        fn a_pool_takes_no_less_than_its_objects_and_nothing_when_empty(
            sizes in prop::collection::vec(1usize..=3968, 1..200), zbud: bool,
        ) {
            let mut pool = Allocator::new(if zbud { Packing::Zbud } else { Packing::Zsmalloc });
            let places: Vec<_> = sizes.iter().map(|&size| pool.allocate(size).unwrap()).collect();
            prop_assert!(pool.pages() as usize * PAGE >= sizes.iter().sum::<usize>());
            prop_assert!(!zbud || pool.pages() as usize * 2 >= sizes.len());
            places.into_iter().for_each(|place| pool.free(place));
            prop_assert_eq!(pool.pages(), 0);
        }
    }
}
