//! The choice of a flow by the model: a routing call, or a field of its answer. It chooses flows only.

use super::draft::Draft;
use super::model_loop::structured_of;
use super::turn::Next;
use crate::agent::{FlowRouter, RouterFallback};
use serde_json::Value;
use tandem_record::FlowId;
use tandem_record::conversation::{
    ChatAnswer, ChatMessage, ChatRole, FlowOrigin, ModelPurpose, RouterReason,
    SessionEventBody as Body, TurnTrigger,
};
use tandem_schema::{MAX_WORK, Meter};

/// Messages a routing call sees before the current one.
const ROUTER_MEMORY: usize = 6;

impl Draft<'_> {
    /// Asks the model which flow fits, where the agent wants that.
    pub(super) fn route(&mut self) -> Next {
        let routes = self.may_route();
        match &self.cx.agent.flow_router {
            Some(FlowRouter::Detector { prompt, .. }) if routes => {
                let messages = self.router_messages(prompt);
                self.ask_model(ModelPurpose::Router, messages)
            }
            _ => Next::Classic,
        }
    }

    /// Whether this turn may choose a flow: it is about a message, and nothing else has the session.
    fn may_route(&self) -> bool {
        let is_about_message = matches!(
            self.turn().trigger(),
            TurnTrigger::Inbound | TurnTrigger::QueueReplay
        );
        is_about_message && !self.session.is_occupied()
    }

    /// The model gave no answer that could name a flow: the router's fallback decides. `None` when that is
    /// the classic path, which has nothing to say either.
    pub(super) fn flow_without_answer(&mut self) -> Option<Next> {
        let Some(FlowRouter::SchemaFlow { fallback, .. }) = &self.cx.agent.flow_router else {
            return None;
        };
        if !self.may_route() {
            return None;
        }
        let flow = match fallback {
            RouterFallback::Flow(flow) => Some(FlowId::from(flow.as_str())),
            RouterFallback::Classic => None,
        };
        self.emit(Body::RouterDecided {
            mode: "schema_flow".to_owned(),
            flow: None,
            confidence: None,
            reason: RouterReason::ParseError,
            fallback_used: true,
        });
        self.start_flow(&flow?, None, FlowOrigin::Router)
    }

    /// The flow that a field of the structured answer names.
    pub(super) fn flow_by_field(&mut self, output: &Value) -> Option<Next> {
        let Some(FlowRouter::SchemaFlow { field, fallback }) = &self.cx.agent.flow_router else {
            return None;
        };
        if !self.may_route() {
            return None;
        }
        let named = output.get(field.as_str()).and_then(Value::as_str);
        let known = named.filter(|name| self.cx.agent.flows.contains_key(*name));
        let (flow, reason, used) = match (known, named, fallback) {
            (Some(flow), _, _) => (Some(flow.to_owned()), RouterReason::Selected, false),
            (None, Some(_), RouterFallback::Flow(flow)) => {
                (Some(flow.clone()), RouterReason::UnknownFlow, true)
            }
            (None, None, RouterFallback::Flow(flow)) => {
                (Some(flow.clone()), RouterReason::Missing, true)
            }
            (None, Some(_), RouterFallback::Classic) => (None, RouterReason::UnknownFlow, true),
            (None, None, RouterFallback::Classic) => (None, RouterReason::Missing, true),
        };
        self.emit(Body::RouterDecided {
            mode: "schema_flow".to_owned(),
            flow: named.map(str::to_owned),
            confidence: None,
            reason,
            fallback_used: used,
        });
        self.start_flow(
            &FlowId::from(flow?),
            Some(output.clone()),
            FlowOrigin::Router,
        )
    }

    /// What a routing call sees: the task, the flows, the last messages, the text.
    fn router_messages(&self, prompt: &str) -> Vec<ChatMessage> {
        let mut task = format!("{prompt}\n\nFlows:");
        for (id, flow) in &self.cx.agent.flows {
            task.push_str("\n- ");
            task.push_str(id);
            if let Some(description) = &flow.description {
                task.push_str(": ");
                task.push_str(description);
            }
        }
        let mut messages = vec![ChatMessage::new(ChatRole::System, task)];
        // The current text is the last of the remembered ones.
        messages.extend(self.remembered(ROUTER_MEMORY + 1));
        messages.extend(self.replayed_message());
        messages
    }

    /// Uses the answer of the routing call; `None` when the call failed.
    pub(super) fn use_route(&mut self, answer: Option<&ChatAnswer>) -> Next {
        let Some(FlowRouter::Detector {
            min_confidence,
            fallback,
            output_schema,
            ..
        }) = &self.cx.agent.flow_router
        else {
            return Next::Classic;
        };
        let output = answer.and_then(structured_of);
        let fits = |output: &Value| {
            let errors = output_schema
                .as_ref()
                .map(|s| s.errors(output, &Meter::with_limit(MAX_WORK)));
            errors.is_none_or(|errors| errors.is_empty())
        };
        let output = output.filter(fits);
        let named = output.as_ref().and_then(|o| o.get("flow")?.as_str());
        let confidence = output.as_ref().and_then(|o| o.get("confidence")?.as_f64());
        let reason = match named {
            None if output.is_none() => RouterReason::ParseError,
            None => RouterReason::Missing,
            Some(name) if !self.cx.agent.flows.contains_key(name) => RouterReason::UnknownFlow,
            Some(_) if min_confidence.is_some_and(|min| confidence.is_none_or(|c| c < min)) => {
                RouterReason::LowConfidence
            }
            Some(_) => RouterReason::Selected,
        };
        let selected = reason == RouterReason::Selected;
        let chosen = match fallback {
            _ if selected => named.map(str::to_owned),
            RouterFallback::Flow(flow) => Some(flow.clone()),
            RouterFallback::Classic => None,
        };
        self.emit(Body::RouterDecided {
            mode: "detector".to_owned(),
            flow: named.map(str::to_owned),
            confidence,
            reason,
            fallback_used: !selected,
        });
        let flow = chosen.map(FlowId::from);
        let started = flow.and_then(|flow| self.start_flow(&flow, None, FlowOrigin::Router));
        started.unwrap_or(Next::Classic)
    }
}
