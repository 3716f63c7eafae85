//! Errors of loading as a reader is shown them.

use tandem_record::conversation::AgentFileError;

pub(crate) fn file_error(error: tandem_script::LoadError) -> AgentFileError {
    AgentFileError {
        file: error.file,
        line: error.line,
        column: error.column,
        message: error.message,
    }
}
