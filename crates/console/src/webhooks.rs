//! The webhook pages: the subscriptions, and one of them with its deliveries.
//!
//! A target's URL is shown as text and never as a link, because it leads away from the console and
//! is not meant to be opened by hand.

use maud::{Markup, html};

use crate::chrome::{Chrome, Section, page};
use crate::{links, status, time};

#[derive(Debug, Clone, Default)]
pub struct WebhookListView {
    pub rows: Vec<WebhookRow>,
}

#[derive(Debug, Clone, Default)]
pub struct WebhookRow {
    pub webhook_id: String,
    pub url: String,
    /// `active`, `paused` or `failed`.
    pub state: String,
    pub events: Vec<String>,
    pub tags: Vec<String>,
    pub created_at: String,
    /// When the next attempt is made, while it is paused.
    pub paused_until: Option<String>,
    pub consecutive_failures: u32,
    /// Deliveries removed from the log before they were sent.
    pub dropped: u64,
}

#[derive(Debug, Clone, Default)]
pub struct WebhookPageView {
    pub webhook: WebhookRow,
    pub secret_fingerprint: String,
    pub deliveries: Vec<WebhookDeliveryRow>,
    pub next_cursor: Option<String>,
    pub csrf: String,
}

#[derive(Debug, Clone, Default)]
pub struct WebhookDeliveryRow {
    pub number: u64,
    pub event_type: String,
    pub run_id: String,
    pub sequence: u64,
    /// `pending`, `delivered` or `dead-lettered`.
    pub state: String,
    pub attempts: u32,
    pub created_at: String,
    pub next_attempt_at: Option<String>,
    pub outcome: Option<String>,
    pub can_redeliver: bool,
}

pub fn webhook_list_page(chrome: &Chrome, view: &WebhookListView) -> String {
    let body = html! {
        div.title-line { h1 { "Webhooks" } }
        div.panel {
            table.rows {
                thead {
                    tr {
                        th scope="col" { "State" }
                        th scope="col" { "Webhook" }
                        th scope="col" { "Events" }
                        th scope="col" { "Created" }
                    }
                }
                tbody {
                    @for row in &view.rows { (webhook_row(row)) }
                    @if view.rows.is_empty() {
                        tr.empty { td colspan="4" { "There are no webhooks. Register one with POST /v1/webhooks." } }
                    }
                }
            }
        }
    };
    page(chrome, Section::Webhooks, "Webhooks", &body)
}

fn webhook_row(row: &WebhookRow) -> Markup {
    html! {
        tr {
            td.c-status { (state(row)) }
            td.c-run {
                a.id href=(links::webhook(&row.webhook_id)) { (row.webhook_id) }
                span.sub { (row.url) }
            }
            td.c-workflow { (row.events.join(", ")) }
            td.c-created { (time::ago(&row.created_at)) }
        }
    }
}

fn state(row: &WebhookRow) -> Markup {
    html! {
        (status::badge(&row.state))
        @if row.consecutive_failures > 0 {
            span.code { (row.consecutive_failures) " in a row failed" }
        }
    }
}

pub fn webhook_page(chrome: &Chrome, view: &WebhookPageView) -> String {
    let webhook = &view.webhook;
    let body = html! {
        div.crumb-line {
            nav aria-label="Breadcrumb" {
                ol.crumbs {
                    li { a href=(links::WEBHOOKS) { "Webhooks" } }
                    li aria-current="page" { span.id { (webhook.webhook_id) } }
                }
            }
        }
        div.title-line {
            h1 { (webhook.url) }
            (state(webhook))
        }
        section.panel aria-labelledby="about-title" {
            div.panel-head { h2 #about-title { "Subscription" } }
            dl.facts.pad { (facts(view)) }
        }
        section.panel aria-labelledby="log-title" {
            div.panel-head { h2 #log-title { "Deliveries" } }
            (log(view))
        }
        @if let Some(cursor) = &view.next_cursor {
            p.pager {
                a.button href=(links::webhook_deliveries(&webhook.webhook_id, cursor)) { "Older deliveries" }
            }
        }
    };
    page(chrome, Section::Webhooks, "Webhook", &body)
}

fn facts(view: &WebhookPageView) -> Markup {
    let webhook = &view.webhook;
    html! {
        div { dt { "Events" } dd { (webhook.events.join(", ")) } }
        @if !webhook.tags.is_empty() {
            div { dt { "Tags" } dd { (webhook.tags.join(", ")) } }
        }
        div { dt { "Created" } dd { (time::ago(&webhook.created_at)) } }
        div { dt { "Secret" } dd { span.id { (view.secret_fingerprint) "…" } } }
        @if let Some(until) = &webhook.paused_until {
            div { dt { "Next attempt" } dd { (time::at(until)) } }
        }
        @if webhook.dropped > 0 {
            div { dt { "Dropped" } dd { (webhook.dropped) } }
        }
    }
}

fn log(view: &WebhookPageView) -> Markup {
    html! {
        table.rows {
            thead {
                tr {
                    th scope="col" { "State" }
                    th scope="col" { "Event" }
                    th scope="col" { "Outcome" }
                    th scope="col" { "Created" }
                    th scope="col" { span.visually-hidden { "Action" } }
                }
            }
            tbody {
                @for row in &view.deliveries { (delivery_row(view, row)) }
                @if view.deliveries.is_empty() {
                    tr.empty { td colspan="5" { "Nothing was delivered yet." } }
                }
            }
        }
    }
}

fn delivery_row(view: &WebhookPageView, row: &WebhookDeliveryRow) -> Markup {
    let action = links::webhook_redeliver(&view.webhook.webhook_id, row.number);
    html! {
        tr {
            td.c-status { (status::badge(&row.state)) }
            td.c-run {
                (row.event_type)
                span.sub { a.id href=(links::run(&row.run_id)) { (row.run_id) } " #" (row.sequence) }
            }
            td.c-workflow {
                (row.outcome.as_deref().unwrap_or("–"))
                span.sub {
                    (row.attempts) @if row.attempts == 1 { " attempt" } @else { " attempts" }
                    @if let Some(next) = &row.next_attempt_at { ", next " (time::at(next)) }
                }
            }
            td.c-created { (time::ago(&row.created_at)) }
            td.c-duration {
                @if row.can_redeliver {
                    form method="post" action=(action) {
                        input type="hidden" name="csrf" value=(view.csrf);
                        button.small type="submit" {
                            "Deliver again" span.visually-hidden { " number " (row.number) }
                        }
                    }
                }
            }
        }
    }
}
