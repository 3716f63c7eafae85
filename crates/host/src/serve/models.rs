//! The configured models, for the runtime and for calls.

use super::open::guard;
use crate::config::{Model, ModelEndpoint, Settings};
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
                let guard = guard(settings);
                let hosted = HostedProvider {
                    model_api: *model_api,
                    base_url: base_url.clone(),
                    key: key.as_ref().map(|key| key.0.clone()),
                    schema: *schema,
                    guard: UrlGuard {
                        allow_private: guard.allow_private || *allow_private,
                        ..guard
                    },
                };
                models.add_hosted(id, hosted, CallLimits::default())?;
            }
        }
    }
    Ok(models)
}
