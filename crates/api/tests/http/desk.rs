//! The desk of the console: conversations, their transcripts, and their questions in the inbox.
