//! From columns to coordinates, in whole CSS pixels.
//!
//! Within a column each slot should be level with its neighbours. The closest arrangement that
//! keeps order and spacing is a least-squares fit, computed exactly by pooling (see [`settle`]).
//! Components are stacked; nodes without edges form a grid.

use super::GraphView;
use super::fit_text::{LABEL, width_px};
use super::ordering::{Columns, arrange, mean};
use super::topology::{self, Link};

pub(super) const NODE_W: f64 = 196.0;
pub(super) const NODE_H: f64 = 52.0;
const MARGIN: f64 = 28.0;
const ROW_GAP: f64 = 22.0;
const BEND_H: f64 = 4.0;
const BEND_GAP: f64 = 14.0;
const COLUMN_GAP: f64 = 60.0;
/// A gap grows with its labels up to this width; longer labels are cut.
pub(super) const LABEL_MAX_PX: f64 = 120.0;
const LABEL_PAD: f64 = 36.0;
const LANE_GAP: f64 = 18.0;
/// With more loops than this, lanes are shared, so that loops cannot enlarge a drawing without
/// limit.
const LANES: usize = 12;
const PART_GAP: f64 = 36.0;
const GRID_COLUMNS: usize = 4;
const SETTLE_SWEEPS: usize = 8;

/// A finished layout: the position of each node and the route of each edge.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Top-left corner of each node, by node index.
    pub(super) corners: Vec<(f64, f64)>,
    pub(super) routes: Vec<(Link, Route)>,
}

#[derive(Debug, Clone)]
pub(super) enum Route {
    /// Runs to the right through these points; it is horizontal between the two ends of a bend.
    Forward(Vec<(f64, f64)>),
    /// Leaves to the right, returns along `lane_y` below the component, enters from the left.
    /// `reach` is its distance from the two nodes.
    Back { lane_y: f64, reach: f64 },
    /// From a node to itself.
    SelfLoop,
}

pub(super) fn lay_out(view: &GraphView) -> Layout {
    let count = view.nodes.len();
    let links = topology::links(view);
    let layer = topology::layers(count, &links);
    let mut layout = Layout {
        corners: vec![(0.0, 0.0); count],
        ..Layout::default()
    };
    let (alone, parts): (Vec<Vec<usize>>, Vec<Vec<usize>>) = topology::components(count, &links)
        .into_iter()
        .partition(|part| part.len() == 1);
    let alone = alone.concat();

    let mut part_of = vec![usize::MAX; count];
    for (p, part) in parts.iter().enumerate() {
        for &node in part {
            part_of[node] = p;
        }
    }
    let mut part_links: Vec<Vec<Link>> = vec![Vec::new(); parts.len()];
    for &link in &links {
        match part_links.get_mut(part_of[link.source]) {
            Some(own) => own.push(link),
            None => layout.routes.push((link, Route::SelfLoop)),
        }
    }
    let mut top = MARGIN;
    for (part, links) in parts.iter().zip(&part_links) {
        top = place_part(view, part, links, &layer, top, &mut layout) + PART_GAP;
    }
    if !alone.is_empty() {
        top = place_grid(&alone, top, &mut layout) + PART_GAP;
    }
    layout.height = top - PART_GAP + MARGIN;
    if count == 0 {
        layout.height = 2.0 * MARGIN;
        layout.width = 2.0 * MARGIN;
    }
    layout
}

/// Returns the bottom of the placed component.
fn place_part(
    view: &GraphView,
    part: &[usize],
    links: &[Link],
    layer: &[usize],
    top: f64,
    layout: &mut Layout,
) -> f64 {
    let columns = arrange(part, links, layer);
    let left = column_lefts(view, &columns, layer);
    let (centre, tallest) = centres(&columns, top);
    for (c, column) in columns.columns.iter().enumerate() {
        for &slot in column {
            if let Some(node) = columns.slots[slot].node {
                layout.corners[node] = (left[c], centre[slot] - NODE_H / 2.0);
            }
        }
    }
    for (link, slots) in &columns.routes {
        let mut points = Vec::with_capacity(slots.len() * 2);
        let first = layer[link.source];
        for (i, &slot) in slots.iter().enumerate() {
            let at_end = i + 1 == slots.len();
            let c = if at_end {
                layer[link.target]
            } else {
                first + i
            };
            if i > 0 {
                points.push((left[c], centre[slot]));
            }
            if !at_end {
                points.push((left[c] + NODE_W, centre[slot]));
            }
        }
        layout.routes.push((*link, Route::Forward(points)));
    }
    let mut bottom = top + tallest;
    let mut loops = 0;
    for &link in links.iter().filter(|link| link.back) {
        let route = if link.source == link.target {
            Route::SelfLoop
        } else {
            let lane = loops % LANES;
            loops += 1;
            Route::Back {
                lane_y: top + tallest + LANE_GAP * (lane + 1) as f64,
                reach: 14.0 + 4.0 * (lane % 3) as f64,
            }
        };
        layout.routes.push((link, route));
    }
    bottom += LANE_GAP * loops.min(LANES) as f64;
    let right = left.last().map_or(0.0, |x| x + NODE_W);
    layout.width = layout.width.max(right + MARGIN);
    bottom
}

