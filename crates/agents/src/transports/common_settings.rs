//! Settings that every kind of transport has, beside its own.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tandem_nodes::read_api_key;
use tandem_record::conversation::CandidateOrigin;
use tandem_record::{Owner, TenantId, WorkspaceId};
use url::Url;

const KEYS: [&str; 7] = [
    "delivery",
    "replyWindowSeconds",
    "templates",
    "messagesPerSecond",
    "timeoutMs",
    "tenant",
    "workspace",
];
const DEFAULT_TIMEOUT_MS: u64 = 10_000;
const LONGEST_TIMEOUT_MS: u64 = 30_000;
const LONGEST_WINDOW_SECONDS: u64 = 366 * 24 * 60 * 60;
const MOST_PER_SECOND: u32 = 1_000;
/// The template for texts whose purpose has none of its own.
const ANY: &str = "any";
const ORIGINS: [CandidateOrigin; 11] = [
    CandidateOrigin::Classic,
    CandidateOrigin::Say,
    CandidateOrigin::Ask,
    CandidateOrigin::Confirm,
    CandidateOrigin::TimeoutText,
    CandidateOrigin::Ack,
    CandidateOrigin::Draft,
    CandidateOrigin::Command,
    CandidateOrigin::Side,
    CandidateOrigin::Fallback,
    CandidateOrigin::Human,
];
const MAX_TEMPLATE_CHARS: usize = 512;
const MAX_PARAMETERS: usize = 20;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CommonSettings {
    #[serde(default)]
    pub(super) delivery: Delivery,
    /// How long after a user's message they may be written to.
    pub(super) reply_window_seconds: Option<u64>,
    /// What is sent when that time is over, by the purpose of the text.
    #[serde(default)]
    pub(super) templates: BTreeMap<String, MessageTemplate>,
    pub(super) messages_per_second: Option<u32>,
    timeout_ms: Option<u64>,
    tenant: Option<String>,
    workspace: Option<String>,
}

/// How often a message may be sent whose first attempt has an unknown end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Delivery {
    #[default]
    AtLeastOnce,
    AtMostOnce,
}

/// A text that the network knows by its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageTemplate {
    pub(super) name: String,
    #[serde(default = "english")]
    pub(super) language: String,
    /// `{{text}}` in one stands for the text that cannot be sent.
    #[serde(default)]
    parameters: Vec<String>,
}

fn english() -> String {
    "en".to_owned()
}

impl MessageTemplate {
    /// The parameters for a text, each on one line.
    pub(super) fn parameters(&self, text: &str) -> Vec<String> {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let filled = self.parameters.iter().map(|parameter| {
            let filled = parameter.replace("{{text}}", &line);
            filled.chars().take(MAX_TEMPLATE_CHARS).collect()
        });
        filled.collect()
    }

    fn check(&self) -> Result<(), String> {
        let is_short = |text: &String| {
            (1..=MAX_TEMPLATE_CHARS).contains(&text.chars().count())
                && !text.chars().any(char::is_control)
        };
        let fits = is_short(&self.name)
            && is_short(&self.language)
            && self.parameters.len() <= MAX_PARAMETERS
            && self.parameters.iter().all(is_short);
        match fits {
            true => Ok(()),
            false => Err(format!(
                "has a template that is empty, on several lines, or longer than {MAX_TEMPLATE_CHARS} characters"
            )),
        }
    }
}

impl CommonSettings {
    /// Takes them out of the settings of a transport; the rest is for its kind.
    pub(super) fn split(settings: &Value) -> Result<(Self, Value), String> {
        let Value::Object(given) = settings else {
            return Err("must be an object".to_owned());
        };
        let (common, own): (Map<_, _>, Map<_, _>) = given
            .clone()
            .into_iter()
            .partition(|(key, _)| KEYS.contains(&key.as_str()));
        let common: Self =
            serde_json::from_value(Value::Object(common)).map_err(|error| error.to_string())?;
        common.check()?;
        Ok((common, Value::Object(own)))
    }

    fn check(&self) -> Result<(), String> {
        let out_of_range =
            |name: &str, longest: u64| format!("has a {name} that is not 1 to {longest}");
        if !(1..=LONGEST_TIMEOUT_MS).contains(&self.timeout_ms()) {
            return Err(out_of_range("timeoutMs", LONGEST_TIMEOUT_MS));
        }
        let window = self.reply_window_seconds;
        if window.is_some_and(|seconds| !(1..=LONGEST_WINDOW_SECONDS).contains(&seconds)) {
            return Err(out_of_range("replyWindowSeconds", LONGEST_WINDOW_SECONDS));
        }
        let rate = self.messages_per_second;
        if rate.is_some_and(|rate| !(1..=MOST_PER_SECOND).contains(&rate)) {
            return Err(out_of_range("messagesPerSecond", MOST_PER_SECOND.into()));
        }
        for (purpose, template) in &self.templates {
            let is_known = ORIGINS.iter().any(|origin| origin.as_str() == purpose);
            if !is_known && purpose != ANY {
                let known = ORIGINS.map(CandidateOrigin::as_str).join(", ");
                return Err(format!(
                    "has templates for the unknown purpose {purpose:?}; known are {known} and {ANY}"
                ));
            }
            template.check()?;
        }
        Ok(())
    }

    /// The template that stands in for a text.
    pub(super) fn template(&self, origin: Option<CandidateOrigin>) -> Option<&MessageTemplate> {
        let own = origin.and_then(|origin| self.templates.get(origin.as_str()));
        own.or_else(|| self.templates.get(ANY))
    }

    pub(super) fn timeout_ms(&self) -> u64 {
        self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)
    }

    /// Whose conversations these are.
    pub(super) fn owner(&self) -> Owner {
        Owner {
            tenant: TenantId::new(self.tenant.as_deref().unwrap_or("default")),
            workspace: self.workspace.as_ref().map(WorkspaceId::new),
            principal: None,
        }
    }
}

/// A secret by the name of the environment variable that has it: files hold none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretVariable {
    env: String,
}

impl SecretVariable {
    pub(super) fn named(env: &str) -> Self {
        Self {
            env: env.to_owned(),
        }
    }

    /// Fails while it is missing or too short to keep anybody out.
    pub(super) fn read(
        &self,
        environment: fn(&str) -> Option<String>,
        min_chars: usize,
    ) -> Result<String, String> {
        let name = &self.env;
        let secret = read_api_key(name, environment).map_err(|why| why.to_string())?;
        if secret.chars().count() < min_chars {
            return Err(format!("{name} has fewer than {min_chars} characters"));
        }
        if secret.chars().any(char::is_control) {
            return Err(format!("{name} has a character that is no text"));
        }
        Ok(secret)
    }
}

/// Whether a setting is an address that can be called at all. What may be called is decided at each call.
pub(super) fn check_url(name: &str, text: &str) -> Result<(), String> {
    let url = Url::parse(text).ok();
    let usable = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.host().is_some()
            && url.username().is_empty()
            && url.password().is_none()
    };
    match url.as_ref().is_some_and(usable) {
        true => Ok(()),
        false => Err(format!(
            "has {} {name} that is no http or https address without credentials",
            if name.starts_with('a') { "an" } else { "a" }
        )),
    }
}

/// Reads the own settings of a kind.
pub(super) fn read_own<T: serde::de::DeserializeOwned>(settings: &Value) -> Result<T, String> {
    serde_json::from_value(settings.clone()).map_err(|error| error.to_string())
}
