//! The right to speak as an agent. It belongs to the node type, not to its configuration.

use crate::node::Kind;
use crate::run::state::Run;
use crate::run::turn::Turn;
use serde_json::Value;
use tandem_record::{AgentFact, Cause, Event, NodeId, Said, Seq};

/// Somebody who may speak at a node. Made here only, from what the node is.
pub(in crate::run) struct Voice {
    node: NodeId,
    pub(in crate::run) agent_id: String,
    rights: Rights,
}

#[derive(Clone, Copy)]
enum Rights {
    Supervisor,
    Dispatch,
    /// The critic of a supervisor, at the node that carries out its decisions.
    Critic,
    Mock,
    /// A node that calls a tool.
    Tool,
    /// The engine itself, where work crosses from one pinned agent to another.
    Boundary,
}

impl Voice {
    pub(in crate::run) fn may(&self, said: &Said) -> bool {
        let (reasons, hands_off, decides, calls, verifies) = match self.rights {
            Rights::Supervisor => (true, false, true, false, false),
            Rights::Dispatch | Rights::Boundary => (false, true, false, false, false),
            Rights::Critic => (false, false, false, false, true),
            Rights::Mock => (true, true, true, true, false),
            Rights::Tool => (false, false, false, true, false),
        };
        match said {
            Said::Reasoned { .. } | Said::ReasoningDelta { .. } => reasons,
            Said::ToolCalled { .. } | Said::ToolReturned { .. } => calls,
            Said::HandedOff { .. } => hands_off,
            Said::Decided { .. } => decides,
            Said::Verified { .. } => verifies,
        }
    }
}

impl Run {
    /// The agent its author pinned to a node.
    fn pin(&self, ix: usize) -> Option<&str> {
        let pin = self.def.doc_node(ix).agent.as_ref()?;
        pin.get("agentId").and_then(Value::as_str)
    }

    /// The pinned agent that worked last.
    pub(in crate::run) fn active_agent(&self) -> Option<String> {
        let agent = self.state.agent.as_ref()?.get("agentId")?;
        agent.as_str().map(str::to_owned)
    }

    /// The voice of a node; passthrough types and all others have none.
    pub(in crate::run) fn voice(&self, ix: usize) -> Option<Voice> {
        let node = &self.def.nodes[ix];
        let pin = || self.pin(ix).map(str::to_owned);
        let (rights, agent_id) = match &node.kind {
            Kind::Supervisor(config) => {
                let id = pin().or_else(|| config.agent_id.clone());
                let id = id.unwrap_or_else(|| format!("host:supervisor:{}", node.id));
                (Rights::Supervisor, id)
            }
            Kind::MockAgent(config) => {
                let id = config.agent_id.clone().or_else(pin);
                let id = id.unwrap_or_else(|| format!("host:mock-agent:{}", node.id));
                (Rights::Mock, id)
            }
            Kind::Tool(config) => {
                let id = config.agent_id.clone().or_else(pin);
                let id = id.unwrap_or_else(|| format!("host:tool:{}", node.id));
                (Rights::Tool, id)
            }
            _ => return None,
        };
        Some(Voice {
            node: node.id.clone(),
            agent_id,
            rights,
        })
    }

    /// A voice under the name its author pinned to the node, if one is: who hands over is that agent.
    pub(super) fn as_pinned(&self, ix: usize, voice: &Voice) -> Voice {
        let pin = self.pin(ix).unwrap_or(&voice.agent_id);
        Voice {
            node: voice.node.clone(),
            agent_id: pin.to_owned(),
            rights: voice.rights,
        }
    }

    /// The voice of a supervisor's critic, heard at a dispatch node only.
    pub(super) fn critic_voice(&self, ix: usize, supervisor: usize) -> Voice {
        let node = &self.def.nodes[ix];
        debug_assert!(matches!(node.kind, Kind::Dispatch(_)));
        let named = match &self.def.nodes[supervisor].kind {
            Kind::Supervisor(config) => config.verifier.as_ref().and_then(|v| v.agent_id.clone()),
            _ => None,
        };
        let id = &self.def.nodes[supervisor].id;
        Voice {
            node: node.id.clone(),
            agent_id: named.unwrap_or_else(|| format!("host:verifier:{id}")),
            rights: Rights::Critic,
        }
    }

    /// The one agent all pinned nodes of a workflow belong to.
    pub(in crate::run) fn only_agent(def: &crate::Definition) -> Option<String> {
        let pins = def.document.nodes.iter().filter_map(|n| n.agent.as_ref());
        let mut ids = pins.filter_map(|pin| pin.get("agentId").and_then(Value::as_str));
        let first = ids.next()?;
        ids.all(|id| id == first).then(|| first.to_owned())
    }
}

impl Turn<'_> {
    /// An agent's words, as a fact. Gives its place, or where there are no agents that of its cause.
    pub(in crate::run) fn say(&mut self, voice: &Voice, said: Said, cause: Seq) -> Seq {
        self.say_caused(voice, said, Cause::Event(cause))
            .unwrap_or(cause)
    }

    /// The only place that drafts what an agent says.
    pub(super) fn say_caused(&mut self, voice: &Voice, said: Said, cause: Cause) -> Option<Seq> {
        debug_assert!(voice.may(&said), "this voice may not say {said:?}");
        if !self.cx.agents.is_supported() {
            return None;
        }
        let fact = AgentFact {
            node: voice.node.clone(),
            agent_id: voice.agent_id.clone(),
            said,
        };
        Some(self.emit_caused(Event::Agent(Box::new(fact)), Some(cause)))
    }

    /// Work crosses from the agent pinned before to the one pinned here.
    pub(in crate::run) fn cross_boundary(&mut self, ix: usize, before: Option<String>, cause: Seq) {
        if matches!(self.run.def.nodes[ix].kind, Kind::Supervisor(_)) {
            return;
        }
        let here = self.run.pin(ix).map(str::to_owned);
        let (Some(before), Some(here)) = (before, here) else {
            return;
        };
        self.hand_over_between(ix, Rights::Boundary, before, here, cause);
    }

    /// The next worker belongs to another agent than the last one.
    pub(in crate::run) fn cross_workers(&mut self, ix: usize, to: Option<String>, cause: Seq) {
        let before = self.run.state.agents.worker.clone();
        if let (Some(before), Some(to)) = (before, to) {
            self.hand_over_between(ix, Rights::Dispatch, before, to, cause);
        }
    }

    fn hand_over_between(
        &mut self,
        ix: usize,
        rights: Rights,
        from: String,
        to: String,
        cause: Seq,
    ) {
        if from == to {
            return;
        }
        let voice = Voice {
            node: self.run.def.nodes[ix].id.clone(),
            agent_id: from,
            rights,
        };
        let said = Said::HandedOff {
            to,
            reason: None,
            context: None,
        };
        self.say(&voice, said, cause);
    }
}