fn place_grid(alone: &[usize], top: f64, layout: &mut Layout) -> f64 {
    // As wide as the widest component, if there is one.
    let fitting = ((layout.width - MARGIN) / (NODE_W + ROW_GAP)).floor() as usize;
    let across = fitting.max(GRID_COLUMNS).min(alone.len());
    for (i, &node) in alone.iter().enumerate() {
        layout.corners[node] = (
            MARGIN + (i % across) as f64 * (NODE_W + ROW_GAP),
            top + (i / across) as f64 * (NODE_H + ROW_GAP),
        );
    }
    let right = MARGIN + across as f64 * (NODE_W + ROW_GAP) - ROW_GAP;
    layout.width = layout.width.max(right + MARGIN);
    top + alone.len().div_ceil(across) as f64 * (NODE_H + ROW_GAP) - ROW_GAP
}

/// The left side of each column. The label of an edge is in the gap after its source.
fn column_lefts(view: &GraphView, columns: &Columns, layer: &[usize]) -> Vec<f64> {
    let mut gap = vec![COLUMN_GAP; columns.columns.len()];
    for (link, _) in &columns.routes {
        if let Some(label) = &view.edges[link.edge].label {
            let label_width = width_px(label, LABEL).min(LABEL_MAX_PX) + LABEL_PAD;
            let gap = &mut gap[layer[link.source]];
            *gap = gap.max(label_width.ceil());
        }
    }
    let mut x = MARGIN;
    gap.iter()
        .map(|gap| {
            let left = x;
            x += NODE_W + gap;
            left
        })
        .collect()
}

/// The vertical centre of every slot, with the topmost box starting at `top`, and the total height.
fn centres(columns: &Columns, top: f64) -> (Vec<f64>, f64) {
    let mut centre = vec![0.0; columns.slots.len()];
    for column in &columns.columns {
        let start: Vec<f64> = vec![0.0; column.len()];
        settle(columns, column, &start, &mut centre);
    }
    for sweep in 0..SETTLE_SWEEPS {
        for step in 0..columns.columns.len() {
            let rightward = sweep % 2 == 0;
            let c = if rightward {
                step
            } else {
                columns.columns.len() - 1 - step
            };
            let column = &columns.columns[c];
            let desired: Vec<f64> = column
                .iter()
                .map(|&slot| {
                    let s = &columns.slots[slot];
                    // The last sweeps use both sides, which corrects the tilt of one-sided sweeps.
                    let both = sweep + 2 >= SETTLE_SWEEPS;
                    let before = s.before.iter().filter(|_| both || rightward);
                    let after = s.after.iter().filter(|_| both || !rightward);
                    mean(before.chain(after).map(|&n| centre[n])).unwrap_or(centre[slot])
                })
                .collect();
            settle(columns, column, &desired, &mut centre);
        }
    }
    let edge = |slot: usize, sign: f64| centre[slot] + sign * height(columns, slot) / 2.0;
    let all = || 0..columns.slots.len();
    let highest = all().map(|s| edge(s, -1.0)).fold(f64::INFINITY, f64::min);
    let lowest = all()
        .map(|s| edge(s, 1.0))
        .fold(f64::NEG_INFINITY, f64::max);
    for y in &mut centre {
        *y = (*y - highest + top).round();
    }
    (centre, (lowest - highest).ceil())
}

/// Gives each slot of a column the position nearest to its desired one, in the least-squares sense,
/// that keeps the order and the spacing. Slots that would collide are pooled and share the mean of
/// their desired positions (isotonic regression, pool adjacent violators).
fn settle(columns: &Columns, column: &[usize], desired: &[f64], centre: &mut [f64]) {
    // Offsets from the first slot when all slots are packed tightly.
    let mut packed = Vec::with_capacity(column.len());
    let mut y = 0.0;
    for (i, &slot) in column.iter().enumerate() {
        if i > 0 {
            y += spacing(columns, column[i - 1], slot);
        }
        packed.push(y);
    }
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (desired, packed) in desired.iter().zip(&packed) {
        let mut pool = (desired - packed, 1);
        while let Some(&(mean, size)) = pools.last() {
            if mean < pool.0 {
                break;
            }
            let merged = size + pool.1;
            pool.0 = (mean * size as f64 + pool.0 * pool.1 as f64) / merged as f64;
            pool.1 = merged;
            pools.pop();
        }
        pools.push(pool);
    }
    let shifts = pools
        .iter()
        .flat_map(|&(mean, size)| std::iter::repeat_n(mean, size));
    for ((&slot, packed), shift) in column.iter().zip(&packed).zip(shifts) {
        centre[slot] = packed + shift;
    }
}

fn height(columns: &Columns, slot: usize) -> f64 {
    if columns.slots[slot].node.is_some() {
        NODE_H
    } else {
        BEND_H
    }
}

fn spacing(columns: &Columns, above: usize, below: usize) -> f64 {
    let both_nodes = columns.slots[above].node.is_some() && columns.slots[below].node.is_some();
    let gap = if both_nodes { ROW_GAP } else { BEND_GAP };
    (height(columns, above) + height(columns, below)) / 2.0 + gap
}
