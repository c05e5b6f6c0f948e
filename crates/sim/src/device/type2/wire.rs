//! Messages of CXL.cache as links carry them, from those of the state machines and back.

use super::messages::{Part, Payload, Request, Response, Snoop, SnoopResponse};
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Cause, LatencyStack, Message, Opcode, RequestName, Tag};
use fencepost_kernel::time::Time;

/// Of data, links carry the version. A write of some bytes makes a new version of the whole line.
impl Payload for Version {
    fn overlaid(self, written: Version, _: Part) -> Version {
        written
    }
}

/// One of `all`, whose opcodes begin with `first` and lie in the same order.
fn nth<T: Copy>(all: &[T], first: Opcode, opcode: Opcode) -> Option<T> {
    opcode.index().checked_sub(first.index()).and_then(|number| all.get(number)).copied()
}

/// The D2H request that this is.
pub fn request(opcode: Opcode) -> Option<Request> {
    nth(&Request::ALL, Opcode::RdCurr, opcode)
}

/// The D2H response that this is.
pub fn snoop_response(opcode: Opcode) -> Option<SnoopResponse> {
    nth(&SnoopResponse::ALL, Opcode::RspIHitI, opcode)
}

/// The H2D request that this is.
pub fn snoop(opcode: Opcode) -> Option<Snoop> {
    nth(&Snoop::ALL, Opcode::SnpData, opcode)
}

/// The H2D response that this is.
pub fn response(opcode: Opcode) -> Option<Response> {
    nth(&Response::ALL, Opcode::GoI, opcode)
}

/// The opcode of a D2H request.
pub fn of_request(request: Request) -> Opcode {
    Opcode::ALL[Opcode::RdCurr.index() + request as usize]
}

/// The opcode of a D2H response.
pub fn of_snoop_response(response: SnoopResponse) -> Opcode {
    Opcode::ALL[Opcode::RspIHitI.index() + response as usize]
}

/// The opcode of an H2D request.
pub fn of_snoop(snoop: Snoop) -> Opcode {
    Opcode::ALL[Opcode::SnpData.index() + snoop as usize]
}

/// The opcode of an H2D response.
pub fn of_response(response: Response) -> Opcode {
    Opcode::ALL[Opcode::GoI.index() + response.number()]
}

/// Where a request's time went, and the name by which it is traced: what all messages that come of it carry along.
#[derive(Clone, Debug)]
pub struct Trail {
    /// Where its time went.
    pub stack: LatencyStack,
    /// Its name.
    pub request: RequestName,
}

impl Trail {
    /// Of a request that begins.
    pub fn starting(now: Time) -> Trail {
        Trail { stack: LatencyStack::starting(now), request: RequestName::NONE }
    }

    /// What a message carries along.
    pub fn of(message: &Message) -> Trail {
        Trail { stack: message.stack.clone(), request: message.request }
    }

    /// A message that carries it along.
    pub fn message(&self, opcode: Opcode, line: LineAddress, version: Version) -> Message {
        let read = Message::read(line, Tag(0), Cause::DemandRead, self.stack.start());
        Message { opcode, version, stack: self.stack.clone(), request: self.request, ..read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_has_the_opcode_of_its_name() {
        for kind in Request::ALL {
            assert_eq!(format!("{:?}", of_request(kind)), format!("{kind:?}"));
            assert_eq!(request(of_request(kind)), Some(kind));
        }
        for kind in SnoopResponse::ALL {
            assert_eq!(format!("{:?}", of_snoop_response(kind)), format!("{kind:?}"));
            assert_eq!(snoop_response(of_snoop_response(kind)), Some(kind));
        }
        for kind in Snoop::ALL {
            assert_eq!(format!("{:?}", of_snoop(kind)), format!("{kind:?}"));
            assert_eq!(snoop(of_snoop(kind)), Some(kind));
        }
        for kind in Response::ALL {
            assert_eq!(response(of_response(kind)), Some(kind));
        }
        assert_eq!(format!("{:?}", of_response(Response::ExtCmp)), "ExtCmp");
        assert_eq!(request(Opcode::RspIHitI), None);
    }
}
