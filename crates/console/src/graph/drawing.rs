//! The layout as SVG markup. Sizes are attributes and colours are classes, as a strict content
//! security policy requires.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::fit_text::{LABEL, NAME, TYPE, fit};
use super::placement::{LABEL_MAX_PX, Layout, NODE_H, NODE_W, Route, lay_out};
use super::topology::Link;
use super::{GraphNode, GraphView, NodeState, glyph};

const PAD: f64 = 14.0;
const GLYPH: f64 = 14.0;
/// An edge stops short of its target by the length of the arrowhead.
const HEAD: f64 = 7.0;
const CORNER: f64 = 8.0;

pub(crate) fn svg(view: &GraphView) -> Markup {
    let layout = lay_out(view);
    let taken = taken(view, &layout);
    let (w, h) = (layout.width, layout.height);
    html! {
        svg.graph width=(w) height=(h) viewBox={ "0 0 " (w) " " (h) }
            role="group" aria-label={ "Workflow graph, " (view.nodes.len()) " nodes" } {
            g.edges {
                // Taken edges are drawn last, on top of the others.
                @for on_top in [false, true] {
                    @for ((link, route), &taken) in layout.routes.iter().zip(&taken) {
                        @if taken == on_top { (edge(view, &layout, *link, route, taken)) }
                    }
                }
            }
            // After all lines, so that no line crosses a label.
            g.labels aria-hidden="true" {
                @for (link, route) in &layout.routes { (label(view, &layout, *link, route)) }
            }
            g.nodes {
                @for (i, n) in view.nodes.iter().enumerate() { (node(n, layout.corners[i])) }
            }
        }
    }
}

fn node(node: &GraphNode, (x, y): (f64, f64)) -> Markup {
    let state = node.state.as_str();
    let label = if node.state == NodeState::Defined {
        node.name.clone()
    } else {
        format!("{}: {state}", node.name)
    };
    let glyph = glyph::path(node.state);
    let text_px = NODE_W - 2.0 * PAD;
    let name_px = text_px - if glyph.is_some() { GLYPH + 4.0 } else { 0.0 };
    html! {
        g class={ "node state-" (state) } data-node=(node.id) tabindex="0" role="img"
            aria-label=(label) transform={ "translate(" (x) " " (y) ")" } {
            title { (label) " (" (node.id) ", " (node.type_id) ")" }
            rect.box width=(NODE_W) height=(NODE_H) rx="6" {}
            rect.stripe width="4" height=(NODE_H - 12.0) x="0" y="6" rx="2" {}
            text.name x=(PAD) y="22" { (fit(&node.name, NAME, name_px)) }
            text.type x=(PAD) y="39" { (fit(&node.type_id, TYPE, text_px)) }
            @if let Some(d) = glyph {
                path.glyph d=(d) transform={ "translate(" (NODE_W - PAD - GLYPH + 3.0) " 11)" } {}
            }
        }
    }
}

fn edge(view: &GraphView, layout: &Layout, link: Link, route: &Route, taken: bool) -> Markup {
    let edge = &view.edges[link.edge];
    let (source, target) = (&view.nodes[link.source], &view.nodes[link.target]);
    let drawn = trace(
        route,
        layout.corners[link.source],
        layout.corners[link.target],
    );
    let mut class = String::from("edge");
    if taken {
        class.push_str(" taken");
    }
    if edge.conditional {
        class.push_str(" conditional");
    }
    if link.back {
        class.push_str(" back");
    }
    html! {
        g class=(class) {
            title {
                (source.name) " → " (target.name)
                @if let Some(label) = &edge.label { ": " (label) }
            }
            path.line d=(drawn.line) {}
            path.head d=(drawn.head) {}
        }
    }
}

fn label(view: &GraphView, layout: &Layout, link: Link, route: &Route) -> Markup {
    let (x, y) = trace(
        route,
        layout.corners[link.source],
        layout.corners[link.target],
    )
    .label;
    html! {
        @if let Some(label) = &view.edges[link.edge].label {
            text.label x=(x) y=(y) { (fit(label, LABEL, LABEL_MAX_PX)) }
        }
    }
}

