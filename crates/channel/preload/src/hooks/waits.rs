//! Calls that wait.

/// Looks up what is replaced here.
pub fn find() {}
