//! Prefetchers: what a level fetches before it is asked for. A kind is a file; any of them can be attached to a
//! first-level data cache and to the levels below that are private to a core.
//!
//! A first level shows its prefetcher every load and store of the core, with the instruction and the virtual address.
//! The levels below see what the first level misses or fetches ahead itself: lines, and of no instruction. What they
//! take for one stream are therefore the accesses to a page.

mod next_line;
mod stream;
mod stride;

use next_line::NextLine;
use stream::Streams;
use stride::Strides;

use super::config::{CacheConfig, PrefetcherKind};
use fencepost_kernel::line::LineAddress;

/// A page in bytes, as a shift; no prefetcher knows what lies behind the end of one.
pub const PAGE_SHIFT: u32 = 12;

/// The prefetcher of one cache.
#[derive(Clone, Debug)]
pub enum Prefetcher {
    /// By instruction and stride.
    Stride(Strides),
    /// The lines behind each access.
    NextLine(NextLine),
    /// By page and direction.
    Stream(Streams),
}

/// Addresses that are worth having, the nearest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead {
    next: u64,
    step: i64,
    left: u8,
}

impl Iterator for Ahead {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let next = self.next;
        self.next = next.wrapping_add_signed(self.step);
        Some(next)
    }
}

impl Prefetcher {
    /// The prefetcher that `config` asks for, if any.
    pub fn of(config: &CacheConfig) -> Option<Prefetcher> {
        match config.prefetcher {
            PrefetcherKind::None => None,
            PrefetcherKind::Stride => Some(Prefetcher::Stride(Strides::new(config))),
            PrefetcherKind::NextLine => Some(Prefetcher::NextLine(NextLine::new(config))),
            PrefetcherKind::Stream => Some(Prefetcher::Stream(Streams::new(config))),
        }
    }

    /// A load or store of `instruction` accesses `address`: gives the addresses that are worth having, each in another
    /// line.
    #[inline]
    pub fn observe(&mut self, instruction: u32, address: u64) -> Ahead {
        match self {
            Prefetcher::Stride(strides) => strides.observe(instruction, address),
            Prefetcher::NextLine(next_line) => next_line.observe(address),
            Prefetcher::Stream(streams) => streams.observe(address),
        }
    }

    /// The same where only the line is known: gives those of its page.
    pub fn observe_line(&mut self, line: LineAddress) -> impl Iterator<Item = LineAddress> + use<> {
        let page = line.byte() >> PAGE_SHIFT;
        let ahead = self.observe(page as u32, line.byte());
        ahead.filter(move |address| address >> PAGE_SHIFT == page).map(LineAddress::containing)
    }
}
