//! Test support: a clock and ids determined by a seed, a store that fails on request, scripted
//! outgoing calls, a builder for workflow documents, a runtime built from them, and the simulator.
//!
//! A dev-dependency only. The product does not use it, and it does not depend on a database or a
//! protocol.

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
pub use failing::{CommittedEffects, FailingStore, Faults, InjectedFault, StoreConnection};
pub use ids::SimIds;
pub use performer::{CallFaults, PerformedCall, ScriptedPerformer};
pub use webhook_sender::{
    AnnouncementAttempt, DeliveryAttempt, ScriptedWebhookSender, TargetBehavior,
};
pub use workflow_builder::{WorkflowBuilder, wf};
