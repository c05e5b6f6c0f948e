//! Breadth-first exploration of any model whose states fit into a few words: exact, on one or several threads.
//!
//! A model says what a state leads to and what it breaks ([`Expand`]); this room keeps the set of states, hands out the
//! work and finds shortest ways. The persist buffer's protocol and the coherence of CXL devices are explored by it.

mod crew;
mod expand;
pub mod explore;
pub(crate) mod fields;
mod stranded;
mod visited;

pub use expand::{Block, Broken, Expand, Expanded, Found, Words};
pub use explore::{Counterexample, EndedEarly, Exploration, Means, Progress, every};
pub use stranded::{Ends, Onward, first_stranded};
pub use visited::{StateIndex, Visited};
