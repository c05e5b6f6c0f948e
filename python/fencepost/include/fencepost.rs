// SPDX-License-Identifier: Apache-2.0
//! Says what an operation of a durable program is, for `fencepost crash`: docs/crash-operations.md.
//! The same as fencepost.h: each mark is one instruction that does nothing, on x86-64 only.
#![allow(dead_code)]

use std::ffi::CStr;

#[cfg(target_arch = "x86_64")]
macro_rules! mark {
    ($code:literal, $text:expr) => {
        // SAFETY: the instruction does nothing; a recorder reads the text, which ends with a zero.
        unsafe {
            std::arch::asm!(
                ".byte 0x0f, 0x1f, 0x84, 0x00",
                concat!(".long 0x504d0000 + ", $code),
                in("rdi") $text,
                options(nostack, preserves_flags)
            )
        }
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! mark {
    ($code:literal, $text:expr) => {
        let _ = $text;
    };
}

/// An operation of this thread begins.
#[inline(always)]
pub fn begin(text: &CStr) {
    mark!(1, text.as_ptr());
}

/// The thread's operation that began last has ended.
#[inline(always)]
pub fn end() {
    mark!(2, std::ptr::null::<u8>());
}

/// From here on someone has been told of it: it must not be lost.
#[inline(always)]
pub fn ack(text: &CStr) {
    mark!(3, text.as_ptr());
}
