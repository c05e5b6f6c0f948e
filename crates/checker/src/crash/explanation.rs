//! What a failing image depends on, and what is missing in the program: from two stores, one durable and one not, to a
//! flush or fence.

use std::collections::BTreeSet;

use super::choices::Choice;
use super::content_hash::LINE;
use super::diagnosis::{Diagnosis, Fault, diagnose, diagnose_until};
use super::exploration::Exploration;
use super::line_states::Torn;
use super::recorded_stores::{Act, StoreId};
use super::replay::{Change, LineId};
use super::sites::SiteId;

/// A store, as a reader finds it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedStore {
    /// The thread that made it.
    pub thread: u32,
    /// Where it comes from.
    pub site: SiteId,
    /// Where in the file its first byte lies.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// Why an image fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What is wrong.
    pub fault: Fault,
    /// A store that is durable in the image.
    pub durable: Option<ExplainedStore>,
    /// One that is not, and should have been.
    pub lost: Option<ExplainedStore>,
    /// The flush that comes too early or too late, if there is one.
    pub flush: Option<SiteId>,
    /// The fence that comes too early, or that both wait for.
    pub fence: Option<SiteId>,
    /// A flush that comes with the lost store and had nothing to write back: it may have been meant for its line.
    pub idle_flush: Option<SiteId>,
    /// Whether it had to be durable since its operation had ended.
    pub has_ended: bool,
}

impl Explanation {
    fn of(fault: Fault) -> Explanation {
        let (durable, lost, flush, fence, idle_flush) = Default::default();
        Explanation { fault, durable, lost, flush, fence, idle_flush, has_ended: false }
    }
}

impl Exploration {
    /// Explains a failing image of the present instant; `early` and `lost` are numbers of lines in doubt. The check
    /// passes if a line of `early` has the content before the one that it has, or a line of `lost` the one behind it.
    pub fn explain(&self, choice: &Choice, early: &[usize], lost: &[usize]) -> Explanation {
        let doubtful = |number: usize| (&self.doubtful()[number], choice[number] as usize);
        let torn = |&number: &usize| self.doubtful()[number].contents[choice[number] as usize].torn.as_ref();
        if let Some(torn) = lost.iter().find_map(torn) {
            return self.torn_explained(torn);
        }
        let missing = lost.iter().filter_map(|&number| {
            let (doubtful, content) = doubtful(number);
            Some((doubtful.line, doubtful.first_lost(content)?))
        });
        let missing = missing.min_by_key(|&(line, version)| self.change_of(line, version));
        let newest = early.iter().filter_map(|&number| {
            let (doubtful, content) = doubtful(number);
            Some((doubtful.line, doubtful.contents[content].versions.checked_sub(1)?))
        });
        let newest = self.newest(newest);
        let Some((line, version)) = missing else { return self.between_stores(choice) };
        let store = self.stores_of(line, version)[0];
        let durable = newest.or_else(|| self.likely_promise(line, self.recorded.stores[store as usize].thread));
        let is_durable_older =
            durable.is_some_and(|(of, newer)| self.change_of(of, newer) < self.change_of(line, version));
        let durable = durable.map(|(line, version)| self.last_store(line, version));
        if durable == Some(store) {
            return self.of_one_store(store);
        }
        let diagnosis = match diagnose(&self.recorded, store, durable) {
            // A store that was visible before the lost one did not come of it in another thread.
            Diagnosis { fault: Fault::AcrossThreads, .. } if is_durable_older => Diagnosis::of(Fault::LaterStore),
            diagnosis => diagnosis,
        };
        // Nothing that is durable needs it, but that its operation had ended.
        let is_needed_by_end = matches!(diagnosis.fault, Fault::LaterStore | Fault::NothingDurable);
        let end = self.end_after(store).filter(|_| is_needed_by_end);
        let Diagnosis { fault, flush, fence } = end.map_or(diagnosis, |end| diagnose_until(&self.recorded, store, end));
        Explanation {
            fault,
            durable: durable.filter(|_| end.is_none()).map(|store| self.explained(store)),
            lost: Some(self.explained(store)),
            flush,
            fence,
            idle_flush: self.idle_flush(store),
            has_ended: end.is_some(),
        }
    }

    /// Of a line that has not all pieces of stores that nothing orders.
    fn torn_explained(&self, torn: &Torn) -> Explanation {
        let fault = if torn.is_one_store { Fault::Torn } else { Fault::MissingFence };
        Explanation {
            durable: Some(self.explained(torn.durable_store)),
            lost: Some(self.explained(torn.lost_store)),
            ..Explanation::of(fault)
        }
    }

    /// Of a store to two lines, one of which is lost.
    fn of_one_store(&self, store: StoreId) -> Explanation {
        let store = self.explained(store);
        Explanation { durable: Some(store.clone()), lost: Some(store), ..Explanation::of(Fault::Torn) }
    }

    /// The sites whose stores an image of the present instant lacks.
    pub fn lost_sites(&self, choice: &Choice) -> BTreeSet<SiteId> {
        let lines = self.doubtful().iter().zip(choice);
        lines
            .flat_map(|(doubtful, &content)| self.lost_by_site(doubtful, content as usize))
            .map(|(site, _)| site)
            .collect()
    }

