//! From the model in an agent's configuration to a model that can be called.

use crate::agent_version::AgentVersion;
use crate::host::error;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_engine::agent::AgentModel;
use tandem_nodes::{
    CallLimits, ChatModel, ChatSettings, CircuitBreakers, HostedProvider, ModelApi, SchemaMode,
    Script, ScriptMemory, UrlGuard, read_api_key,
};
use tandem_record::conversation::{CodeError, ModelPurpose};
use url::Url;

/// Providers that an agent may name although the operator did not configure them.
const WELL_KNOWN: [(&str, ModelApi); 3] = [
    ("openai", ModelApi::OpenAi),
    ("openai-compatible", ModelApi::OpenAi),
    ("anthropic", ModelApi::Anthropic),
];

/// A provider as the operator configured it.
#[derive(Debug, Clone)]
pub enum OperatorModel {
    Scripted(Script),
    Hosted {
        model_api: ModelApi,
        base_url: Url,
        key: Option<String>,
        schema: SchemaMode,
        /// What may be called to reach it.
        guard: UrlGuard,
        default_model: Option<String>,
    },
}

/// What a host gives its agents to call models.
pub struct ModelAccess {
    /// By the name that agents use.
    pub providers: BTreeMap<String, OperatorModel>,
    /// Progress of scripted models.
    pub scripts: Arc<dyn ScriptMemory>,
    pub breakers: Arc<CircuitBreakers>,
    /// Reads an environment variable, for keys that an agent names.
    pub environment: fn(&str) -> Option<String>,
    /// For addresses that an agent gives itself.
    pub guard: UrlGuard,
    pub limits: CallLimits,
}

impl ModelAccess {
    /// The model of a version for this purpose. It is built once.
    pub(crate) fn model(
        &self,
        version: &AgentVersion,
        purpose: ModelPurpose,
    ) -> Result<Arc<ChatModel>, CodeError> {
        let (spec, scripts) = (&version.spec, &version.scripts);
        let is_extraction = purpose == ModelPurpose::Extract && spec.extraction_model.is_some();
        let (settings, script, slot) = match is_extraction {
            true => (
                &spec.extraction_model,
                &scripts.extraction,
                &version.models[1],
            ),
            false => (&spec.model, &scripts.chat, &version.models[0]),
        };
        if let Some(built) = slot.get() {
            return Ok(built.clone());
        }
        let settings = settings
            .as_ref()
            .ok_or_else(|| unusable("the agent has no model"))?;
        let model = Arc::new(self.build(settings, script.as_deref())?);
        Ok(slot.get_or_init(|| model).clone())
    }

    fn build(&self, settings: &AgentModel, script: Option<&str>) -> Result<ChatModel, CodeError> {
        match settings {
            AgentModel::Scripted { .. } => {
                let script = Script::parse(script.unwrap_or_default());
                let script = script.map_err(|why| unusable(format!("the script: {why}")))?;
                Ok(ChatModel::scripted(script, self.scripts.clone()))
            }
            AgentModel::Provider {
                provider,
                model,
                base_url,
                api_key_env,
                temperature,
                max_tokens,
            } => {
                let known = self.providers.get(provider);
                if let Some(OperatorModel::Scripted(script)) = known {
                    return Ok(ChatModel::scripted(script.clone(), self.scripts.clone()));
                }
                let (base_url, variable) = (base_url.as_deref(), api_key_env.as_deref());
                let default_model = match known {
                    Some(OperatorModel::Hosted { default_model, .. }) => default_model.clone(),
                    _ => None,
                };
                let settings = ChatSettings {
                    provider: provider.clone(),
                    hosted: self.hosted_provider(provider, base_url, variable)?,
                    model: model.clone().or(default_model).ok_or_else(|| {
                        unusable(format!("the agent names no model of {provider:?}"))
                    })?,
                    temperature: *temperature,
                    max_tokens: *max_tokens,
                };
                let model = ChatModel::hosted(settings, self.limits);
                model.map_err(|why| unusable(why.to_string()))
            }
        }
    }

    /// A provider as an agent names it, with the address and the variable of the key that it gives.
    pub(crate) fn hosted_provider(
        &self,
        provider: &str,
        base_url: Option<&str>,
        api_key_env: Option<&str>,
    ) -> Result<HostedProvider, CodeError> {
        let own = Own {
            provider,
            base_url,
            key: self.own_key(api_key_env)?,
        };
        self.hosted(self.providers.get(provider), own)
    }

    /// The key in a variable that the agent names.
    fn own_key(&self, variable: Option<&str>) -> Result<Option<String>, CodeError> {
        let key = variable.map(|name| read_api_key(name, self.environment));
        key.transpose().map_err(|why| unusable(why.to_string()))
    }

    /// The operator's key goes only to the operator's address.
    fn hosted(
        &self,
        known: Option<&OperatorModel>,
        own: Own<'_>,
    ) -> Result<HostedProvider, CodeError> {
        let own_url = own.base_url.map(Url::parse).transpose();
        let own_url = own_url.map_err(|why| unusable(format!("the model's baseUrl: {why}")))?;
        if let Some(OperatorModel::Hosted {
            model_api,
            base_url,
            key,
            schema,
            guard,
            ..
        }) = known
        {
            return Ok(match own_url {
                None => HostedProvider {
                    model_api: *model_api,
                    base_url: base_url.clone(),
                    key: own.key.or_else(|| key.clone()),
                    schema: *schema,
                    guard: guard.clone(),
                },
                Some(base_url) => HostedProvider {
                    model_api: *model_api,
                    base_url,
                    key: own.key,
                    schema: *schema,
                    guard: self.guard.clone(),
                },
            });
        }
        let well_known = WELL_KNOWN.iter().find(|(name, _)| *name == own.provider);
        let Some((_, model_api)) = well_known else {
            let message = format!("there is no model provider {:?}", own.provider);
            return Err(unusable(message));
        };
        let base_url = match own_url {
            Some(url) => url,
            None => Url::parse(model_api.default_base_url()).expect("the addresses are constants"),
        };
        Ok(HostedProvider {
            model_api: *model_api,
            base_url,
            key: own.key,
            schema: SchemaMode::default(),
            guard: self.guard.clone(),
        })
    }
}

/// What an agent says of its provider.
struct Own<'a> {
    provider: &'a str,
    base_url: Option<&'a str>,
    key: Option<String>,
}

pub(crate) fn unusable(message: impl Into<String>) -> CodeError {
    error("failed", message)
}
