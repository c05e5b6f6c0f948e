//! Which stores an image holds and which it lacks: of every line in doubt, those that came after what was promised of
//! it.

use super::choices::Choice;
use super::explanation::ExplainedStore;
use super::exploration::Exploration;
use super::replay::LineId;

/// Stores of one thread that come from one site, each after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRun {
    /// The first of them.
    pub first: ExplainedStore,
    /// How many there are.
    pub stores: u64,
}

/// What became of a line in doubt. All stores that made it are in `promised`, `durable`, `torn` or `lost`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineStores {
    /// Where in the file the line begins.
    pub offset: u64,
    /// The last store that was promised to be durable, if one was.
    pub promised: Option<ExplainedStore>,
    /// Those that were not promised and are in the image.
    pub durable: Vec<StoreRun>,
    /// Those of which some pieces may be in the image, and some are not.
    pub torn: Vec<StoreRun>,
    /// Those that were visible and are not.
    pub lost: Vec<StoreRun>,
}

impl Exploration {
    /// What became of the lines in doubt in an image of the present instant.
    pub fn stores_in(&self, choice: &Choice) -> Vec<LineStores> {
        let lines = self.doubtful().iter().zip(choice);
        lines
            .map(|(doubtful, &content)| {
                let line = doubtful.line;
                let (promised, visible) = self.versions(line);
                let content = &doubtful.contents[content as usize];
                let included = content.versions;
                let torn = content.torn.as_ref().map_or(&[][..], |torn| &torn.lost);
                let is_torn = |version: &u32| torn.contains(version);
                LineStores {
                    offset: self.offset_of(line),
                    promised: promised.checked_sub(1).map(|version| self.explained(self.last_store(line, version))),
                    durable: self.runs(line, (promised..included).filter(|version| !is_torn(version))),
                    torn: self.runs(line, torn.iter().copied()),
                    lost: self.runs(line, included..visible),
                }
            })
            .collect()
    }

    fn runs(&self, line: LineId, versions: impl Iterator<Item = u32>) -> Vec<StoreRun> {
        let mut runs: Vec<StoreRun> = Vec::new();
        let made = versions.flat_map(|version| self.stores_of(line, version));
        for store in made.map(|&store| self.explained(store)) {
            let is_same = |run: &&mut StoreRun| (run.first.thread, run.first.site) == (store.thread, store.site);
            match runs.last_mut().filter(is_same) {
                Some(run) => run.stores += 1,
                None => runs.push(StoreRun { first: store, stores: 1 }),
            }
        }
        runs
    }
}