/// Which routes the run has taken, inferred from the states of their ends because the view does not
/// contain it. If that is ambiguous (a loop, or a condition that is not the only way in) the edge
/// stays plain.
fn taken(view: &GraphView, layout: &Layout) -> Vec<bool> {
    let mut ways_in = vec![0_usize; view.nodes.len()];
    for (link, _) in layout.routes.iter().filter(|(link, _)| !link.back) {
        ways_in[link.target] += 1;
    }
    layout
        .routes
        .iter()
        .map(|(link, _)| {
            view.nodes[link.source].state == NodeState::Completed
                && view.nodes[link.target].state.is_reached()
                && !link.back
                && (!view.edges[link.edge].conditional || ways_in[link.target] == 1)
        })
        .collect()
}

struct Drawn {
    line: String,
    head: String,
    /// The centre of the label's baseline.
    label: (f64, f64),
}

fn trace(route: &Route, source: (f64, f64), target: (f64, f64)) -> Drawn {
    match route {
        Route::Forward(points) => forward(points),
        Route::Back { lane_y, reach } => back(source, target, *lane_y, *reach),
        Route::SelfLoop => self_loop(source),
    }
}

/// Points come in pairs, one pair per gap: an S-curve crosses the gap, a horizontal line crosses
/// the column.
fn forward(points: &[(f64, f64)]) -> Drawn {
    let mut line = String::new();
    let last = points.len() - 1;
    for (i, &(x, y)) in points.iter().enumerate() {
        let x_end = if i == last { x - HEAD } else { x };
        if i == 0 {
            push(&mut line, format_args!("M{x} {y}"));
        } else if i % 2 == 0 {
            push(&mut line, format_args!("H{x_end}"));
        } else {
            let (px, py) = points[i - 1];
            let mid = (px + x_end) / 2.0;
            push(&mut line, format_args!("C{mid} {py} {mid} {y} {x_end} {y}"));
        }
    }
    let (a, b) = (points[0], points[1]);
    Drawn {
        line,
        head: head_right(points[last]),
        label: (
            ((a.0 + b.0) / 2.0).round(),
            ((a.1 + b.1) / 2.0 + 4.0).round(),
        ),
    }
}

fn back(source: (f64, f64), target: (f64, f64), lane: f64, reach: f64) -> Drawn {
    let (from_y, to_y) = (source.1 + NODE_H / 2.0, target.1 + NODE_H / 2.0);
    let (right, left) = (source.0 + NODE_W + reach, target.0 - reach);
    let r = CORNER;
    let mut line = String::new();
    push(
        &mut line,
        format_args!(
            "M{} {from_y}H{}Q{right} {from_y} {right} {}V{}Q{right} {lane} {} {lane}",
            source.0 + NODE_W,
            right - r,
            from_y + r,
            lane - r,
            right - r,
        ),
    );
    push(
        &mut line,
        format_args!(
            "H{}Q{left} {lane} {left} {}V{}Q{left} {to_y} {} {to_y}H{}",
            left + r,
            lane - r,
            to_y + r,
            left + r.min(reach - HEAD),
            target.0 - HEAD,
        ),
    );
    Drawn {
        line,
        head: head_right((target.0, to_y)),
        label: (((right + left) / 2.0).round(), lane + 4.0),
    }
}

/// A small arc over the top of the node.
fn self_loop((x, y): (f64, f64)) -> Drawn {
    let (from, to) = (x + NODE_W - 48.0, x + NODE_W - 88.0);
    let lift = y - 24.0;
    let end = y - HEAD;
    Drawn {
        line: format!("M{from} {y}C{from} {lift} {to} {lift} {to} {end}"),
        head: format!("M{to} {y}L{} {end}H{}Z", to - 4.0, to + 4.0),
        label: ((from + to) / 2.0, y - 8.0),
    }
}

fn head_right((x, y): (f64, f64)) -> String {
    format!("M{x} {y}L{} {}V{}Z", x - HEAD, y - 4.0, y + 4.0)
}

fn push(path: &mut String, part: std::fmt::Arguments<'_>) {
    path.write_fmt(part)
        .expect("writing to a string cannot fail");
}
