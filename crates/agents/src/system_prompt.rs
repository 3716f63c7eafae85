//! The system prompt of a chat call: template or function, and what the settings of agent and user add.

use crate::agent_version::AgentVersion;
use crate::code_call::state;
use crate::host::{FolderAgents, error};
use serde_json::Value;
use tandem_engine::agent::{ModalityPolicy, Prompt};
use tandem_engine::session::Language;
use tandem_record::conversation::{CodeCall, CodeError};
use tandem_runtime::conversation::CallContext;

const SPOKEN: &str =
    "Your reply is read aloud: write short plain sentences without lists, markup or links.";
const CHOOSE_MODALITY: &str =
    "Set `modality` to `voice` or `text`, as the user asked for it or as it suits the reply.";
const SHORT: &str = "The user prefers short replies: answer in one or two sentences.";
const LONG: &str = "The user prefers detailed replies.";

impl FolderAgents {
    /// What prompt functions write to the session is dropped: a model call records its answer only.
    pub(crate) async fn system_prompt(
        &self,
        version: &AgentVersion,
        context: &CallContext,
    ) -> Result<String, CodeError> {
        let prompt = match &version.spec.prompt {
            Prompt::Template(template) => {
                let variables = self.variables(version, context).await?;
                let rendered = template.render(&variables);
                rendered.map_err(|why| error("failed", format!("the prompt: {why}")))?
            }
            Prompt::Function => match self.call_for_prompt(version, "prompt", context).await? {
                Value::String(prompt) if !prompt.trim().is_empty() => prompt,
                _ => return Err(error("failed", "the function `prompt` returned no text")),
            },
        };
        let parts = std::iter::once(prompt).chain(instructions(version, context));
        Ok(parts.collect::<Vec<_>>().join("\n\n"))
    }

    /// `user`, `session`, `state` and what else the session tells, then what `context` returned.
    async fn variables(
        &self,
        version: &AgentVersion,
        context: &CallContext,
    ) -> Result<Value, CodeError> {
        let mut variables = context.data.clone();
        variables.insert("state".to_owned(), state(context));
        if version.spec.has_context {
            match self.call_for_prompt(version, "context", context).await? {
                Value::Object(added) => variables.extend(added),
                Value::Null => {}
                _ => return Err(error("failed", "the function `context` returned no object")),
            }
        }
        Ok(Value::Object(variables))
    }

    async fn call_for_prompt(
        &self,
        version: &AgentVersion,
        function: &str,
        context: &CallContext,
    ) -> Result<Value, CodeError> {
        let call = CodeCall {
            path: function.to_owned(),
            args: Vec::new(),
            timeout_ms: version.spec.timeouts.hook_ms,
        };
        let outcome = self.call_function(version, &call, context).await;
        match outcome.error {
            Some(why) => Err(error(&why.code, format!("`{function}`: {}", why.message))),
            None => Ok(outcome.value.unwrap_or_default()),
        }
    }
}

/// Z-36: language, length and modality.
fn instructions(version: &AgentVersion, context: &CallContext) -> Vec<String> {
    let spec = &version.spec;
    let mut instructions = Vec::new();
    // An agent that says nothing about its language gets no instruction.
    if version.config.get("language").is_some() {
        instructions.push(format!("Reply in {}.", language_name(spec.language)));
    }
    let preferences = context.data.get("user").map(|user| &user["preferences"]);
    let preference = |name: &str| preferences.and_then(|all| all.get(name)?.as_str());
    match preference("preferredReplyLength") {
        Some("short") => instructions.push(SHORT.to_owned()),
        Some("long") => instructions.push(LONG.to_owned()),
        _ => {}
    }
    match (spec.modality, preference("preferredReplyFormat")) {
        (ModalityPolicy::Voice, _) | (ModalityPolicy::Auto, Some("voice")) => {
            instructions.push(SPOKEN.to_owned());
        }
        (ModalityPolicy::Auto, Some("dynamic")) if spec.output_schema.is_some() => {
            instructions.push(CHOOSE_MODALITY.to_owned());
        }
        _ => {}
    }
    instructions
}

fn language_name(language: Language) -> &'static str {
    match language {
        Language::Auto => "the language of the user's message",
        Language::De => "German",
        Language::En => "English",
        Language::Es => "Spanish",
        Language::Fr => "French",
        Language::Hi => "Hindi",
        Language::Id => "Indonesian",
        Language::It => "Italian",
        Language::Ja => "Japanese",
        Language::Ko => "Korean",
        Language::Nl => "Dutch",
        Language::Pl => "Polish",
        Language::Pt => "Portuguese",
        Language::Ru => "Russian",
        Language::Uk => "Ukrainian",
        Language::Vi => "Vietnamese",
        Language::Zh => "Chinese",
    }
}
