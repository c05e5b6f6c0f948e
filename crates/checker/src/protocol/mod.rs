//! The persist-buffer protocol, explored: every interleaving within stated bounds of the state machine that the
//! simulator runs.

pub mod action;
pub mod bounds;
mod canonical;
mod controller;
pub(crate) mod expand;
mod failure;
mod hosts;
mod links;
pub mod model;
pub mod mutants;
pub mod packing;
mod power;
pub mod predicates;
mod progress;
pub mod prove;
mod story;
pub mod world;

#[cfg(test)]
mod tests;
