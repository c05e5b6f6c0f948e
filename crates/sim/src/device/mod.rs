//! Memory devices: a controller that speaks CXL.mem at its port, and the medium behind it.

pub mod dram;
pub mod pm;

pub use dram::DramConfig;
pub use pm::PmConfig;
