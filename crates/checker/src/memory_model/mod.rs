//! Litmus tests of persistency: what the formal models allow, and what the simulator reaches.
//!
//! The [published] tests are asked twice: of small enumerators of the formal models (`px86`, `parmv8`, `cxl0`), and of
//! the whole simulator, which replays each test as a hand-written record with a power cut at every event. [`examine`]
//! compares: what the simulator leaves is among what the model allows, and no forbidden state is there.

mod condition;
mod cxl0;
mod fabric_run;
pub mod fabrics;
mod findings;
mod litmus_test;
pub mod model;
mod parmv8;
mod parse;
mod persistence_buffers;
pub mod published;
mod px86;
mod recording;
mod run;
#[cfg(test)]
mod tests;
mod variation;

pub use condition::Condition;
pub use cxl0::{FabricOperation, FabricTest, Node};
pub use fabric_run::FabricRun;
pub use findings::{Cell, Finding, Guard, NamedMachine, NotExamined, Offence, Progress, examine, names};
pub use litmus_test::{Isa, LitmusTest, NvmState};
pub use run::{Run, run};
