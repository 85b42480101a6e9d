BEGIN TRANSACTION;
CREATE TABLE account (
        name TEXT PRIMARY KEY,
        accountant TEXT NOT NULL, terms TEXT NOT NULL, spent TEXT NOT NULL,
        seal TEXT NOT NULL
    ) WITHOUT ROWID
    ;
INSERT INTO "account" VALUES('','odometer','["0", "1000000000000"]','["0", "0"]','a2e2bf39942fa970177e146b707b275c3ce6e0c0dbdf9702dd8c8e7091c0cedc');
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
INSERT INTO "head" VALUES('77febbf4b116572ada8e0aa357e69612',NULL,NULL,NULL,0,'77febbf4b116572ada8e0aa357e69612','46b42003f0da7b88cfafdc4f8517de0d48a4e81c81603a8aa8dd8b8ad6d83b25');
COMMIT;
PRAGMA application_id = 1685089383;
PRAGMA user_version = 2;
PRAGMA journal_mode = wal;
