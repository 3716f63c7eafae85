//! What Tandem speaks. Shapes of the OpenWOP wire and the one projection from stored facts to
//! them: REST, streams, bundles and exports all pass through [`v1::project`], so that masking and
//! naming are decided once. No I/O, no state.
//!
//! The next protocol major lives beside `v1`, never mixed with it.

pub mod v1;
