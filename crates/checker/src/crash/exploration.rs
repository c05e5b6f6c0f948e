//! From instant to instant through a replay: what a power cut can leave at each of them.
//!
//! At any moment each line may have any version from the last one promised durable to the newest visible one. Visible
//! stores only add versions and promises only take them away, so what is possible at any moment is possible right
//! before the next promise: the instants that are looked at are those right before a promise that takes a version away,
//! if a store became visible since the last such instant, and the end. Together they have every state of every moment.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fencepost_kernel::time::Time;
use fencepost_record::MarkKind;

use super::choices::{Choice, Doubt};
use super::content_hash::{ContentHash, LINE, LineBytes};
use super::line_states::Content;
use super::operations::MarksMatter;
use super::pool_file::place_in_file;
use super::recorded_stores::{RecordedStores, StoreId, lines_of};
use super::replay::{Change, LineId, Replayed};
use super::sites::SiteId;

/// A line of the file and its content.
pub type Patch = (u64, LineBytes);

/// A line in doubt at the present instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulLine {
    /// Which.
    pub line: LineId,
    /// Its contents; the first is what was promised, the last what is visible.
    pub contents: Vec<Content>,
    /// The sites of the versions that are not promised, each with these in their order; found when they are asked for.
    by_site: OnceCell<Vec<(SiteId, Vec<u32>)>>,
}

impl DoubtfulLine {
    /// The first version that a line with this content lacks, and that makes another content of it; none of the newest
    /// content.
    pub(super) fn first_lost(&self, content: usize) -> Option<u32> {
        match &self.contents[content].torn {
            Some(torn) => torn.lost.first().copied(),
            None => self.wholes(content + 1).next().map(|next| self.contents[next].versions - 1),
        }
    }

    /// The oldest content that has all versions up to this one, which is not promised.
    pub(super) fn content_with(&self, version: u32) -> u32 {
        let is_older = |&content: &usize| self.first_lost(content).is_some_and(|lost| lost <= version);
        self.wholes(0).find(|content| !is_older(content)).unwrap_or(self.contents.len() - 1) as u32
    }

    /// The newest content that has all that comes before this version, and not that one.
    pub(super) fn content_before(&self, version: u32) -> u32 {
        let with = self.content_with(version) as usize;
        (0..with).rfind(|&content| self.contents[content].is_whole()).unwrap_or_default() as u32
    }

    /// The contents from this one on that are a number of versions.
    pub fn wholes(&self, from: usize) -> impl Iterator<Item = usize> {
        (from..self.contents.len()).filter(|&content| self.contents[content].is_whole())
    }
}

/// One image: how it differs from what was promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its content.
    pub hash: ContentHash,
    /// The content of each line in doubt.
    pub choice: Choice,
}

/// The images of an instant that were not made at an earlier one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Images {
    /// The images.
    pub images: Vec<Image>,
    /// How many were made before.
    pub duplicates: u64,
    /// How many combinations of versions there are.
    pub combinations: f64,
    /// Whether all of them are among those.
    pub is_all: bool,
}

/// A way through a replay.
#[derive(Clone)]
pub struct Exploration {
    /// What the program did.
    pub recorded: Arc<RecordedStores>,
    /// When it took effect.
    pub replayed: Arc<Replayed>,
    /// Bytes that are durable together or not at all.
    pub(super) atomicity: usize,
    next_change: usize,
    now: Time,
    /// By line: how many of its versions are promised, and how many are visible.
    durable: Vec<u32>,
    visible: Vec<u32>,
    in_doubt: BTreeSet<LineId>,
    /// By line of the file: what is promised.
    base: HashMap<u64, LineBytes>,
    base_hash: ContentHash,
    /// Lines of the file that `base` has changed in since [`Exploration::take_changes`].
    changed: BTreeSet<u64>,
    /// By line of the file: bytes that came otherwise, with their time; they lie over older stores.
    foreign: HashMap<u64, Vec<(usize, u32)>>,
    has_grown: bool,
    doubtful: Vec<DoubtfulLine>,
    doubt: Doubt,
    seen: HashSet<ContentHash>,
    pub(super) marks_matter: MarksMatter,
    /// How many marks were passed.
    marks_passed: u32,
    /// How many instants were not looked at, since no operation had begun.
    skipped: usize,
}

impl Exploration {
    /// At the start, before the first instant; `atomicity` is how many aligned bytes are durable together or not at
    /// all.
    pub fn new(recorded: Arc<RecordedStores>, replayed: Arc<Replayed>, atomicity: usize) -> Exploration {
        let lines = replayed.lines.len();
        Exploration {
            recorded,
            replayed,
            atomicity,
            next_change: 0,
            now: Time::ZERO,
            durable: vec![0; lines],
            visible: vec![0; lines],
            in_doubt: BTreeSet::new(),
            base: HashMap::new(),
            base_hash: ContentHash::default(),
            changed: BTreeSet::new(),
            foreign: HashMap::new(),
            has_grown: true,
            doubtful: Vec::new(),
            doubt: Doubt::default(),
            seen: HashSet::new(),
            marks_matter: MarksMatter::default(),
            marks_passed: 0,
            skipped: 0,
        }
    }

