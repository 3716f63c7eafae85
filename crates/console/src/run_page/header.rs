//! The head of the run page: id, status, details, and the available actions.

use maud::{Markup, html};

use super::{RunPageView, lineage};
use crate::{links, status, time};

pub(super) fn part(view: &RunPageView) -> Markup {
    html! {
        header.run-head data-part="header" data-status=(view.status) {
            div.title-line {
                h1 { span.visually-hidden { "Run " } span.id { (view.run_id) } }
                (status::badge(&view.status))
                (actions(view))
            }
            (facts(view))
            @if let Some((code, message)) = &view.error {
                div.notice.bad { p { strong.code { (code) } " " (message) } }
            }
        }
    }
}

fn actions(view: &RunPageView) -> Markup {
    let question = format!(
        "Cancel run {}? Work in progress stops and the run cannot be resumed.",
        view.run_id
    );
    html! {
        div.actions {
            (lineage::links_out(view))
            @if view.can_resume { (action(view, "resume", "Resume", None)) }
            @if view.can_pause { (action(view, "pause", "Pause", None)) }
            @if view.can_cancel { (action(view, "cancel", "Cancel", Some(&question))) }
        }
    }
}

/// The script shows `confirm` before the form is sent.
fn action(view: &RunPageView, verb: &str, label: &str, confirm: Option<&str>) -> Markup {
    html! {
        form method="post" action=(links::run_action(&view.run_id, verb)) data-confirm=[confirm] {
            input type="hidden" name="csrf" value=(view.csrf);
            button type="submit" id={ "action-" (verb) } .danger[verb == "cancel"] {
                (label) span.visually-hidden { " this run" }
            }
        }
    }
}

fn facts(view: &RunPageView) -> Markup {
    // A run that never started has no duration, only an age.
    let since = view.started_at.as_deref();
    html! {
        dl.facts {
            div { dt { "Workflow" } dd { a href=(links::workflow(&view.workflow_id)) { (view.workflow_id) } } }
            div { dt { "Created" } dd { (time::ago(&view.created_at)) } }
            @if let Some(at) = since {
                div { dt { "Started" } dd { (time::ago(at)) } }
                div { dt { "Duration" } dd { (time::duration(at, view.ended_at.as_deref())) } }
            }
            @if let Some(at) = &view.ended_at {
                div { dt { "Ended" } dd { (time::ago(at)) } }
            }
            @if let Some(parent) = &view.parent_run_id {
                div { dt { "Parent run" } dd { a.id href=(links::run(parent)) { (parent) } } }
            }
            @if let Some(origin) = &view.forked_from { (lineage::fact(origin)) }
        }
    }
}
