//! Machine files: what a machine is made of, composed from the components' own config structs.
//!
//! A machine file is TOML. It may inherit from another one (`extends`), single keys may be set on top (`--set`), and
//! the result is checked as a whole before anything is built from it. All mistakes are reported together, each with its
//! text, line and key, and with what would be right. This room reads texts and finds other machines by a function it is
//! given; it knows no paths.

mod accelerators;
mod assignments;
mod check;
mod errors;
mod fabric;
mod hold_up;
mod layers;
mod linux;
mod located;
mod machine;
mod persist;
mod persist_points;
mod placement;
mod platform;
mod ranges;
mod routes;
mod rules;
mod schema;
mod sections;
pub mod topology;
mod tree;
mod wiring;

#[cfg(test)]
mod tests;

pub use errors::{ConfigError, ConfigErrors};
pub use fabric::{Bias, FabricConfig, InterleaveConfig, Overrides, PmSharing};
pub use hold_up::HoldUpConfig;
pub use layers::SourceText;
pub use linux::LinuxConfig;
pub use located::located_toml;
pub use machine::{CacheLevels, Machine};
pub use persist::{InsertedAarch64Flush, InsertedFence, InsertedFlush, PersistConfig};
pub use platform::{Atomicity, Persistence, PlatformConfig};
pub use schema::{file_schema, json_schema};
pub use topology::Topology;