    /// The image that lacks no store of the sites that `is_meant`, and is otherwise as old as `choice`; and the one
    /// that holds all that comes before the first of these stores in its line, but not that store.
    pub fn without_loss(&self, choice: &Choice, is_meant: impl Fn(SiteId) -> bool) -> (Choice, Choice) {
        let (mut with, mut before) = (choice.clone(), choice.clone());
        for (number, doubtful) in self.doubtful().iter().enumerate() {
            let lost = self.lost_by_site(doubtful, choice[number] as usize).filter(|&(site, _)| is_meant(site));
            let ends = lost.map(|(_, versions)| (versions[0], versions[versions.len() - 1]));
            let ends = ends.reduce(|(first, last), (earlier, later)| (first.min(earlier), last.max(later)));
            if let Some((first, last)) = ends {
                let content = &doubtful.contents[choice[number] as usize];
                with[number] = doubtful.content_with(last.max(content.versions.saturating_sub(1)));
                // What is torn lacks the store as it is.
                if content.is_whole() {
                    before[number] = doubtful.content_before(first);
                }
            }
        }
        (with, before)
    }

    pub(super) fn change_of(&self, line: LineId, version: u32) -> usize {
        self.replayed.lines[line as usize].versions[version as usize].change
    }

    pub(super) fn last_store(&self, line: LineId, version: u32) -> StoreId {
        *self.stores_of(line, version).last().expect("a version has stores")
    }

    pub(super) fn stores_of(&self, line: LineId, version: u32) -> &[StoreId] {
        &self.replayed.lines[line as usize].versions[version as usize].stores
    }

    /// Where in the file a line begins.
    pub(super) fn offset_of(&self, line: LineId) -> u64 {
        self.replayed.lines[line as usize].file_line * LINE as u64
    }

    /// Where an image holds no more than what is promised: the promised store that probably needs the lost one, which
    /// `thread` made to the line `lost`. Images do not tell: no promise can be taken back in them. It is the newest one
    /// of another line, of this thread if it has one: another thread that went on because of the lost store left images
    /// before, in which its own store was in doubt.
    fn likely_promise(&self, lost: LineId, thread: u32) -> Option<(LineId, u32)> {
        let is_own = |(line, version)| self.recorded.stores[self.last_store(line, version) as usize].thread == thread;
        let of_others = || self.promised().filter(|&(line, _)| line != lost);
        self.newest(of_others().filter(|&promise| is_own(promise)))
            .or_else(|| self.newest(of_others()))
            .or_else(|| self.newest(self.promised()))
    }

    /// The newest promised version of each line that has one.
    fn promised(&self) -> impl Iterator<Item = (LineId, u32)> {
        let lines = 0..self.replayed.lines.len() as LineId;
        lines.filter_map(|line| Some((line, self.versions(line).0.checked_sub(1)?)))
    }

    fn newest(&self, versions: impl Iterator<Item = (LineId, u32)>) -> Option<(LineId, u32)> {
        versions.max_by_key(|&(line, version)| self.change_of(line, version))
    }

    /// Nothing that is visible is lost: the cut fell between the last visible store and the next one.
    fn between_stores(&self, choice: &Choice) -> Explanation {
        let chosen = self.doubtful().iter().zip(choice).filter_map(|(doubtful, &content)| {
            Some((doubtful.line, doubtful.contents[content as usize].versions.checked_sub(1)?))
        });
        let last = self.newest(self.promised().chain(chosen));
        let last = last.map(|(line, version)| self.last_store(line, version));
        let overtaken = last.and_then(|last| self.overtaken_by(last));
        let next = overtaken.or_else(|| self.visible_ahead().next());
        Explanation {
            durable: last.map(|store| self.explained(store)),
            lost: next.map(|store| self.explained(store)),
            ..Explanation::of(if overtaken.is_some() { Fault::MissingFence } else { Fault::BetweenStores })
        }
    }

    /// A non-temporal store that is not visible yet, though this later one of its thread is.
    fn overtaken_by(&self, later: StoreId) -> Option<StoreId> {
        let later = &self.recorded.stores[later as usize];
        self.visible_ahead().find(|&store| {
            let store = &self.recorded.stores[store as usize];
            store.is_non_temporal && store.thread == later.thread && store.place < later.place
        })
    }

    /// The next store to each line that becomes visible from now on, in the order in which they do.
    fn visible_ahead(&self) -> impl Iterator<Item = StoreId> {
        self.changes_ahead().filter_map(|change| match change {
            Change::Visible(line) => Some(self.last_store(line, self.versions(line).1)),
            _ => None,
        })
    }

    pub(super) fn explained(&self, store: StoreId) -> ExplainedStore {
        let recorded = &self.recorded.stores[store as usize];
        let line = self.replayed.file.line_of(recorded.address / LINE as u64).unwrap_or_default();
        ExplainedStore {
            thread: recorded.thread,
            site: self.recorded.site_of(store),
            offset: line * LINE as u64 + recorded.address % LINE as u64,
            size: recorded.size,
        }
    }

    /// A flush between the store and the next fence that had nothing to write back.
    fn idle_flush(&self, store: StoreId) -> Option<SiteId> {
        let store = &self.recorded.stores[store as usize];
        let acts = &self.recorded.threads[store.thread as usize];
        let from = store.place as usize + 1;
        let group = acts[from..].iter().take_while(|act| !matches!(act.act, Act::Fence { .. })).count();
        let in_group = |place: u32| (from..from + group).contains(&(place as usize));
        let idle = self.replayed.flushes.iter();
        let idle = idle.filter(|flush| flush.is_clean && flush.thread == store.thread && in_group(flush.place));
        idle.map(|flush| acts[flush.place as usize].site).next()
    }
}
