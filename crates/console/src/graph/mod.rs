//! A workflow graph drawn as SVG, left to right.
//!
//! Owns all steps from nodes and edges to coordinates: which edges point backwards and which column
//! a node belongs to ([`topology`]), the order within a column ([`ordering`]), the coordinates
//! ([`placement`]), and the markup ([`drawing`]).
//!
//! Invariants:
//! - Total: any graph is drawn. Edges to unknown nodes and repeated edges are dropped, cycles
//!   become loops, separate components are stacked.
//! - Deterministic: ties are broken by the order of nodes and edges in the input.
//! - Bounded: the numbers of sweeps and bends are limited, so time grows with size only.
//! - Nodes never overlap, and every edge that is not part of a loop points right.

mod drawing;
mod fit_text;
mod glyph;
mod ordering;
mod placement;
mod topology;

#[cfg(test)]
mod tests;

pub(crate) use drawing::svg;

#[derive(Debug, Clone, Default)]
pub struct GraphView {
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

#[derive(Debug, Clone, Default)]
pub struct GraphNode {
    pub id: String,
    pub name: String,
    pub type_id: String,
    pub state: NodeState,
}

#[derive(Debug, Clone, Default)]
pub struct GraphEdge {
    pub source: String,
    pub target: String,
    pub label: Option<String>,
    pub conditional: bool,
}

/// The state of a node within one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeState {
    /// Not part of a run: a node of a workflow definition.
    #[default]
    Defined,
    Pending,
    Running,
    Completed,
    Failed,
    Suspended,
    Skipped,
    Cancelled,
}

impl NodeState {
    /// In reading order: active, failed, then the rest.
    pub(crate) const ALL: [Self; 8] = [
        Self::Running,
        Self::Suspended,
        Self::Failed,
        Self::Completed,
        Self::Pending,
        Self::Skipped,
        Self::Cancelled,
        Self::Defined,
    ];

    /// The word shown to the reader and used in the `state-…` class.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Defined => "defined",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Suspended => "suspended",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the run has reached this node.
    fn is_reached(self) -> bool {
        match self {
            Self::Defined | Self::Pending | Self::Skipped => false,
            Self::Running | Self::Completed | Self::Failed | Self::Suspended | Self::Cancelled => {
                true
            }
        }
    }
}

/// The graph as a self-contained `<svg>` element, coloured by CSS classes only.
pub fn workflow_svg(view: &GraphView) -> String {
    svg(view).into_string()
}
