//! A service on cores that kswapd and ksmd need too: what its operations take, and what they wait for.

pub mod caches;
pub mod costs;
pub mod scheduler;
pub mod simulation;
