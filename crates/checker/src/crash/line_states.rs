//! What of a line's visible versions a power cut can leave, where that is more than one version after the other.
//!
//! A store is durable in aligned pieces of the size that the platform keeps whole. A line has all of its stores before
//! one of them and any of that one's pieces. Non-temporal stores go around the caches: until their thread's next fence
//! nothing orders their pieces with other stores of the thread to the line, but with those to the same piece.

use std::collections::HashSet;
use std::ops::Range;

use super::content_hash::LineBytes;
use super::exploration::Exploration;
use super::recorded_stores::{Act, StoreId};
use super::replay::LineId;

/// Stores to one line of which nothing orders the pieces have at most so many; more of them are taken in order.
const PIECES_MAX: usize = 64;

/// At most so many states of such stores are looked at, beside those of one version after the other.
const STATES_MAX: usize = 1024;

/// Why a content is not simply a number of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Versions that it lacks, wholly or in part, in order.
    pub lost: Vec<u32>,
    /// The first store that it lacks a piece of.
    pub lost_store: StoreId,
    /// The last one that it has a piece of.
    pub durable_store: StoreId,
    /// Whether that is one store that it has in part.
    pub is_one_store: bool,
}

/// What a line may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// How many versions it has, or where it is torn, up to which one it has pieces.
    pub versions: u32,
    /// The bytes.
    pub bytes: LineBytes,
    /// What it lacks of these versions.
    pub torn: Option<Torn>,
}

impl Content {
    /// The first versions of the line.
    pub fn whole(versions: u32, bytes: LineBytes) -> Content {
        Content { versions, bytes, torn: None }
    }

    /// Whether it is a number of versions.
    pub fn is_whole(&self) -> bool {
        self.torn.is_none()
    }
}

/// A piece of a store.
struct Piece {
    version: u32,
    store: StoreId,
    /// Bytes of the line.
    place: Range<usize>,
    /// Where in the store's bytes of this line it begins.
    from: usize,
    /// Pieces that are durable before this one is.
    after: u64,
}

/// The states of stores that belong together because nothing orders them, in an order in which whole versions follow
/// each other.
pub(super) struct States {
    pub contents: Vec<Content>,
    pub is_all: bool,
}

impl Exploration {
    /// The visible versions from `durable` on in groups: each is durable before the next one begins.
    pub(super) fn groups(&self, line: LineId, versions: Range<u32>) -> Vec<Range<u32>> {
        let mut groups: Vec<Range<u32>> = Vec::new();
        for version in versions {
            let mut group = version..version + 1;
            while let Some(before) = groups.last() {
                let are_ordered =
                    before.clone().all(|first| group.clone().all(|second| self.are_ordered(line, first, second)));
                if are_ordered || (group.end - before.start) as usize > PIECES_MAX {
                    break;
                }
                group.start = before.start;
                groups.pop();
            }
            groups.push(group);
        }
        groups
    }

    /// Whether a version is durable before any part of a later one.
    fn are_ordered(&self, line: LineId, first: u32, second: u32) -> bool {
        let of = |version| self.stores_of(line, version);
        of(first).iter().all(|&one| of(second).iter().all(|&other| self.is_durable_before(one, other)))
    }

    /// Whether a store to a line is durable before any part of a later one to it.
    fn is_durable_before(&self, first: StoreId, second: StoreId) -> bool {
        let (one, other) = (&self.recorded.stores[first as usize], &self.recorded.stores[second as usize]);
        if first == second || one.thread != other.thread || !(one.is_non_temporal || other.is_non_temporal) {
            return first != second;
        }
        // What is combined may be visible after what its thread stored later.
        let (from, until) = (one.place.min(other.place), one.place.max(other.place));
        let acts = &self.recorded.threads[one.thread as usize][from as usize..until as usize];
        acts.iter().any(|act| matches!(act.act, Act::Fence { .. } | Act::Sync { .. }))
    }

