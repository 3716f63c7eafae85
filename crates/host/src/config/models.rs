//! `[models.<id>]`: the models that nodes may call, by the operator's names.

use super::Hidden;
use crate::failure::Failure;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tandem_nodes::{ModelApi, SchemaMode, Script};
use tandem_runtime::MOCK_PROVIDER;
use url::Url;

/// Maximum number of providers.
const MAX_MODELS: usize = 64;

/// The settings as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelLayer {
    kind: Option<Kind>,
    base_url: Option<String>,
    /// The id of a secret.
    key: Option<String>,
    /// The default for nodes that name no model.
    model: Option<String>,
    /// The address may be loopback or private.
    #[serde(default)]
    allow_private: bool,
    #[serde(default)]
    schema: Schema,
    script: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    OpenAi,
    Anthropic,
    Scripted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Schema {
    #[default]
    Native,
    Text,
}

impl ModelLayer {
    /// Makes paths relative to the file.
    pub(super) fn relative_to(&mut self, base: &Path) {
        self.script = self.script.take().map(|script| base.join(script));
    }
}

/// A validated provider.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) default_model: Option<String>,
    pub(crate) endpoint: ModelEndpoint,
}

#[derive(Clone, Debug)]
pub(crate) enum ModelEndpoint {
    Hosted {
        model_api: ModelApi,
        base_url: Url,
        key: Option<Hidden>,
        schema: SchemaMode,
        allow_private: bool,
    },
    Scripted(Script),
}

pub(super) fn models(
    layers: BTreeMap<String, ModelLayer>,
    secrets: &BTreeMap<String, Hidden>,
) -> Result<BTreeMap<String, Model>, Failure> {
    if layers.len() > MAX_MODELS {
        return Err(Failure::new(
            format!("there are {} model providers", layers.len()),
            format!("A host may have {MAX_MODELS}."),
        ));
    }
    let checked = layers.into_iter().map(|(id, layer)| {
        let model = model(&id, layer, secrets)?;
        Ok((id, model))
    });
    checked.collect()
}

fn model(
    id: &str,
    layer: ModelLayer,
    secrets: &BTreeMap<String, Hidden>,
) -> Result<Model, Failure> {
    let wrong = |what: String, next: &str| Failure::new(format!("models.{id}: {what}"), next);
    let fits = id.len() <= 64
        && id.starts_with(|c: char| c.is_ascii_lowercase())
        && id
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !fits || id == MOCK_PROVIDER {
        return Err(wrong(
            "this name cannot be used".to_owned(),
            "A name has up to 64 lower-case letters, digits and hyphens and begins with a letter; \
             mock is taken.",
        ));
    }
    let model_api = match layer.kind {
        Some(Kind::OpenAi) => ModelApi::OpenAi,
        Some(Kind::Anthropic) => ModelApi::Anthropic,
        Some(Kind::Scripted) => return scripted(id, layer),
        None => {
            return Err(wrong(
                "it has no kind".to_owned(),
                "Write kind = \"openai\", \"anthropic\" or \"scripted\".",
            ));
        }
    };
    if layer.script.is_some() {
        return Err(wrong(
            "script is for the kind scripted".to_owned(),
            "Remove it, or change the kind.",
        ));
    }
    let base = layer.base_url.as_deref();
    let base = base.unwrap_or_else(|| model_api.default_base_url());
    let url = Url::parse(base).ok();
    let usable = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.host().is_some()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    };
    let Some(base_url) = url.filter(usable) else {
        return Err(wrong(
            "base_url is not an address a model can be reached at".to_owned(),
            "Write an http or https address without credentials, query or fragment.",
        ));
    };
    let key = match &layer.key {
        None => None,
        Some(secret) => Some(secrets.get(secret).cloned().ok_or_else(|| {
            wrong(
                format!("there is no secret {secret:?}"),
                "Name a secret of [secrets] as the key.",
            )
        })?),
    };
    if key.as_ref().is_some_and(|key| !is_header_text(&key.0)) {
        return Err(wrong(
            "its key cannot be sent in a header".to_owned(),
            "Give the key in printable ASCII characters, without spaces around it.",
        ));
    }
    Ok(Model {
        default_model: layer.model,
        endpoint: ModelEndpoint::Hosted {
            model_api,
            base_url,
            key,
            schema: match layer.schema {
                Schema::Native => SchemaMode::Native,
                Schema::Text => SchemaMode::Text,
            },
            allow_private: layer.allow_private,
        },
    })
}

fn is_header_text(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_graphic())
}

fn scripted(id: &str, layer: ModelLayer) -> Result<Model, Failure> {
    let wrong = |what: String, next: &str| Failure::new(format!("models.{id}: {what}"), next);
    if layer.base_url.is_some() || layer.key.is_some() {
        return Err(wrong(
            "a script is not reached over the network".to_owned(),
            "Remove base_url and key, or change the kind.",
        ));
    }
    let Some(path) = layer.script else {
        return Err(wrong(
            "it has no script".to_owned(),
            "Name a file with script = \"script.json\".",
        ));
    };
    let text = std::fs::read_to_string(&path).map_err(|error| {
        wrong(
            format!("cannot read {}: {error}", path.display()),
            "Name a readable file.",
        )
    })?;
    let script = Script::parse_for_nodes(&text).map_err(|error| {
        wrong(
            format!("{} cannot be played: {error}", path.display()),
            "Correct the script.",
        )
    })?;
    Ok(Model {
        // A script answers for any model name.
        default_model: Some(layer.model.unwrap_or_else(|| "script".to_owned())),
        endpoint: ModelEndpoint::Scripted(script),
    })
}
