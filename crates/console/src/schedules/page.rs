//! One schedule: what it is, when it takes place next, what became of its occurrences, and the buttons that change it.

use maud::{Markup, html};

use super::list::ScheduleListRow;
use super::occurrence::{
    LocalMoment, ScheduleRunListRow, ScheduledStartView, moment, outcome, recipients, starts,
    trigger_as_written, trigger_words,
};
use crate::chrome::{Chrome, Section, page_with};
use crate::desk::DeskOffer;
use crate::run_list::live_indicator;
use crate::{links, status, time};

#[derive(Debug, Clone, Default)]
pub struct SchedulePageView {
    pub schedule: ScheduleListRow,
    /// The one conversation of the user that it is for.
    pub session_id: Option<String>,
    pub version: u64,
    /// Where it comes from, in words.
    pub created_by: String,
    pub created_at: String,
    /// What happens to missed occurrences, and where another flow asks, in words.
    pub on_missed: String,
    pub on_active_flow: String,
    pub starts_sessions: bool,
    pub next: Vec<LocalMoment>,
    pub runs: Vec<ScheduleRunListRow>,
    pub next_cursor: Option<String>,
    /// True on the newest page of runs only.
    pub live: bool,
    pub offer_pause: DeskOffer,
    pub offer_cancel: DeskOffer,
    pub csrf: String,
}

pub fn schedule_page(chrome: &Chrome, view: &SchedulePageView) -> String {
    let schedule = &view.schedule;
    let live_url = view.live.then(|| links::schedule_live(&schedule.id));
    let body = html! {
        div.crumb-line {
            nav aria-label="Breadcrumb" {
                ol.crumbs {
                    li { a href=(links::SCHEDULES) { "Schedules" } }
                    @if let Some(agent) = &schedule.agent_id {
                        li { a href=(links::schedules_of_agent(agent)) { (agent) } }
                    }
                }
            }
            @if view.live { (live_indicator()) }
        }
        (header_part(view))
        div.columns data-live-rows=[live_url] {
            (runs_part(view))
            div.side {
                (next_part(view))
                (change_part(view))
            }
        }
        @if let Some(cursor) = &view.next_cursor {
            p.pager {
                a.button href=(links::schedule_page(&schedule.id, cursor)) { "Earlier runs" }
            }
        }
    };
    let title = format!("{} · {}", schedule.id, schedule.status);
    page_with(
        chrome,
        Section::Schedules,
        &title,
        &body,
        &["desk.css"],
        &[],
    )
}

/// The URL of a schedule, percent-encoded.
pub fn schedule_link(id: &str) -> String {
    links::schedule(id)
}

/// The parts of the page, for the live stream.
pub fn schedule_parts(view: &SchedulePageView) -> String {
    let parts = [header_part, runs_part, next_part, change_part];
    parts.map(|part| part(view).into_string()).concat()
}

fn header_part(view: &SchedulePageView) -> Markup {
    let schedule = &view.schedule;
    html! {
        header.run-head data-part="header" data-status=(schedule.status) {
            div.title-line {
                h1 { span.visually-hidden { "Schedule " } span.id { (schedule.id) } }
                (status::badge(&schedule.status))
            }
            (facts(view))
        }
    }
}

fn facts(view: &SchedulePageView) -> Markup {
    let schedule = &view.schedule;
    html! {
        dl.facts {
            @if let Some(words) = trigger_words(&schedule.trigger) {
                div { dt { "Takes place" } dd { (words) } }
            }
            div { dt { "As written" } dd { (trigger_as_written(&schedule.trigger)) } }
            div { dt { "Zone" } dd { (schedule.timezone) } }
            @match &schedule.starts {
                ScheduledStartView::Flow(_) => {
                    div { dt { "Flow" } dd { (starts(&schedule.starts)) } }
                    div { dt { "For" } dd { (schedule.target) } }
                }
                ScheduledStartView::Workflow(_) => {
                    div { dt { "Workflow" } dd { (starts(&schedule.starts)) } }
                    div { dt { "Trigger" } dd { (schedule.target) } }
                }
            }
            @if let Some(campaign) = &schedule.campaign { div { dt { "Campaign" } dd { (campaign) } } }
            @if let Some(session) = &view.session_id {
                div { dt { "Conversation" } dd { a.id href=(links::conversation(session)) { (session) } } }
            }
            div { dt { "Missed runs" } dd { (view.on_missed) } }
            @if let ScheduledStartView::Flow(_) = &schedule.starts {
                div { dt { "While another flow asks" } dd { (view.on_active_flow) } }
                div {
                    dt { "Without a conversation" }
                    dd { @if view.starts_sessions { "begins one" } @else { "is skipped" } }
                }
            }
            div { dt { "Made by" } dd { (view.created_by) ", " (time::ago(&view.created_at)) } }
            div { dt { "Version" } dd { (view.version) } }
        }
    }
}

