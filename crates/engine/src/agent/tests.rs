//! Configurations of agents: what is accepted with which defaults, and what is refused.
