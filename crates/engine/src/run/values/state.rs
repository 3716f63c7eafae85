//! Variables, channels and artifacts. Only the fold of an event changes them.

use crate::run::state::Run;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::{ArtifactView, NodeId, Object, Timestamp};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct Values {
    pub(super) variables: Object,
    pub(super) channels: BTreeMap<String, ChannelState>,
    pub(super) artifacts: Vec<Artifact>,
    /// Variables and channels that contain data from a tool server.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) untrusted: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ChannelState {
    pub(super) value: Value,
    /// The channel is shown among the variables too.
    pub(super) mirrored: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Artifact {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) node: NodeId,
    pub(super) created_at: Timestamp,
    pub(super) content: Value,
}

impl Run {
    /// The variables alone, without channels of the same names.
    pub(crate) fn variables(&self) -> &Object {
        &self.state.values.variables
    }

    /// The variables as readers see them, with the channels that are shown among them.
    pub(in crate::run) fn shown_variables(&self) -> Object {
        let values = &self.state.values;
        let mut variables = values.variables.clone();
        for (name, channel) in values.channels.iter().filter(|(_, c)| c.mirrored) {
            variables.insert(name.clone(), channel.value.clone());
        }
        variables
    }

    /// The folded value of a channel that was written.
    pub(crate) fn written_channel(&self, name: &str) -> Option<&Value> {
        self.state.values.channels.get(name).map(|c| &c.value)
    }

    /// The names of the channels that were written.
    pub(crate) fn written_channels(&self) -> impl ExactSizeIterator<Item = &String> {
        self.state.values.channels.keys()
    }

    /// Variables and channels that contain data from a tool server.
    pub(in crate::run) fn untrusted_names(&self) -> &BTreeSet<String> {
        &self.state.values.untrusted
    }

    pub fn artifact(&self, id: &str) -> Option<ArtifactView> {
        let artifacts = self.state.values.artifacts.iter();
        let found = artifacts.rev().find(|a| a.id == id)?;
        Some(ArtifactView {
            artifact_id: found.id.clone(),
            artifact_type: found.kind.clone(),
            node: found.node.clone(),
            created_at: found.created_at,
            content: found.content.clone(),
        })
    }
}
