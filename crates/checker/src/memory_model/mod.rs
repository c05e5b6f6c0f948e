//! Litmus tests of persistency: what the formal models allow, and what the simulator reaches.
