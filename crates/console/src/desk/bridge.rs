//! The bridge of a conversation: to which desk it relays, since when, and the button that stops it.

use super::escalation::DeskOffer;
use crate::{links, time};
use maud::{Markup, html};

#[derive(Debug, Clone, Default)]
pub struct DeskBridge {
    pub id: String,
    /// The number by which people name it.
    pub number: String,
    /// The target, with its label if it has one.
    pub target: String,
    /// `mirror` or `shadow`.
    pub mode: String,
    pub started_at: String,
    pub deadline: Option<String>,
    /// What the reader may do about it.
    pub offer: DeskOffer,
}

pub(super) fn bridge_part(bridge: Option<&DeskBridge>, csrf: &str) -> Markup {
    html! {
        // An empty part stays, so that the live stream can fill it.
        section.panel data-part="bridge" aria-labelledby="bridge-title" hidden[bridge.is_none()] {
            div.panel-head { h2 #bridge-title { "Bridge to a desk" } }
            @if let Some(bridge) = bridge {
                dl.pad.flow-facts {
                    div { dt { "Desk" } dd { (bridge.target) } }
                    div { dt { "Number" } dd { code { "#" (bridge.number) } } }
                    div { dt { "Mode" } dd { (bridge.mode) } }
                    div { dt { "Since" } dd { (time::ago(&bridge.started_at)) } }
                    @if let Some(deadline) = &bridge.deadline {
                        div { dt { "Ends" } dd { (time::countdown(deadline)) } }
                    }
                }
                @if bridge.offer != DeskOffer::Nothing {
                    form.desk-form.pad method="post" action=(links::bridge_stop(&bridge.id))
                        data-confirm="Stop this bridge? The desk gets no more messages of this user." {
                        input type="hidden" name="csrf" value=(csrf);
                        button.danger #action-stop-bridge type="submit" { "Stop" span.visually-hidden { " this bridge" } }
                        @if bridge.offer == DeskOffer::WithToken {
                            label for="bridge-token" { "Admin token" }
                            input #bridge-token type="password" name="adminToken" autocomplete="off"
                                autocapitalize="none" spellcheck="false";
                        }
                    }
                }
            }
        }
    }
}
