//! A queue of the DRAM controller: what the scheduler looks at again and again lies close together, the rest apart.

use super::channel::BankId;
use fencepost_kernel::line::{ByteMask, LineAddress};
use fencepost_kernel::message::Message;
use fencepost_kernel::time::Time;

/// What the scheduler has to know of a queued request.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// Its line.
    pub line: LineAddress,
    /// Its row.
    pub row: u64,
    /// Its bank.
    pub bank: BankId,
    /// Whether it writes; it reads otherwise.
    pub is_write: bool,
    slot: u16,
}

/// A queued request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The read, whose answer brings its data; none if it is a write, which is answered when it comes.
    pub read: Option<Message>,
    /// The bytes that a write brings.
    pub mask: ByteMask,
    /// Its line's number in the device.
    pub device_line: u64,
    /// When it entered the queue.
    pub queued: Time,
    /// When the first command was issued on its behalf.
    pub first_command: Option<Time>,
    /// How its row was found so far.
    pub row_state: RowState,
}

/// How a request found the row of its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowState {
    /// Its row was open.
    Hit,
    /// No row was open.
    Miss,
    /// Another row was open.
    Conflict,
}

const IN_ITS_SLOT: &str = "what waits is in its slot";

/// Reads, writes, or requests whose row has been opened, oldest first.
#[derive(Clone, Debug, Default)]
pub struct RequestQueue {
    order: Vec<Pending>,
    requests: Vec<Option<Request>>,
    free: Vec<u16>,
}

impl RequestQueue {
    /// Adds a request for `line`, in `row` of `bank`, the youngest.
    pub fn push(&mut self, request: Request, line: LineAddress, bank: BankId, row: u64) {
        let is_write = request.read.is_none();
        let slot = match self.free.pop() {
            Some(slot) => {
                self.requests[usize::from(slot)] = Some(request);
                slot
            }
            None => {
                self.requests.push(Some(request));
                (self.requests.len() - 1) as u16
            }
        };
        self.order.push(Pending { line, row, bank, is_write, slot });
    }

    /// Takes the request at `index` out.
    pub fn remove(&mut self, index: usize) -> (Pending, Request) {
        let pending = self.order.remove(index);
        self.free.push(pending.slot);
        let request = self.requests[usize::from(pending.slot)].take();
        (pending, request.expect(IN_ITS_SLOT))
    }

    /// The request at `index`.
    pub fn request_mut(&mut self, index: usize) -> &mut Request {
        self.requests[usize::from(self.order[index].slot)].as_mut().expect(IN_ITS_SLOT)
    }

    /// Where the youngest request to `line` is.
    pub fn find(&self, line: LineAddress) -> Option<usize> {
        self.order.iter().rposition(|pending| pending.line == line)
    }

    /// What waits, oldest first.
    pub fn pending(&self) -> &[Pending] {
        &self.order
    }

    /// The same with all that is known of it.
    pub fn iter(&self) -> impl Iterator<Item = (&Pending, &Request)> {
        let request = |pending: &Pending| self.requests[usize::from(pending.slot)].as_ref().expect(IN_ITS_SLOT);
        self.order.iter().map(move |pending| (pending, request(pending)))
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Everything in it is lost.
    pub fn clear(&mut self) {
        *self = RequestQueue::default();
    }
}
