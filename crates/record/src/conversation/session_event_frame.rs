//! What all events of a session have in common.

use super::{AdminActor, FlowRef, ResponseMeta, SessionEventBody};
use serde::{Deserialize, Serialize};

/// One event with what most events share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// The turn it belongs to, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<AdminActor>,
    /// For events about a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Box<ResponseMeta>>,
    /// Apart from the rest: fields of bodies may have the same names.
    pub body: SessionEventBody,
}
