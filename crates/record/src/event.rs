//! The events of a run. Past tense, append-only, enough to rebuild the run's whole state.
//!
//! A variant may contain more than any client sees: [`Work`] on [`Event::NodeStarted`] is what a
//! restarted process needs to continue, and the projection leaves it out.

use crate::conversation::FlowRecord;
use crate::{
    AgentEvent, ApprovalDecision, CapKind, DefinitionHash, Denial, DrainPolicy, EnvelopeEvent,
    ErrorInfo, EscalationKind, Handoff, Interrupt, InterruptId, JoinOutcome, LowConfidence,
    MemoryEntry, ModelAnswered, ModelRetry, NodeId, Object, OutputChunk, Principal,
    RefusalDivergence, Resolution, RunId, RunRequest, RunStatus, Seq, Timestamp,
    VerificationRequest, Work, WorkflowId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event at its position in a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded<E> {
    pub seq: Seq,
    pub at: Timestamp,
    pub cause: Option<Cause>,
    pub event: E,
}

/// An event of a workflow run.
pub type RecordedEvent = Recorded<Event>;

/// What caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cause {
    /// An earlier event of the same log.
    Event(Seq),
    /// An event of another log, or a delivery from outside, by its public id.
    External(String),
    /// An event on another host.
    Foreign { event: String, host: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum Event {
    RunStarted {
        workflow_id: WorkflowId,
        definition: DefinitionHash,
        request: Box<RunRequest>,
        engine_version: u32,
        /// The initial variables: defaults, overwritten by inputs.
        variables: Object,
    },
    RunPauseRequested {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    RunPaused {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        policy: DrainPolicy,
        /// Nodes cut off by an immediate pause; each starts a fresh attempt after the resume.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupted: Vec<NodeId>,
    },
    RunResumed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A cancel was accepted while children are still running; the run ends after them.
    RunCancelRequested {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_parent: Option<RunId>,
    },
    RunCompleted {
        outputs: Object,
        duration_ms: u64,
    },
    RunFailed {
        error: ErrorInfo,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_node: Option<NodeId>,
        duration_ms: u64,
    },
    RunCancelled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_parent: Option<RunId>,
        duration_ms: u64,
    },
    NodeStarted {
        node: NodeId,
        type_id: String,
        attempt: u32,
        /// How often the node was entered before, by loops and triggers; 0 the first time.
        #[serde(default)]
        execution: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Work>,
        /// When this attempt times out, if the node has a timeout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        /// Nodes reset to pending because a loop or trigger enters here again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        resets: Vec<NodeId>,
        /// The channel trigger that fired the node, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<String>,
    },
    NodeCompleted {
        node: NodeId,
        outputs: Object,
        duration_ms: u64,
        /// Allow-listed cost attributes, only for spans and the totals of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Object>,
        /// How the node's child run ended, if it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<RunStatus>,
        /// The outputs come from a tool server, or are computed from data of one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
    },
    NodeFailed {
        node: NodeId,
        error: ErrorInfo,
        attempts: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<RunStatus>,
    },
    NodeRetried {
        node: NodeId,
        attempt: u32,
        delay_ms: u64,
        last_error: ErrorInfo,
    },
    NodeSkipped {
        node: NodeId,
        reason: String,
    },
    NodeCancelled {
        node: NodeId,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<RunStatus>,
    },
    NodeDispatched {
        node: NodeId,
        child: RunId,
        workflow_id: WorkflowId,
    },
    InterruptRequested {
        node: NodeId,
        interrupt: Box<Interrupt>,
    },
    ApprovalRequested {
        node: NodeId,
        interrupt: InterruptId,
        artifact_id: String,
        artifact_type: String,
        title: String,
        actions: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        required: u32,
    },
    ClarificationRequested {
        node: NodeId,
        interrupt: InterruptId,
        questions: Value,
    },
    /// A decision, or one vote of several.
    ApprovalReceived {
        node: NodeId,
        decision: Box<ApprovalDecision>,
        /// The node that has to do its work again, when changes were requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redo: Option<NodeId>,
    },
    ClarificationResolved {
        node: NodeId,
        answers: Object,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// A person asked a follow-up question instead of deciding; the interrupt stays open.
    ApprovalQuestioned {
        node: NodeId,
        interrupt: InterruptId,
        question: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// Nobody decided in time: the next level is asked, with its own time limit.
    InterruptEscalated {
        node: NodeId,
        interrupt: InterruptId,
        /// 1 for the first escalation.
        level: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roles: Vec<String>,
        deadline: Timestamp,
    },
    /// Nobody decided in time: the interrupt stays open, and its deciders should be reminded.
    InterruptReminded {
        node: NodeId,
        interrupt: InterruptId,
        /// 1 for the first reminder.
        count: u32,
        /// The time of the next timeout action, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Timestamp>,
    },
    /// A person without permission tried to decide.
    DecisionDenied {
        node: NodeId,
        interrupt: InterruptId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        why: Denial,
    },
    /// A conversation begins. Turns are numbered from 0.
    ConversationOpened {
        node: NodeId,
        conversation: String,
        turn: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        participants: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
    },
    ConversationExchanged {
        node: NodeId,
        conversation: String,
        turn: Value,
    },
    ConversationClosed {
        node: NodeId,
        conversation: String,
        turn: Value,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        outcome: Option<Value>,
    },
    /// An external event, stored until a wait uses it.
    ExternalEventReceived {
        event_id: String,
        event_type: String,
        payload: Object,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    NodeSuspended {
        node: NodeId,
        interrupt: InterruptId,
        kind: String,
        key: String,
        status: RunStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The child run and node whose interrupt this node waits for, if it is not its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mirrors: Option<(RunId, NodeId)>,
        /// The data of that interrupt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
        /// The direct child that reported that wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<RunId>,
        /// Why an agent's decision was held, if the interrupt is about one.
        #[serde(rename = "doubt", default, skip_serializing_if = "Option::is_none")]
        low_confidence: Option<LowConfidence>,
    },
    InterruptResolved {
        node: NodeId,
        resolution: Box<Resolution>,
    },
    NodeResumed {
        node: NodeId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interrupt: Option<InterruptId>,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        value: Option<Value>,
    },
    VariableChanged {
        name: String,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        previous: Option<Value>,
        #[serde(
            default,
            deserialize_with = "crate::present",
            skip_serializing_if = "Option::is_none"
        )]
        next: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// The value comes from a tool server, or is computed from data of one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
    },
    ChannelWritten {
        channel: String,
        /// The written value, wrapped with its time on TTL channels; never the folded state.
        value: Value,
        reducer: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_size: Option<usize>,
        schema_version: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// Whether the channel is also shown among the variables.
        #[serde(default)]
        mirrored: bool,
        /// As for variables.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
    },
    CapBreached {
        kind: CapKind,
        limit: u64,
        observed: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
    },
    ArtifactCreated {
        artifact_id: String,
        artifact_type: String,
        node: NodeId,
        content: Value,
    },
    ModelCapabilityInsufficient {
        node: NodeId,
        provider: String,
        model: String,
        missing: Vec<String>,
    },
    LoopbackLimitReached {
        node: NodeId,
        iterations: u32,
        limit: u32,
    },
    /// An entry was written to the run's memory scope. Clients do not see its content.
    MemoryWritten {
        node: NodeId,
        entry: Box<MemoryEntry>,
    },
    /// A key was deleted from memory, for every run that begins later.
    #[serde(rename = "memory_forgotten")]
    MemoryDeleted {
        node: NodeId,
        memory_ref: String,
        /// The key. Named so because it is the author's text and is redacted like all such text.
        forgotten: String,
        /// The entry the run saw under the key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Several notes were merged: later runs see the output instead of them. Clients do not see its
    /// content.
    MemoryCompacted {
        /// The node whose write exceeded the limit.
        node: NodeId,
        output: Box<MemoryEntry>,
        /// Ids of the notes, oldest first. A note's id is its key.
        sources: Vec<String>,
    },
    /// A replay differs from its source. For information; the replay continues.
    ReplayDiverged {
        source: RunId,
        /// The source's event that was not repeated.
        sequence: Seq,
        /// `output`, `missing`, `extra` or `type-mismatch`.
        kind: String,
    },
    ReplayDivergedAtRefusal(Box<RefusalDivergence>),
    /// A chunk of a model's answer.
    OutputChunk(Box<OutputChunk>),
    ModelAnswered(Box<ModelAnswered>),
    #[serde(rename = "model_asked_again")]
    ModelRetried(Box<ModelRetry>),
    Envelope(Box<EnvelopeEvent>),
    /// A trigger waits for its debounce window.
    TriggerArmed {
        trigger: String,
        due: Timestamp,
    },
    Agent(Box<AgentEvent>),
    /// A supervisor decided what comes next.
    OrchestratorDecided {
        /// The supervisor.
        node: NodeId,
        agent_id: String,
        decision: Value,
        /// The iteration of the loop, from 1.
        iteration: u32,
        /// The run keeps to a version of the execution model in which clients are not told the turn.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unnumbered: bool,
    },
    /// A decision with low confidence is put to a person.
    ConfidenceEscalated {
        node: NodeId,
        confidence: f64,
        floor: f64,
        kind: EscalationKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<WorkflowId>,
        decision: Value,
    },
    Handoff(Box<Handoff>),
    /// A verification is requested before a result is merged or the run ends.
    #[serde(rename = "verification_asked")]
    VerificationRequested(Box<VerificationRequest>),
    /// Several workers start in parallel.
    FanOut {
        node: NodeId,
        children: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_concurrency: Option<u32>,
        join: String,
    },
    /// All of them have ended.
    FanIn {
        node: NodeId,
        outcome: JoinOutcome,
        completed: u32,
        failed: u32,
        cancelled: u32,
        /// In the order in which they ended.
        merge_order: Vec<RunId>,
    },
    LogAppended {
        level: String,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fields: Option<Object>,
    },
    /// A record of the journal of a flow run. The other events of such a run follow from these.
    Flow(Box<FlowRecord>),
}
