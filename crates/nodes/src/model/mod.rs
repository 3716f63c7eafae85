//! Language models under the names an operator gave them. One call is attempted once, and its
//! result has one shape, whatever the provider's API. The address and the key of a provider stay
//! here: neither is part of any answer or error.

pub(crate) mod anthropic;
pub(crate) mod connection;
pub(crate) mod failure;
mod hosted;
mod mock;
pub(crate) mod openai;
mod sample;
pub(crate) mod schema;
mod script;
mod scripted;

pub use connection::{HostedProvider, ModelApi};
pub use mock::{MAX_PROGRAM, MockEntry, MockProgram, unprogrammed_answer};
pub use schema::SchemaMode;
pub use script::{
    Script, ScriptChoice, ScriptError, ScriptProgress, ScriptedAnswer, ScriptedCall,
    ScriptedToolCall,
};

use crate::client::ClientError;
use crate::http::CallLimits;
use hosted::HostedModel;
use scripted::ScriptedModel;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tandem_record::{
    EffectId, EffectOutcome, ErrorInfo, ModelAnswer, ModelRequest, ModelUsage, TraceContext,
};

/// The models of a host, by provider.
#[derive(Default)]
pub struct ModelCaller(BTreeMap<String, Provider>);

enum Provider {
    Hosted(HostedModel),
    Scripted(ScriptedModel),
}

impl ModelCaller {
    /// Adds a provider reached over the network.
    pub fn add_hosted(
        &mut self,
        id: &str,
        hosted: HostedProvider,
        limits: CallLimits,
    ) -> Result<(), ClientError> {
        let model = HostedModel::new(id, hosted, limits)?;
        self.0.insert(id.to_owned(), Provider::Hosted(model));
        Ok(())
    }

    /// Adds a provider that answers from a script.
    pub fn add_scripted(&mut self, id: &str, script: Script) {
        let model = ScriptedModel::new(script);
        self.0.insert(id.to_owned(), Provider::Scripted(model));
    }

    /// Attempts a call once.
    pub(crate) async fn call(
        &self,
        request: &ModelRequest,
        timeout: Duration,
        effect: &EffectId,
        trace: Option<&TraceContext>,
    ) -> EffectOutcome {
        let answered = match self.0.get(&request.provider) {
            Some(Provider::Hosted(model)) => model.call(request, timeout, effect, trace).await,
            Some(Provider::Scripted(model)) => model.call(request, effect).await,
            None => Err(ErrorInfo::new(
                "provider_not_supported",
                format!(
                    "The model provider `{}` is not configured on this host.",
                    request.provider
                ),
            )),
        };
        match answered {
            Ok(answer) => outcome_of_answer(&answer),
            Err(error) => {
                tracing::debug!(%effect, provider = request.provider, code = error.code, "no answer");
                EffectOutcome::Failed { error }
            }
        }
    }
}

/// An answer as the outcome of its effect.
pub fn outcome_of_answer(answer: &ModelAnswer) -> EffectOutcome {
    match serde_json::to_value(answer) {
        Ok(Value::Object(outputs)) => EffectOutcome::Done { outputs },
        other => unreachable!("an answer is an object, not {other:?}"),
    }
}

/// Counts words as tokens where the provider does not count.
pub(crate) fn count_usage<'a>(input: impl Iterator<Item = &'a str>, output: &str) -> ModelUsage {
    let words = |text: &str| text.split_whitespace().count() as u64;
    ModelUsage {
        input_tokens: input.map(words).sum(),
        output_tokens: words(output),
        cache_read_tokens: None,
        cache_write_tokens: None,
    }
}

/// The texts a model is given.
fn inputs(request: &ModelRequest) -> impl Iterator<Item = &str> {
    request.messages.iter().map(|m| m.content.as_str())
}
