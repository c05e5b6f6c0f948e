//! The two errors of the module, and what becomes of a panic.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Mutex;

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::pyfunction;

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
    let run = what();
    guarded(&run, work).unwrap_or_else(|fault| Err(InternalError::new_err(format!("{run}: {fault}"))))
}

/// Does the `work` of a run; the text of a panic in it, if there was one.
pub fn panic_of(run: &str, work: &mut dyn FnMut()) -> Option<String> {
    guarded(run, work).err()
}

fn guarded<T>(run: &str, work: impl FnOnce() -> T) -> Result<T, String> {
    let whole = || {
        if is_provoked(run) {
            panic!("provoked");
        }
        work()
    };
    catch_unwind(AssertUnwindSafe(whole)).map_err(|payload| {
        let noted = LAST_PANIC.take();
        // A panic that came through Python or from another thread has no note here.
        let message = if noted.is_empty() { message(&*payload) } else { &noted };
        format!("a fault of the simulator: {message}")
    })
}

fn message(payload: &dyn Any) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// In the names of which runs a panic is provoked, if any.
static PROVOKED: Mutex<Option<String>> = Mutex::new(None);

/// Makes every run panic whose name has `part` in it; none if that is not given. It is how tests see what becomes of
/// the others.
#[pyfunction]
#[pyo3(signature = (part))]
pub fn provoke_fault(part: Option<String>) {
    *PROVOKED.lock().expect("nobody panics with it") = part;
}

fn is_provoked(run: &str) -> bool {
    PROVOKED.lock().expect("nobody panics with it").as_deref().is_some_and(|part| run.contains(part))
}

/// An `InputError` with the text of `error`.
pub fn input(error: impl Display) -> PyErr {
    InputError::new_err(error.to_string())
}
