//! Memory entries that a run leaves for other runs, and the position from which a run reads.

use crate::{Object, RunId, Seq, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One entry as it was written. It never changes: a later write of the same key is another entry
/// that hides this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryEntry {
    /// Assigned by the host; never changes, also not in replays.
    pub id: String,
    /// The namespace inside the run's scope.
    pub memory_ref: String,
    /// The author's name for it; equal to `id` when there is none.
    pub key: String,
    pub value: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub written_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Written from a value marked as sensitive: runs read it, readers of the memory do not see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
}

impl MemoryEntry {
    /// The text of an entry's value, in which its size is measured.
    pub fn text_of(value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The value as a reader outside of runs may see it.
    pub fn visible_value(&self) -> Cow<'_, Value> {
        match self.sensitive {
            true => Cow::Owned(Value::from("[REDACTED]")),
            false => Cow::Borrowed(&self.value),
        }
    }

    /// The text of its value, which is not copied where it is one.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.value {
            Value::String(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.to_string()),
        }
    }

    /// Written without a name of the author's: found by listing, or by its id.
    pub fn is_note(&self) -> bool {
        self.key == self.id
    }

    /// Whether it has expired at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// From where a run reads memory; fixed when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryOrigin {
    /// The scope inside the tenant. For a run of a workspace, a scope of that workspace.
    pub scope: String,
    /// Position of the journal when the run, or the root of its run tree, began.
    pub start: u64,
    /// What another run saw at one of its events, on top of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<MemoryBase>,
}

impl MemoryOrigin {
    /// The scope of runs without a workspace that name none.
    pub const SHARED: &'static str = "tenant";

    /// The scope a run reads and writes: that of its workspace if it has one, and inside it the one
    /// its caller named, if any. All these scopes differ, and a caller cannot name a scope that the
    /// host made.
    pub fn scope_of(workspace: Option<&WorkspaceId>, named: Option<&str>) -> String {
        match (workspace, named) {
            (None, None) => Self::SHARED.to_owned(),
            (None, Some(named)) => format!("scope:{named}"),
            (Some(workspace), None) => in_workspace(workspace),
            (Some(workspace), Some(named)) => {
                format!("{}/scope:{named}", in_workspace(workspace))
            }
        }
    }

    /// A scope that begins empty and belongs to one run.
    pub fn isolated(run: &RunId) -> String {
        format!("run:{run}")
    }

    /// Logs from before workspaces were isolated name a scope of the tenant; it is read as the
    /// scope of the same name in the run's workspace.
    #[must_use]
    pub fn scoped_to_workspace(mut self, workspace: Option<&WorkspaceId>) -> Self {
        if workspace.is_some() {
            if self.scope == Self::SHARED {
                self.scope = Self::scope_of(workspace, None);
            } else if let Some(named) = self.scope.strip_prefix("scope:") {
                self.scope = Self::scope_of(workspace, Some(named));
            }
        }
        self
    }
}

/// The name is escaped, so that a workspace name cannot equal a scope in another workspace.
fn in_workspace(workspace: &WorkspaceId) -> String {
    let name = workspace.as_str().replace('%', "%25").replace('/', "%2F");
    format!("workspace:{name}")
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBase {
    pub run: RunId,
    /// What that run saw before this event of its own.
    pub below: Seq,
    /// The reader is a fork of that run; otherwise it is a child of it.
    pub fork: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForkMode {
    /// Uses the recorded results; performs no effects.
    Replay,
    /// Continues for real, from the fork point on.
    Branch,
}

impl ForkMode {
    pub const ALL: [Self; 2] = [Self::Replay, Self::Branch];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Branch => "branch",
        }
    }
}

/// The source of a fork. It is not the fork's parent: a fork is not a child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    pub run_id: RunId,
    /// Events below it are the source's, copied.
    pub from_seq: Seq,
    pub mode: ForkMode,
    /// When the fork was made; its events may have the source's times.
    pub at: Timestamp,
    /// Of a replay: when the time of its source began, if that was not with its first event because it is a
    /// branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_began_at: Option<Timestamp>,
    /// What flows of conversations gave in the source, by node and execution: a fork starts none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flow_results: BTreeMap<String, Object>,
}

impl ForkedFrom {
    /// When the time of the run began. `None` if that was with its first event.
    pub fn began_at(&self) -> Option<Timestamp> {
        match self.mode {
            ForkMode::Branch => Some(self.at),
            ForkMode::Replay => self.source_began_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_partitions_share_a_scope() {
        let workspaces = [None, Some("a"), Some("a/scope:b"), Some("a%2Fscope:b")];
        let names = [None, Some("b"), Some("tenant"), Some("workspace:a")];
        let mut scopes = HashSet::new();
        for workspace in workspaces.map(|name| name.map(WorkspaceId::new)) {
            for name in names {
                let scope = MemoryOrigin::scope_of(workspace.as_ref(), name);
                assert!(scopes.insert(scope.clone()), "{scope} is used twice");
                let origin = MemoryOrigin {
                    scope: MemoryOrigin::scope_of(None, name),
                    start: 0,
                    base: None,
                };
                let inside = origin.scoped_to_workspace(workspace.as_ref());
                assert_eq!(inside.scope, scope, "an old log is read the same way");
                let again = inside.clone().scoped_to_workspace(workspace.as_ref());
                assert_eq!(again, inside, "once and for all");
            }
        }
    }
}
