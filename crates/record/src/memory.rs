//! What a run leaves behind for others: entries of a memory scope, and from where a run reads.

use crate::{RunId, Seq, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// One entry as it was written. Never changed afterwards: a later write of the same key is another
/// entry that hides this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryEntry {
    /// Given by the host; stays with the write for ever, in replays too.
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
    /// The text of an entry's value; what its size is counted in.
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

    /// Written without a name of the author's: found by listing, or by its id.
    pub fn is_note(&self) -> bool {
        self.key == self.id
    }

    /// Whether nobody may see it any more at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// From where a run reads memory; fixed when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryOrigin {
    /// The scope inside the tenant; of a workspace's run, one of that workspace.
    pub scope: String,
    /// Position of the journal when the run, or the run at the head of its family, began.
    pub start: u64,
    /// What another run saw at one of its events, on top of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<MemoryBase>,
}

impl MemoryOrigin {
    /// The scope of runs of no workspace that name none.
    pub const SHARED: &'static str = "tenant";

    /// The scope a run reads and writes: of its workspace if it has one, and inside it the one its
    /// caller named, if any. No two of these are the same text, and a scope named by a caller can
    /// never be one the host made.
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

    /// Logs older than the isolation of workspaces name a scope of the tenant; it is read as the
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

/// The name is escaped, so that no workspace can be named like a scope in another.
fn in_workspace(workspace: &WorkspaceId) -> String {
    let name = workspace.as_str().replace('%', "%25").replace('/', "%2F");
    format!("workspace:{name}")
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBase {
    pub run: RunId,
    /// What that run saw before this event of its own.
    pub below: Seq,
    /// The reader is a fork and goes on as that run; otherwise it is a child of it.
    pub fork: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForkMode {
    /// With what was recorded; nothing acts.
    Replay,
    /// For real, from the fork point on.
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

/// Where a fork comes from. Not its parent: a fork is nobody's child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    pub run_id: RunId,
    /// Events below it are the source's, copied.
    pub from_seq: Seq,
    pub mode: ForkMode,
    /// When the fork was made; its events may be told in the source's time.
    pub at: Timestamp,
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
