-- Version 18: bridges between sessions and desks, the lists that show them, and the messages they sent to their desks.
CREATE TABLE proxies (
    position         INTEGER PRIMARY KEY AUTOINCREMENT,
    proxy_id         TEXT    NOT NULL UNIQUE,
    session_id       TEXT    NOT NULL,
    tenant           TEXT    NOT NULL,
    workspace        TEXT,
    agent            TEXT    NOT NULL,
    user_external_id TEXT    NOT NULL,
    transport        TEXT    NOT NULL,
    address          TEXT    NOT NULL,
    short_id         TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    started_at       INTEGER NOT NULL,
    body             TEXT    NOT NULL
) STRICT;

CREATE INDEX proxies_by_session ON proxies (session_id);

CREATE INDEX proxies_by_desk ON proxies (tenant, agent, transport, address, status, position);

CREATE INDEX proxies_by_short_id ON proxies (tenant, agent, transport, address, short_id, position);

CREATE TABLE proxy_lists (
    tenant    TEXT    NOT NULL,
    workspace TEXT    NOT NULL,
    list      TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (tenant, workspace, list, status, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE proxy_messages (
    tenant     TEXT NOT NULL,
    agent      TEXT NOT NULL,
    transport  TEXT NOT NULL,
    address    TEXT NOT NULL,
    message_id TEXT NOT NULL,
    proxy_id   TEXT NOT NULL,
    PRIMARY KEY (tenant, agent, transport, address, message_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX proxy_messages_by_proxy ON proxy_messages (proxy_id);
