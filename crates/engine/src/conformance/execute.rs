//! Executes test-only nodes. The machine calls these four functions and knows nothing else about
//! the kinds.

use super::kind::ConformanceKind;
use super::memory_hook::MemoryHook;
use super::rules::may_use_test_types;
use crate::node::millis;
use crate::run::{DecisionDraft, NodeOutcome};
use serde_json::json;
use std::sync::Arc;
use tandem_record::{ErrorInfo, Event, Object, Seq, Work};

/// Cost attributes that are allowed in events; all others in that namespace are dropped.
const COST_ATTRIBUTES: [&str; 8] = [
    "openwop.cost.tokens.input",
    "openwop.cost.tokens.output",
    "openwop.cost.tokens.total",
    "openwop.cost.usd",
    "openwop.cost.currency",
    "openwop.cost.estimated",
    "openwop.cost.provider",
    "openwop.cost.model",
];

/// Whether a node may start, as far as it uses something for conformance tests only.
pub(crate) fn admit(draft: &DecisionDraft<'_>, ix: usize) -> Result<(), ErrorInfo> {
    let node = &draft.run.def.nodes[ix];
    let allowed = || may_use_test_types(&draft.run.def, draft.run.request(), draft.cx);
    if node.test_only && !draft.is_replaying() && !allowed() {
        let message = format!("{} is for conformance tests only", node.type_id);
        return Err(ErrorInfo::new("typeId_refused", message));
    }
    Ok(())
}

impl ConformanceKind {
    /// Whether the node may start. Some kinds exist to be refused.
    pub(crate) fn admit(&self, draft: &mut DecisionDraft<'_>, ix: usize) -> Result<(), ErrorInfo> {
        match self {
            Self::RequiresMissing { capability } => Err(ErrorInfo::new(
                "capability_not_provided",
                format!("this host does not provide {capability:?}"),
            )),
            Self::ModelCapabilityMissing => {
                let missing = "nonexistent-capability-9b3f".to_owned();
                let message = format!("no model here has the capability {missing:?}");
                draft.emit(
                    Event::ModelCapabilityInsufficient {
                        node: draft.run.def.nodes[ix].id.clone(),
                        provider: "none".to_owned(),
                        model: "none".to_owned(),
                        missing: vec![missing],
                    },
                    None,
                );
                Err(ErrorInfo::new("capability_not_provided", message))
            }
            Self::Hold
            | Self::SideEffect
            | Self::DuplicateMessage
            | Self::SecretEcho { .. }
            | Self::CostEmit { .. }
            | Self::ArtifactEmit { .. }
            | Self::MemoryHook(_)
            | Self::MockAgent(_) => Ok(()),
        }
    }

    /// The work the node will wait for.
    pub(crate) fn prepare(
        &self,
        draft: &mut DecisionDraft<'_>,
        ix: usize,
        inputs: &Object,
        execution: u32,
    ) -> Result<Option<Work>, ErrorInfo> {
        match self {
            Self::Hold => {
                let ms = inputs.get("delayMs").map_or(Ok(0), millis);
                let ms = ms.map_err(|message| ErrorInfo::new("validation_error", message))?;
                Ok(draft.sleep(ms, Some(inputs.clone())))
            }
            Self::SecretEcho { secret_id } => Ok(Some(Work::SecretEcho {
                effect: draft.invocation_id(ix, execution, "tandem:secret"),
                secret_id: secret_id.clone(),
                reveal: false,
            })),
            Self::MemoryHook(MemoryHook::Redaction { secret_id }) => Ok(Some(Work::SecretEcho {
                effect: draft.invocation_id(ix, execution, "tandem:secret"),
                secret_id: secret_id.clone(),
                reveal: true,
            })),
            Self::MemoryHook(_) => {
                draft.ensure_memory_loaded(ix);
                Ok(None)
            }
            Self::SideEffect
            | Self::DuplicateMessage
            | Self::RequiresMissing { .. }
            | Self::ModelCapabilityMissing
            | Self::CostEmit { .. }
            | Self::ArtifactEmit { .. }
            | Self::MockAgent(_) => Ok(None),
        }
    }

    /// The work the node does at once.
    pub(crate) fn perform(
        &self,
        draft: &mut DecisionDraft<'_>,
        ix: usize,
        inputs: Object,
        started: Seq,
    ) -> NodeOutcome {
        match self {
            Self::Hold | Self::SideEffect => NodeOutcome::Complete(inputs),
            Self::DuplicateMessage => duplicate_message(draft, ix, inputs, started),
            Self::CostEmit { attributes } => {
                NodeOutcome::CompleteWithCost(allowed_cost(attributes))
            }
            Self::ArtifactEmit {
                artifact_id,
                artifact_type,
                content,
            } => {
                let node = draft.run.def.nodes[ix].id.clone();
                let fallback = || format!("{}:{node}", draft.artifact_owner());
                let artifact_id = artifact_id.clone().unwrap_or_else(fallback);
                let created = Event::ArtifactCreated {
                    artifact_id: artifact_id.clone(),
                    artifact_type: artifact_type.clone(),
                    node,
                    content: content.clone(),
                };
                draft.emit(created, Some(started));
                let named = ("artifactId".to_owned(), json!(artifact_id));
                NodeOutcome::Complete(Object::from_iter([named]))
            }
            Self::MemoryHook(hook) => draft.memory_hook(ix, hook, started),
            Self::MockAgent(config) => draft.perform_mock_agent(ix, config, started),
            Self::RequiresMissing { .. }
            | Self::ModelCapabilityMissing
            | Self::SecretEcho { .. } => {
                unreachable!("{self:?} is not performed at once")
            }
        }
    }

    /// Handles the outputs of the effect the node waited for. Returns `false` when the node
    /// completes with them, as every other node does.
    pub(crate) fn effect_done(
        &self,
        draft: &mut DecisionDraft<'_>,
        ix: usize,
        outputs: &Object,
        cause: Seq,
    ) -> bool {
        let reveals = matches!(self, Self::MemoryHook(MemoryHook::Redaction { .. }));
        if reveals {
            draft.write_secret_to_memory(ix, outputs, cause);
        }
        reveals
    }
}

fn allowed_cost(attributes: &Object) -> Object {
    attributes
        .iter()
        .filter(|(name, value)| {
            COST_ATTRIBUTES.contains(&name.as_str()) && !value.is_object() && !value.is_array()
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn duplicate_message(
    draft: &mut DecisionDraft<'_>,
    ix: usize,
    inputs: Object,
    cause: Seq,
) -> NodeOutcome {
    let def = Arc::clone(&draft.run.def);
    let channel = def
        .channels
        .iter()
        .find(|(_, c)| c.declared.reducer == "message");
    let Some((name, _)) = channel else {
        return NodeOutcome::Complete(inputs);
    };
    for (id, text) in [("m-1", "first"), ("m-1", "first again"), ("m-2", "second")] {
        let message = json!({"messageId": id, "content": text, "role": "agent"});
        if let Err(error) = draft.write_channel(ix, name, message, None, cause) {
            return NodeOutcome::Fail(error);
        }
    }
    NodeOutcome::Complete(inputs)
}
