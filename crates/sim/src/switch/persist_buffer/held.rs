//! The messages whose packets are in the persist buffer: what the logic does not need to know of them.

use super::packet::RequestId;
use fencepost_kernel::PortId;
use fencepost_kernel::message::Message;

/// A read or write that has entered the controller's input and has no answer yet.
#[derive(Clone, Debug)]
pub struct HeldRequest {
    /// The message, with the tag it came with.
    pub message: Message,
    /// The port it came in by.
    pub port: PortId,
}

/// The held requests, by the names that the logic knows them by.
#[derive(Clone, Debug, Default)]
pub struct HeldRequests {
    requests: Vec<Option<HeldRequest>>,
    free: Vec<u32>,
}

impl HeldRequests {
    /// The name that the next inserted request will have.
    pub fn next_id(&self) -> RequestId {
        RequestId(self.free.last().copied().unwrap_or(self.requests.len() as u32))
    }

    /// Holds a request, under [`Self::next_id`].
    pub fn insert(&mut self, request: HeldRequest) {
        match self.free.pop() {
            Some(id) => self.requests[id as usize] = Some(request),
            None => self.requests.push(Some(request)),
        }
    }

    /// A request.
    pub fn get_mut(&mut self, id: RequestId) -> &mut HeldRequest {
        self.requests[id.0 as usize].as_mut().expect("the logic names requests that are held")
    }

    /// Lets a request go.
    pub fn remove(&mut self, id: RequestId) -> HeldRequest {
        self.free.push(id.0);
        self.requests[id.0 as usize].take().expect("the logic answers requests that are held, once")
    }
}
