//! A test may force an engine version. Only test keys may, and only the served version exists.

use crate::app::App;
use crate::error::{AppError, ForbiddenReason};
use tandem_access::Identity;
use tandem_runtime::ENGINE_VERSION;

impl App {
    /// Checks the engine version a caller forces. `place` names it in the error.
    pub fn check_engine_version(
        &self,
        caller: &Identity,
        forced: Option<&str>,
        place: &str,
    ) -> Result<(), AppError> {
        let Some(forced) = forced else {
            return Ok(());
        };
        if !caller.test_key {
            return Err(ForbiddenReason::EngineVersion.into());
        }
        match forced.parse() {
            Ok(ENGINE_VERSION) => Ok(()),
            Ok(_) => Err(AppError::UnsupportedEngineVersion {
                served: ENGINE_VERSION,
            }),
            Err(_) => {
                let message = "must be a whole number of at least 0";
                Err(AppError::invalid(place, message))
            }
        }
    }
}
