//! Cargo wants a target; the crates named in the manifest are wanted for their C sources only.
