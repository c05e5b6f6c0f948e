//! Looks at a word, one soon behind the other, up to the one that sees a newer store: whatever code they are in, the
//! thread waited from the first on. Rounds of a loop are one case (`rounds.rs`); others are a first look that the
//! compiler has peeled off, and loops that poll in one way and then in another.

use super::history::Version;

/// Between two looks of one wait.
const INSTRUCTIONS_MAX: u64 = 100;
/// Words that a thread may look at alternately.
const WORDS_MAX: usize = 4;

/// A thread has looked at a word, and done nothing since that another one could see.
#[derive(Clone, Copy, Debug)]
struct Look {
    word: u64,
    /// Behind the first one.
    from: u64,
    /// What it saw.
    seen: Version,
    /// When the thread looked last, in its instructions.
    at: u64,
}

/// Those of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    looks: Vec<Look>,
    instructions: u64,
}

impl Looks {
    #[inline]
    pub(super) fn pass(&mut self, instructions: u32) {
        self.instructions += u64::from(instructions);
    }

    /// The thread has done something that others see, or more than waiting may do.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.looks.clear();
    }

    /// It looks at a word, at this step. Where it has waited for what it sees now: behind which step it began to.
    pub(super) fn at(&mut self, word: u64, seen: Version, step: u64, thread: usize) -> Option<u64> {
        let now = self.instructions;
        if let Some(look) = self.looks.iter_mut().find(|look| look.word == word && now - look.at <= INSTRUCTIONS_MAX) {
            if look.seen == seen {
                look.at = now;
                return None;
            }
            let from = look.from;
            self.looks.clear();
            self.add(word, seen, step);
            return (seen.thread != thread).then_some(from);
        }
        self.add(word, seen, step);
        None
    }

    fn add(&mut self, word: u64, seen: Version, step: u64) {
        self.looks.retain(|look| look.word != word);
        if self.looks.len() == WORDS_MAX {
            self.looks.remove(0);
        }
        self.looks.push(Look { word, from: step + 1, seen, at: self.instructions });
    }
}
