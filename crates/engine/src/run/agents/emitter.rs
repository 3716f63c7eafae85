//! The right to emit agent events. The node type decides it, not the node's configuration.

use crate::node::Kind;
use crate::run::draft::DecisionDraft;
use crate::run::state::Run;
use serde_json::Value;
use tandem_record::{AgentEvent, AgentEventKind, Cause, Event, NodeId, Seq};

/// The permission of a node to emit agent events. It is created only here, from the node type.
pub(crate) struct AgentEmitter {
    node: NodeId,
    pub(in crate::run) agent_id: String,
    rights: EmitRights,
}

#[derive(Clone, Copy)]
enum EmitRights {
    Supervisor,
    Dispatch,
    /// The verifier of a supervisor, at the node that carries out the supervisor's decisions.
    Verifier,
    /// An agent that a node plays for a test.
    Played,
    /// A node that calls a tool.
    Tool,
    /// The engine itself, when work passes from one pinned agent to another.
    Boundary,
}

impl AgentEmitter {
    pub(in crate::run) fn may_emit(&self, kind: &AgentEventKind) -> bool {
        let (reasons, hands_off, decides, calls, verifies) = match self.rights {
            EmitRights::Supervisor => (true, false, true, false, false),
            EmitRights::Dispatch | EmitRights::Boundary => (false, true, false, false, false),
            EmitRights::Verifier => (false, false, false, false, true),
            EmitRights::Played => (true, true, true, true, false),
            EmitRights::Tool => (false, false, false, true, false),
        };
        match kind {
            AgentEventKind::Reasoned { .. } | AgentEventKind::ReasoningDelta { .. } => reasons,
            AgentEventKind::ToolCalled { .. } | AgentEventKind::ToolReturned { .. } => calls,
            AgentEventKind::HandedOff { .. } => hands_off,
            AgentEventKind::Decided { .. } => decides,
            AgentEventKind::Verified { .. } => verifies,
        }
    }
}

impl Run {
    /// The agent that the author pinned to a node.
    fn pin(&self, ix: usize) -> Option<&str> {
        let pin = self.def.doc_node(ix).agent.as_ref()?;
        pin.get("agentId").and_then(Value::as_str)
    }

    /// The pinned agent that worked last.
    pub(in crate::run) fn active_agent(&self) -> Option<String> {
        let agent = self.pinned_agent()?.get("agentId")?;
        agent.as_str().map(str::to_owned)
    }

    /// The emitter of a node. Passthrough types and all other types have none.
    pub(crate) fn agent_emitter(&self, ix: usize) -> Option<AgentEmitter> {
        let node = &self.def.nodes[ix];
        let pin = || self.pin(ix).map(str::to_owned);
        let (rights, agent_id) = match &node.kind {
            Kind::Supervisor(config) => {
                let id = pin().or_else(|| config.agent_id.clone());
                let id = id.unwrap_or_else(|| format!("host:supervisor:{}", node.id));
                (EmitRights::Supervisor, id)
            }
            Kind::Conformance(kind) => {
                let id = kind.agent()?.agent_id.clone().or_else(pin);
                let id = id.unwrap_or_else(|| format!("host:mock-agent:{}", node.id));
                (EmitRights::Played, id)
            }
            Kind::Tool(config) => {
                let id = config.agent_id.clone().or_else(pin);
                let id = id.unwrap_or_else(|| format!("host:tool:{}", node.id));
                (EmitRights::Tool, id)
            }
            _ => return None,
        };
        Some(AgentEmitter {
            node: node.id.clone(),
            agent_id,
            rights,
        })
    }

    /// The emitter under the name of the agent pinned to the node, if there is one: that agent
    /// hands over.
    pub(crate) fn as_pinned(&self, ix: usize, emitter: &AgentEmitter) -> AgentEmitter {
        let pin = self.pin(ix).unwrap_or(&emitter.agent_id);
        AgentEmitter {
            node: emitter.node.clone(),
            agent_id: pin.to_owned(),
            rights: emitter.rights,
        }
    }

