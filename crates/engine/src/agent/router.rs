//! How a flow is chosen for a message when none is active.

use crate::flow::AuthorSchema;
use crate::object_reader::ObjectReader;
use serde::{Deserialize, Serialize};
use tandem_schema::Budget;

#[derive(Debug)]
pub enum FlowRouter {
    /// One model call chooses.
    Detector {
        prompt: String,
        output_schema: Option<AuthorSchema>,
        min_confidence: Option<f64>,
        fallback: RouterFallback,
    },
    /// A field of the agent's own structured output chooses.
    SchemaFlow {
        field: String,
        fallback: RouterFallback,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouterFallback {
    #[default]
    Classic,
    Flow(String),
}

impl FlowRouter {
    pub fn fallback(&self) -> &RouterFallback {
        match self {
            Self::Detector { fallback, .. } | Self::SchemaFlow { fallback, .. } => fallback,
        }
    }
}

pub(super) fn router(config: &ObjectReader<'_>, budget: &mut Budget) -> Option<FlowRouter> {
    let router = config.object("flowRouter")?;
    let modes = [("detector", true), ("schema_flow", false)];
    if router.get("mode").is_none() {
        router.report("mode", "is required");
    }
    let detects = router.choice("mode", &modes)?;
    let fallback = match router.text("fallback") {
        None => RouterFallback::Classic,
        Some(name) if name == "classic" => RouterFallback::Classic,
        Some(flow_id) => RouterFallback::Flow(flow_id),
    };
    Some(if detects {
        let schema = router.schema("outputSchema", budget);
        FlowRouter::Detector {
            prompt: router.required_text("prompt"),
            output_schema: schema.map(|(source, compiled)| AuthorSchema::new(source, compiled)),
            min_confidence: router.number("minConfidence", 0.0..=1.0),
            fallback,
        }
    } else {
        FlowRouter::SchemaFlow {
            field: router.required_text("field"),
            fallback,
        }
    })
}
