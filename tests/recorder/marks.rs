// SPDX-License-Identifier: Apache-2.0
//! Marks of operations in a Rust program.
mod fencepost;

fn main() {
    for number in 0..2 {
        let text = std::ffi::CString::new(format!("put {number}")).unwrap();
        fencepost::begin(&text);
        fencepost::end();
    }
    fencepost::ack(c"both are there");
}
