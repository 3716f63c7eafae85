//! The topology of the graph: which edges count, which of them close a loop, and which column each
//! node belongs to. Independent of pixels.

use std::collections::{HashMap, HashSet};

use super::GraphView;

/// An edge between two existing nodes, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) source: usize,
    pub(super) target: usize,
    /// Index into [`GraphView::edges`], for the label.
    pub(super) edge: usize,
    /// Closes a loop. Without these links the graph is acyclic.
    pub(super) back: bool,
}

/// Keeps the first edge between any two known nodes and marks back edges.
pub(super) fn links(view: &GraphView) -> Vec<Link> {
    let mut index: HashMap<&str, usize> = HashMap::with_capacity(view.nodes.len());
    for (i, node) in view.nodes.iter().enumerate() {
        index.entry(&node.id).or_insert(i);
    }
    let mut seen = HashSet::new();
    let mut links: Vec<Link> = view
        .edges
        .iter()
        .enumerate()
        .filter_map(|(edge, e)| {
            let source = *index.get(e.source.as_str())?;
            let target = *index.get(e.target.as_str())?;
            seen.insert((source, target)).then_some(Link {
                source,
                target,
                edge,
                back: source == target,
            })
        })
        .collect();
    mark_back_links(view.nodes.len(), &mut links);
    links
}

/// A link is a back link when depth-first search reaches it while its target is still open. Entry
/// nodes are searched first, so a loop is cut where the flow enters it.
fn mark_back_links(node_count: usize, links: &mut [Link]) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Closed,
    }
    let outgoing = outgoing(node_count, links);
    let mut entered = vec![false; node_count];
    for link in links.iter().filter(|link| !link.back) {
        entered[link.target] = true;
    }
    let entries = (0..node_count).filter(|&n| !entered[n]);
    let rest = (0..node_count).filter(|&n| entered[n]);

    let mut mark = vec![Mark::New; node_count];
    // An explicit stack, so that a long chain does not become deep recursion.
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for root in entries.chain(rest) {
        if mark[root] != Mark::New {
            continue;
        }
        mark[root] = Mark::Open;
        stack.push((root, 0));
        while let Some((node, next)) = stack.last_mut() {
            let Some(&l) = outgoing[*node].get(*next) else {
                mark[*node] = Mark::Closed;
                stack.pop();
                continue;
            };
            *next += 1;
            let target = links[l].target;
            match mark[target] {
                Mark::New => {
                    mark[target] = Mark::Open;
                    stack.push((target, 0));
                }
                Mark::Open => links[l].back = true,
                Mark::Closed => {}
            }
        }
    }
}

/// Longest-path layering over the forward links: a node is one column right of its rightmost
/// predecessor.
pub(super) fn layers(node_count: usize, links: &[Link]) -> Vec<usize> {
    let outgoing = outgoing(node_count, links);
    let mut waiting_for = vec![0_usize; node_count];
    for link in links.iter().filter(|link| !link.back) {
        waiting_for[link.target] += 1;
    }
    let mut ready: Vec<usize> = (0..node_count).filter(|&n| waiting_for[n] == 0).collect();
    let mut layer = vec![0; node_count];
    let mut visited = 0;
    while let Some(&node) = ready.get(visited) {
        visited += 1;
        for &l in outgoing[node].iter().filter(|&&l| !links[l].back) {
            let target = links[l].target;
            layer[target] = layer[target].max(layer[node] + 1);
            waiting_for[target] -= 1;
            if waiting_for[target] == 0 {
                ready.push(target);
            }
        }
    }
    debug_assert_eq!(visited, node_count, "forward links form no cycle");
    layer
}

/// Connected components, each in node order, ordered by first node.
pub(super) fn components(node_count: usize, links: &[Link]) -> Vec<Vec<usize>> {
    let mut root: Vec<usize> = (0..node_count).collect();
    for link in links {
        let (a, b) = (find(&mut root, link.source), find(&mut root, link.target));
        // The lower index becomes the root, so that the result does not depend on edge order.
        root[a.max(b)] = a.min(b);
    }
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); node_count];
    for node in 0..node_count {
        let leader = find(&mut root, node);
        parts[leader].push(node);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn find(root: &mut [usize], mut node: usize) -> usize {
    while root[node] != node {
        root[node] = root[root[node]];
        node = root[node];
    }
    node
}

fn outgoing(node_count: usize, links: &[Link]) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new(); node_count];
    for (l, link) in links.iter().enumerate() {
        out[link.source].push(l);
    }
    out
}
