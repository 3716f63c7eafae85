//! The order of nodes: which edges close a loop, what a loop repeats, and which node precedes
//! which.

use super::document::Document;
use std::collections::{BTreeSet, HashMap};
use tandem_record::NodeId;

/// Node types whose incoming back-edges are legal.
const LOOP_HEADS: [&str; 2] = ["core.loop", "core.orchestrator.supervisor"];
/// Node types whose outgoing back-edges are legal wherever they lead.
const LOOP_TAILS: [&str; 1] = ["core.dispatch"];

pub(super) struct Topology {
    /// Document indexes in execution order.
    pub(super) order: Vec<usize>,
    /// Document indexes of edges that close a loop.
    pub(super) back_edges: BTreeSet<usize>,
}

pub(super) struct Cycle {
    pub(super) nodes: Vec<NodeId>,
}

/// Requires every edge's endpoints to exist.
pub(super) fn sort(doc: &Document) -> Result<Topology, Cycle> {
    let index: HashMap<&NodeId, usize> = doc.nodes.iter().map(|n| &n.id).zip(0..).collect();
    let ends: Vec<(usize, usize)> = doc
        .edges
        .iter()
        .map(|e| (index[&e.source_node_id], index[&e.target_node_id]))
        .collect();
    let back_edges = back_edges(doc, &ends);
    let forward: Vec<(usize, usize)> = (0..ends.len())
        .filter(|e| !back_edges.contains(e))
        .map(|e| ends[e])
        .collect();

    let mut waiting = vec![0_usize; doc.nodes.len()];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); doc.nodes.len()];
    for &(source, target) in &forward {
        waiting[target] += 1;
        next[source].push(target);
    }
    // Document order breaks ties, so independent roots start as their author listed them.
    let mut ready: BTreeSet<usize> = (0..doc.nodes.len()).filter(|&n| waiting[n] == 0).collect();
    let mut order = Vec::with_capacity(doc.nodes.len());
    while let Some(node) = ready.pop_first() {
        order.push(node);
        for &target in &next[node] {
            waiting[target] -= 1;
            if waiting[target] == 0 {
                ready.insert(target);
            }
        }
    }
    if order.len() == doc.nodes.len() {
        return Ok(Topology { order, back_edges });
    }
    let nodes = (0..doc.nodes.len())
        .filter(|&n| waiting[n] > 0)
        .map(|n| doc.nodes[n].id.clone())
        .collect();
    Err(Cycle { nodes })
}

/// An edge closes a loop when it leads back to a loop head, or out of a loop tail, on the path of
/// the depth-first walk from the entry. The edge into an inner loop does not close one, although
/// the inner loop leads back to it through the outer loop.
fn back_edges(doc: &Document, ends: &[(usize, usize)]) -> BTreeSet<usize> {
    let is = |ix: usize, types: &[&str]| types.contains(&doc.nodes[ix].type_id.as_str());
    let mut entered = vec![false; doc.nodes.len()];
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); doc.nodes.len()];
    for (e, &(source, target)) in ends.iter().enumerate() {
        leaving[source].push(e);
        entered[target] = true;
    }
    // Loop heads are last, where the walk takes from: a jump into a loop's body is not its entry.
    for edges in &mut leaving {
        edges.sort_by_key(|&e| (is(ends[e].1, &LOOP_HEADS), std::cmp::Reverse(e)));
    }
    // Nodes without incoming edges; then, for cycles without an entry, their loop heads.
    let mut starts: Vec<usize> = (0..doc.nodes.len()).collect();
    starts.sort_by_key(|&n| (entered[n], !is(n, &LOOP_HEADS), n));

    let mut found = BTreeSet::new();
    let mut visited = vec![false; doc.nodes.len()];
    let mut on_path = vec![false; doc.nodes.len()];
    for start in starts {
        if visited[start] {
            continue;
        }
        visited[start] = true;
        on_path[start] = true;
        let mut path = vec![(start, leaving[start].clone())];
        while let Some((node, rest)) = path.last_mut() {
            let (node, Some(e)) = (*node, rest.pop()) else {
                on_path[*node] = false;
                path.pop();
                continue;
            };
            let target = ends[e].1;
            if on_path[target] && (is(target, &LOOP_HEADS) || is(node, &LOOP_TAILS)) {
                found.insert(e);
            } else if !visited[target] {
                visited[target] = true;
                on_path[target] = true;
                path.push((target, leaving[target].clone()));
            }
        }
    }
    found
}

/// Everything reachable from a node, including itself, without crossing `without`.
pub(super) fn reach(
    count: usize,
    ends: &[(usize, usize)],
    without: &BTreeSet<usize>,
    from: usize,
) -> BTreeSet<usize> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (e, &(source, target)) in ends.iter().enumerate() {
        if !without.contains(&e) {
            next[source].push(target);
        }
    }
    let mut visited = BTreeSet::from([from]);
    let mut stack = vec![from];
    while let Some(node) = stack.pop() {
        for &target in &next[node] {
            if visited.insert(target) {
                stack.push(target);
            }
        }
    }
    visited
}
