//! The frame of every page: head, skip link, top bar, footer.
//!
//! Owns the security-relevant parts of a document: stylesheets and deferred scripts come from this
//! origin and have a content hash in their URL, so that a browser never runs an old script with new
//! markup.

use maud::{DOCTYPE, Markup, html};

use crate::{assets, links};

/// Data of the frame.
#[derive(Debug, Clone, Default)]
pub struct Chrome {
    pub signed_in_as: Option<String>,
    pub tenant: Option<String>,
    /// The token of the session, for the form that ends it.
    pub csrf: Option<String>,
    pub version: &'static str,
}

/// The navigation entry of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Inbox,
    Conversations,
    Escalations,
    Schedules,
    Runs,
    Workflows,
    Webhooks,
    /// Pages outside the navigation: sign-in and errors.
    None,
}

pub(crate) fn page(chrome: &Chrome, section: Section, title: &str, main: &Markup) -> String {
    page_with(chrome, section, title, main, &[], &[])
}

/// A page with its own files, loaded after the common ones.
pub(crate) fn page_with(
    chrome: &Chrome,
    section: Section,
    title: &str,
    main: &Markup,
    styles: &[&'static str],
    scripts: &[&'static str],
) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · Tandem" }
                link rel="icon" type="image/svg+xml" href=(assets::url("icon.svg"));
                link rel="stylesheet" href=(assets::url("console.css"));
                @for name in styles { link rel="stylesheet" href=(assets::url(name)); }
                script src=(assets::url("console.js")) defer {}
                @for name in scripts { script src=(assets::url(name)) defer {} }
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (top_bar(chrome, section))
                main #main tabindex="-1" { (main) }
                footer.foot { "Tandem " (chrome.version) }
                // One polite live region for the whole page. It is never replaced, because a screen
                // reader would then not announce the change.
                p #announce .visually-hidden role="status" aria-live="polite" {}
            }
        }
    }
    .into_string()
}

fn top_bar(chrome: &Chrome, section: Section) -> Markup {
    html! {
        header.bar {
            a.brand href=(links::RUNS) {
                (mark())
                "Tandem"
            }
            @if chrome.signed_in_as.is_some() {
                nav.nav aria-label="Console" {
                    (nav_link(links::INBOX, "Inbox", section == Section::Inbox))
                    (nav_link(links::CONVERSATIONS, "Conversations", section == Section::Conversations))
                    (nav_link(links::ESCALATIONS, "Escalations", section == Section::Escalations))
                    (nav_link(links::SCHEDULES, "Schedules", section == Section::Schedules))
                    (nav_link(links::RUNS, "Runs", section == Section::Runs))
                    (nav_link(links::WORKFLOWS, "Workflows", section == Section::Workflows))
                    (nav_link(links::WEBHOOKS, "Webhooks", section == Section::Webhooks))
                }
            }
            div.who {
                @if let Some(tenant) = &chrome.tenant {
                    span.tenant title="Tenant" { (tenant) }
                }
                @if let Some(name) = &chrome.signed_in_as {
                    span.name title="Signed in as" { (name) }
                }
                @if let Some(csrf) = &chrome.csrf {
                    form method="post" action=(links::LOGOUT) {
                        input type="hidden" name="csrf" value=(csrf);
                        button.small type="submit" { "Sign out" }
                    }
                }
            }
        }
    }
}

fn nav_link(href: &str, label: &str, current: bool) -> Markup {
    html! { a href=(href) aria-current=[current.then_some("page")] { (label) } }
}

/// Two linked wheels. The same drawing as `icon.svg`, inlined so that it uses the text colour.
fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 16" width="24" height="16" aria-hidden="true" {
            circle cx="6" cy="9" r="4.5" {}
            circle cx="18" cy="9" r="4.5" {}
            path d="M6 9 L10 3 H15 L18 9" {}
        }
    }
}
