//! One source of settings. All three sources have this shape, so precedence is one function.

use super::{
    ConnectionsLayer, Hidden, LimitsLayer, LogFormat, ModelLayer, NoticeLayer, OtelLayer,
    PersonLayer, RetentionLayer, ToolServerLayer,
};
use crate::cli::{DevArgs, ServeArgs};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The settings of one source; `None` where it has none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layer {
    pub(crate) listen: Option<String>,
    pub(crate) store: Option<String>,
    pub(crate) workflows: Option<Vec<PathBuf>>,
    pub(crate) agents: Option<Vec<PathBuf>>,
    pub(crate) packs: Option<Vec<PathBuf>>,
    pub(crate) host_id: Option<String>,
    pub(crate) public_url: Option<String>,
    pub(crate) test_seams: Option<bool>,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) secrets: Option<BTreeMap<String, Hidden>>,
    pub(crate) otel: Option<OtelLayer>,
    pub(crate) retention_seconds: Option<u64>,
    pub(crate) retention: Option<RetentionLayer>,
    pub(crate) memory: Option<MemoryLayer>,
    pub(crate) calls: Option<CallsLayer>,
    pub(crate) limits: Option<LimitsLayer>,
    /// Approver groups of every tenant, by name.
    pub(crate) groups: Option<BTreeMap<String, Vec<String>>>,
    /// Who is told of questions of runs.
    pub(crate) notices: Option<Vec<NoticeLayer>>,
    /// Who decides them on a network.
    pub(crate) notice_people: Option<Vec<PersonLayer>>,
    /// Models that nodes may call, by name.
    pub(crate) models: Option<BTreeMap<String, ModelLayer>>,
    /// Tool servers nodes may call, by name.
    pub(crate) mcp_servers: Option<BTreeMap<String, ToolServerLayer>>,
    pub(crate) confidence_floor: Option<f64>,
    pub(crate) escalation_interrupt_kind: Option<String>,
    pub(crate) execution_model_version: Option<u64>,
    /// Whether unknown node settings are errors.
    pub(crate) strict_documents: Option<bool>,
    /// Whether flows are run again after every turn, to find nondeterminism.
    pub(crate) strict_flows: Option<bool>,
    pub(crate) connections: Option<ConnectionsLayer>,
    pub(crate) print_login_link: Option<bool>,
    pub(crate) conformance: Option<Switch>,
    pub(crate) multi_agent: Option<Switch>,
    pub(crate) ancestry: Option<Switch>,
}

/// `on` or `off`, in the file also `true` or `false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Switch {
    Flag(bool),
    Text(SwitchText),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SwitchText {
    On,
    Off,
}

impl Switch {
    pub(crate) fn is_on(self) -> bool {
        matches!(self, Self::Flag(true) | Self::Text(SwitchText::On))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryLayer {
    /// Number of notes under one name above which the oldest are compacted; 0 for never.
    pub(crate) compact_above: Option<u64>,
}

/// Limits on concurrent outbound calls.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallsLayer {
    pub(crate) max: Option<usize>,
    pub(crate) per_tenant: Option<usize>,
    pub(crate) per_target: Option<usize>,
}

impl CallsLayer {
    fn over(self, below: Self) -> Self {
        Self {
            max: self.max.or(below.max),
            per_tenant: self.per_tenant.or(below.per_tenant),
            per_target: self.per_target.or(below.per_target),
        }
    }
}

impl Layer {
    /// This layer's value where it has one, else the value of the layer below. Lists are replaced,
    /// not joined.
    pub(crate) fn over(self, below: Self) -> Self {
        Self {
            listen: self.listen.or(below.listen),
            store: self.store.or(below.store),
            workflows: self.workflows.or(below.workflows),
            agents: self.agents.or(below.agents),
            packs: self.packs.or(below.packs),
            host_id: self.host_id.or(below.host_id),
            public_url: self.public_url.or(below.public_url),
            test_seams: self.test_seams.or(below.test_seams),
            log_format: self.log_format.or(below.log_format),
            secrets: self.secrets.or(below.secrets),
            otel: match (self.otel, below.otel) {
                (Some(above), Some(below)) => Some(above.over(below)),
                (above, below) => above.or(below),
            },
            retention_seconds: self.retention_seconds.or(below.retention_seconds),
            retention: self.retention.or(below.retention),
            memory: self.memory.or(below.memory),
            calls: match (self.calls, below.calls) {
                (Some(above), Some(below)) => Some(above.over(below)),
                (above, below) => above.or(below),
            },
            limits: match (self.limits, below.limits) {
                (Some(above), Some(below)) => Some(above.over(below)),
                (above, below) => above.or(below),
            },
            groups: self.groups.or(below.groups),
            notices: self.notices.or(below.notices),
            notice_people: self.notice_people.or(below.notice_people),
            models: self.models.or(below.models),
            mcp_servers: self.mcp_servers.or(below.mcp_servers),
            confidence_floor: self.confidence_floor.or(below.confidence_floor),
            escalation_interrupt_kind: self
                .escalation_interrupt_kind
                .or(below.escalation_interrupt_kind),
            execution_model_version: self
                .execution_model_version
                .or(below.execution_model_version),
            conformance: self.conformance.or(below.conformance),
            multi_agent: self.multi_agent.or(below.multi_agent),
            ancestry: self.ancestry.or(below.ancestry),
            connections: match (self.connections, below.connections) {
                (Some(above), Some(below)) => Some(above.over(below)),
                (above, below) => above.or(below),
            },
            print_login_link: self.print_login_link.or(below.print_login_link),
            strict_documents: self.strict_documents.or(below.strict_documents),
            strict_flows: self.strict_flows.or(below.strict_flows),
        }
    }

    pub(crate) fn of_serve(args: &ServeArgs) -> Self {
        Self {
            listen: args.listen.clone(),
            store: args.store.clone(),
            workflows: unless_empty(&args.workflows),
            agents: unless_empty(&args.agents),
            packs: unless_empty(&args.packs),
            host_id: args.host_id.clone(),
            public_url: args.public_url.clone(),
            // An absent flag means "not set", not "off".
            test_seams: args.test_seams.then_some(true),
            log_format: args.log_format,
            secrets: None,
            otel: None,
            retention_seconds: None,
            retention: None,
            memory: None,
            calls: None,
            limits: None,
            groups: None,
            notices: None,
            notice_people: None,
            models: None,
            mcp_servers: None,
            // Operator policy: set by the environment or the file, not on the command line.
            confidence_floor: None,
            escalation_interrupt_kind: None,
            execution_model_version: None,
            conformance: None,
            multi_agent: None,
            ancestry: None,
            connections: None,
            print_login_link: args.print_login_link.then_some(true),
            strict_documents: None,
            strict_flows: None,
        }
    }

    pub(crate) fn of_dev(args: &DevArgs, store: String) -> Self {
        Self {
            listen: args.listen.clone(),
            store: Some(store),
            workflows: unless_empty(&args.workflows),
            packs: unless_empty(&args.packs),
            agents: unless_empty(&args.agents),
            ..Self::default()
        }
    }
}

fn unless_empty(paths: &[PathBuf]) -> Option<Vec<PathBuf>> {
    (!paths.is_empty()).then(|| paths.to_vec())
}
