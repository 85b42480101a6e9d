BEGIN TRANSACTION;
CREATE TABLE account (
        name TEXT PRIMARY KEY,
        accountant TEXT NOT NULL, terms TEXT NOT NULL, spent TEXT NOT NULL,
        seal TEXT NOT NULL
    ) WITHOUT ROWID
    ;
INSERT INTO "account" VALUES('','zcdp','["2000000000000000000", "1000000000000", "400000000000", "82026870100640740"]','["0", "0"]','1df107012fb4df03cfa5c1a4fc048960096e2ce6626c1915ad2509f48e946f0c');
CREATE TABLE entry (
        number INTEGER PRIMARY KEY,
        count INTEGER NOT NULL,
        call INTEGER NOT NULL,
        time INTEGER NOT NULL,
        account TEXT NOT NULL,
        epsilon TEXT NOT NULL, delta TEXT NOT NULL, cost TEXT NOT NULL,
        event TEXT NOT NULL, description TEXT NOT NULL,
        payload BLOB,
        seal TEXT NOT NULL
    );
CREATE TABLE head (
        ledger TEXT NOT NULL,
        dataset TEXT, privacy_unit TEXT, neighbors TEXT,
        entries INTEGER NOT NULL,
        last_seal TEXT NOT NULL,
        seal TEXT NOT NULL
    );
INSERT INTO "head" VALUES('46487cf74fe97707a2248c72ee6df314',NULL,NULL,NULL,0,'46487cf74fe97707a2248c72ee6df314','c253170c738832a470fcce957b38b8398458c222a52ae0b2f8cb78cb7da5c71e');
COMMIT;
PRAGMA application_id = 1685089383;
PRAGMA user_version = 2;
PRAGMA journal_mode = wal;
