//! The configured models, for the runtime and for calls.

use super::open::guard;
use crate::config::{Model, ModelEndpoint, Settings};
use std::collections::BTreeMap;
use tandem_agents::OperatorModel;
use tandem_nodes::{CallLimits, ClientError, HostedProvider, ModelCaller, UrlGuard};
use tandem_runtime::{MOCK_PROVIDER, Provider, Providers};

/// The configured providers. The programmable mock is included only for tests.
pub(super) fn providers(settings: &Settings) -> Providers {
    let configured = settings.models.iter().map(|(id, model)| {
        let provider = Provider {
            default_model: model.default_model.clone(),
            programmed: false,
        };
        (id.clone(), provider)
    });
    let mock = settings.test_seams.then(|| {
        let provider = Provider {
            default_model: None,
            programmed: true,
        };
        (MOCK_PROVIDER.to_owned(), provider)
    });
    configured.chain(mock).collect()
}

/// The configured providers, for chat agents.
pub(super) fn operator_models(settings: &Settings) -> BTreeMap<String, OperatorModel> {
    let models = settings.models.iter();
    models
        .map(|(id, model)| {
            let operator = match &model.endpoint {
                ModelEndpoint::Scripted(script) => OperatorModel::Scripted(script.clone()),
                ModelEndpoint::Hosted {
                    model_api,
                    base_url,
                    key,
                    schema,
                    allow_private,
                } => OperatorModel::Hosted {
                    model_api: *model_api,
                    base_url: base_url.clone(),
                    key: key.as_ref().map(|key| key.0.clone()),
                    schema: *schema,
                    guard: guard_of(settings, *allow_private),
                    default_model: model.default_model.clone(),
                },
            };
            (id.clone(), operator)
        })
        .collect()
}

fn guard_of(settings: &Settings, allow_private: bool) -> UrlGuard {
    let guard = guard(settings);
    UrlGuard {
        allow_private: guard.allow_private || allow_private,
        ..guard
    }
}

/// The clients of the providers.
pub(super) fn models(settings: &Settings) -> Result<ModelCaller, ClientError> {
    let mut models = ModelCaller::default();
    for (id, Model { endpoint, .. }) in &settings.models {
        match endpoint {
            ModelEndpoint::Scripted(script) => models.add_scripted(id, script.clone()),
            ModelEndpoint::Hosted {
                model_api,
                base_url,
                key,
                schema,
                allow_private,
            } => {
                let hosted = HostedProvider {
                    model_api: *model_api,
                    base_url: base_url.clone(),
                    key: key.as_ref().map(|key| key.0.clone()),
                    schema: *schema,
                    guard: guard_of(settings, *allow_private),
                };
                models.add_hosted(id, hosted, CallLimits::default())?;
            }
        }
    }
    Ok(models)
}
