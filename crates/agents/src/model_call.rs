//! Calls of an agent's model: prompt, tools, schema, streaming.

use crate::agent_version::AgentVersion;
use crate::call_session::CallSession;
use crate::host::{FolderAgents, error};
use crate::realm_thread::Target;
use crate::tool_call::issue_texts;
use serde_json::{Value, json};
use std::time::Duration;
use tandem_engine::agent::{AgentSpec, Finalization, FlowRouter, builtin_tool};
use tandem_engine::flow::{AuthorSchema, SchemaSource};
use tandem_nodes::{ChatRequest, ChatTool, ProviderFailure, RetrySettings};
use tandem_record::conversation::{ChatAnswer, CodeError, ModelPurpose};
use tandem_runtime::conversation::{CallContext, ChatModelRequest};

impl FolderAgents {
    pub(crate) async fn ask_model(
        &self,
        version: &AgentVersion,
        request: &ChatModelRequest,
        context: &CallContext,
        pieces: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<ChatAnswer, CodeError> {
        let spec = &version.spec;
        let models = &self.resources.models;
        let model = models.model(version, request.purpose)?;
        let system = match request.purpose {
            ModelPurpose::Chat => Some(self.system_prompt(version, context).await?),
            // Their instructions are among the messages.
            ModelPurpose::Router | ModelPurpose::Extract => None,
        };
        let asked = ChatRequest {
            key: context.key.clone(),
            agent: context.agent.clone(),
            session: context.session.clone(),
            purpose: request.purpose,
            system,
            messages: request.messages.clone(),
            tools: tools(spec, &request.tools),
            output_schema: output_schema(spec, request.purpose).map(model_schema),
            timeout: Duration::from_millis(spec.timeouts.llm_ms),
            trace: context.trace.clone(),
        };
        let retry = RetrySettings {
            max_retries: spec.retry.max_retries,
            base_delay: Duration::from_millis(spec.retry.base_delay_ms),
            jitter: Duration::from_millis(spec.retry.jitter_ms),
            attempt_timeout: None,
        };
        // Z-41: a text that a hook or a person has to see first is not streamed.
        let is_streamed = request.streams && spec.finalization == Finalization::Streaming;
        let pieces = is_streamed.then_some(pieces);
        let call = model.call(&asked, &retry, pieces);
        let reply = self.guarded(model.provider(), context, call).await?;
        self.checked(version, request.purpose, context, reply.answer)
            .await
    }

    /// Calls a provider unless its circuit is open.
    pub(crate) async fn guarded<T>(
        &self,
        provider: &str,
        context: &CallContext,
        call: impl Future<Output = Result<T, ProviderFailure>>,
    ) -> Result<T, CodeError> {
        let clock = || self.registry.now();
        let log = |change: tandem_nodes::CircuitChange| {
            let (agent, provider) = (&change.agent, change.provider.as_str());
            tracing::warn!(%agent, provider, to = ?change.to, "the circuit of a provider changed");
            self.circuits.note(&context.key, &change);
        };
        let breakers = &self.resources.models.breakers;
        let called = breakers.call(&context.agent, provider, &clock, &log, call);
        called.await.map_err(|failure| failure.error)
    }

    /// The engine validates JSON Schemas; a Standard Schema is validated in its realm, which may change
    /// the object.
    async fn checked(
        &self,
        version: &AgentVersion,
        purpose: ModelPurpose,
        context: &CallContext,
        mut answer: ChatAnswer,
    ) -> Result<ChatAnswer, CodeError> {
        let schema = version.spec.output_schema.as_ref();
        let is_in_realm = schema.is_some_and(AuthorSchema::is_in_realm);
        if !is_in_realm || purpose != ModelPurpose::Chat || !answer.tool_calls.is_empty() {
            return Ok(answer);
        }
        let Some(object) = answer.structured.take() else {
            return Ok(answer);
        };
        let target = Target::Schema {
            path: "/outputSchema".to_owned(),
            value: object,
        };
        let (session, timeout_ms) = (CallSession::new(context), version.spec.timeouts.hook_ms);
        let (checked, _) = self.enter(version, target, session, timeout_ms).await;
        let mut checked = checked?;
        if let Some(issues) = checked.get("issues") {
            let message = format!("the model's answer does not fit: {}", issue_texts(issues));
            return Err(error("failed", message));
        }
        answer.structured = Some(checked["value"].take());
        Ok(answer)
    }
}

/// The tools to offer: those of the agent, and flows under their names as tools (Z-112).
fn tools(spec: &AgentSpec, names: &[String]) -> Vec<ChatTool> {
    let parameters = |schema: Option<&AuthorSchema>| {
        let schema = schema.map(model_schema);
        schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} }))
    };
    let tool = |name: &String| {
        let (description, schema) = match spec.tool(name) {
            Some(tool) => (&tool.description, tool.parameters.as_ref()),
            None if let Some(builtin) = builtin_tool(name) => {
                return Some(ChatTool {
                    name: name.clone(),
                    description: builtin.description.to_owned(),
                    parameters: builtin.parameters,
                });
            }
            None => {
                let is_named = |alias: &str| alias == name.as_str();
                let mut flows = spec.flows.values();
                let flow = flows.find(|f| f.tool.as_ref().is_some_and(|t| is_named(&t.alias)))?;
                (&flow.description, flow.input_schema.as_ref())
            }
        };
        Some(ChatTool {
            name: name.clone(),
            description: description.clone().unwrap_or_default(),
            parameters: parameters(schema),
        })
    };
    names.iter().filter_map(tool).collect()
}

fn output_schema(spec: &AgentSpec, purpose: ModelPurpose) -> Option<&AuthorSchema> {
    match (purpose, &spec.flow_router) {
        (ModelPurpose::Chat, _) => spec.output_schema.as_ref(),
        (ModelPurpose::Router, Some(FlowRouter::Detector { output_schema, .. })) => {
            output_schema.as_ref()
        }
        (ModelPurpose::Router | ModelPurpose::Extract, _) => None,
    }
}

/// What a model is told of a schema. Of a Standard Schema without a JSON form it only knows that it wants
/// an object.
fn model_schema(schema: &AuthorSchema) -> Value {
    match schema.source() {
        SchemaSource::Json(schema) => schema.clone(),
        SchemaSource::Realm(marker) => {
            let described = marker.get("jsonSchema").cloned();
            described.unwrap_or_else(|| json!({ "type": "object" }))
        }
    }
}