    /// How many instants come before the first operation and were skipped so far.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Goes back to the start. Images that were given are not given again.
    pub fn rewind(&mut self) {
        let start = Exploration::new(Arc::clone(&self.recorded), Arc::clone(&self.replayed), self.atomicity);
        let (seen, marks_matter) = (std::mem::take(&mut self.seen), self.marks_matter);
        *self = Exploration { seen, marks_matter, ..start };
    }

    /// How marks bear on this from here on.
    pub fn set_marks_matter(&mut self, matter: MarksMatter) {
        self.marks_matter = matter;
    }

    /// How many marks were passed before the present instant.
    pub fn marks_passed(&self) -> u32 {
        self.marks_passed
    }

    /// What is visible at the end; to be asked for at the start.
    pub fn left(&self) -> Vec<Patch> {
        let mut ahead = self.clone();
        ahead.seen.clear();
        while ahead.advance() {}
        let newest = ahead.doubtful.iter().map(|doubtful| (doubtful.contents.len() - 1) as u32).collect();
        let mut left = ahead.take_changes();
        left.extend(ahead.patches(&newest));
        left
    }

    /// Where in a file the last line begins that the program itself stored to, and one byte more.
    pub fn stored_until(&self, file: usize) -> u64 {
        let recorded = &self.recorded;
        let is_own = |&store: &StoreId| !recorded.stores[store as usize].is_of_call && recorded.has_bytes(store);
        let lines = self.replayed.lines.iter();
        let own = lines.filter(|line| line.versions.iter().flat_map(|version| &version.stores).any(is_own));
        let places = own.map(|line| place_in_file(line.file_line * LINE as u64));
        places.filter(|(of, _)| *of == file).map(|(_, offset)| offset + 1).max().unwrap_or(0)
    }

    /// What is promised right before the last promise, and nothing newer; to be asked for at the start.
    pub fn before_last_promise(&self) -> Vec<Patch> {
        let mut ahead = self.clone();
        ahead.marks_matter = MarksMatter::default();
        let (mut left, mut latest) = (Vec::new(), Vec::new());
        while ahead.advance() {
            let changes = ahead.take_changes();
            latest.extend(changes);
            if ahead.next_change < ahead.replayed.changes.len() {
                left.append(&mut latest);
            }
        }
        left
    }

    /// Goes on to the next instant; whether there is one.
    pub fn advance(&mut self) -> bool {
        let replayed = Arc::clone(&self.replayed);
        while let Some(&(time, change)) = replayed.changes.get(self.next_change) {
            if self.has_grown && self.takes_away(change) {
                self.has_grown = false;
                if self.is_before_operations() {
                    self.skipped += 1;
                } else {
                    self.look_around();
                    return true;
                }
            }
            self.now = time;
            self.pass(self.next_change);
        }
        let is_end = std::mem::take(&mut self.has_grown);
        if is_end {
            self.look_around();
        }
        is_end
    }

    /// The present instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The lines in doubt at the present instant.
    pub fn doubtful(&self) -> &[DoubtfulLine] {
        &self.doubtful
    }

    /// What happens after the present instant.
    pub fn changes_ahead(&self) -> impl Iterator<Item = Change> {
        self.replayed.changes[self.next_change..].iter().map(|(_, change)| *change)
    }

    /// How many versions of a line are promised, and how many are visible.
    pub fn versions(&self, line: LineId) -> (u32, u32) {
        (self.durable[line as usize], self.visible[line as usize])
    }

