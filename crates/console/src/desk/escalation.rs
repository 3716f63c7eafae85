//! Whose work an escalation is, and the buttons that change it. Shown on the page of its conversation, on its card in
//! the inbox and in the list of escalations.

use maud::{Markup, html};

use crate::{links, time};

/// An escalation as the desk shows it.
#[derive(Debug, Clone, Default)]
pub struct DeskEscalation {
    pub id: String,
    pub reason: String,
    /// Above the ordinary: `high` or `critical`.
    pub priority: Option<String>,
    pub queue: Option<String>,
    pub assignee: Option<String>,
    /// Since when the assignee works on it; `None` while they have not claimed it.
    pub claimed_at: Option<String>,
    pub created_at: String,
    pub deadline: Option<String>,
    /// The claim stops its time.
    pub is_stopped: bool,
    pub offer: DeskOffer,
}

/// What this reader may do with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DeskOffer {
    #[default]
    Nothing,
    /// Everything, as this actor.
    As(String),
    /// Perhaps everything, with the token of an admin.
    WithToken,
}

/// Where a change was asked for, and where the reader goes back to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeskPlace<'a> {
    /// The page of the conversation.
    Conversation,
    /// The card of this question.
    Question(&'a str),
    /// The list of escalations.
    List,
}

/// "Ana works on it, since 3 minutes ago".
pub(crate) fn holder(escalation: &DeskEscalation) -> Markup {
    html! {
        @match (&escalation.assignee, &escalation.claimed_at) {
            (None, _) => span.unclaimed { "Nobody has it" },
            (Some(who), None) => { "Assigned to " strong { (who) } ", not claimed yet" },
            (Some(who), Some(since)) => { strong { (who) } " has it, claimed " (time::ago(since)) },
        }
    }
}

/// The time that is left to decide.
pub(crate) fn time_left(escalation: &DeskEscalation) -> Markup {
    html! {
        @if escalation.is_stopped { span.stopped { "Time stopped" } }
        @else if let Some(deadline) = &escalation.deadline { (time::countdown(deadline)) }
    }
}

/// The button that takes an escalation nobody has.
pub(super) fn claim_button(escalation: &DeskEscalation, csrf: &str) -> Markup {
    let offers = escalation.assignee.is_none() && matches!(escalation.offer, DeskOffer::As(_));
    html! {
        @if offers {
            (form(escalation, DeskPlace::List, csrf, &html! {
                button.small type="submit" name="action" value="claim" {
                    "Claim" span.visually-hidden { " “" (escalation.reason) "”" }
                }
            }))
        }
    }
}

/// Who has it, and the buttons that change that. `number` is its position on the page: part of the ids of its fields.
pub(crate) fn desk_work(
    escalation: &DeskEscalation,
    number: usize,
    place: DeskPlace<'_>,
    csrf: &str,
) -> Markup {
    let assignee = escalation.assignee.as_deref();
    let is_claimed = escalation.claimed_at.is_some();
    let is_reader = match &escalation.offer {
        DeskOffer::As(actor) => assignee == Some(actor.as_str()),
        // Whoever has the token may be the assignee.
        DeskOffer::WithToken => assignee.is_some() && !is_claimed,
        DeskOffer::Nothing => false,
    };
    let actor = format!("actor-{number}");
    let may_claim = assignee.is_none() || (is_reader && !is_claimed);
    html! {
        div.desk-work {
            p.holder {
                (holder(escalation))
                @if let Some(queue) = &escalation.queue { " " span.queue { "Queue " (queue) } }
            }
            @if escalation.offer != DeskOffer::Nothing {
                (form(escalation, place, csrf, &html! {
                    @if may_claim { button type="submit" name="action" value="claim" { "Claim" } }
                    @if assignee.is_some() { button type="submit" name="action" value="release" { "Release" } }
                    (token(escalation, &format!("token-{number}")))
                }))
                details.assign {
                    summary { "Assign to somebody" }
                    (form(escalation, place, csrf, &html! {
                        label for=(actor) { "Actor" }
                        input id=(actor) name="actorId" required maxlength="200" autocomplete="off"
                            autocapitalize="none" spellcheck="false";
                        button type="submit" name="action" value="assign" { "Assign" }
                        (token(escalation, &format!("assign-token-{number}")))
                    }))
                }
            }
        }
    }
}

fn form(escalation: &DeskEscalation, place: DeskPlace<'_>, csrf: &str, inside: &Markup) -> Markup {
    let (from, question) = match place {
        DeskPlace::Conversation => ("conversation", None),
        DeskPlace::Question(id) => ("inbox", Some(id)),
        DeskPlace::List => ("list", None),
    };
    html! {
        form.desk-form method="post" action=(links::escalation(&escalation.id)) {
            input type="hidden" name="csrf" value=(csrf);
            input type="hidden" name="from" value=(from);
            @if let Some(question) = question { input type="hidden" name="question" value=(question); }
            (inside)
        }
    }
}

/// Rules of an agent that are written as data know admins by a token. It is sent with the request and not kept.
fn token(escalation: &DeskEscalation, id: &str) -> Markup {
    html! {
        @if escalation.offer == DeskOffer::WithToken {
            label for=(id) { "Admin token" }
            input id=(id) type="password" name="adminToken" autocomplete="off" autocapitalize="none"
                spellcheck="false";
        }
    }
}
