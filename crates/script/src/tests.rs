//! Tests through the public surface: agents are folders, flows are driven step by step.

mod agent_functions;
mod argument_order;
mod environment;
mod fixtures;
mod flow_steps;
mod helpers;
mod host_calls;
mod hostile_code;
mod loading;
mod packages;
mod parked_functions;
mod positions;
mod time_zones;
mod type_declarations;
mod typescript;
