//! Effects of flows: what is accepted, what is refused, what they look like when stored.
