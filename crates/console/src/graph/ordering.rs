//! The order of nodes within a column, chosen to reduce edge crossings.
//!
//! An edge longer than one column gets a *bend* in each column it passes: a thin placeholder that
//! takes space like a node, so that the edge runs between nodes and not behind them.

use super::topology::Link;

/// With more bends than this, long edges are straight. This keeps the layout of a dense graph with
/// hundreds of nodes fast; routing would not make such a graph readable.
const BEND_BUDGET: usize = 4_000;

/// Alternating sweeps down and up. The best arrangement is kept, so more sweeps never make it
/// worse, and few graphs improve after this many.
const SWEEPS: usize = 10;

/// A position in a column.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// `None` for a bend.
    pub(super) node: Option<usize>,
    /// Neighbours in the column to the left, then to the right.
    pub(super) before: Vec<usize>,
    pub(super) after: Vec<usize>,
}

/// One connected component of the graph, arranged in columns.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) slots: Vec<Slot>,
    /// Slot indices of each column, top to bottom.
    pub(super) columns: Vec<Vec<usize>>,
    /// For each forward link, the slots it passes, including both ends.
    pub(super) routes: Vec<(Link, Vec<usize>)>,
}

/// `layer` and `links` cover the whole graph; `nodes` selects one component.
pub(super) fn arrange(nodes: &[usize], links: &[Link], layer: &[usize]) -> Columns {
    let mut columns = build(nodes, links, layer);
    reduce_crossings(&mut columns);
    columns
}

fn build(nodes: &[usize], links: &[Link], layer: &[usize]) -> Columns {
    let depth = nodes.iter().map(|&n| layer[n] + 1).max().unwrap_or(0);
    let mut built = Columns {
        columns: vec![Vec::new(); depth],
        ..Columns::default()
    };
    let mut slot_of = vec![usize::MAX; layer.len()];
    for &node in nodes {
        slot_of[node] = built.add(Some(node), layer[node]);
    }
    let forward = || links.iter().filter(|link| !link.back);
    let bends: usize = forward()
        .map(|link| layer[link.target] - layer[link.source] - 1)
        .sum();
    for &link in forward() {
        let (from, to) = (layer[link.source], layer[link.target]);
        let mut route = vec![slot_of[link.source]];
        if bends <= BEND_BUDGET {
            for column in from + 1..to {
                let bend = built.add(None, column);
                route.push(bend);
            }
        }
        route.push(slot_of[link.target]);
        // A straight long edge joins columns that are not adjacent, so it does not influence the
        // order in either.
        if route.len() == to - from + 1 {
            for pair in route.windows(2) {
                built.slots[pair[0]].after.push(pair[1]);
                built.slots[pair[1]].before.push(pair[0]);
            }
        }
        built.routes.push((link, route));
    }
    built
}

impl Columns {
    fn add(&mut self, node: Option<usize>, column: usize) -> usize {
        let slot = self.slots.len();
        self.slots.push(Slot {
            node,
            ..Slot::default()
        });
        self.columns[column].push(slot);
        slot
    }

    /// Each slot's rank within its column.
    fn ranks(&self) -> Vec<usize> {
        let mut rank = vec![0; self.slots.len()];
        for column in &self.columns {
            for (r, &slot) in column.iter().enumerate() {
                rank[slot] = r;
            }
        }
        rank
    }
}

/// Barycenter sweeps: each column in turn is sorted by the mean rank of its neighbours
/// in the column just passed.
fn reduce_crossings(columns: &mut Columns) {
    let mut best = columns.columns.clone();
    let mut fewest = crossings(columns);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let rightward = sweep % 2 == 0;
        let mut rank = columns.ranks();
        for step in 0..columns.columns.len() {
            let c = if rightward {
                step
            } else {
                columns.columns.len() - 1 - step
            };
            let slots = &columns.slots;
            let weight = |slot: usize| {
                let side = if rightward {
                    &slots[slot].before
                } else {
                    &slots[slot].after
                };
                mean(side.iter().map(|&n| rank[n] as f64)).unwrap_or(rank[slot] as f64)
            };
            let mut weighed: Vec<(f64, usize)> =
                columns.columns[c].iter().map(|&s| (weight(s), s)).collect();
            weighed.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (r, (place, &(_, slot))) in columns.columns[c].iter_mut().zip(&weighed).enumerate()
            {
                *place = slot;
                rank[slot] = r;
            }
        }
        let now = crossings(columns);
        if now < fewest {
            fewest = now;
            best.clone_from(&columns.columns);
        }
    }
    columns.columns = best;
}

/// Number of edge crossings between adjacent columns: inversions, counted with a Fenwick tree
/// because two dense columns can have very many edges.
fn crossings(columns: &Columns) -> usize {
    let rank = columns.ranks();
    let mut total = 0;
    for (c, column) in columns.columns.iter().enumerate().skip(1) {
        let mut tree = vec![0_usize; column.len() + 1];
        let mut placed = 0;
        for &left in &columns.columns[c - 1] {
            let mut ends: Vec<usize> = columns.slots[left].after.iter().map(|&s| rank[s]).collect();
            ends.sort_unstable();
            // Edges from one slot never cross each other: count all, then add all.
            for &end in &ends {
                let mut not_below = 0;
                let mut i = end + 1;
                while i > 0 {
                    not_below += tree[i];
                    i &= i - 1;
                }
                total += placed - not_below;
            }
            for &end in &ends {
                let mut i = end + 1;
                while i < tree.len() {
                    tree[i] += 1;
                    i += i & i.wrapping_neg();
                }
            }
            placed += ends.len();
        }
    }
    total
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}
