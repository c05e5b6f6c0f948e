//! Hosts between a mock bridge.
