//! What tests are made of: a clock and ids that a seed decides, a store that fails on cue, a world
//! that answers by script, workflow documents in a few words, a runtime built of them, and the
//! simulator.
//!
//! A dev-dependency only. Nothing here is used by the product, and nothing here knows a database or
//! a protocol.

mod clock;
mod courier;
mod failing;
mod flow;
pub mod house;
mod ids;
pub mod linear;
pub mod sim;
mod world;

pub use clock::SimClock;
pub use courier::{Announced, Carried, ScriptedCourier, Target};
pub use failing::{FailingStore, Faults, Mishap, Seen};
pub use flow::{Flow, wf};
pub use ids::SimIds;
pub use world::{Performed, Script, ScriptedWorld};
