//! The bridge to a desk, and input that waits for the flow.

use crate::session::bridge::{KeptInput, OpenBridge};
use crate::session::state::ChatSession;
use std::collections::VecDeque;
use tandem_record::conversation::{SessionEvent, SessionEventBody as Body};

impl ChatSession {
    pub(super) fn fold_bridge(&mut self, event: &SessionEvent) {
        match &event.body {
            Body::ProxyStarted { bridge, .. } => {
                self.bridge = Some(OpenBridge {
                    bridge: (**bridge).clone(),
                    inputs: VecDeque::new(),
                });
            }
            Body::ProxyInputReceived {
                input, kept: true, ..
            } => {
                if let (Some(open), Some(actor)) = (&mut self.bridge, &event.actor) {
                    open.inputs.push_back(KeptInput {
                        input: (**input).clone(),
                        actor: actor.clone(),
                    });
                }
            }
            Body::ProxyInputTaken { input_id, .. } => {
                if let Some(open) = &mut self.bridge {
                    open.inputs.retain(|kept| kept.input.id != *input_id);
                }
            }
            Body::ProxyStopped { proxy_id, .. } => {
                self.bridge.take_if(|open| open.bridge.id == *proxy_id);
            }
            _ => {}
        }
    }
}
