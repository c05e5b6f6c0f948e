//! The functions that our hooks replace, as the next library has them. All are looked up before `main`: a handler must
//! never look one up.

use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the next library.
pub struct Next {
    name: &'static CStr,
    address: AtomicPtr<libc::c_void>,
}

impl Next {
    /// The function of this name.
    pub const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Looks it up, if that was not done before.
    pub fn find(&self) {
        if self.address.load(Ordering::Relaxed).is_null() {
            // SAFETY: the name is a C string.
            let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.address.store(address, Ordering::Relaxed);
        }
    }

    /// Where it is; null where no library has it, so that nobody can have called the hook.
    pub fn address(&self) -> *mut libc::c_void {
        // Constructors of other libraries may run before ours.
        self.find();
        self.address.load(Ordering::Relaxed)
    }
}

/// Declares the function that a hook replaces, and how it is called.
macro_rules! next {
    ($place:ident = $name:literal as fn($($argument:ty),*) -> $result:ty) => {
        pub(crate) mod $place {
            #[allow(unused_imports)]
            use super::*;

            pub(crate) static NEXT: $crate::next::Next = $crate::next::Next::new($name);

            /// # Safety
            /// What the function itself demands.
            pub(crate) fn get() -> unsafe extern "C-unwind" fn($($argument),*) -> $result {
                // Threads may be cancelled in it, which unwinds.
                // SAFETY: the function of this name has this type in every C library.
                unsafe { std::mem::transmute(NEXT.address()) }
            }
        }
    };
}
pub(crate) use next;
