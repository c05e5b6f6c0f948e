//! Caches, miss-status holding registers and coherence of one host.

pub mod config;
