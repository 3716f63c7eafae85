//! The entry point for the runtime's outbox workers.

use crate::{HttpCaller, McpServers, ModelCaller, PackCaller, RustNodes, Secrets};
use std::time::Duration;
use tandem_record::{Effect, EffectKind, EffectOutcome, ErrorInfo, RunId, TraceContext};

pub struct Performer {
    http: HttpCaller,
    secrets: Secrets,
    models: ModelCaller,
    tools: McpServers,
    packs: Option<PackCaller>,
    rust_nodes: RustNodes,
}

impl Performer {
    pub fn new(http: HttpCaller, secrets: Secrets) -> Self {
        Self {
            http,
            secrets,
            models: ModelCaller::default(),
            tools: McpServers::default(),
            packs: None,
            rust_nodes: RustNodes::default(),
        }
    }

    /// Adds models that may be called.
    pub fn with_models(self, models: ModelCaller) -> Self {
        Self { models, ..self }
    }

    /// Adds tool servers that may be called.
    pub fn with_tools(self, tools: McpServers) -> Self {
        Self { tools, ..self }
    }

    /// Adds packs whose nodes may be called.
    pub fn with_packs(self, packs: Option<PackCaller>) -> Self {
        Self { packs, ..self }
    }

    /// Adds nodes of the program that embeds the host.
    pub fn with_rust_nodes(self, rust_nodes: RustNodes) -> Self {
        Self { rust_nodes, ..self }
    }

    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Attempts an effect of a run once. The runtime performs effects between runs of this host itself; such
    /// an effect here was misrouted, and a retry does not help.
    pub async fn perform(
        &self,
        run: &RunId,
        effect: &Effect,
        trace: Option<&TraceContext>,
    ) -> EffectOutcome {
        match &effect.kind {
            EffectKind::Http { request, .. } => self.http.call(request, &effect.id, trace).await,
            EffectKind::Model {
                request,
                timeout_ms,
                ..
            } => {
                let timeout = Duration::from_millis(*timeout_ms);
                self.models.call(request, timeout, &effect.id, trace).await
            }
            EffectKind::Tool { request, .. } => self.tools.call(request, &effect.id, trace).await,
            EffectKind::Pack {
                node,
                attempt,
                call,
            } => match (self.rust_nodes.get(&call.type_id), &self.packs) {
                (Some(rust), _) => rust.call(run, effect, node, *attempt, call).await,
                (None, Some(packs)) => packs.call(run, effect, node, *attempt, call).await,
                (None, None) => EffectOutcome::Failed {
                    error: ErrorInfo::new("pack_unavailable", "This host has no packs any more."),
                },
            },
            EffectKind::SecretEcho {
                secret_id, reveal, ..
            } if *reveal => self.secrets.reveal(secret_id),
            EffectKind::SecretEcho { secret_id, .. } => self.secrets.echo(secret_id),
            EffectKind::NotifyParent { .. }
            | EffectKind::NotifySession { .. }
            | EffectKind::AskSession { .. }
            | EffectKind::CloseSessionQuestion { .. }
            | EffectKind::CancelChild { .. }
            | EffectKind::StartFlow { .. }
            | EffectKind::CancelFlow { .. }
            | EffectKind::NotifyCallback { .. }
            | EffectKind::NotifyPeople { .. }
            | EffectKind::Continue => {
                let kind = effect.kind.name();
                tracing::error!(effect = %effect.id, kind, "an effect of the runtime was misrouted");
                EffectOutcome::Failed {
                    error: ErrorInfo::new(
                        "internal_error",
                        format!("Effects of the kind `{kind}` are performed by the runtime."),
                    ),
                }
            }
        }
    }
}
