//! The trace of a conversation (Z-222): all turns of a session are one trace, and each turn is a span of it. Both follow from
//! ids, so that a call that is made again after a crash continues the same trace.

use super::state::ChatSession;
use crate::ids::hex;
use sha2::{Digest, Sha256};
use tandem_record::TraceContext;

impl ChatSession {
    /// What a call of the turn under way continues, else of the last turn.
    pub fn trace(&self) -> TraceContext {
        let turn = self.turn.as_ref();
        let number = turn.map_or(self.last_turn, |turn| turn.number);
        let id = self.id();
        let trace = Sha256::digest(format!("tandem:trace:v1\0{id}").as_bytes());
        let span = Sha256::digest(format!("tandem:turn-span:v1\0{id}\0{number}").as_bytes());
        TraceContext {
            // Nobody asked for it to be sampled.
            traceparent: format!("00-{}-{}-00", hex(&trace[..16]), hex(&span[..8])),
            tracestate: None,
        }
    }
}
