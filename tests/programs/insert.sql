-- Inserts rows into a table of the database file, in 20 transactions of 120, and reads them back:
--   sqlite3 FILE < insert.sql
-- The database must not exist yet. Prints what it found, always the same.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE persist (id INTEGER PRIMARY KEY, address INTEGER NOT NULL, line TEXT NOT NULL);
CREATE INDEX persist_by_address ON persist (address);
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counter WHERE n < 119)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 120 UNION ALL SELECT n + 1 FROM counter WHERE n < 239)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 240 UNION ALL SELECT n + 1 FROM counter WHERE n < 359)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 360 UNION ALL SELECT n + 1 FROM counter WHERE n < 479)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 480 UNION ALL SELECT n + 1 FROM counter WHERE n < 599)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 600 UNION ALL SELECT n + 1 FROM counter WHERE n < 719)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 720 UNION ALL SELECT n + 1 FROM counter WHERE n < 839)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 840 UNION ALL SELECT n + 1 FROM counter WHERE n < 959)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 960 UNION ALL SELECT n + 1 FROM counter WHERE n < 1079)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 1080 UNION ALL SELECT n + 1 FROM counter WHERE n < 1199)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 1200 UNION ALL SELECT n + 1 FROM counter WHERE n < 1319)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 1320 UNION ALL SELECT n + 1 FROM counter WHERE n < 1439)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 1440 UNION ALL SELECT n + 1 FROM counter WHERE n < 1559)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 1560 UNION ALL SELECT n + 1 FROM counter WHERE n < 1679)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 1680 UNION ALL SELECT n + 1 FROM counter WHERE n < 1799)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 1800 UNION ALL SELECT n + 1 FROM counter WHERE n < 1919)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 1920 UNION ALL SELECT n + 1 FROM counter WHERE n < 2039)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 2040 UNION ALL SELECT n + 1 FROM counter WHERE n < 2159)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 2160 UNION ALL SELECT n + 1 FROM counter WHERE n < 2279)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
INSERT INTO persist (address, line)
  WITH RECURSIVE counter(n) AS (SELECT 2280 UNION ALL SELECT n + 1 FROM counter WHERE n < 2399)
  SELECT n * 2654435761 % 65536, printf('line %d of the pool', n) FROM counter;
SELECT count(*), sum(address), min(line), max(line) FROM persist;
SELECT count(*) FROM persist WHERE address BETWEEN 1000 AND 20000;
PRAGMA integrity_check;
