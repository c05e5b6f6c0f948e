//! Limits of what the recorder looks at for waiting. Beyond them a thread that polls may stand in the record as one
//! that works, so a record says which of them it has met.

/// A limit, by its number in the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitLimit {
    /// Another word could not be watched.
    Words = 1,
    /// Another instruction that polls could not.
    Instructions = 2,
    /// An instruction came to more words than are watched for one.
    WordsOfInstruction = 3,
    /// A loop polled more words than are kept of it.
    WordsOfLoop = 4,
    /// A loop that polls had more kinds of rounds than are kept.
    RoundsOfLoop = 5,
}

/// How often a limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitMet {
    /// Which one.
    pub limit: WaitLimit,
    /// At least once.
    pub times: u64,
}

impl WaitLimit {
    const ALL: [WaitLimit; 5] =
        [Self::Words, Self::Instructions, Self::WordsOfInstruction, Self::WordsOfLoop, Self::RoundsOfLoop];

    pub(super) fn numbered(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|&limit| limit as u64 == number)
    }

    /// As summaries name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Instructions => "instructions",
            Self::WordsOfInstruction => "words_of_instruction",
            Self::WordsOfLoop => "words_of_loop",
            Self::RoundsOfLoop => "rounds_of_loop",
        }
    }

    fn what_is_beyond(self) -> &'static str {
        match self {
            Self::Words => "words beyond those that are watched",
            Self::Instructions => "instructions beyond those that are watched",
            Self::WordsOfInstruction => "instructions at more words than are watched for one",
            Self::WordsOfLoop => "words beyond those that are kept of a loop",
            Self::RoundsOfLoop => "loops with more kinds of rounds than are kept",
        }
    }
}

/// What is said of every result made from a record that has met these.
pub(super) fn warning(met: &[LimitMet]) -> Option<String> {
    let listed: Vec<String> =
        met.iter().map(|met| format!("{} ({} times)", met.limit.what_is_beyond(), met.times)).collect();
    (!listed.is_empty()).then(|| {
        format!(
            "the recorded program polls more than is looked at, which may stand in the record as work: {}",
            listed.join(", ")
        )
    })
}
