//! A run's log as trace spans. Spans are derived, never recorded: ids are hashes of the run and the
//! event that started the span. So exporting twice gives the same spans, and a child run can
//! compute the span of the node that started it.

use super::model::add_usage;
use crate::fields::{Fields, WriteFields};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use tandem_record::{
    Event, Interrupt, NodeId, Object, ParentLink, RecordedEvent, RunId, RunRequest, Seq, Timestamp,
    Work, WorkflowId,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// 32 lowercase hex digits.
    pub trace_id: String,
    /// 16 lowercase hex digits.
    pub span_id: String,
    pub parent_span_id: Option<String>,
    pub name: String,
    pub kind: &'static str,
    pub started_at: Timestamp,
    /// `None` while the run or node is running.
    pub ended_at: Option<Timestamp>,
    pub attributes: Object,
    pub status: SpanStatus,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanStatus {
    Unset,
    Ok,
    Error,
}

impl SpanStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }
}

/// The data class that needs no protection.
const PUBLIC_CLASS: &str = "public";

/// Spans of a run: the run, each node, each attempt, each outbound call, each interrupt. `class` is
/// the data class of its workflow.
pub fn spans(
    run: &RunId,
    workflow: &WorkflowId,
    class: Option<&str>,
    events: &[RecordedEvent],
) -> Vec<Span> {
    let Some(first) = events.first() else {
        return Vec::new();
    };
    let Event::RunStarted { request, .. } = &first.event else {
        return Vec::new();
    };
    let mut tracer = Tracer {
        run,
        workflow,
        class,
        trace_id: trace_id(run, request),
        nodes: BTreeMap::new(),
        questions: 0,
        finished: Vec::new(),
    };
    let mut root = tracer.root(first.at, request);
    for recorded in events {
        tracer.apply(recorded, &mut root);
    }
    let mut spans = vec![root];
    spans.append(&mut tracer.finished);
    for open in tracer.nodes.into_values() {
        spans.extend([open.node, open.attempt]);
        spans.extend(open.activity);
        spans.extend(open.question);
    }
    spans
}

struct Tracer<'a> {
    run: &'a RunId,
    workflow: &'a WorkflowId,
    class: Option<&'a str>,
    trace_id: String,
    nodes: BTreeMap<NodeId, OpenNode>,
    /// Interrupts opened so far.
    questions: u32,
    finished: Vec<Span>,
}

struct OpenNode {
    node: Span,
    attempt: Span,
    /// An outbound call in progress.
    activity: Option<Span>,
    /// An open interrupt.
    question: Option<Span>,
}

