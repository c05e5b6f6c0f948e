//! What a litmus test is: a few threads, each a few stores, flushes and fences, and a question about what a power cut
//! may leave.

use serde::Serialize;

use super::condition::Condition;
use super::variation::Outline;

/// The instruction set that a test is written for, and so the model that says what may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Isa {
    /// x86-64: Px86, here in the form of PTSO<sub>syn</sub>.
    #[serde(rename = "x86-64")]
    X86,
    /// AArch64: `PArmv8`.
    #[serde(rename = "arm64")]
    Arm,
}

impl Isa {
    /// Whether `statement` is one of its instructions, or stands for some of them.
    pub fn has(self, statement: Statement) -> bool {
        match statement {
            Statement::Store(..) | Statement::Load(_) | Statement::If(_) | Statement::Flush(Flush::Clwb, _) => true,
            Statement::Fence(Fence::Dmb | Fence::Dsb) => self == Isa::Arm,
            Statement::Exchange(..)
            | Statement::Flush(Flush::Clflush, _)
            | Statement::Fence(Fence::Sfence | Fence::Mfence) => self == Isa::X86,
        }
    }
}

/// A word of memory of the test, by its place in [`LitmusTest::locations`].
pub type Location = usize;

/// A cache line of the test, by its number.
pub type LineNumber = usize;

/// What a store writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// That number.
    Constant(u32),
    /// What the thread's last [`Statement::Load`] has read.
    Register,
}

/// The instruction that writes a line back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flush {
    /// `clflush`: ordered with stores.
    Clflush,
    /// `clwb` (`clflushopt` is ordered alike), `DC CVAP`: ordered by fences only.
    Clwb,
}

/// What orders the instructions before it and behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// `sfence`.
    Sfence,
    /// `mfence`.
    Mfence,
    /// `DMB`: orders memory accesses and cache maintenance.
    Dmb,
    /// `DSB`: `DMB`, and cache maintenance before it is complete.
    Dsb,
}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// `x=1`
    Store(Location, Operand),
    /// `lock xchg x=1`
    Exchange(Location, u32),
    /// `r=x`
    Load(Location),
    /// `if x:` the rest of the thread runs only if `x` is read as something other than 0.
    If(Location),
    /// Writes the line of the location back.
    Flush(Flush, Location),
    /// A fence.
    Fence(Fence),
}

impl Statement {
    /// The location that it accesses.
    pub fn location(self) -> Option<Location> {
        match self {
            Statement::Store(location, _)
            | Statement::Exchange(location, _)
            | Statement::Load(location)
            | Statement::If(location)
            | Statement::Flush(_, location) => Some(location),
            Statement::Fence(_) => None,
        }
    }

    /// Whether it reads memory into the thread.
    pub fn reads(self) -> bool {
        matches!(self, Statement::Load(_) | Statement::If(_))
    }

    /// Whether it writes memory.
    pub fn writes(self) -> bool {
        matches!(self, Statement::Store(..) | Statement::Exchange(..))
    }
}

/// What a power cut leaves: the value of each location in persistent memory.
pub type NvmState = Vec<u32>;

/// A litmus test.
#[derive(Clone, Debug)]
pub struct LitmusTest {
    /// Its name.
    pub id: String,
    /// What it is written for.
    pub isa: Isa,
    /// The threads as published.
    pub text: String,
    /// The same, understood.
    pub threads: Vec<Vec<Statement>>,
    /// The names of the locations, in the order of their first mention. All are 0 at first.
    pub locations: Vec<String>,
    /// The line of each location.
    pub lines: Vec<LineNumber>,
    /// What is asked of a state, as published.
    pub question: String,
    /// The same, understood.
    pub query: Condition,
    /// Whether a power cut may leave a state of which the answer is yes, as published.
    pub is_allowed: bool,
    /// How many states a power cut may leave, if that is published.
    pub published_states: Option<usize>,
    /// Where all that was read.
    pub source: String,
}

impl LitmusTest {
    /// How many lines it uses.
    pub fn line_count(&self) -> usize {
        self.lines.iter().max().map_or(0, |last| last + 1)
    }

    /// What its variations depend on.
    pub(super) fn outline(&self) -> Outline<'_> {
        let reads = |thread: &Vec<Statement>| thread.iter().map(|statement| statement.reads()).collect();
        Outline { id: &self.id, lines: self.line_count(), threads: self.threads.iter().map(reads).collect() }
    }

    /// A state as people write it: `x=1 y=0`.
    pub fn display(&self, state: &NvmState) -> String {
        display(&self.locations, state)
    }
}

/// The values of locations, as people write them.
pub(super) fn display(locations: &[String], state: &NvmState) -> String {
    let named = locations.iter().zip(state);
    named.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
