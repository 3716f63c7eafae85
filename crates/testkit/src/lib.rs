//! What tests are made of: a clock and ids that a seed decides, a store that fails on cue, a world
//! that answers by script, workflow documents in a few words, a runtime built of them, and the
//! simulator.
//!
//! A dev-dependency only. Nothing here is used by the product, and nothing here knows a database or
//! a protocol.

mod clock;
mod failing;
mod ids;
pub mod linearizability;
mod performer;
pub mod sim;
pub mod test_host;
mod webhook_sender;
mod workflow_builder;

pub use clock::SimClock;
pub use failing::{CommittedEffects, FailingStore, Faults, InjectedFault};
pub use ids::SimIds;
pub use performer::{CallFaults, PerformedCall, ScriptedPerformer};
pub use webhook_sender::{
    AnnouncementAttempt, DeliveryAttempt, ScriptedWebhookSender, TargetBehavior,
};
pub use workflow_builder::{WorkflowBuilder, wf};