fn next_part(view: &SchedulePageView) -> Markup {
    html! {
        section.panel data-part="next" aria-labelledby="next-title" {
            div.panel-head { h2 #next-title { "Next" } span.count { (view.schedule.timezone) } }
            @if view.next.is_empty() {
                p.empty {
                    @if view.schedule.status == "paused" { "Nothing while it is paused." }
                    @else { "It does not take place any more." }
                }
            }
            ol.occurrences {
                @for next in &view.next { li { (moment(next)) (time::countdown(&next.at)) } }
            }
        }
    }
}

fn change_part(view: &SchedulePageView) -> Markup {
    let is_open = matches!(view.schedule.status.as_str(), "active" | "paused");
    let is_paused = view.schedule.status == "paused";
    let offers = [&view.offer_pause, &view.offer_cancel];
    let is_offered = is_open && offers.iter().any(|offer| **offer != DeskOffer::Nothing);
    html! {
        // An empty part stays, so that the live stream can fill it.
        section.panel data-part="change" aria-labelledby="change-title" hidden[!is_offered] {
            div.panel-head { h2 #change-title { "Change" } }
            @if is_offered {
                div.schedule-changes {
                    @if is_paused {
                        (action(view, "resume", "Resume", &view.offer_pause))
                    } @else {
                        (action(view, "pause", "Pause", &view.offer_pause))
                    }
                    (action(view, "cancel", "Cancel", &view.offer_cancel))
                }
            }
        }
    }
}

fn action(view: &SchedulePageView, verb: &str, label: &str, offer: &DeskOffer) -> Markup {
    let is_final = verb == "cancel";
    let question = is_final.then_some("Cancel this schedule? It cannot be resumed.");
    let class = if is_final { "danger" } else { "" };
    let token = format!("{verb}-token");
    html! {
        @if *offer != DeskOffer::Nothing {
            form.desk-form method="post" action=(links::schedule_action(&view.schedule.id, verb))
                data-confirm=[question] {
                input type="hidden" name="csrf" value=(view.csrf);
                input type="hidden" name="version" value=(view.version);
                button id={ "action-" (verb) } class=[Some(class).filter(|c| !c.is_empty())] type="submit" {
                    (label) span.visually-hidden { " this schedule" }
                }
                @if *offer == DeskOffer::WithToken {
                    label for=(token) { "Admin token" }
                    input id=(token) type="password" name="adminToken" autocomplete="off"
                        autocapitalize="none" spellcheck="false";
                }
            }
        }
    }
}

fn runs_part(view: &SchedulePageView) -> Markup {
    html! {
        section.panel data-part="runs" aria-labelledby="runs-title" {
            div.panel-head { h2 #runs-title { "Runs" } }
            table.rows.schedule-runs {
                thead {
                    tr {
                        th scope="col" { "Outcome" }
                        th scope="col" { "Scheduled for" }
                        th scope="col" { "Reason" }
                        th scope="col" { "Recipients" }
                        th scope="col" { "Started" }
                    }
                }
                tbody #schedule-run-rows {
                    @for run in &view.runs { (run_row(run)) }
                    @if view.runs.is_empty() {
                        tr.empty { td colspan="5" { "It has not taken place yet." } }
                    }
                }
            }
        }
    }
}

fn run_row(run: &ScheduleRunListRow) -> Markup {
    html! {
        tr {
            td.c-status { (outcome(run)) }
            td.c-run {
                @if run.is_campaign {
                    a href=(links::schedule_run(&run.id)) { (moment(&run.scheduled_for)) }
                } @else if let Some(session) = &run.session_id {
                    a href=(links::conversation(session)) { (moment(&run.scheduled_for)) }
                } @else if let Some(id) = &run.workflow_run_id {
                    a href=(links::run(id)) { (moment(&run.scheduled_for)) }
                    span.sub.id { (id) }
                } @else { (moment(&run.scheduled_for)) }
                @if run.attempt > 1 { span.sub { "attempt " (run.attempt) } }
            }
            td.c-workflow { (run.reason.as_deref().unwrap_or("–")) }
            td.c-duration { @if run.is_campaign { (recipients(run)) } @else { "–" } }
            td.c-created { (time::ago(&run.started_at)) }
        }
    }
}
