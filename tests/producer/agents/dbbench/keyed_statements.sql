SELECT COUNT(*) FROM users
SELECT id, name FROM users WHERE email = 'ANN@X.ORG'
SELECT id FROM users WHERE code = 'B'
SELECT MAX(id), MIN(email) FROM users
SELECT name, score FROM users WHERE id > 1 ORDER BY id DESC LIMIT 2
SELECT id FROM users WHERE id = '5'
SELECT id / 2 FROM users ORDER BY id
SELECT CONCAT(id, '/', is_new) FROM users ORDER BY id
SELECT is_new, COUNT(*) FROM users GROUP BY is_new ORDER BY is_new
SELECT SUM(is_new), AVG(age) FROM users
INSERT INTO users (email) VALUES ('eve@x.org')
INSERT INTO users (id, email) VALUES (NULL, 'eve@x.org')
INSERT INTO users (id, email) VALUES (3, 'eve@x.org')
INSERT INTO users (id, email) VALUES (-3, 'eve@x.org')
INSERT INTO users (id, email) VALUES ('30', 'eve@x.org')
INSERT INTO users (id, email) VALUES (20, 'eve@x.org'), (NULL, 'joe@x.org')
INSERT INTO users (email) VALUES ('eve@x.org'), ('joe@x.org'), ('sue@x.org')
INSERT INTO users (id, email) VALUES (1, 'eve@x.org')
INSERT INTO users (id, email) VALUES (5, 'eve@x.org')
INSERT INTO users (id, email) VALUES ('x', 'eve@x.org')
INSERT INTO users (id, email) VALUES (2147483648, 'eve@x.org')
INSERT INTO users (id, email) VALUES (2147483647, 'eve@x.org')
INSERT INTO users (email) VALUES ('ann@x.org')
INSERT INTO users (email) VALUES ('ANN@x.org ')
INSERT INTO users (email) VALUES ('CE@x.org')
INSERT INTO users (email) VALUES ('eve@x.org'), ('eve@x.org')
INSERT INTO users (email) VALUES ('eve@x.org'), ('ann@x.org')
INSERT INTO users (email) VALUES (NULL)
INSERT INTO users (email) VALUES ('eve@x.org'), (NULL)
INSERT INTO users (name) VALUES ('Eve')
INSERT INTO users (email, age) VALUES ('eve@x.org', NULL)
INSERT INTO users (email, age) VALUES ('eve@x.org', -1)
INSERT INTO users (email, score) VALUES ('eve@x.org', NULL)
INSERT INTO users (email, code) VALUES ('eve@x.org', NULL)
INSERT INTO users (email, code) VALUES ('eve@x.org', 'A')
INSERT INTO users (email, code) VALUES ('eve@x.org', 'b')
INSERT INTO users (email, code) VALUES ('eve@x.org', 'c   ')
INSERT INTO users (email, code) VALUES ('eve@x.org', 'abcde')
INSERT INTO users (email, is_new) VALUES ('eve@x.org', FALSE)
INSERT INTO users (email, is_new) VALUES ('eve@x.org', 127)
INSERT INTO users (email, is_new) VALUES ('eve@x.org', 128)
INSERT INTO users (email, name) SELECT CONCAT(name, '2'), name FROM users WHERE name IS NOT NULL
INSERT INTO users (email, name) SELECT email, name FROM users
INSERT INTO users (email, age) SELECT CONCAT(email, '2'), NULL FROM users
INSERT INTO users VALUES (NULL, 'eve@x.org', 'Eve', 20, 1.005, '2024-1-5', 'zz', 'hi', 1)
INSERT INTO users VALUES (8, 'eve@x.org', NULL, 20, NULL, NULL, NULL, NULL, 1)
INSERT INTO users VALUES (8, NULL, NULL, 20, NULL, NULL, NULL, NULL, 1)
REPLACE INTO users (id, email) VALUES (1, 'eve@x.org')
REPLACE INTO users (id, email) VALUES (1, 'bob@x.org')
REPLACE INTO users (email) VALUES ('ANN@x.org')
REPLACE INTO users (id, email, age) VALUES (1, 'eve@x.org', NULL)
REPLACE INTO users (id, name) VALUES (1, 'Eve')
UPDATE users SET email = 'eve@x.org' WHERE id = 1
UPDATE users SET email = 'bob@x.org' WHERE id = 1
UPDATE users SET email = 'same@x.org'
UPDATE users SET email = UPPER(email)
UPDATE users SET email = NULL WHERE id = 2
UPDATE users SET age = NULL WHERE id = 2
UPDATE users SET name = NULL
UPDATE users SET id = 10 WHERE id = 1
UPDATE users SET id = 2 WHERE id = 1
UPDATE users SET id = NULL WHERE id = 1
UPDATE users SET id = id + 1
UPDATE users SET id = id - 1 WHERE id > 2
UPDATE users SET id = id + 100
UPDATE users SET code = 'a' WHERE id = 5
UPDATE users SET code = NULL
UPDATE users SET is_new = 1 - is_new
UPDATE users SET score = score * 2 WHERE born > '1999-1-1'
DELETE FROM users WHERE id = 7
DELETE FROM users ORDER BY id DESC LIMIT 2
DELETE FROM users WHERE code IS NULL