impl Tracer<'_> {
    fn span(&self, name: String, began: Seq, salt: &str, at: Timestamp) -> Span {
        let mut attributes = Fields::default();
        attributes.set("openwop.run_id", self.run);
        attributes.set("openwop.workflow_id", self.workflow);
        attributes.set("openwop.protocol_version", "1.0");
        attributes.set("openwop.event_seq", began);
        attributes.opt("openwop.compliance_class", self.class);
        Span {
            trace_id: self.trace_id.clone(),
            span_id: span_id(self.run, began, salt),
            parent_span_id: None,
            name,
            kind: "internal",
            started_at: at,
            ended_at: None,
            attributes: attributes.0,
            status: SpanStatus::Unset,
            message: None,
        }
    }

    fn root(&self, at: Timestamp, request: &RunRequest) -> Span {
        let mut span = self.span("openwop.run".to_owned(), Seq(0), "run", at);
        let mut attributes = Fields(std::mem::take(&mut span.attributes));
        attributes.set("openwop.tenant_id", &request.owner.tenant);
        attributes.opt("openwop.scope_id", request.scope_id.as_ref());
        if self.class.is_some_and(|class| class != PUBLIC_CLASS) {
            attributes.set("openwop.pii_present", true);
        }
        for (i, tag) in request.options.tags.iter().flatten().enumerate() {
            let name = format!("openwop.run.tag.{i}");
            attributes.0.insert(name, Value::from(tag.as_str()));
        }
        if let Some(parent) = &request.parent {
            attributes.set("openwop.parent.run_id", &parent.run_id);
            attributes.opt("openwop.parent.workflow_id", parent.lineage.last());
            attributes.set("openwop.parent.node_id", &parent.node_id);
        }
        if let Some(fork) = &request.forked_from {
            attributes.set("openwop.replay.source_run_id", &fork.run_id);
            attributes.set("openwop.replay.from_seq", fork.from_seq);
            attributes.set("openwop.replay.mode", fork.mode.as_str());
        }
        span.attributes = attributes.0;
        span.parent_span_id = match &request.parent {
            Some(parent) => Some(dispatching_span(parent)),
            None => inbound(request).map(|(_, parent)| parent),
        };
        span
    }

    fn apply(&mut self, recorded: &RecordedEvent, root: &mut Span) {
        let at = recorded.at;
        match &recorded.event {
            Event::NodeStarted {
                node,
                type_id,
                attempt,
                work,
                ..
            } => {
                self.start(node, type_id, *attempt, recorded.seq, at);
                self.call(node, work.as_ref(), recorded.seq, at);
            }
            Event::ModelRetried(again) => {
                self.call(&again.node, Some(&again.work), recorded.seq, at);
            }
            Event::InterruptRequested { node, interrupt } => {
                self.open_interrupt(node, interrupt, recorded.seq, at);
            }
            Event::InterruptResolved { node, resolution } => {
                self.close_interrupt(node, resolution.outcome.clone(), at);
            }
            Event::NodeCompleted { node, cost, .. } => {
                let cost = cost.clone().unwrap_or_default();
                self.end(node, at, SpanStatus::Ok, None, cost);
            }
            Event::ModelAnswered(event) => {
                if let Some(open) = self.nodes.get_mut(&event.node) {
                    add_usage(event, &mut open.node.attributes);
                    if let Some(mut activity) = open.activity.take() {
                        add_usage(event, &mut activity.attributes);
                        close(&mut activity, at, SpanStatus::Ok, None);
                        self.finished.push(activity);
                    }
                }
            }
            Event::NodeFailed { node, error, .. } => {
                let message = Some(error.code.clone());
                self.end(node, at, SpanStatus::Error, message, Object::new());
            }
            Event::NodeCancelled { node, reason, .. } => {
                let message = Some(reason.clone());
                self.end(node, at, SpanStatus::Unset, message, Object::new());
            }
            Event::NodeRetried {
                node, last_error, ..
            } => {
                if let Some(open) = self.nodes.get_mut(node) {
                    open.attempt.ended_at = Some(at);
                    open.attempt.status = SpanStatus::Error;
                    open.attempt.message = Some(last_error.code.clone());
                    if let Some(mut activity) = open.activity.take() {
                        let message = Some(last_error.code.clone());
                        close(&mut activity, at, SpanStatus::Error, message);
                        self.finished.push(activity);
                    }
                }
            }
            Event::CapBreached {
                kind,
                limit,
                observed,
                ..
            } => {
                let mut attributes = Fields(std::mem::take(&mut root.attributes));
                attributes.set("openwop.cap_kind", kind.as_str());
                attributes.set("openwop.cap_limit", limit);
                attributes.set("openwop.cap_observed", observed);
                root.attributes = attributes.0;
            }
            Event::RunCompleted { .. } => close(root, at, SpanStatus::Ok, None),
            Event::RunFailed { error, .. } => {
                close(root, at, SpanStatus::Error, Some(error.code.clone()));
            }
            Event::RunCancelled { reason, .. } => {
                close(root, at, SpanStatus::Unset, reason.clone());
            }
            _ => {}
        }
    }

    fn start(&mut self, node: &NodeId, type_id: &str, attempt: u32, seq: Seq, at: Timestamp) {
        let describe = |mut span: Span| {
            let mut attributes = Fields(std::mem::take(&mut span.attributes));
            attributes.set("openwop.node_id", node);
            attributes.set("openwop.node_type", type_id);
            attributes.set("openwop.node_attempt", attempt);
            span.attributes = attributes.0;
            span
        };
        let name = format!("openwop.node.{type_id}.attempt");
        let mut this_attempt = describe(self.span(name, seq, "attempt", at));
        // A retry continues the node's span; a new loop iteration starts another.
        let continued = self.nodes.remove(node).filter(|_| attempt > 0);
        let node_span = match continued {
            Some(open) => {
                self.finished.push(open.attempt);
                open.node
            }
            None => {
                let name = format!("openwop.node.{type_id}");
                let mut span = describe(self.span(name, seq, "node", at));
                span.parent_span_id = Some(span_id(self.run, Seq(0), "run"));
                span
            }
        };
        this_attempt.parent_span_id = Some(node_span.span_id.clone());
        let open = OpenNode {
            node: node_span,
            attempt: this_attempt,
            activity: None,
            question: None,
        };
        self.nodes.insert(node.clone(), open);
    }

    /// An outbound call, within its attempt.
    fn call(&mut self, node: &NodeId, work: Option<&Work>, seq: Seq, at: Timestamp) {
        let provider = match work {
            Some(Work::Http { .. }) => "http",
            Some(Work::Model { request, .. }) => request.provider.as_str(),
            Some(Work::Tool { request, .. }) => request.server.as_str(),
            _ => return,
        };
        let mut span = self.span(format!("openwop.activity.{provider}"), seq, "activity", at);
        span.kind = "client";
        let mut attributes = Fields(std::mem::take(&mut span.attributes));
        attributes.set("openwop.node_id", node);
        span.attributes = attributes.0;
        if let Some(open) = self.nodes.get_mut(node) {
            span.parent_span_id = Some(open.attempt.span_id.clone());
            open.activity = Some(span);
        }
    }

    /// An interrupt, open until it is resolved or its node ends.
    fn open_interrupt(&mut self, node: &NodeId, interrupt: &Interrupt, seq: Seq, at: Timestamp) {
        self.questions += 1;
        let mut span = self.span("openwop.interrupt".to_owned(), seq, "interrupt", at);
        let mut attributes = Fields(std::mem::take(&mut span.attributes));
        attributes.set("openwop.node_id", node);
        attributes.set("openwop.interrupt_kind", &interrupt.kind);
        attributes.set("openwop.interrupt_id", &interrupt.id);
        attributes.set("openwop.interrupt_count", self.questions);
        span.attributes = attributes.0;
        if let Some(open) = self.nodes.get_mut(node) {
            span.parent_span_id = Some(open.node.span_id.clone());
            open.question = Some(span);
        }
    }

    fn close_interrupt(&mut self, node: &NodeId, outcome: Option<String>, at: Timestamp) {
        let open = self.nodes.get_mut(node);
        if let Some(mut question) = open.and_then(|open| open.question.take()) {
            close(&mut question, at, SpanStatus::Ok, outcome);
            self.finished.push(question);
        }
    }

    fn end(
        &mut self,
        node: &NodeId,
        at: Timestamp,
        status: SpanStatus,
        message: Option<String>,
        cost: Object,
    ) {
        let Some(mut open) = self.nodes.remove(node) else {
            return;
        };
        open.node.attributes.extend(cost);
        close(&mut open.node, at, status, message.clone());
        close(&mut open.attempt, at, status, message.clone());
        self.finished.extend([open.node, open.attempt]);
        for mut inner in open.activity.into_iter().chain(open.question) {
            close(&mut inner, at, status, message.clone());
            self.finished.push(inner);
        }
    }
}

