"""`fencepost channel`: the transport on real processes. This side reads channels.toml, starts the
programs and shows what a segment says; crates/channel paces, and alone knows a segment's layout."""
