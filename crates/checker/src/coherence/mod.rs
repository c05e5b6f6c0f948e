//! The coherence of CXL devices that cache host memory, explored: every interleaving, within stated bounds, of the very
//! state machines that the simulator times ([`fencepost_sim::device::type2`]).
//!
//! Devices and cores access lines for ever, in any way that the protocol allows. Messages arrive in any order but for
//! the rules of the specification. What must hold is in [`predicates`]; that every rule is needed is shown by
//! [`mutants`].

pub mod bounds;
pub mod device_memory;
mod expand;
pub mod litmus;
pub mod model;
pub mod mutants;
mod packing;
pub mod predicates;
pub mod prove;
mod story;
mod world;

#[cfg(test)]
mod tests;
