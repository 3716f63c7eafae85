//! What the pages of schedules have in common: when something takes place, and what became of an occurrence.

use maud::{Markup, html};

use super::cron_words::cron_words;
use crate::{links, status};

/// A moment, and how the clock of the schedule's zone shows it.
#[derive(Debug, Clone, Default)]
pub struct LocalMoment {
    pub at: String,
    pub local: String,
}

/// When a schedule takes place, as it was written.
#[derive(Debug, Clone)]
pub enum ScheduleTriggerView {
    Cron(String),
    Once(LocalMoment),
}

impl Default for ScheduleTriggerView {
    fn default() -> Self {
        Self::Cron(String::new())
    }
}

/// What a schedule starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduledStartView {
    Flow(String),
    Workflow(String),
}

impl Default for ScheduledStartView {
    fn default() -> Self {
        Self::Flow(String::new())
    }
}

impl ScheduledStartView {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Flow(_) => "flow",
            Self::Workflow(_) => "workflow",
        }
    }
}

pub(super) fn starts(view: &ScheduledStartView) -> Markup {
    html! {
        @match view {
            ScheduledStartView::Flow(flow) => (flow),
            ScheduledStartView::Workflow(id) => a href=(links::workflow(id)) { (id) },
        }
    }
}

/// One occurrence that was claimed.
#[derive(Debug, Clone, Default)]
pub struct ScheduleRunListRow {
    pub id: String,
    pub scheduled_for: LocalMoment,
    pub started_at: String,
    pub finished_at: Option<String>,
    /// `None` while it is under way.
    pub outcome: Option<String>,
    /// Not all recipients succeeded.
    pub partial: bool,
    pub reason: Option<String>,
    /// Above one when another process went on with it.
    pub attempt: u32,
    /// The conversation of a run for one user.
    pub session_id: Option<String>,
    /// The run of a workflow that it started.
    pub workflow_run_id: Option<String>,
    /// How many users a campaign addresses, once they are known.
    pub recipients: Option<u32>,
    /// How many of them ended in each way; those with none are left out.
    pub counts: Vec<(&'static str, u32)>,
    pub is_campaign: bool,
}

/// On the clock of the zone.
pub(super) fn moment(moment: &LocalMoment) -> Markup {
    html! { time datetime=(moment.at) title=(moment.at) { (moment.local) } }
}

/// "At 09:00, every day", or the one moment. `None` for an expression without simple words.
pub(super) fn trigger_words(trigger: &ScheduleTriggerView) -> Option<Markup> {
    match trigger {
        ScheduleTriggerView::Cron(expr) => cron_words(expr).map(|words| html! { (words) }),
        ScheduleTriggerView::Once(at) => Some(html! { "Once, " (moment(at)) }),
    }
}

/// The expression itself.
pub(super) fn trigger_as_written(trigger: &ScheduleTriggerView) -> Markup {
    html! {
        @match trigger {
            ScheduleTriggerView::Cron(expr) => code { (expr) },
            ScheduleTriggerView::Once(at) => code { (at.at) },
        }
    }
}

pub(super) fn outcome(run: &ScheduleRunListRow) -> Markup {
    html! {
        @match &run.outcome {
            None => (status::badge("running")),
            Some(outcome) => (status::badge(outcome)),
        }
        @if run.partial { " " span.sub-inline { "partial" } }
    }
}

/// "40 recipients: 38 success, 2 failed".
pub(super) fn recipients(run: &ScheduleRunListRow) -> Markup {
    html! {
        @if let Some(recipients) = run.recipients {
            (recipients) @if recipients == 1 { " recipient" } @else { " recipients" }
            @if !run.counts.is_empty() { ": " }
        }
        @for (number, (outcome, count)) in run.counts.iter().enumerate() {
            @if number > 0 { ", " }
            (count) " " (outcome)
        }
    }
}