    /// What has changed of what is promised since the last call.
    pub fn take_changes(&mut self) -> Vec<Patch> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|line| (line, self.base[&line])).collect()
    }

    /// The images of the present instant that were not given before, at most `bound` combinations. Of lines of the file
    /// that are not in `read`, if that is given, only what is promised is taken.
    pub fn images(&mut self, bound: usize, seed: u64, read: Option<&HashSet<u64>>) -> Images {
        let (choices, combinations, is_all) = self.choices(bound, seed, read);
        let mut images = Images { combinations, is_all, ..Images::default() };
        for choice in choices {
            let hash = self.hash_of(&choice);
            if self.seen.insert(hash) {
                images.images.push(Image { hash, choice });
            } else {
                images.duplicates += 1;
            }
        }
        images
    }

    /// What [`Exploration::images`] looks at, whether it was given before or not: the choices, how many combinations
    /// there are, and whether these are all.
    pub fn choices(&self, bound: usize, seed: u64, read: Option<&HashSet<u64>>) -> (Vec<Choice>, f64, bool) {
        let is_fixed = |doubtful: &DoubtfulLine| {
            read.is_some_and(|read| !read.contains(&self.replayed.lines[doubtful.line as usize].file_line))
        };
        let fixed: Vec<bool> = self.doubtful.iter().map(is_fixed).collect();
        let free: Vec<usize> = (0..fixed.len()).filter(|&line| !fixed[line]).collect();
        let doubt = self.doubt.only(&free);
        let (choices, is_all) = doubt.choices(bound.max(2), seed ^ self.now.as_ps());
        let whole = choices.into_iter().map(|chosen| {
            let mut choice = vec![0; fixed.len()];
            free.iter().zip(chosen).for_each(|(&line, content)| choice[line] = content);
            choice
        });
        (whole.collect(), doubt.combinations(), is_all)
    }

    /// The content hash of an image of the present instant.
    pub fn hash_of(&self, choice: &Choice) -> ContentHash {
        let content = self.patches(choice).iter().fold(self.base_hash, |hash, (line, bytes)| {
            hash.exchange(*line, self.base.get(line).unwrap_or(&[0; LINE]), bytes)
        });
        self.marks_matter.hash(content, self.marks_passed)
    }

    /// How an image of the present instant differs from what is promised.
    pub fn patches(&self, choice: &Choice) -> Vec<Patch> {
        let chosen = self.doubtful.iter().zip(choice).filter(|(_, content)| **content != 0);
        chosen
            .map(|(doubtful, &content)| {
                let line = &self.replayed.lines[doubtful.line as usize];
                (line.file_line, doubtful.contents[content as usize].bytes)
            })
            .collect()
    }

    /// The sites whose stores a line lacks that has this content, each with the versions that they made.
    pub(super) fn lost_by_site<'a>(
        &'a self,
        doubtful: &'a DoubtfulLine,
        content: usize,
    ) -> impl Iterator<Item = (SiteId, &'a [u32])> {
        let first = doubtful.first_lost(content);
        self.by_site(doubtful).iter().filter_map(move |(site, versions)| {
            let lost = &versions[versions.partition_point(|version| *version < first.unwrap_or(u32::MAX))..];
            (!lost.is_empty()).then_some((*site, lost))
        })
    }

    fn by_site<'a>(&self, doubtful: &'a DoubtfulLine) -> &'a [(SiteId, Vec<u32>)] {
        doubtful.by_site.get_or_init(|| {
            let (durable, visible) = self.versions(doubtful.line);
            let mut by_site: BTreeMap<SiteId, Vec<u32>> = BTreeMap::new();
            for version in durable..visible {
                for &store in self.stores_of(doubtful.line, version) {
                    let versions = by_site.entry(self.recorded.site_of(store)).or_default();
                    if versions.last() != Some(&version) {
                        versions.push(version);
                    }
                }
            }
            by_site.into_iter().collect()
        })
    }

    /// Whether something is possible that is not any more behind this.
    fn takes_away(&self, change: Change) -> bool {
        match change {
            Change::Durable(line, versions) => versions > self.durable[line as usize],
            // What is in flight may be there from then on.
            Change::Mark(mark) => self.marks_matter.check_is_told && self.kind_of(mark) == MarkKind::Begin,
            Change::Foreign(_) | Change::Visible(_) => false,
        }
    }

    fn kind_of(&self, mark: u32) -> MarkKind {
        self.replayed.marks[mark as usize].mark.kind
    }

    fn is_before_operations(&self) -> bool {
        let begins = |mark| self.kind_of(mark) == MarkKind::Begin;
        let marks = self.replayed.marks.len() as u32;
        self.marks_matter.skips_creation && !(0..self.marks_passed).any(begins) && (0..marks).any(begins)
    }

    /// What happened at this place among the changes has happened.
    pub(super) fn pass(&mut self, place: usize) {
        self.next_change = place + 1;
        self.apply(self.replayed.changes[place].1);
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Mark(number) => {
                self.has_grown |= self.is_before_operations() || self.marks_matter.check_is_told;
                self.marks_passed = number + 1;
            }
            Change::Foreign(number) => self.apply_foreign(number),
            Change::Visible(line) => {
                self.visible[line as usize] += 1;
                self.has_grown = true;
                self.in_doubt.insert(line);
            }
            Change::Durable(line, versions) => {
                let before = self.durable[line as usize];
                if versions <= before {
                    return;
                }
                let mut bytes = self.base_of(line);
                for version in before..versions {
                    self.store_version(line, version, &mut bytes);
                }
                self.set_base(self.replayed.lines[line as usize].file_line, bytes);
                self.durable[line as usize] = versions;
                self.visible[line as usize] = self.visible[line as usize].max(versions);
                if self.visible[line as usize] == versions {
                    self.in_doubt.remove(&line);
                }
            }
        }
    }

    fn apply_foreign(&mut self, number: u32) {
        let recorded = Arc::clone(&self.recorded);
        let foreign = &recorded.foreign[number as usize];
        for line in lines_of(foreign.address, foreign.bytes.len() as u64) {
            let Some(file_line) = self.file_line_of(line) else { continue };
            self.foreign.entry(file_line).or_default().push((self.next_change, number));
            let mut bytes = self.base.get(&file_line).copied().unwrap_or([0; LINE]);
            self.lay_foreign(number, line, &mut bytes);
            self.set_base(file_line, bytes);
            self.has_grown = true;
        }
    }

    fn lay_foreign(&self, number: u32, line: u64, bytes: &mut LineBytes) {
        let foreign = &self.recorded.foreign[number as usize];
        let start = foreign.address.max(line * LINE as u64);
        let end =
            foreign.address.saturating_add(foreign.bytes.len() as u64).min((line + 1).saturating_mul(LINE as u64));
        if start < end {
            let from = (start - foreign.address) as usize;
            let length = (end - start) as usize;
            let place = (start % LINE as u64) as usize;
            bytes[place..place + length].copy_from_slice(&foreign.bytes[from..from + length]);
        }
    }

    fn file_line_of(&self, line: u64) -> Option<u64> {
        self.replayed.file.line_of(line)
    }

    pub(super) fn base_of(&self, line: LineId) -> LineBytes {
        let file_line = self.replayed.lines[line as usize].file_line;
        self.base.get(&file_line).copied().unwrap_or([0; LINE])
    }

    pub(super) fn set_base(&mut self, file_line: u64, bytes: LineBytes) {
        let before = self.base.insert(file_line, bytes).unwrap_or([0; LINE]);
        self.base_hash = self.base_hash.exchange(file_line, &before, &bytes);
        self.changed.insert(file_line);
    }

    /// Lays version number `version` of a line over `bytes`; what came otherwise since lies over it.
    pub(super) fn store_version(&self, line: LineId, version: u32, bytes: &mut LineBytes) {
        let made = &self.replayed.lines[line as usize].versions[version as usize];
        self.lay_stores(line, version, made.stores.iter().copied(), bytes);
    }

    /// Lays some stores of a version of a line over `bytes`; what came otherwise since lies over them.
    pub(super) fn lay_stores(
        &self,
        line: LineId,
        version: u32,
        stores: impl Iterator<Item = StoreId>,
        bytes: &mut LineBytes,
    ) {
        let history = &self.replayed.lines[line as usize];
        for store in stores {
            if let Some((place, stored)) = self.recorded.bytes_in_line(store, history.virtual_line) {
                bytes[place..place + stored.len()].copy_from_slice(stored);
            }
        }
        self.lay_foreign_over(line, version, bytes);
    }

    /// What came otherwise since a version of a line was made lies over it.
    pub(super) fn lay_foreign_over(&self, line: LineId, version: u32, bytes: &mut LineBytes) {
        let history = &self.replayed.lines[line as usize];
        let made = &history.versions[version as usize];
        for &(change, number) in self.foreign.get(&history.file_line).into_iter().flatten() {
            if change > made.change {
                self.lay_foreign(number, history.virtual_line, bytes);
            }
        }
    }

    /// Finds the contents that each line in doubt may have.
    fn look_around(&mut self) {
        self.doubtful.clear();
        self.doubt = Doubt::default();
        let mut order = Vec::new();
        for &line in &self.in_doubt {
            let (durable, visible) = self.versions(line);
            let mut contents = vec![Content::whole(durable, self.base_of(line))];
            let mut newest = 0;
            for group in self.groups(line, durable..visible) {
                let states = self.states(line, group, &contents[newest].bytes);
                self.doubt.is_cut |= !states.is_all;
                for content in states.contents {
                    let is_new = content.bytes != contents[newest].bytes || !content.is_whole();
                    if is_new {
                        if content.is_whole() {
                            let change = self.change_of(line, content.versions - 1);
                            order.push((change, self.doubtful.len() as u32, contents.len() as u32));
                            newest = contents.len();
                        }
                        contents.push(content);
                    }
                }
            }
            if contents.len() > 1 {
                let doubtful = DoubtfulLine { line, contents, by_site: OnceCell::new() };
                self.doubt.contents.push(doubtful.contents.len() as u32);
                self.doubt.wholes.push(doubtful.wholes(0).map(|content| content as u32).collect());
                self.doubtful.push(doubtful);
            }
        }
        order.sort_unstable();
        self.doubt.order = order.into_iter().map(|(_, line, content)| (line, content)).collect();
    }
}
