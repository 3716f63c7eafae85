-- Version 8. Events that are appended together share a row.

-- `place` is the number of the stream, shifted by 24 bits, and the sequence of the row's last
-- event. Bodies are separated by U+001E.
CREATE TABLE appended (
    place  INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    bodies TEXT    NOT NULL
) STRICT;

INSERT INTO appended SELECT (stream_no << 24) | seq, at, body FROM events ORDER BY stream_no, seq;
DROP TABLE events;
ALTER TABLE appended RENAME TO events;