    /// What a group of versions can leave over `base`, without what comes before all of them.
    pub(super) fn states(&self, line: LineId, group: Range<u32>, base: &LineBytes) -> States {
        let pieces = self.pieces(line, group.clone());
        let mut bytes = *base;
        let wholes = group.clone().map(|version| {
            self.store_version(line, version, &mut bytes);
            Content::whole(version + 1, bytes)
        });
        let wholes: Vec<Content> = wholes.collect();
        if pieces.len() < 2 || pieces.len() > PIECES_MAX {
            return States { contents: wholes, is_all: pieces.len() < 2 };
        }
        let mut seen: HashSet<LineBytes> = wholes.iter().map(|whole| whole.bytes).chain([*base]).collect();
        let (masks, is_all) = closed_sets(&pieces);
        let mut torn: Vec<(u32, u32, Content)> = Vec::new();
        for mask in masks {
            let content = self.torn(line, &pieces, mask, base);
            if seen.insert(content.bytes) {
                torn.push((content.versions, mask.count_ones(), content));
            }
        }
        torn.sort_by_key(|(versions, pieces, _)| (*versions, *pieces));
        let mut torn = torn.into_iter().peekable();
        let mut contents = Vec::new();
        for whole in wholes {
            while let Some((.., content)) = torn.next_if(|(versions, ..)| *versions <= whole.versions) {
                contents.push(content);
            }
            contents.push(whole);
        }
        States { contents, is_all }
    }

    fn pieces(&self, line: LineId, group: Range<u32>) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let virtual_line = self.replayed.lines[line as usize].virtual_line;
        for version in group {
            for &store in self.stores_of(line, version) {
                let Some((start, stored)) = self.recorded.bytes_in_line(store, virtual_line) else { continue };
                let mut at = start;
                while at < start + stored.len() {
                    let end = ((at / self.atomicity + 1) * self.atomicity).min(start + stored.len());
                    let is_before = |piece: &Piece| {
                        piece.place.start / self.atomicity == at / self.atomicity
                            || self.is_durable_before(piece.store, store)
                    };
                    let before = pieces.iter().take(PIECES_MAX).enumerate().filter(|(_, piece)| is_before(piece));
                    let after = before.fold(0, |after, (number, _)| after | 1 << number);
                    pieces.push(Piece { version, store, place: at..end, from: at - start, after });
                    at = end;
                }
            }
        }
        pieces
    }

    /// What is left where only some pieces are durable.
    fn torn(&self, line: LineId, pieces: &[Piece], mask: u64, base: &LineBytes) -> Content {
        let virtual_line = self.replayed.lines[line as usize].virtual_line;
        let is_durable = |number: usize| mask >> number & 1 == 1;
        let mut bytes = *base;
        for (number, piece) in pieces.iter().enumerate() {
            if is_durable(number)
                && let Some((_, stored)) = self.recorded.bytes_in_line(piece.store, virtual_line)
            {
                let length = piece.place.len();
                bytes[piece.place.clone()].copy_from_slice(&stored[piece.from..piece.from + length]);
            }
            let is_last = pieces.get(number + 1).is_none_or(|next| next.version != piece.version);
            if is_last {
                self.lay_foreign_over(line, piece.version, &mut bytes);
            }
        }
        let durable = (0..pieces.len()).rfind(|&number| is_durable(number)).expect("some are");
        let missing = |number: &usize| !is_durable(*number) && pieces[*number].version <= pieces[durable].version;
        let lost: Vec<usize> = (0..pieces.len()).filter(missing).collect();
        let mut versions: Vec<u32> = lost.iter().map(|&number| pieces[number].version).collect();
        versions.dedup();
        let lost_store = pieces[lost[0]].store;
        let is_one_store = (0..pieces.len()).any(|number| is_durable(number) && pieces[number].store == lost_store);
        Content {
            versions: pieces[durable].version + 1,
            bytes,
            torn: Some(Torn {
                lost: versions,
                lost_store,
                durable_store: if is_one_store { lost_store } else { pieces[durable].store },
                is_one_store,
            }),
        }
    }
}

/// The sets of pieces that have with each piece those before it, but for none, all, and whole versions; and whether
/// these are all.
fn closed_sets(pieces: &[Piece]) -> (Vec<u64>, bool) {
    let ends =
        (1..=pieces.len()).filter(|&end| pieces.get(end).is_none_or(|next| next.version != pieces[end - 1].version));
    let wholes: HashSet<u64> = ends.map(|end| u64::MAX >> (64 - end)).chain([0]).collect();
    let mut found = Vec::new();
    let mut open = vec![(0, 0_u64)];
    while let Some((next, mask)) = open.pop() {
        let Some(piece) = pieces.get(next) else {
            if !wholes.contains(&mask) {
                if found.len() == STATES_MAX {
                    return (found, false);
                }
                found.push(mask);
            }
            continue;
        };
        if piece.after & !mask == 0 {
            open.push((next + 1, mask | 1 << next));
        }
        open.push((next + 1, mask));
    }
    (found, true)
}
