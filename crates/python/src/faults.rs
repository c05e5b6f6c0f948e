//! The two errors of the module, and what becomes of a panic.

use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(fencepost._core, InputError, PyException, "Wrong input; its text is one clear message.");
create_exception!(fencepost._core, InternalError, PyException, "A fault of the simulator; its text names the run.");

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes every panic of this process keep its message and place for [`caught`] instead of printing them.
pub fn keep_panics_quiet() {
    set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, |place| format!("{}:{}: ", place.file(), place.line()));
        let message = info.payload_as_str().unwrap_or("no message");
        LAST_PANIC.set(format!("{place}{message}"));
    }));
}

/// Runs `work`; a panic in it becomes an `InternalError` that says what was running.
pub fn caught<T>(what: impl FnOnce() -> String, work: impl FnOnce() -> Result<T, PyErr>) -> Result<T, PyErr> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = LAST_PANIC.take();
        Err(InternalError::new_err(format!("{}: a fault of the simulator: {message}", what())))
    })
}

/// An `InputError` with the text of `error`.
pub fn input(error: impl Display) -> PyErr {
    InputError::new_err(error.to_string())
}
