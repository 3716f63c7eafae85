use super::placement::{Layout, NODE_H, NODE_W, Route, lay_out};
use super::{GraphEdge, GraphNode, GraphView, NodeState, workflow_svg};

fn graph(node_count: usize, pairs: &[(usize, usize)]) -> GraphView {
    GraphView {
        nodes: (0..node_count)
            .map(|i| GraphNode {
                id: format!("n{i}"),
                name: format!("Node {i}"),
                type_id: "core.noop".to_owned(),
                state: NodeState::Pending,
            })
            .collect(),
        edges: pairs
            .iter()
            .map(|(a, b)| GraphEdge {
                source: format!("n{a}"),
                target: format!("n{b}"),
                ..GraphEdge::default()
            })
            .collect(),
    }
}

/// A small random generator with a printed seed, so that a failing graph can be reproduced.
struct TestRng(u64);

impl TestRng {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn random_graph(seed: u64) -> GraphView {
    let mut rng = TestRng(seed);
    let count = 1 + rng.below(40);
    let edges = rng.below(count * 2 + 1);
    let pairs: Vec<_> = (0..edges)
        .map(|_| (rng.below(count), rng.below(count)))
        .collect();
    let mut view = graph(count, &pairs);
    for edge in &mut view.edges {
        edge.label = (rng.below(3) == 0).then(|| "a label of some length".to_owned());
    }
    view
}

fn assert_no_overlap(layout: &Layout, context: &str) {
    for (i, a) in layout.corners.iter().enumerate() {
        for (j, b) in layout.corners.iter().enumerate().skip(i + 1) {
            let apart = (a.0 - b.0).abs() >= NODE_W || (a.1 - b.1).abs() >= NODE_H;
            assert!(
                apart,
                "{context}: nodes {i} and {j} overlap at {a:?} and {b:?}"
            );
        }
    }
}

fn assert_inside(layout: &Layout, context: &str) {
    for (x, y) in &layout.corners {
        let inside =
            *x >= 0.0 && *y >= 0.0 && x + NODE_W <= layout.width && y + NODE_H <= layout.height;
        assert!(inside, "{context}: a node at {x},{y} leaves the drawing");
    }
}

fn assert_edges_sound(layout: &Layout, context: &str) {
    for (link, route) in &layout.routes {
        match route {
            Route::Forward(points) => {
                assert!(!link.back, "{context}: a loop drawn as a forward edge");
                let rightward = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
                assert!(rightward, "{context}: {link:?} does not go right");
                assert_clear_of_nodes(layout, points, context);
            }
            Route::Back { lane_y, .. } => {
                assert!(link.back, "{context}: a forward edge drawn as a loop");
                assert!(*lane_y <= layout.height, "{context}: a lane outside");
            }
            Route::SelfLoop => assert_eq!(link.source, link.target, "{context}"),
        }
    }
}

/// A long edge must pass between the nodes of a column.
fn assert_clear_of_nodes(layout: &Layout, points: &[(f64, f64)], context: &str) {
    let bends = &points[1..points.len() - 1];
    for level in bends.chunks(2) {
        let (x, y) = level[0];
        let hit = layout
            .corners
            .iter()
            .any(|c| (c.0 - x).abs() < NODE_W && y >= c.1 && y <= c.1 + NODE_H);
        assert!(!hit, "{context}: an edge runs behind a node at {x},{y}");
    }
}

#[test]
fn random_graphs_keep_layout_invariants() {
    for seed in 0..300 {
        let view = random_graph(seed);
        let layout = lay_out(&view);
        let context = format!("seed {seed}");
        assert_eq!(layout.corners.len(), view.nodes.len());
        assert_no_overlap(&layout, &context);
        assert_inside(&layout, &context);
        assert_edges_sound(&layout, &context);
        assert_eq!(workflow_svg(&view), workflow_svg(&view), "{context}");
    }
}

#[test]
fn node_is_right_of_its_predecessors() {
    let layout = lay_out(&graph(4, &[(0, 1), (1, 2), (0, 3), (2, 3)]));
    let x: Vec<f64> = layout.corners.iter().map(|c| c.0).collect();
    assert!(x[0] < x[1] && x[1] < x[2] && x[2] < x[3], "{x:?}");
}

#[test]
fn a_chain_is_a_straight_line() {
    let pairs: Vec<_> = (0..9).map(|i| (i, i + 1)).collect();
    let layout = lay_out(&graph(10, &pairs));
    assert!(layout.corners.iter().all(|c| c.1 == layout.corners[0].1));
}

#[test]
fn crossed_pairs_are_untangled() {
    // Two sources, each connected to the target opposite the other.
    let layout = lay_out(&graph(6, &[(4, 0), (4, 1), (0, 3), (1, 2), (2, 5), (3, 5)]));
    let y = |n: usize| layout.corners[n].1;
    assert_eq!(y(0) < y(1), y(3) < y(2), "{:?}", layout.corners);
}

#[test]
fn a_cycle_without_an_entry_is_cut_once() {
    let layout = lay_out(&graph(3, &[(0, 1), (1, 2), (2, 0)]));
    let back: Vec<_> = layout.routes.iter().filter(|(l, _)| l.back).collect();
    assert_eq!(back.len(), 1);
    assert_eq!((back[0].0.source, back[0].0.target), (2, 0));
}

#[test]
fn repeated_and_dangling_edges_are_dropped() {
    let mut view = graph(2, &[(0, 1), (0, 1)]);
    view.edges.push(GraphEdge {
        source: "n0".to_owned(),
        target: "nowhere".to_owned(),
        ..GraphEdge::default()
    });
    assert_eq!(lay_out(&view).routes.len(), 1);
}

#[test]
fn nodes_that_share_an_id_are_both_drawn() {
    let mut view = graph(3, &[(0, 1)]);
    view.nodes[2].id = "n0".to_owned();
    let layout = lay_out(&view);
    assert_no_overlap(&layout, "shared id");
    assert_eq!(workflow_svg(&view).matches("<g class=\"node ").count(), 3);
}

#[test]
fn empty_graph_renders() {
    let layout = lay_out(&GraphView::default());
    assert!(layout.width > 0.0 && layout.height > 0.0);
}

#[test]
fn large_graphs_of_each_shape_render() {
    let mut rng = TestRng(7);
    let chain: Vec<_> = (0..499).map(|i| (i, i + 1)).collect();
    let star: Vec<_> = (1..500).map(|i| (0, i)).collect();
    let ring: Vec<_> = (0..500).map(|i| (i, (i + 1) % 500)).collect();
    let tangle: Vec<_> = (0..3_000)
        .map(|_| (rng.below(500), rng.below(500)))
        .collect();
    // Every node is connected to all later ones near it: far more bends than the budget allows.
    let dense: Vec<_> = (0..500)
        .flat_map(|i| (i + 1..(i + 40).min(500)).map(move |j| (i, j)))
        .collect();
    let shapes = [
        ("alone", &Vec::new(), true),
        ("chain", &chain, true),
        ("star", &star, true),
        ("ring", &ring, true),
        ("tangle", &tangle, false),
        ("dense", &dense, false),
    ];
    for (name, pairs, within_budget) in shapes {
        let layout = lay_out(&graph(500, pairs));
        assert_no_overlap(&layout, name);
        assert_inside(&layout, name);
        if within_budget {
            assert_edges_sound(&layout, name);
        }
    }
}

#[test]
fn nodes_without_edges_form_a_grid() {
    let layout = lay_out(&graph(100, &[]));
    assert!(layout.height < 100.0 * NODE_H / 2.0);
}

#[test]
fn node_label_has_name_and_state() {
    let mut view = graph(1, &[]);
    view.nodes[0].name = "A name that is much too long for the box".to_owned();
    view.nodes[0].state = NodeState::Failed;
    let svg = workflow_svg(&view);
    assert!(
        svg.contains("class=\"node state-failed\" data-node=\"n0\" tabindex=\"0\" role=\"img\"")
    );
    assert!(svg.contains("aria-label=\"A name that is much too long for the box: failed\""));
    assert!(svg.contains("…</text>"), "{svg}");
    assert!(svg.contains("<title>A name that is much too long for the box: failed"));
}

#[test]
fn edge_is_marked_taken_only_when_unambiguous() {
    let mut view = graph(3, &[(0, 1), (0, 2), (1, 2), (2, 1)]);
    for node in &mut view.nodes {
        node.state = NodeState::Completed;
    }
    view.edges[1].conditional = true;
    let svg = workflow_svg(&view);
    assert!(svg.contains("class=\"edge taken\""));
    assert!(svg.contains("class=\"edge conditional\""));
    assert!(svg.contains("class=\"edge back\""));
}

#[test]
fn wide_characters_are_truncated_earlier() {
    use super::fit_text::{NAME, fit, width_px};
    let wide = fit("承認承認承認承認承認承認", NAME, 100.0);
    assert!(wide.ends_with('…'));
    assert!(width_px(&wide, NAME) <= 100.0);
    assert_eq!(fit("short", NAME, 100.0), "short");
}
