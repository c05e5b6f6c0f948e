//! Names the library in itself, so that a program which is linked with it finds the preloaded one.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfencepost_channel.so");
    println!("cargo::rerun-if-changed=build.rs");
}
