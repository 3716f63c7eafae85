//! A model that needs no key and no network, for first workflows.

use crate::config::{Model, ModelEndpoint};
use tandem_nodes::Script;

/// The provider name in node settings.
pub(super) const NAME: &str = "scripted";

const SCRIPT: &str = r#"{
  "answers": [
    { "when": { "purpose": "extract" }, "structured": { "answer": "forty-two" }, "times": 0 },
    { "when": { "contains": "how much" }, "text": "Forty euro.", "times": 0 }
  ],
  "otherwise": { "text": "How can I help?" }
}"#;

pub(super) fn model() -> Model {
    let script = Script::parse_for_nodes(SCRIPT).expect("the built-in script is valid");
    Model {
        default_model: Some("script".to_owned()),
        endpoint: ModelEndpoint::Scripted(script),
    }
}

#[cfg(test)]
#[test]
fn built_in_script_parses() {
    assert!(matches!(model().endpoint, ModelEndpoint::Scripted(_)));
}
