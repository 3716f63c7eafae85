//! The run tree of a run: up to its root, then down, as far as a page can show.

use crate::api::ApiState;
use crate::problem::Problem;
use tandem_access::Identity;
use tandem_app::{ListedRun, Page, RunFilter, RunRow};
use tandem_console::RunTreeView;
use tandem_record::RunId;

/// Levels above a run that are followed; the engine allows no deeper tree.
const MAX_LEVELS: usize = 40;
/// Runs on one page.
const MAX_RUNS: usize = 200;

/// The run tree; `None` when the run has no parent and no children.
pub(super) async fn load_run_tree(
    api: &ApiState,
    reader: &Identity,
    run: &RunId,
) -> Result<Option<RunTreeView>, Problem> {
    let mut root = api.app.read_run(reader, run).await?.row;
    for _ in 0..MAX_LEVELS {
        let Some(parent) = &root.parent else { break };
        match api.app.read_run(reader, parent).await {
            Ok(above) => root = above.row,
            // The run is purged or belongs to another workspace: the visible tree ends here.
            Err(_) => break,
        }
    }
    let mut runs = vec![(root, None::<usize>)];
    let mut left_out = vec![0_u64];
    let mut next = 0;
    while next < runs.len() {
        let remaining = MAX_RUNS.saturating_sub(runs.len());
        let (children, more) = children(api, reader, &runs[next].0.run_id, remaining).await?;
        left_out[next] = more;
        for child in children {
            runs.push((child, Some(next)));
            left_out.push(0);
        }
        next += 1;
    }
    if runs.len() == 1 && left_out[0] == 0 {
        return Ok(None);
    }
    Ok(Some(tree(&runs, &left_out, run)))
}

/// Oldest first, in creation order.
async fn children(
    api: &ApiState,
    reader: &Identity,
    run: &RunId,
    remaining: usize,
) -> Result<(Vec<RunRow>, u64), Problem> {
    let filter = RunFilter {
        parent: Some(run.clone()),
        ..RunFilter::default()
    };
    let page = Page {
        before: None,
        limit: remaining + 1,
    };
    let listing = api.app.list_runs(reader, filter, &page).await?;
    let more = listing.runs.len().saturating_sub(remaining);
    let rows = listing.runs.into_iter().take(remaining);
    let mut rows: Vec<RunRow> = rows.map(|ListedRun { row, .. }| row).collect();
    rows.reverse();
    Ok((rows, more as u64))
}

/// Built from the leaves up: a child comes after its parent in the list.
fn tree(runs: &[(RunRow, Option<usize>)], left_out: &[u64], current: &RunId) -> RunTreeView {
    let mut views: Vec<RunTreeView> = runs
        .iter()
        .zip(left_out)
        .map(|((row, _), more)| RunTreeView {
            run_id: row.run_id.to_string(),
            workflow_id: row.workflow_id.to_string(),
            status: row.status.as_str().to_owned(),
            is_current: row.run_id == *current,
            children: Vec::new(),
            more: *more,
        })
        .collect();
    for at in (1..views.len()).rev() {
        let mut view = std::mem::take(&mut views[at]);
        view.children.reverse();
        if let Some(parent) = runs[at].1 {
            views[parent].children.push(view);
        }
    }
    let mut root = views.swap_remove(0);
    root.children.reverse();
    root
}
