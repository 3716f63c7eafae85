//! Machine tables: given a workflow and what happened so far, when a command comes, then these
//! events, one per line. [`stage::Stage`] checks the machine's invariants after every decision, so
//! each table proves them too.

mod acts;
mod agents;
mod flow;
mod foresee;
mod fork_ids;
mod forked_crews;
mod forks;
mod gates;
mod lines;
mod stage;

mod announcing;
mod answer_orders;
mod binding;
mod bounds;
mod branching;
mod cancelling;
mod channel_triggers;
mod channels;
mod checked_outputs;
mod children;
mod children_refused;
mod convergence;
mod conversations;
mod deciders;
mod decisions;
mod early_events;
mod effects;
mod fan_out;
mod floor;
mod linear;
mod links;
mod loops;
mod mock_replays;
mod mocks;
mod model_replays;
mod models;
mod overdue;
mod packs;
mod pausing;
mod random_graphs;
mod random_steps;
mod retries;
mod sensitive;
mod supervising;
mod test_only;
mod timers;
mod tools;
mod transitions;
mod trigger_rules;
mod trust;
mod turns;
mod variables;
mod verifying;
