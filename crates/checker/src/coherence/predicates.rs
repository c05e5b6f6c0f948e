//! What must hold.

use fencepost_sim::device::type2::messages::CacheState;

use super::world::{Fresh, Line};

/// A named predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
}

/// One writer or many readers.
pub const SINGLE_WRITER: Predicate = Predicate {
    name: "single_writer",
    says: "while a device or core may write its copy of a line, no other device or core has a copy that it may read",
};
/// Copies are the newest.
pub const DATA_VALUE: Predicate = Predicate {
    name: "data_value",
    says: "every copy that may be read, and what RdCurr reads, is what was written last",
};
/// Nothing written is lost.
pub const NO_LOST_WRITE: Predicate = Predicate {
    name: "no_lost_write",
    says: "when a line is nowhere between and nobody has it modified, the host's cache, or else memory, has what was written last",
};
/// Every message is one that is waited for.
pub const ORDERLY: Predicate = Predicate {
    name: "orderly",
    says: "no message comes that nothing waits for, and none is sent while its like for the same line is on its way",
};
/// Nothing blocks for ever.
pub const NO_DEADLOCK: Predicate = Predicate {
    name: "no_deadlock",
    says: "while a request or a message is under way, something can happen besides new accesses",
};
/// Everything ends.
pub const PROGRESS: Predicate = Predicate {
    name: "progress",
    says: "from every state, without new accesses, every pending request can be completed",
};

/// All of them.
pub const ALL: [Predicate; 6] = [SINGLE_WRITER, DATA_VALUE, NO_LOST_WRITE, ORDERLY, NO_DEADLOCK, PROGRESS];

/// What the predicate of that name says.
///
/// # Panics
/// If there is none.
pub fn about(name: &str) -> &'static str {
    ALL.iter().find(|predicate| predicate.name == name).expect("it is one of them").says
}

/// Which predicates are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// All.
    AtAll,
    /// One.
    At(&'static str),
    /// All but one.
    Past(&'static str),
}

impl Looks {
    /// Whether `predicate` is looked at.
    pub fn at(self, predicate: &Predicate) -> bool {
        match self {
            Looks::AtAll => true,
            Looks::At(name) => name == predicate.name,
            Looks::Past(name) => name != predicate.name,
        }
    }
}

/// The first predicate that a line breaks.
pub fn broken_in(line: &Line, looks: Looks) -> Option<&'static str> {
    let copies = || line.copies().filter(|(state, _)| *state != CacheState::Invalid);
    let has_owner = copies().any(|(state, _)| state.is_owner());
    if looks.at(&SINGLE_WRITER) && has_owner && copies().count() > 1 {
        return Some(SINGLE_WRITER.name);
    }
    if looks.at(&DATA_VALUE) && copies().any(|(_, data)| data != Fresh::NEWEST) {
        return Some(DATA_VALUE.name);
    }
    if looks.at(&NO_LOST_WRITE) && !line.is_modified() && line.host.held() != Fresh::NEWEST && line.is_settled() {
        return Some(NO_LOST_WRITE.name);
    }
    None
}
