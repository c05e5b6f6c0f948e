//! Limits of what the recorder looks at for waiting. Beyond them a wait may be missing from the record, or stand in it
//! as work, so a record says which of them it has met.

/// A limit, by its number in the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitLimit(u64);

/// How often a limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitMet {
    /// Which one.
    pub limit: WaitLimit,
    /// At least once.
    pub times: u64,
}

impl WaitLimit {
    pub(super) const fn numbered(number: u64) -> Self {
        Self(number)
    }

    pub(super) const fn number(self) -> u64 {
        self.0
    }

    /// Its name in summaries, and what is beyond it.
    fn described(self) -> Option<(&'static str, &'static str)> {
        Some(match self.0 {
            1 => ("words", "words beyond those that are watched"),
            2 => ("instructions", "instructions beyond those that are watched"),
            3 => ("words_of_instruction", "instructions at more words than are watched for one"),
            4 => ("words_of_loop", "words beyond those that are kept of a loop"),
            5 => ("rounds_of_loop", "loops with more kinds of rounds than are kept"),
            _ => return None,
        })
    }

    /// As summaries name it.
    #[must_use]
    pub fn name(self) -> String {
        self.described().map_or_else(|| format!("limit {}", self.0), |(name, _)| name.to_owned())
    }

    fn what_is_beyond(self) -> String {
        self.described().map_or_else(|| self.name(), |(_, beyond)| beyond.to_owned())
    }
}

/// What is said of every result made from a record that has met these.
pub(super) fn warning(met: &[LimitMet]) -> Option<String> {
    (!met.is_empty()).then(|| {
        format!(
            "the recorded program polls more than is looked at, which may stand in the record as work: {}",
            list(met)
        )
    })
}

fn list(met: &[LimitMet]) -> String {
    let times = |times| if times == 1 { "once".to_owned() } else { format!("{times} times") };
    let listed: Vec<String> =
        met.iter().map(|met| format!("{} ({})", met.limit.what_is_beyond(), times(met.times))).collect();
    listed.join(", ")
}
