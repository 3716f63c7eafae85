//! The configured models, as the runtime knows them and as they are called.

use super::open::guard;
use crate::config::{Model, Reached, Settings};
use tandem_nodes::{ClientError, Guard, Hosted, Limits, Models};
use tandem_runtime::{MOCK_PROVIDER, Provider, Providers};

/// Who may be asked. The one that answers by program is there only for tests.
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

/// How they are called.
pub(super) fn models(settings: &Settings) -> Result<Models, ClientError> {
    let mut models = Models::default();
    for (id, Model { reached, .. }) in &settings.models {
        match reached {
            Reached::Scripted(script) => models.add_scripted(id, script.clone()),
            Reached::Hosted {
                speaks,
                base_url,
                key,
                schema,
                allow_private,
            } => {
                let guard = guard(settings);
                let hosted = Hosted {
                    speaks: *speaks,
                    base_url: base_url.clone(),
                    key: key.as_ref().map(|key| key.0.clone()),
                    schema: *schema,
                    guard: Guard {
                        allow_private: guard.allow_private || *allow_private,
                        ..guard
                    },
                };
                models.add_hosted(id, hosted, Limits::default())?;
            }
        }
    }
    Ok(models)
}
