//! The providers an operator configured, as far as decisions depend on them. How they are reached
//! is not known here.

use crate::definition::{Definition, Problem};
use crate::node::Kind;
use std::collections::BTreeMap;
use tandem_record::RunOptions;

/// The providers of a host, by the operator's names.
#[derive(Clone, Debug, Default)]
pub struct Providers(BTreeMap<String, Provider>);

#[derive(Clone, Debug, Default)]
pub struct Provider {
    /// The model of nodes that name none.
    pub default_model: Option<String>,
    /// Answers follow a program and not the request, so a replay calls it again and compares.
    pub programmed: bool,
}

impl Providers {
    pub(crate) fn get(&self, id: &str) -> Option<&Provider> {
        self.0.get(id)
    }

    /// Whether its answers follow a program and not the request.
    pub fn is_programmed(&self, id: &str) -> bool {
        self.get(id).is_some_and(|provider| provider.programmed)
    }

    /// The providers that are advertised to clients, in order.
    pub fn advertised(&self) -> impl Iterator<Item = &str> {
        let real = self.0.iter().filter(|(_, provider)| !provider.programmed);
        real.map(|(id, _)| id.as_str())
    }

    /// Whether no node can call a model on this host.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Requirements of a document that this host cannot meet.
    pub fn check(&self, definition: &Definition) -> Vec<Problem> {
        let nodes = definition.nodes.iter();
        nodes
            .filter_map(|node| {
                let Kind::Model(config) = &node.kind else {
                    return None;
                };
                let provider = config.provider.as_ref()?;
                let (key, message) = match self.get(provider) {
                    None => ("provider", self.unknown(provider)),
                    Some(known) if config.model.is_none() && known.default_model.is_none() => {
                        let message =
                            format!("is required: the provider {provider:?} has no default model");
                        ("model", message)
                    }
                    Some(_) => return None,
                };
                let path = format!("/nodes/{}/config/{key}", node.doc);
                let mut problem = Problem::new(path, message);
                problem.node = Some(node.id.clone());
                Some(problem)
            })
            .collect()
    }

    /// Requirements of a run's options that this host cannot meet.
    pub(crate) fn check_options(&self, options: &RunOptions) -> Option<Problem> {
        let configurable = options.configurable.as_ref()?;
        let wanted = configurable.get("ai.provider")?.as_str()?;
        let known = self.advertised().any(|id| id == wanted);
        let path = "/configurable/ai.provider";
        (!known).then(|| Problem::new(path, self.unknown(wanted)))
    }

    pub(crate) fn unknown(&self, id: &str) -> String {
        let known: Vec<&str> = self.advertised().collect();
        if known.is_empty() {
            return format!("{id:?} is not a model provider of this host; it has none");
        }
        format!(
            "{id:?} is not a model provider of this host; it has {}",
            known.join(", ")
        )
    }
}

impl FromIterator<(String, Provider)> for Providers {
    fn from_iter<T: IntoIterator<Item = (String, Provider)>>(providers: T) -> Self {
        Self(providers.into_iter().collect())
    }
}
