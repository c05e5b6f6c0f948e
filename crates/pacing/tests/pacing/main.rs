//! What the control law promises, one file per promise.

mod bound;
mod convergence;
mod exploration;
mod fairness;
mod groups;
mod honesty;
mod paths;
mod pool;
mod probing;
mod shares;
mod world;
