BEGIN TRANSACTION;
CREATE TABLE account (
        name TEXT PRIMARY KEY,
        accountant TEXT NOT NULL, terms TEXT NOT NULL, spent TEXT NOT NULL,
        seal TEXT NOT NULL
    ) WITHOUT ROWID
    ;
INSERT INTO "account" VALUES('','basic','["2000000000000000000", "1000000000000"]','["0", "0"]','957a3a27fab30869221d22a9f78f9393c1189080052641af4fb1d7e2ffaeed5e');
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
INSERT INTO "head" VALUES('0da631cbff4bfa04539ce8c510f93276',NULL,NULL,NULL,0,'0da631cbff4bfa04539ce8c510f93276','ee069a0c29eb913ee71c30b1d34237fd7067021000af66e73eb455e4523fd80e');
COMMIT;
PRAGMA application_id = 1685089383;
PRAGMA user_version = 2;
PRAGMA journal_mode = wal;
