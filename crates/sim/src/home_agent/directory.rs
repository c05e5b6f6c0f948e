//! Which agents may have copies of a line.

use fencepost_kernel::line::LineAddress;
use fencepost_kernel::sparse_table::SparseTable;

/// Names an agent that caches lines of a host's memory: a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u8);

/// A set of agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agents(u64);

impl Agents {
    /// Only `agent`.
    pub fn only(agent: AgentId) -> Agents {
        Agents(1 << agent.0)
    }

    /// Whether `agent` is among them.
    pub fn contains(self, agent: AgentId) -> bool {
        self.0 & 1 << agent.0 != 0
    }

    /// The same with `agent`.
    #[must_use]
    pub fn with(self, agent: AgentId) -> Agents {
        Agents(self.0 | 1 << agent.0)
    }

    /// The same without `agent`.
    #[must_use]
    pub fn without(self, agent: AgentId) -> Agents {
        Agents(self.0 & !(1 << agent.0))
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = AgentId> {
        (0..64).map(AgentId).filter(move |agent| self.contains(*agent))
    }
}

/// Who may have copies of a line. An agent drops clean copies without a word, so it may have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// All who may have a copy.
    pub agents: Agents,
    /// Whether there is only one, which may have written it.
    pub is_owned: bool,
}

impl Holders {
    /// `agent` alone, which may write.
    pub fn owner(agent: AgentId) -> Holders {
        Holders { agents: Agents::only(agent), is_owned: true }
    }

    /// `agents`, none of which may write.
    pub fn shared(agents: Agents) -> Holders {
        Holders { agents, is_owned: false }
    }

    /// Whether `agent` may have written the line.
    pub fn may_be_dirty_at(self, agent: AgentId) -> bool {
        self.is_owned && self.agents.contains(agent)
    }
}

/// The holders of all lines of a home agent, as directories that lie beside the data in memory know them.
#[derive(Clone, Debug, Default)]
pub struct Directory(SparseTable<Holders>);

impl Directory {
    /// Who may have copies of `line`.
    pub fn holders(&self, line: LineAddress) -> Holders {
        self.0.get(line.0)
    }

    /// They change.
    pub fn set(&mut self, line: LineAddress, holders: Holders) {
        *self.0.get_mut(line.0) = holders;
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// What memory itself keeps beside each line, as servers do in spare bits of the error code: whether another socket
/// than that of the memory may have the line. To change it memory is written (McCalpin, "Memory directories in Intel
/// processors", 2023; Loughlin et al., ISCA 2022).
#[derive(Clone, Debug)]
pub struct MemoryDirectory {
    own: AgentId,
    /// Where the lines end that have such bits.
    end: LineAddress,
    elsewhere: SparseTable<bool>,
}

impl MemoryDirectory {
    /// Of the memory at socket `own`, below `end`.
    pub fn new(own: AgentId, end: LineAddress) -> MemoryDirectory {
        MemoryDirectory { own, end, elsewhere: SparseTable::default() }
    }

    /// `holders` are those of `line` from now on; whether memory has to be written to know that.
    pub fn given(&mut self, line: LineAddress, holders: Holders) -> bool {
        let is_new = line < self.end && !holders.agents.without(self.own).is_empty() && !self.elsewhere.get(line.0);
        if is_new {
            *self.elsewhere.get_mut(line.0) = true;
        }
        is_new
    }

    /// `line` is written while `holders` may have it, and what is kept beside it with it.
    pub fn written(&mut self, line: LineAddress, holders: Holders) {
        if line < self.end {
            *self.elsewhere.get_mut(line.0) = !holders.agents.without(self.own).is_empty();
        }
    }

    /// Power is gone, and every cache with it.
    pub fn clear(&mut self) {
        self.elsewhere.clear();
    }
}