fn close(span: &mut Span, at: Timestamp, status: SpanStatus, message: Option<String>) {
    span.ended_at = Some(at);
    span.status = status;
    span.message = message;
}

/// Trace id and parent span id the caller sent, if they are well formed.
fn inbound(request: &RunRequest) -> Option<(String, String)> {
    let header = &request.trace.as_ref()?.traceparent;
    let mut parts = header.split('-').skip(1);
    let (trace, parent) = (parts.next()?, parts.next()?);
    let fits = trace.len() == 32 && parent.len() == 16;
    fits.then(|| (trace.to_owned(), parent.to_owned()))
}

fn trace_id(run: &RunId, request: &RunRequest) -> String {
    inbound(request).map_or_else(|| hex(run, Seq(0), "trace", 16), |(trace, _)| trace)
}

fn span_id(run: &RunId, began: Seq, salt: &str) -> String {
    hex(run, began, salt, 8)
}

/// The span of the node that started a child: the node's start directly precedes the dispatch.
fn dispatching_span(parent: &ParentLink) -> String {
    let started = Seq(parent.dispatched_at.0.saturating_sub(1));
    span_id(&parent.run_id, started, "node")
}

fn hex(run: &RunId, seq: Seq, salt: &str, bytes: usize) -> String {
    let digest = Sha256::digest(format!("{run}\0{seq}\0{salt}").as_bytes());
    digest[..bytes].iter().map(|b| format!("{b:02x}")).collect()
}
