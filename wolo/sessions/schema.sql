-- One database for all sessions of a user. Version 1; later versions are reached by migrations.py.
-- Entries are only added. The columns of `sessions` besides id, cwd and parent can be computed from the
-- entries; they are stored so that a listing need not read those.

CREATE TABLE sessions (
    id      TEXT PRIMARY KEY,
    name    TEXT UNIQUE,                    -- the alias a person gave, if any
    title   TEXT NOT NULL DEFAULT '',
    cwd     TEXT NOT NULL,                  -- real path of the directory it was started in
    model   TEXT NOT NULL DEFAULT '',
    mode    TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,                  -- unix seconds, for people
    updated REAL NOT NULL,
    touched INTEGER NOT NULL,               -- order of last use among all sessions; clocks may go backwards, this does not
    turns   INTEGER NOT NULL DEFAULT 0,
    tokens  INTEGER NOT NULL DEFAULT 0,
    cost    REAL DEFAULT 0,                 -- US dollars; NULL as soon as one answer's price is unknown
    parent  TEXT,                           -- the session this one is a fork of; ID/AGENT: an agent worked in it
                                            -- on a task of that one; it may be gone
    head    INTEGER NOT NULL DEFAULT 0      -- seq of the entry the next one follows
) WITHOUT ROWID;

CREATE INDEX sessions_by_touch ON sessions (touched);
CREATE INDEX sessions_by_cwd ON sessions (cwd, touched);

CREATE TABLE entries (
    session   TEXT NOT NULL,
    seq       INTEGER NOT NULL,             -- 1, 2, 3 … without gaps: the only order there is
    parent    INTEGER,                      -- seq of the entry this one follows; NULL for the first of a branch
    kind      TEXT NOT NULL,
    time_utc  REAL NOT NULL,                -- unix seconds, for people
    prev_hash BLOB NOT NULL,                -- hash of the parent entry, empty for the first
    hash      BLOB NOT NULL,                -- over prev_hash, seq, time and body
    body      TEXT,                         -- JSON of the entry; NULL when it lies in a file
    blob      TEXT,                         -- then the name of that file in blobs/
    UNIQUE (session, seq)
);

CREATE TABLE blobs (                        -- which session needs which file of blobs/
    session TEXT NOT NULL,
    name    TEXT NOT NULL,
    PRIMARY KEY (session, name)
) WITHOUT ROWID;

CREATE INDEX blobs_by_name ON blobs (name);
