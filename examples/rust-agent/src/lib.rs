//! The desk of a clinic as an agent in Rust: one flow that books an appointment, and its two tools.
//!
//! The flow asks and confirms. It may wait for days, while the process is restarted or a new version of it is
//! installed; nothing that it did before is done again. Tools do the work outside, here in [`Calendar`].

mod calendar;

pub use calendar::Calendar;

use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tandem::{
    Confirm, FlowContext, FlowResult, FlowReturn, RustAgent, RustFlow, RustTool, ToolContext,
};

/// The id of the agent, in addresses and in the console.
pub const AGENT: &str = "clinic";

/// What the flow may be started with, for example by another flow or over HTTP.
#[derive(Debug, Default, Deserialize)]
pub struct BookingInput {
    pub service: Option<String>,
}

/// Books an appointment. The only things a flow awaits are methods of `ctx`.
async fn booking(ctx: FlowContext, input: Option<BookingInput>) -> FlowResult {
    let service = input.and_then(|input| input.service);
    let service = service.unwrap_or_else(|| "cleaning".to_owned());
    let price = ctx.tool("price", json!({ "service": service })).await?;
    ctx.say(format!("A {service} costs {} euro.", price["eur"]))
        .await?;

    let date = ctx.ask("date", "When do you want to come?").await?;
    let question = Confirm::new(format!("Book a {service} on {date}?")).timeout_seconds(300);
    if !ctx.confirm(question).await? {
        ctx.say("Then not. Write again when you like.").await?;
        return ctx.end("user_declined").await;
    }

    let args = json!({ "service": service, "date": date });
    let booked = ctx.tool("create_appointment", args).await?;
    ctx.kv()
        .set("lastAppointment", booked["id"].clone())
        .await?;
    ctx.say(format!("Booked as number {}.", booked["id"]))
        .await?;
    Ok(FlowReturn::because("booked"))
}

#[derive(Debug, Deserialize)]
struct PriceArgs {
    service: String,
}

fn price_tool(calendar: Arc<Calendar>) -> RustTool {
    let handler = move |args: PriceArgs, _: ToolContext| {
        let calendar = calendar.clone();
        async move { calendar.price(&args.service) }
    };
    RustTool::new("price", handler)
        .description("The price of a service in euro")
        .parameters(json!({
            "type": "object",
            "properties": { "service": { "type": "string" } },
            "required": ["service"],
        }))
}

#[derive(Debug, Deserialize)]
struct AppointmentArgs {
    service: String,
    date: String,
}

/// The idempotency key makes a second attempt after a crash find the first one's appointment.
fn appointment_tool(calendar: Arc<Calendar>) -> RustTool {
    let handler = move |args: AppointmentArgs, ctx: ToolContext| {
        let calendar = calendar.clone();
        async move {
            let id = calendar.book(&ctx.idempotency_key(), &args.service, &args.date);
            Ok::<_, String>(json!({ "id": id }))
        }
    };
    RustTool::new("create_appointment", handler).description("Books an appointment")
}

/// The whole agent. The settings are those of an agent file; the scripted model needs no key and no network.
pub fn agent(calendar: Arc<Calendar>) -> RustAgent {
    RustAgent::new(AGENT, "You run the desk of a clinic.")
        .set(
            "model",
            json!({
                "provider": "scripted",
                "script": {
                    "answers": [{
                        "when": { "purpose": "router", "contains": "book" },
                        "structured": { "flow": "booking", "confidence": 0.9 },
                        "times": 0,
                    }],
                    "otherwise": { "text": "How can I help?" },
                },
            }),
        )
        .set(
            "flowRouter",
            json!({ "mode": "detector", "prompt": "Which flow?", "minConfidence": 0.6 }),
        )
        // Another version when it asks or does something else than before: see the guide.
        .flow(RustFlow::new("booking", 1, booking).description("Books an appointment"))
        .tool(price_tool(calendar.clone()))
        .tool(appointment_tool(calendar))
}