    /// The emitter of a supervisor's verifier. It emits at a dispatch node only.
    pub(super) fn verifier_emitter(&self, ix: usize, supervisor: usize) -> AgentEmitter {
        let node = &self.def.nodes[ix];
        debug_assert!(matches!(node.kind, Kind::Dispatch(_)));
        let named = match &self.def.nodes[supervisor].kind {
            Kind::Supervisor(config) => config.verifier.as_ref().and_then(|v| v.agent_id.clone()),
            _ => None,
        };
        let id = &self.def.nodes[supervisor].id;
        AgentEmitter {
            node: node.id.clone(),
            agent_id: named.unwrap_or_else(|| format!("host:verifier:{id}")),
            rights: EmitRights::Verifier,
        }
    }

    /// The agent that all pinned nodes of a workflow share.
    pub(in crate::run) fn only_agent(def: &crate::Definition) -> Option<String> {
        let pins = def.document.nodes.iter().filter_map(|n| n.agent.as_ref());
        let mut ids = pins.filter_map(|pin| pin.get("agentId").and_then(Value::as_str));
        let first = ids.next()?;
        ids.all(|id| id == first).then(|| first.to_owned())
    }
}

impl DecisionDraft<'_> {
    /// Emits an agent event and returns its sequence number. On a host without agents it emits
    /// nothing and returns the sequence number of the cause.
    pub(crate) fn emit_agent_event(
        &mut self,
        emitter: &AgentEmitter,
        kind: AgentEventKind,
        cause: Seq,
    ) -> Seq {
        self.emit_agent_event_with_cause(emitter, kind, Cause::Event(cause))
            .unwrap_or(cause)
    }

    /// The only function that drafts agent events.
    pub(super) fn emit_agent_event_with_cause(
        &mut self,
        emitter: &AgentEmitter,
        kind: AgentEventKind,
        cause: Cause,
    ) -> Option<Seq> {
        debug_assert!(
            emitter.may_emit(&kind),
            "this emitter may not emit {kind:?}"
        );
        if !self.cx.agents.is_supported() {
            return None;
        }
        let agent_event = AgentEvent {
            node: emitter.node.clone(),
            agent_id: emitter.agent_id.clone(),
            kind,
        };
        Some(self.emit_with_cause(Event::Agent(Box::new(agent_event)), Some(cause)))
    }

    /// Records the handoff from the agent pinned before to the one pinned here.
    pub(in crate::run) fn emit_boundary_handoff(
        &mut self,
        ix: usize,
        before: Option<String>,
        cause: Seq,
    ) {
        if matches!(self.run.def.nodes[ix].kind, Kind::Supervisor(_)) {
            return;
        }
        let here = self.run.pin(ix).map(str::to_owned);
        let (Some(before), Some(here)) = (before, here) else {
            return;
        };
        self.emit_handoff(ix, EmitRights::Boundary, before, here, cause);
    }

    /// Records the handoff when the next worker belongs to another agent than the last one.
    pub(in crate::run) fn emit_worker_handoff(
        &mut self,
        ix: usize,
        to: Option<String>,
        cause: Seq,
    ) {
        let before = self.run.state.agents.worker.clone();
        if let (Some(before), Some(to)) = (before, to) {
            self.emit_handoff(ix, EmitRights::Dispatch, before, to, cause);
        }
    }

    fn emit_handoff(
        &mut self,
        ix: usize,
        rights: EmitRights,
        from: String,
        to: String,
        cause: Seq,
    ) {
        if from == to {
            return;
        }
        let emitter = AgentEmitter {
            node: self.run.def.nodes[ix].id.clone(),
            agent_id: from,
            rights,
        };
        let kind = AgentEventKind::HandedOff {
            to,
            reason: None,
            context: None,
        };
        self.emit_agent_event(&emitter, kind, cause);
    }
}
