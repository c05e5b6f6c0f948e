//! How far a host has come.

/// What a host, or the traffic in its place, has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostActivity {
    /// Grows with everything that comes of what it does.
    pub progress: u64,
    /// Events that it has handled.
    pub events: u64,
    /// How many cores or streams it has, which may all have something under way.
    pub cores: u64,
}
